//! A rule (OpenFlow: flow entry).
//!
//! A rule is immutable: a modification replaces it by one with the same counters. A worker may use
//! a rule while the tables change.

use std::borrow::Borrow;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use std::time::Duration;

use base::{Cookie, GroupId, Instant, PortNo, TableId};
use flow::field::Depth;
use flow::{Action, Extension, FlowFlags, FlowStats, FlowStatsRequest, Instructions, Match};

use super::RuleFilter;
use crate::counters::{Counters, Totals};
use crate::instructions::SharedInstructions;
use crate::instructions::match_facts::MatchFacts;

/// The identity of a rule: two rules of a pipeline differ in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RuleIdentity {
    pub(crate) table: TableId,
    pub(crate) priority: Reverse<u16>,
    pub(crate) matching: Match,
}

/// A rule's position in its table: by descending priority, then by age, so that rules added in
/// sequence are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RulePosition(u64);

impl RulePosition {
    /// Bits of the serial number: enough for a million rules per second for nine years.
    const SERIAL_BITS: u32 = 48;

    /// The position before all rules.
    pub(crate) const FIRST: Self = Self(0);

    /// Returns the position of the rule with this serial number.
    pub(crate) const fn new(priority: u16, serial: u64) -> Self {
        let serial = serial & (u64::MAX >> (64 - Self::SERIAL_BITS));
        Self((!priority as u64) << Self::SERIAL_BITS | serial)
    }

    /// Returns the first and the last position of a priority.
    pub(crate) const fn all_of(priority: u16) -> std::ops::RangeInclusive<Self> {
        Self::new(priority, 0)..=Self::new(priority, u64::MAX)
    }
}

/// A rule. There may be a million, so it is small: rules with equal instructions share them.
#[derive(Debug)]
pub struct Rule {
    pub(crate) identity: RuleIdentity,
    pub(crate) position: RulePosition,
    /// The controller's identifier.
    pub cookie: Cookie,
    /// The instructions.
    pub instructions: Arc<SharedInstructions>,
    /// Seconds without a packet after which the rule expires; zero for never.
    pub idle_timeout_s: u16,
    /// Seconds after which the rule expires; zero for never.
    pub hard_timeout_s: u16,
    /// Importance for eviction.
    pub importance: u16,
    /// Flags.
    pub flags: FlowFlags,
    /// Time of its addition.
    pub created: Instant,
    /// Time of the last change of its instructions.
    pub modified: Instant,
    /// Counters, and the time of the last use; the addition counts as a use.
    pub counters: Counters,
}

/// A rule ordered by identity, for sets.
#[derive(Clone, Debug)]
pub(crate) struct RuleByIdentity(pub(crate) Arc<Rule>);

impl Borrow<RuleIdentity> for RuleByIdentity {
    fn borrow(&self) -> &RuleIdentity {
        &self.0.identity
    }
}

impl PartialEq for RuleByIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.0.identity == other.0.identity
    }
}

impl Eq for RuleByIdentity {}

impl PartialOrd for RuleByIdentity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RuleByIdentity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.identity.cmp(&other.0.identity)
    }
}

impl Rule {
    /// Returns a copy, to be modified. It shares the counters.
    pub(crate) fn copy(&self) -> Self {
        Self {
            identity: self.identity.clone(),
            position: self.position,
            cookie: self.cookie,
            instructions: Arc::clone(&self.instructions),
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            importance: self.importance,
            flags: self.flags,
            created: self.created,
            modified: self.modified,
            counters: self.counters.clone(),
        }
    }

    /// Returns the table.
    #[must_use]
    pub const fn table(&self) -> TableId {
        self.identity.table
    }

    /// Returns the priority.
    #[must_use]
    pub fn priority(&self) -> u16 {
        self.identity.priority.0
    }

    /// Returns the match.
    #[must_use]
    pub fn matching(&self) -> &Match {
        &self.identity.matching
    }

    /// True for the table-miss rule: priority zero and a match of all packets (OF 1.3.5, 5.4).
    #[must_use]
    pub fn is_table_miss(&self) -> bool {
        self.priority() == 0 && self.matching().is_any()
    }

    /// True if it precedes `other` in their table: its priority is higher or, where the
    /// specification leaves the order open, it is older.
    #[must_use]
    pub fn precedes(&self, other: &Self) -> bool {
        self.position < other.position
    }

    /// True for a clause of a conjunction, which has no effect of its own.
    #[must_use]
    pub fn is_clause(&self) -> bool {
        self.instructions.facts().is_clause
    }

    /// True if it is several clauses of one conjunction, and may complete it alone.
    #[must_use]
    pub fn repeats_conjunction(&self) -> bool {
        self.instructions.facts().repeats_conjunction
    }

    /// Returns the time of the last matching packet, or of the addition.
    #[must_use]
    pub fn last_used(&self) -> Instant {
        self.counters.last_used()
    }

    /// Returns the parse depth that the rule needs.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let of_match = MatchFacts::of(self.matching()).depth();
        of_match.max(self.instructions.facts().depth)
    }

    /// True if one of its own actions can output a packet to `port`.
    #[must_use]
    pub fn outputs_to(&self, port: PortNo) -> bool {
        self.instructions.actions().any(|action| match action {
            Action::Output { port: to, .. }
            | Action::Enqueue { port: to, .. }
            | Action::Extended(Extension::OutputTruncated { port: to, .. }) => *to == port,
            Action::Extended(Extension::Controller(_)) => port == PortNo::CONTROLLER,
            _ => false,
        })
    }

    /// True if a statistics request selects it.
    #[must_use]
    pub fn is_selected_by(&self, request: &FlowStatsRequest) -> bool {
        let in_table = request.table == TableId::ALL || request.table == self.table();
        in_table && RuleFilter::of_request(request).selects(self)
    }

    /// Returns the groups that its own actions send packets to.
    pub(crate) fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.instructions.facts().groups.iter().copied()
    }

    /// Returns the idle and hard timeouts, in seconds.
    pub(crate) const fn timeouts(&self) -> (u16, u16) {
        (self.idle_timeout_s, self.hard_timeout_s)
    }

    /// Returns the timeouts after they are shortened to at most these.
    pub(crate) fn shortened_timeouts(&self, idle_s: u16, hard_s: u16) -> (u16, u16) {
        let (idle, hard) = self.timeouts();
        (shorter(idle, idle_s), shorter(hard, hard_s))
    }

    /// Returns the counters' sums.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.counters.totals()
    }

    /// Returns the statistics.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> FlowStats {
        let totals = self.counters.totals();
        FlowStats {
            table: self.table(),
            priority: self.priority(),
            cookie: self.cookie,
            matching: self.matching().clone(),
            instructions: Instructions::clone(&self.instructions),
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            importance: self.importance,
            flags: self.flags,
            duration: now - self.created,
            idle_age: now - self.last_used(),
            hard_age: now - self.modified,
            packets: totals.packets,
            bytes: totals.bytes,
        }
    }

    /// Returns the time of the hard timeout. A modification restarts it, as in Open vSwitch; the
    /// specification leaves this open by "left unchanged" (OF 1.3.5, 6.4).
    pub(crate) fn hard_deadline(&self) -> Option<Instant> {
        after(self.modified, self.hard_timeout_s)
    }

    /// Returns the time of the idle timeout, if no further packet matches. It does not precede the
    /// addition, because a rule that replaces another has the last use of that one.
    pub(crate) fn idle_deadline(&self) -> Option<Instant> {
        let idle_timeout_s = (self.idle_timeout_s != 0).then_some(self.idle_timeout_s)?;
        after(self.last_used().max(self.created), idle_timeout_s)
    }

    /// Returns the earlier of the two, if no further packet matches.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.hard_deadline(), self.idle_deadline()]
            .into_iter()
            .flatten()
            .min()
    }
}

fn after(start: Instant, timeout_s: u16) -> Option<Instant> {
    (timeout_s != 0).then(|| start + Duration::from_secs(timeout_s.into()))
}

/// Returns the shorter of two timeouts. Zero means none.
pub(crate) fn shorter(timeout_s: u16, limit_s: u16) -> u16 {
    match (timeout_s, limit_s) {
        (timeout, 0) | (0, timeout) => timeout,
        (timeout, limit) => timeout.min(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_takes_120_bytes() {
        assert_eq!(size_of::<Rule>(), 120);
    }
}

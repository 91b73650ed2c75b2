//! A rule (the specification: a flow entry), as it stands in a table.
//!
//! A rule never changes: a modification puts another in its place, which goes on
//! with the same counters. So a worker may hold one while the tables move on.

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

/// What makes a rule the one it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RuleIdentity {
    pub(crate) table: TableId,
    pub(crate) priority: Reverse<u16>,
    pub(crate) matching: Match,
}

/// A rule's place in its table: the higher priority first and, of one priority, the
/// rule that came first, so that rules that come one after the other lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RulePosition(u64);

impl RulePosition {
    /// Bits of the number of a rule: enough for a million a second for nine years.
    const SERIAL_BITS: u32 = 48;

    /// Before all others.
    pub(crate) const FIRST: Self = Self(0);

    /// The place of the rule of this number.
    pub(crate) const fn new(priority: u16, serial: u64) -> Self {
        let serial = serial & (u64::MAX >> (64 - Self::SERIAL_BITS));
        Self((!priority as u64) << Self::SERIAL_BITS | serial)
    }

    /// The first and the last place of a priority.
    pub(crate) const fn all_of(priority: u16) -> std::ops::RangeInclusive<Self> {
        Self::new(priority, 0)..=Self::new(priority, u64::MAX)
    }
}

/// A rule. There may be a million, so it is kept small: what it does is shared with
/// other rules that do the same.
#[derive(Debug)]
pub struct Rule {
    pub(crate) identity: RuleIdentity,
    pub(crate) place: RulePosition,
    /// The controller's mark.
    pub cookie: Cookie,
    /// What to do with a frame.
    pub instructions: Arc<SharedInstructions>,
    /// Seconds without a frame after which it goes; zero for never.
    pub idle_timeout_s: u16,
    /// Seconds after which it goes; zero for never.
    pub hard_timeout_s: u16,
    /// Its importance to eviction.
    pub importance: u16,
    /// Its flags.
    pub flags: FlowFlags,
    /// When it was added.
    pub created: Instant,
    /// When its instructions were written last.
    pub modified: Instant,
    /// Its counts, and when it was used last; it counts as used when it is added.
    pub counters: Counters,
}

/// A rule among others, in the order of their identities. There is one of each.
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
            place: self.place,
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

    /// The table it is in.
    #[must_use]
    pub const fn table(&self) -> TableId {
        self.identity.table
    }

    /// Its priority.
    #[must_use]
    pub fn priority(&self) -> u16 {
        self.identity.priority.0
    }

    /// Which frames it is for.
    #[must_use]
    pub fn matching(&self) -> &Match {
        &self.identity.matching
    }

    /// Whether it is its table's table-miss rule: priority zero, and no frame
    /// that it would not take (OF 1.3.5, 5.4).
    #[must_use]
    pub fn is_table_miss(&self) -> bool {
        self.priority() == 0 && self.matching().is_any()
    }

    /// Whether it is tried before `other` in a table that both are in: its priority
    /// is higher or, where the specification leaves it open, it came first.
    #[must_use]
    pub fn precedes(&self, other: &Self) -> bool {
        self.place < other.place
    }

    /// Whether it is a clause of a conjunction, and does nothing by itself.
    #[must_use]
    pub fn is_clause(&self) -> bool {
        self.instructions.facts().is_clause
    }

    /// When a frame matched it last, or it became active.
    #[must_use]
    pub fn last_used(&self) -> Instant {
        self.counters.last_used()
    }

    /// How deep a frame must be read for it.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let of_match = MatchFacts::of(self.matching()).depth();
        of_match.max(self.instructions.facts().depth)
    }

    /// Whether it can send a frame to `port`, by an action of its own.
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

    /// Whether a request is about it.
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

    /// What it has counted.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.counters.totals()
    }

    /// The rule as statistics tell it.
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

    /// When it goes by its hard timeout.
    pub(crate) fn hard_deadline(&self) -> Option<Instant> {
        after(self.created, self.hard_timeout_s)
    }

    /// When it goes by its idle timeout, if no frame comes.
    pub(crate) fn idle_deadline(&self) -> Option<Instant> {
        let idle_timeout_s = (self.idle_timeout_s != 0).then_some(self.idle_timeout_s)?;
        after(self.last_used(), idle_timeout_s)
    }

    /// When it goes next, if no frame comes.
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
    fn a_rule_is_small() {
        assert_eq!(size_of::<Rule>(), 120);
    }
}

//! A rule (the specification: a flow entry), as it stands in a table.
//!
//! A rule never changes: a modification puts another in its place, which goes on
//! with the same counters. So a worker may hold one while the tables move on.

use std::borrow::Borrow;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use std::time::Duration;

use base::{Cookie, Instant, PortNo, TableId};
use flow::field::Depth;
use flow::{Action, Extension, FlowFlags, FlowStats, HashFields, Instructions, Match};

use crate::check_extension::{is_clause, touches};
use crate::counters::Counters;

/// What makes a rule the one it is. The order is that of tables and of lookup: the
/// higher priority first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) table: TableId,
    pub(crate) priority: Reverse<u16>,
    pub(crate) matching: Match,
}

/// A rule. There may be a million, so it is kept small: what it does is shared with
/// other rules that do the same.
#[derive(Debug)]
pub struct Rule {
    pub(crate) identity: Identity,
    /// The controller's mark.
    pub cookie: Cookie,
    /// What to do with a frame.
    pub instructions: Arc<Instructions>,
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
    /// Before this it was not idle, whatever its counters remember.
    pub(crate) active_since: Instant,
    /// Its counts.
    pub counters: Counters,
}

/// A rule among others, in the order of their identities. There is one of each.
#[derive(Clone, Debug)]
pub(crate) struct ByIdentity(pub(crate) Arc<Rule>);

impl Borrow<Identity> for ByIdentity {
    fn borrow(&self) -> &Identity {
        &self.0.identity
    }
}

impl PartialEq for ByIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.0.identity == other.0.identity
    }
}

impl Eq for ByIdentity {}

impl PartialOrd for ByIdentity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByIdentity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.identity.cmp(&other.0.identity)
    }
}

impl Rule {
    /// The same rule, to be changed.
    pub(crate) fn again(&self) -> Self {
        Self {
            identity: self.identity.clone(),
            cookie: self.cookie,
            instructions: Arc::clone(&self.instructions),
            idle_timeout_s: self.idle_timeout_s,
            hard_timeout_s: self.hard_timeout_s,
            importance: self.importance,
            flags: self.flags,
            created: self.created,
            modified: self.modified,
            active_since: self.active_since,
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
    /// is higher or, where the specification leaves it open, its match comes first.
    #[must_use]
    pub fn is_tried_before(&self, other: &Self) -> bool {
        self.identity < other.identity
    }

    /// Whether it is a clause of a conjunction, and does nothing by itself.
    #[must_use]
    pub fn is_clause(&self) -> bool {
        self.instructions.apply.iter().any(is_clause)
    }

    /// When a frame matched it last, or it became active.
    #[must_use]
    pub fn last_used(&self) -> Instant {
        self.counters.last_used().max(self.active_since)
    }

    /// How deep a frame must be read for it.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let terms = self.matching().terms();
        let of_match = terms.map(|term| term.field.info().depth).max();
        let of_actions = self.instructions.actions().map(depth_of).max();
        of_match.max(of_actions).unwrap_or_default()
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

    /// The rule as statistics tell it.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> FlowStats {
        let totals = self.counters.totals();
        FlowStats {
            table: self.table(),
            priority: self.priority(),
            cookie: self.cookie,
            matching: self.matching().clone(),
            instructions: self.instructions.as_ref().clone(),
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
        after(self.last_used(), self.idle_timeout_s)
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

/// How deep a frame must be read for an action to do what it does.
pub(crate) fn depth_of(action: &Action) -> Depth {
    match action {
        Action::SetField { field, .. } => field.info().depth,
        Action::SetTpSrc(_) | Action::SetTpDst(_) => Depth::Transport,
        Action::Extended(extension) => depth_of_extension(extension),
        Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetNwTos(_)
        | Action::PushMpls(_)
        | Action::PopMpls(_)
        | Action::PushPbb(_)
        | Action::PopPbb
        | Action::SetMplsTtl(_)
        | Action::DecMplsTtl
        | Action::SetIpTtl(_)
        | Action::DecIpTtl
        | Action::CopyTtlOut
        | Action::CopyTtlIn => Depth::Network,
        Action::Output { .. }
        | Action::Enqueue { .. }
        | Action::SetQueue(_)
        | Action::Group(_)
        | Action::Meter(_)
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::PushVlan(_)
        | Action::PopVlan => Depth::Link,
    }
}

fn depth_of_extension(extension: &Extension) -> Depth {
    let touched = touches(extension).into_iter();
    let own = match extension {
        Extension::DecTtl(_) => Depth::Network,
        Extension::FinTimeout { .. } => Depth::Transport,
        Extension::Clone(actions) => actions.iter().map(depth_of).max().unwrap_or_default(),
        Extension::Multipath(multipath) => depth_of_hash(multipath.fields),
        Extension::Bundle(bundle) => depth_of_hash(bundle.fields),
        _ => Depth::Link,
    };
    touched
        .map(|field| field.info().depth)
        .max()
        .unwrap_or_default()
        .max(own)
}

const fn depth_of_hash(fields: HashFields) -> Depth {
    match fields {
        HashFields::EthSrc => Depth::Link,
        HashFields::NwSrc | HashFields::NwDst | HashFields::SymmetricL3 => Depth::Network,
        HashFields::SymmetricL4 | HashFields::SymmetricL3L4 | HashFields::SymmetricL3L4Udp => {
            Depth::Transport
        }
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

//! The record of a change: rules that were added and removed, and the events that flow monitors
//! derive from it.

use std::sync::Arc;

use base::{Instant, TableId};
use flow::{FlowEvent, FlowFlags, FlowRemoved, FlowRemovedReason, Refusal};

use super::{Rule, RulePosition};

/// The effect of one command on the tables.
#[derive(Debug, Default)]
pub struct Changes {
    /// Rules that are new or replace others.
    pub added: Vec<Arc<Rule>>,
    /// Rules that were removed or replaced.
    pub removed: Vec<Removal>,
    /// True if the rules in `added` are existing ones with new instructions.
    pub is_modification: bool,
    /// A refusal to answer although the tables have changed.
    pub deferred_refusal: Option<Refusal>,
}

impl Changes {
    /// Empties the record and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
        self.is_modification = false;
        self.deferred_refusal = None;
    }

    /// Returns the event of each rule, removals first. As in Open vSwitch, a modification that
    /// changes neither the cookie nor the instructions is no event.
    pub fn rule_events(&self) -> impl Iterator<Item = RuleEvent> {
        let removed = self.removed.iter().filter_map(|removal| {
            removal.reason.map(|reason| RuleEvent {
                event: FlowEvent::Removed(reason),
                rule: Arc::clone(&removal.rule),
                old: None,
            })
        });
        let replaced = self.removed.iter().filter(|gone| gone.reason.is_none());
        let mut replaced = replaced.map(|gone| &gone.rule).peekable();
        let added = self.added.iter().filter_map(move |rule| {
            let has_same_position =
                |old: &&Arc<Rule>| position_in_tables(old) == position_in_tables(rule);
            let old = replaced.next_if(has_same_position).map(Arc::clone);
            let event = match &old {
                Some(old) if self.is_modification && has_same_effect(old, rule) => return None,
                Some(_) if self.is_modification => FlowEvent::Modified,
                Some(_) | None => FlowEvent::Added,
            };
            let rule = Arc::clone(rule);
            Some(RuleEvent { event, rule, old })
        });
        removed.chain(added)
    }
}

/// The end of a rule.
#[derive(Clone, Debug)]
pub struct Removal {
    /// The rule. Its counters are final once no worker runs older tables.
    pub rule: Arc<Rule>,
    /// The reason; `None` if another rule replaced it.
    pub reason: Option<FlowRemovedReason>,
    /// The time of the removal.
    pub at: Instant,
}

impl Removal {
    /// Returns the message for controllers, if the rule requests one.
    #[must_use]
    pub fn flow_removed(&self) -> Option<FlowRemoved> {
        let rule = &self.rule;
        let reason = self.reason?;
        let totals = rule.counters.totals();
        rule.flags
            .contains(FlowFlags::SEND_FLOW_REMOVED)
            .then(|| FlowRemoved {
                matching: rule.matching().clone(),
                cookie: rule.cookie,
                priority: rule.priority(),
                reason,
                table: rule.table(),
                duration: self.at - rule.created,
                idle_timeout_s: rule.idle_timeout_s,
                hard_timeout_s: rule.hard_timeout_s,
                packets: totals.packets,
                bytes: totals.bytes,
            })
    }
}

/// An event of a rule, as flow monitors report it.
#[derive(Clone, Debug)]
pub struct RuleEvent {
    /// The event.
    pub event: FlowEvent,
    /// The rule as it is now, or was last.
    pub rule: Arc<Rule>,
    /// The rule that it replaced.
    pub old: Option<Arc<Rule>>,
}

/// Returns the position of a rule in the order of tables and of lookup. A rule that replaces another
/// inherits its position; a rule that is added again after its removal has a new one.
pub(crate) const fn position_in_tables(rule: &Rule) -> (TableId, RulePosition) {
    (rule.table(), rule.position)
}

/// True if cookie and instructions are equal.
pub(crate) fn has_same_effect(old: &Rule, new: &Rule) -> bool {
    old.cookie == new.cookie && old.instructions == new.instructions
}

//! What became of rules: by one change of the tables, or between two snapshots.

use std::cmp::Ordering;
use std::sync::Arc;

use base::TableId;
use flow::{FlowEvent, FlowRemovedReason};

use crate::flow_mod::Changes;
use crate::pipeline::Pipeline;
use crate::rule::{Rule, RulePosition};

/// What happened to a rule.
#[derive(Clone, Debug)]
pub struct RuleEvent {
    /// What happened.
    pub event: FlowEvent,
    /// The rule, as it is now or was last.
    pub rule: Arc<Rule>,
    /// The one in whose place it stands.
    pub old: Option<Arc<Rule>>,
}

impl Changes {
    /// What happened to each rule, those that are gone first. A modification that
    /// changes neither the cookie nor what the rule does is none, as with Open vSwitch.
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
        let came = self.added.iter().filter_map(move |rule| {
            let same = |old: &&Arc<Rule>| place_of(old) == place_of(rule);
            let old = replaced.next_if(same).map(Arc::clone);
            let event = match &old {
                Some(old) if self.is_modification && does_same(old, rule) => return None,
                Some(_) if self.is_modification => FlowEvent::Modified,
                Some(_) | None => FlowEvent::Added,
            };
            let rule = Arc::clone(rule);
            Some(RuleEvent { event, rule, old })
        });
        removed.chain(came)
    }
}

impl Pipeline {
    /// What became of the rules since `before` was taken, in the order of tables and
    /// of lookup, but only of those behind `last`, if there is one: a reader may stop
    /// and go on. Without `before`, every rule is one that was there at first. Why a
    /// rule is gone is not known any more: somebody deleted it.
    pub fn diff_since<'a>(
        &'a self,
        before: Option<&'a Self>,
        last: Option<&Rule>,
    ) -> impl Iterator<Item = RuleEvent> + use<'a> {
        let mut now = self.rules_behind(TableId::ALL, last).peekable();
        let known = before.map(|before| before.rules_behind(TableId::ALL, last));
        let mut known = known.into_iter().flatten().peekable();
        let is_first = before.is_none();
        std::iter::from_fn(move || {
            loop {
                let (old, new) = match (known.peek(), now.peek()) {
                    (None, None) => return None,
                    (Some(_), None) => (known.next(), None),
                    (None, Some(_)) => (None, now.next()),
                    (Some(old), Some(new)) => match place_of(old).cmp(&place_of(new)) {
                        Ordering::Less => (known.next(), None),
                        Ordering::Greater => (None, now.next()),
                        Ordering::Equal => (known.next(), now.next()),
                    },
                };
                if let Some(happening) = between(old, new, is_first) {
                    return Some(happening);
                }
            }
        })
    }
}

/// What became of the rule of one place.
fn between(old: Option<&Arc<Rule>>, new: Option<&Arc<Rule>>, is_first: bool) -> Option<RuleEvent> {
    let event = match (old, new) {
        (None, Some(_)) if is_first => FlowEvent::Initial,
        (None, _) => FlowEvent::Added,
        (Some(_), None) => FlowEvent::Removed(FlowRemovedReason::Delete),
        (Some(old), Some(new)) if Arc::ptr_eq(old, new) => return None,
        (Some(old), Some(new)) if old.created != new.created => FlowEvent::Added,
        (Some(old), Some(new)) if does_same(old, new) => return None,
        (Some(_), Some(_)) => FlowEvent::Modified,
    };
    Some(RuleEvent {
        event,
        rule: Arc::clone(new.or(old)?),
        old: new.and(old).cloned(),
    })
}

/// Where a rule is, in the order of tables and of lookup. One that takes another's place
/// has it; one that comes again after it was gone has a place of its own.
const fn place_of(rule: &Rule) -> (TableId, RulePosition) {
    (rule.table(), rule.place)
}

fn does_same(old: &Rule, new: &Rule) -> bool {
    old.cookie == new.cookie && old.instructions == new.instructions
}

#[cfg(test)]
mod tests;

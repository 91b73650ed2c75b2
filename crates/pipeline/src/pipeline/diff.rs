//! The rule events between two snapshots of the tables, for flow monitors.

use std::cmp::Ordering;
use std::sync::Arc;

use base::TableId;
use flow::{FlowEvent, FlowRemovedReason};

use super::Pipeline;
use crate::rules::changes::{has_same_effect, position_in_tables};
use crate::rules::{Rule, RuleEvent};

impl Pipeline {
    /// Returns the events of the rules since the snapshot `before`, in the order of tables and of
    /// lookup, but only of those after `last`, if it is given, so that a reader can pause. Without
    /// `before`, every rule is an initial one. Snapshots do not record why a rule was removed; its
    /// removal is reported as a deletion.
    pub fn diff_since<'a>(
        &'a self,
        before: Option<&'a Self>,
        last: Option<&Rule>,
    ) -> impl Iterator<Item = RuleEvent> + use<'a> {
        let mut new_rules = self.rules.rules_after(TableId::ALL, last).peekable();
        let old_rules = before.map(|before| before.rules.rules_after(TableId::ALL, last));
        let mut old_rules = old_rules.into_iter().flatten().peekable();
        let is_first = before.is_none();
        std::iter::from_fn(move || {
            loop {
                let (old, new) = match (old_rules.peek(), new_rules.peek()) {
                    (None, None) => return None,
                    (Some(_), None) => (old_rules.next(), None),
                    (None, Some(_)) => (None, new_rules.next()),
                    (Some(old), Some(new)) => {
                        match position_in_tables(old).cmp(&position_in_tables(new)) {
                            Ordering::Less => (old_rules.next(), None),
                            Ordering::Greater => (None, new_rules.next()),
                            Ordering::Equal => (old_rules.next(), new_rules.next()),
                        }
                    }
                };
                if let Some(event) = event_between(old, new, is_first) {
                    return Some(event);
                }
            }
        })
    }
}

/// Returns the event of the rule at one position.
fn event_between(
    old: Option<&Arc<Rule>>,
    new: Option<&Arc<Rule>>,
    is_first: bool,
) -> Option<RuleEvent> {
    let event = match (old, new) {
        (None, Some(_)) if is_first => FlowEvent::Initial,
        (None, _) => FlowEvent::Added,
        (Some(_), None) => FlowEvent::Removed(FlowRemovedReason::Delete),
        (Some(old), Some(new)) if Arc::ptr_eq(old, new) => return None,
        (Some(old), Some(new)) if old.created != new.created => FlowEvent::Added,
        (Some(old), Some(new)) if has_same_effect(old, new) => return None,
        (Some(_), Some(_)) => FlowEvent::Modified,
    };
    Some(RuleEvent {
        event,
        rule: Arc::clone(new.or(old)?),
        old: new.and(old).cloned(),
    })
}

#[cfg(test)]
mod tests;

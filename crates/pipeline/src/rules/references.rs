//! Reverse references: the rules that name each group or meter.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::{Rule, RuleByIdentity};

/// For each id, the rules that name it.
#[derive(Clone, Debug)]
pub(crate) struct References<Id: Ord> {
    rules: OrdMap<Id, OrdSet<RuleByIdentity>>,
}

impl<Id: Ord> Default for References<Id> {
    fn default() -> Self {
        Self {
            rules: OrdMap::default(),
        }
    }
}

impl<Id: Ord + Copy> References<Id> {
    /// Adds `rule` to the references of `ids`.
    pub(crate) fn add(&mut self, rule: &Arc<Rule>, ids: impl Iterator<Item = Id>) {
        for id in ids {
            let rule = RuleByIdentity(Arc::clone(rule));
            self.rules.entry(id).or_default().insert(rule);
        }
    }

    /// Removes `rule` from the references of `ids`.
    pub(crate) fn remove(&mut self, rule: &Rule, ids: impl Iterator<Item = Id>) {
        for id in ids {
            let is_unreferenced = self.rules.get_mut(&id).is_none_or(|rules| {
                rules.remove(&rule.identity);
                rules.is_empty()
            });
            if is_unreferenced {
                self.rules.remove(&id);
            }
        }
    }

    /// Returns the number of rules that name `id`.
    pub(crate) fn count(&self, id: Id) -> u32 {
        let count = self.rules.get(&id).map_or(0, OrdSet::len);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Returns the rules that name `id`, in the order of tables and of lookup.
    pub(crate) fn of(&self, id: Id) -> Vec<Arc<Rule>> {
        let rules = self.rules.get(&id).into_iter().flatten();
        rules.map(|RuleByIdentity(rule)| Arc::clone(rule)).collect()
    }
}

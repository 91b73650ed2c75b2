//! Which rules name a group or a meter: so that the end of one is the end of the
//! others (OF 1.3.5, 6.5 and 6.6), and statistics can tell how many there are.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::rule::{Rule, RuleByIdentity};

/// The rules that name each of some things.
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
    /// Takes note that `rule` names these.
    pub(crate) fn add(&mut self, rule: &Arc<Rule>, named: impl Iterator<Item = Id>) {
        for id in named {
            let rule = RuleByIdentity(Arc::clone(rule));
            self.rules.entry(id).or_default().insert(rule);
        }
    }

    /// Forgets that `rule` names these.
    pub(crate) fn remove(&mut self, rule: &Rule, named: impl Iterator<Item = Id>) {
        for id in named {
            let left = self.rules.get_mut(&id).is_none_or(|rules| {
                rules.remove(&rule.identity);
                rules.is_empty()
            });
            if left {
                self.rules.remove(&id);
            }
        }
    }

    /// How many rules name `id`.
    pub(crate) fn count(&self, id: Id) -> u32 {
        let count = self.rules.get(&id).map_or(0, OrdSet::len);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The rules that name `id`, in the order of tables and of lookup.
    pub(crate) fn of(&self, id: Id) -> Vec<Arc<Rule>> {
        let rules = self.rules.get(&id).into_iter().flatten();
        rules.map(|RuleByIdentity(rule)| Arc::clone(rule)).collect()
    }
}

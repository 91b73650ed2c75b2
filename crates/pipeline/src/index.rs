//! The rules by what makes each the one it is, so that a flow-mod finds the one it
//! replaces, changes or deletes, however many there are.
//!
//! It is for the one who writes, and no part of the value that tables are: a clone has
//! none, and makes it when it is written to. Frames are not looked up in it.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::quality::RandomState;

use crate::rule::{ByIdentity, Identity, Rule};

/// Every rule, or nothing yet. The hash is keyed by chance, lest a controller choose a
/// million matches of one hash; nothing else depends on it.
#[derive(Debug, Default)]
pub(crate) struct Index {
    rules: Option<HashSet<ByIdentity, RandomState>>,
}

impl Clone for Index {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Index {
    /// Whether it is there.
    pub(crate) const fn is_made(&self) -> bool {
        self.rules.is_some()
    }

    /// Makes it, of all rules there are.
    pub(crate) fn make(&mut self, rules: impl Iterator<Item = Arc<Rule>>) {
        self.rules = Some(rules.map(ByIdentity).collect());
    }

    /// The rule of this identity. Only if it is made: elsewhere there is another way.
    pub(crate) fn get(&self, identity: &Identity) -> Option<&Arc<Rule>> {
        let ByIdentity(rule) = self.rules.as_ref()?.get(identity)?;
        Some(rule)
    }

    /// Takes a rule in, in place of one of the same identity.
    pub(crate) fn insert(&mut self, rule: &Arc<Rule>) {
        if let Some(rules) = &mut self.rules {
            rules.replace(ByIdentity(Arc::clone(rule)));
        }
    }

    /// Forgets a rule.
    pub(crate) fn remove(&mut self, identity: &Identity) {
        if let Some(rules) = &mut self.rules {
            rules.remove(identity);
        }
    }

    /// Forgets all rules, and gives back the room for them.
    pub(crate) fn clear(&mut self) {
        self.rules = Some(HashSet::default());
    }
}

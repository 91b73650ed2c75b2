//! One table: rules in the order in which they are tried.

use std::ops::Bound;
use std::sync::Arc;

use flow::{Key, Match};
use imbl::OrdSet;

use crate::rule::{ByIdentity, Identity, Rule};

/// The rules of a table. A clone shares them until one of the two changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rules: OrdSet<ByIdentity>,
    /// How many of the rules are clauses of conjunctions.
    clauses: usize,
}

impl Table {
    /// The rule that a frame finds: of those that match, the one of the highest
    /// priority. Where two of the same priority match, the specification leaves
    /// the choice open (OF 1.3.5, 5.3); here it is the same one every time.
    #[inline]
    pub(crate) fn lookup(&self, key: &Key) -> Option<&Arc<Rule>> {
        self.rules().find(|rule| rule.matching().accepts(key))
    }

    /// Whether some of the rules are clauses of conjunctions.
    pub(crate) const fn has_clauses(&self) -> bool {
        self.clauses > 0
    }

    /// The rule of this identity.
    pub(crate) fn get(&self, identity: &Identity) -> Option<&Arc<Rule>> {
        self.rules.get(identity).map(|ByIdentity(rule)| rule)
    }

    /// All rules, in the order of lookup.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter().map(|ByIdentity(rule)| rule)
    }

    /// The rules behind the place of `identity`, or all, in the order of lookup.
    pub(crate) fn rules_behind(
        &self,
        identity: Option<&Identity>,
    ) -> impl Iterator<Item = &Arc<Rule>> + use<'_> {
        let start = identity.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.rules.range::<_, Identity>((start, Bound::Unbounded));
        range.map(|ByIdentity(rule)| rule)
    }

    /// How many rules there are.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Puts a rule in. Answers the one of the same identity that was there.
    pub(crate) fn insert(&mut self, rule: Arc<Rule>) -> Option<Arc<Rule>> {
        self.clauses += usize::from(rule.is_clause());
        let old = self.rules.insert(ByIdentity(rule));
        self.without(old)
    }

    /// Takes the rule of this identity out.
    pub(crate) fn remove(&mut self, identity: &Identity) -> Option<Arc<Rule>> {
        let old = self.rules.remove(identity);
        self.without(old)
    }

    /// Takes note that a rule is no longer there.
    fn without(&mut self, old: Option<ByIdentity>) -> Option<Arc<Rule>> {
        let ByIdentity(old) = old?;
        self.clauses -= usize::from(old.is_clause());
        Some(old)
    }

    /// Whether a rule of the same priority could match the same frame as one of this
    /// identity.
    pub(crate) fn overlaps(&self, identity: &Identity) -> bool {
        let first = Identity {
            matching: Match::any(),
            ..identity.clone()
        };
        self.rules
            .range::<_, Identity>(first..)
            .map(|ByIdentity(rule)| rule)
            .take_while(|rule| rule.identity.priority == identity.priority)
            .any(|rule| rule.matching().overlaps(&identity.matching))
    }
}

//! One table: rules in the order in which they are tried.

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;

use flow::{Key, Match};
use imbl::OrdMap;

use crate::rule::{Identity, Rule};

/// The rules of a table. A clone shares them until one of the two changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rules: OrdMap<Arc<Identity>, Arc<Rule>>,
    /// How many of the rules are clauses of conjunctions.
    clauses: usize,
}

impl Table {
    /// The rule that a frame finds: of those that match, the one of the highest
    /// priority. Where two of the same priority match, the specification leaves
    /// the choice open (OF 1.3.5, 5.3); here it is the same one every time.
    #[inline]
    pub(crate) fn lookup(&self, key: &Key) -> Option<&Arc<Rule>> {
        self.rules
            .values()
            .find(|rule| rule.matching().accepts(key))
    }

    /// Whether some of the rules are clauses of conjunctions.
    pub(crate) const fn has_clauses(&self) -> bool {
        self.clauses > 0
    }

    /// The rule of this identity.
    pub(crate) fn get(&self, identity: &Identity) -> Option<&Arc<Rule>> {
        self.rules.get(identity)
    }

    /// All rules, in the order of lookup.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.values()
    }

    /// The rules behind the place of `identity`, or all, in the order of lookup.
    pub(crate) fn rules_behind(
        &self,
        identity: Option<Arc<Identity>>,
    ) -> impl Iterator<Item = &Arc<Rule>> + use<'_> {
        let start = identity.map_or(Bound::Unbounded, Bound::Excluded);
        let range = (start, Bound::Unbounded);
        self.rules.range(range).map(|(_, rule)| rule)
    }

    /// How many rules there are.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Puts a rule in. Answers the one of the same identity that was there.
    pub(crate) fn insert(&mut self, rule: Arc<Rule>) -> Option<Arc<Rule>> {
        self.clauses += usize::from(rule.is_clause());
        let old = self.rules.insert(Arc::clone(&rule.identity), rule);
        self.clauses -= usize::from(old.as_ref().is_some_and(|old| old.is_clause()));
        old
    }

    /// Takes the rule of this identity out.
    pub(crate) fn remove(&mut self, identity: &Identity) -> Option<Arc<Rule>> {
        let old = self.rules.remove(identity);
        self.clauses -= usize::from(old.as_ref().is_some_and(|old| old.is_clause()));
        old
    }

    /// Whether a rule of this priority could match the same frame as `matching`.
    pub(crate) fn overlaps(&self, priority: u16, matching: &Match) -> bool {
        let first = Identity {
            priority: Reverse(priority),
            matching: Match::any(),
        };
        self.rules
            .range::<_, Identity>(first..)
            .map(|(_, rule)| rule)
            .take_while(|rule| rule.priority() == priority)
            .any(|rule| rule.matching().overlaps(matching))
    }
}

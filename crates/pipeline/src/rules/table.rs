//! One table: rules in the order in which they are tried.

use std::sync::Arc;

use flow::FlowKey;

use super::rule_list::RuleList;
use super::{Rule, RuleIdentity, RulePosition};

/// The rules of a table. A clone shares them until one of the two changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rules: RuleList,
    /// How many of the rules are clauses of conjunctions.
    clauses: usize,
}

impl Table {
    /// The rule that a frame finds: of those that match, the one of the highest
    /// priority. Where two of the same priority match, the specification leaves
    /// the choice open (OF 1.3.5, 5.3); here it is the one that came first.
    #[inline]
    pub(crate) fn lookup(&self, key: &FlowKey) -> Option<&Arc<Rule>> {
        self.rules().find(|rule| rule.matching().accepts(key))
    }

    /// Whether some of the rules are clauses of conjunctions.
    pub(crate) const fn has_clauses(&self) -> bool {
        self.clauses > 0
    }

    /// All rules, in the order of lookup.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter()
    }

    /// The rules behind a place, or all, in the order of lookup.
    pub(crate) fn rules_after(
        &self,
        last: Option<RulePosition>,
    ) -> impl Iterator<Item = &Arc<Rule>> + use<'_> {
        let from = last.unwrap_or(RulePosition::FIRST);
        let rules = self.rules.from(from);
        rules.skip_while(move |rule| last == Some(rule.place))
    }

    /// The rules of a priority.
    fn rules_of(&self, priority: u16) -> impl Iterator<Item = &Arc<Rule>> {
        let places = RulePosition::all_of(priority);
        let rules = self.rules.from(*places.start());
        rules.take_while(move |rule| places.contains(&rule.place))
    }

    /// The rule of this identity, found by looking at all of its priority.
    pub(crate) fn find(&self, identity: &RuleIdentity) -> Option<&Arc<Rule>> {
        let mut rules = self.rules_of(identity.priority.0);
        rules.find(|rule| rule.identity == *identity)
    }

    /// How many rules there are.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Puts a rule in. Answers the one that was in its place.
    pub(crate) fn insert(&mut self, rule: Arc<Rule>) -> Option<Arc<Rule>> {
        self.clauses += usize::from(rule.is_clause());
        let old = self.rules.insert(rule);
        self.without(old)
    }

    /// Takes the rule in this place out.
    pub(crate) fn remove(&mut self, place: RulePosition) -> Option<Arc<Rule>> {
        let old = self.rules.remove(place);
        self.without(old)
    }

    /// Takes note that a rule is no longer there.
    fn without(&mut self, old: Option<Arc<Rule>>) -> Option<Arc<Rule>> {
        self.clauses -= usize::from(old.as_ref().is_some_and(|old| old.is_clause()));
        old
    }

    /// Whether a rule of the same priority could match the same frame as one of this
    /// identity.
    pub(crate) fn overlaps(&self, identity: &RuleIdentity) -> bool {
        let mut rules = self.rules_of(identity.priority.0);
        rules.any(|rule| rule.matching().overlaps(&identity.matching))
    }
}

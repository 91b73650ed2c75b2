//! The order in which a full table evicts rules (OF 1.4.1, 6.5; `ovs-vswitchd.conf.db(5)`, the table
//! `Flow_Table`).
//!
//! Rules are divided into groups by the values of the operator's subfields in their matches. The
//! largest group loses a rule, so that one source of rules cannot displace the others; within it,
//! the order is by importance, then by deadline. Without subfields there is one group. A rule
//! without timeouts is never evicted, and does not count in its group, as in Open vSwitch.
//!
//! Each change costs O(log n).

use std::sync::Arc;

use base::Instant;
use flow::{Match, Subfield};
use imbl::{OrdMap, OrdSet};

use crate::rules::{Rule, RuleByIdentity};

/// The subfields by which a table divides its rules, and their values in the rules of one group.
type GroupFields = Arc<[Subfield]>;
type GroupValues = Arc<[u128]>;

/// The rules of a group, in the order of their eviction.
type EvictionGroup = OrdSet<(u16, Instant, RuleByIdentity)>;

/// The rules of a table that may be evicted.
#[derive(Clone, Debug, Default)]
pub(super) struct EvictionOrder {
    fields: GroupFields,
    groups: OrdMap<GroupValues, EvictionGroup>,
    /// The groups by size.
    sizes: OrdSet<(usize, GroupValues)>,
    deadlines: OrdMap<RuleByIdentity, Instant>,
}

impl EvictionOrder {
    /// Returns an order without rules, which are divided by these subfields.
    pub(super) fn new(fields: GroupFields) -> Self {
        Self {
            fields,
            ..Self::default()
        }
    }

    /// Adds a rule, or moves it to its present deadline.
    pub(super) fn add(&mut self, rule: &Arc<Rule>) {
        self.remove(rule);
        if let Some(deadline) = rule.deadline() {
            let rule = RuleByIdentity(Arc::clone(rule));
            let place = (rule.0.importance, deadline, rule.clone());
            let values = self.values_of(rule.0.matching());
            self.change(values, |group| drop(group.insert(place)));
            self.deadlines.insert(rule, deadline);
        }
    }

    /// Removes a rule.
    pub(super) fn remove(&mut self, rule: &Rule) {
        if let Some((stored, deadline)) = self.deadlines.remove_with_key(&rule.identity) {
            let values = self.values_of(stored.0.matching());
            let place = (stored.0.importance, deadline, stored);
            self.change(values, |group| drop(group.remove(&place)));
        }
    }

    /// Returns the first rule of the largest group and its stored deadline.
    pub(super) fn first(&self) -> Option<(Arc<Rule>, Instant)> {
        let (_, largest) = self.sizes.get_max()?;
        let first = self.groups.get(largest)?.get_min();
        first.map(|(_, deadline, RuleByIdentity(rule))| (Arc::clone(rule), *deadline))
    }

    fn values_of(&self, matching: &Match) -> GroupValues {
        let values = self.fields.iter().map(|field| value_in(matching, *field));
        values.collect()
    }

    /// Changes a group and updates its size.
    fn change(&mut self, values: GroupValues, edit: impl FnOnce(&mut EvictionGroup)) {
        let mut group = self.groups.remove(&values).unwrap_or_default();
        self.sizes.remove(&(group.len(), Arc::clone(&values)));
        edit(&mut group);
        if !group.is_empty() {
            self.sizes.insert((group.len(), Arc::clone(&values)));
            self.groups.insert(values, group);
        }
    }
}

/// Returns the value of a subfield that a match requires; zero for a wildcard.
fn value_in(matching: &Match, subfield: Subfield) -> u128 {
    let term = |field| matching.term(field).map(|term| term.value);
    let value = match subfield.field().view() {
        Some(view) => view.read(term),
        None => term(subfield.field()),
    };
    value.map_or(0, |value| subfield.of(value))
}

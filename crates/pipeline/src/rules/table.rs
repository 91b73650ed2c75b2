//! A table: its rules in lookup order.

use std::sync::Arc;

use flow::{Field, FlowKey, Match};

use super::rule_list::RuleList;
use super::{Rule, RuleIdentity, RulePosition};

/// The rules of a table. A clone shares them until one of the two is changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rules: RuleList,
    /// Those with a term on the packet type: only these match packets without Ethernet.
    typed: RuleList,
    /// Number of rules that are clauses of conjunctions.
    clauses: usize,
}

impl Table {
    /// Returns the first matching rule. If two rules of the same priority match, the specification
    /// leaves the choice open (OF 1.3.5, 5.3); this is the older one.
    #[inline]
    pub(crate) fn lookup(&self, key: &FlowKey) -> Option<&Arc<Rule>> {
        let mut rules = self.candidates(key);
        rules.find(|rule| rule.matching().accepts(key))
    }

    /// Returns the rules that a packet can match by its type, in lookup order: all, unless it has no
    /// Ethernet header.
    pub(crate) fn candidates<'t>(
        &'t self,
        key: &FlowKey,
    ) -> impl Iterator<Item = &'t Arc<Rule>> + use<'t> {
        let rules = match key.is_ethernet() {
            true => &self.rules,
            false => &self.typed,
        };
        rules.iter()
    }

    /// True if a rule is a clause of a conjunction.
    pub(crate) const fn has_clauses(&self) -> bool {
        self.clauses > 0
    }

    /// Returns all rules, in lookup order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter()
    }

    /// Returns the rules after a position, or all, in lookup order.
    pub(crate) fn rules_after(
        &self,
        last: Option<RulePosition>,
    ) -> impl Iterator<Item = &Arc<Rule>> + use<'_> {
        let from = last.unwrap_or(RulePosition::FIRST);
        let rules = self.rules.from(from);
        rules.skip_while(move |rule| last == Some(rule.position))
    }

    /// Returns the rules of a priority.
    fn rules_of(&self, priority: u16) -> impl Iterator<Item = &Arc<Rule>> {
        let positions = RulePosition::all_of(priority);
        let rules = self.rules.from(*positions.start());
        rules.take_while(move |rule| positions.contains(&rule.position))
    }

    /// Returns the rule with this identity, by a search of its priority.
    pub(crate) fn find(&self, identity: &RuleIdentity) -> Option<&Arc<Rule>> {
        let mut rules = self.rules_of(identity.priority.0);
        rules.find(|rule| rule.identity == *identity)
    }

    /// Returns the number of rules.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Inserts a rule. Returns the rule that had its position.
    pub(crate) fn insert(&mut self, rule: Arc<Rule>) -> Option<Arc<Rule>> {
        self.clauses += usize::from(rule.is_clause());
        if is_typed(rule.matching()) {
            self.typed.insert(Arc::clone(&rule));
        }
        let old = self.rules.insert(rule);
        self.without(old)
    }

    /// Removes the rule with this position.
    pub(crate) fn remove(&mut self, position: RulePosition) -> Option<Arc<Rule>> {
        let old = self.rules.remove(position);
        if old.as_ref().is_some_and(|old| is_typed(old.matching())) {
            self.typed.remove(position);
        }
        self.without(old)
    }

    /// Uncounts a rule that is no longer in the table.
    fn without(&mut self, old: Option<Arc<Rule>>) -> Option<Arc<Rule>> {
        self.clauses -= usize::from(old.as_ref().is_some_and(|old| old.is_clause()));
        old
    }

    /// True if a rule of the same priority and the given identity could match the same packet.
    pub(crate) fn overlaps(&self, identity: &RuleIdentity) -> bool {
        let mut rules = self.rules_of(identity.priority.0);
        rules.any(|rule| rule.matching().overlaps(&identity.matching))
    }
}

/// True if a match has a term on the packet type.
fn is_typed(matching: &Match) -> bool {
    matching.term(Field::PacketType).is_some()
}

#[cfg(test)]
mod tests {
    use base::TableId;
    use flow::{FlowKey, FlowModCommand};

    use super::Field;
    use crate::testing::{NOW, flow, pipeline};

    #[test]
    fn packets_without_ethernet_are_compared_with_rules_on_the_packet_type() {
        let mut pipeline = pipeline(&[
            "priority=9,ip,actions=drop",
            "priority=8,packet_type=(1,0x800),actions=drop",
            "priority=7,packet_type=(1,0x86dd),actions=drop",
            "priority=6,actions=drop",
        ]);
        let mut bare = FlowKey::new();
        bare.set(Field::PacketType, 0x1_0800);
        let ethernet = FlowKey::new();
        let priorities = |pipeline: &crate::Pipeline, key| {
            let table = pipeline.table(TableId::FIRST).expect("it has rules");
            let rules = table.candidates(key);
            rules.map(|rule| rule.priority()).collect::<Vec<_>>()
        };
        assert_eq!(priorities(&pipeline, &ethernet), [9, 8, 7, 6]);
        assert_eq!(priorities(&pipeline, &bare), [8, 7]);
        let mut change = flow("priority=8,packet_type=(1,0x800),actions=load:1->NXM_NX_REG0[]");
        for command in [FlowModCommand::ModifyStrict, FlowModCommand::DeleteStrict] {
            change.command = command;
            pipeline.flow_mod(&change, NOW).expect("legal");
            let left: &[u16] = match command {
                FlowModCommand::ModifyStrict => &[8, 7],
                _ => &[7],
            };
            assert_eq!(priorities(&pipeline, &bare), left);
        }
    }
}

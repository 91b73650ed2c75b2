//! Conjunctive matches (`ovs-fields(7)`, "Conjunctive Match Fields"): a rule whose match is the
//! product of several lists, at the cost of their sum.
//!
//! ```text
//!   priority 10   nw_src=A  conjunction(7, 1/2)      nw_dst=X  conjunction(7, 2/2)
//!                 nw_src=B  conjunction(7, 1/2)      nw_dst=Y  conjunction(7, 2/2)
//!                           \_____ clause 1 ____/              \_____ clause 2 ____/
//!   priority  9   conj_id=7  actions=output:2        matches {A,B} x {X,Y}
//! ```
//!
//! A rule with the action `conjunction(id, k/n)` has no effect of its own: a packet that matches it
//! satisfies clause *k* of *n*. If clauses of one priority satisfy all of a conjunction, the packet
//! is looked up again with the conjunction's id in `conj_id`, and that result counts. This happens
//! only if no ordinary rule of at least that priority matches.
//!
//! This is the reference implementation: it searches all rules, and again for each conjunction that
//! is satisfied. The fast path records satisfied clauses in bit masks.

use std::sync::Arc;

use flow::{Action, Extension, Field, FlowKey};

use crate::rules::Rule;
use crate::rules::table::Table;

/// Returns the rule that a packet matches, and the id of the conjunction that led to it, or zero.
pub(crate) fn look_up<'t>(table: &'t Table, key: &mut FlowKey) -> (Option<&'t Arc<Rule>>, u32) {
    let mut satisfied = SatisfiedClauses::default();
    let found = |rule: Option<&'t Arc<Rule>>| (rule, 0);
    for rule in table.candidates(key) {
        if satisfied.priority.is_some_and(|p| p != rule.priority())
            && let Some(result) = satisfied.resolve(table, key)
        {
            return result;
        }
        if !rule.matching().accepts(key) {
            continue;
        }
        if !rule.is_clause() {
            return found(Some(rule));
        }
        satisfied.add(rule);
    }
    satisfied.resolve(table, key).unwrap_or_else(|| found(None))
}

/// The clauses of one priority that a packet satisfies.
#[derive(Default)]
struct SatisfiedClauses {
    priority: Option<u16>,
    /// For each conjunction: id, number of clauses, and a bit mask of the satisfied ones.
    masks: Vec<(u32, u8, u64)>,
}

impl SatisfiedClauses {
    fn add(&mut self, rule: &Rule) {
        self.priority = Some(rule.priority());
        for action in &rule.instructions.apply {
            let Action::Extended(Extension::Conjunction {
                id,
                clause,
                clauses,
            }) = action
            else {
                continue;
            };
            let same = |masks: &&mut (u32, u8, u64)| (masks.0, masks.1) == (*id, *clauses);
            match self.masks.iter_mut().find(same) {
                Some((.., bits)) => *bits |= 1 << clause,
                None => self.masks.push((*id, *clauses, 1 << clause)),
            }
        }
    }

    /// Returns the result of the satisfied conjunctions, and clears all clauses.
    fn resolve<'t>(
        &mut self,
        table: &'t Table,
        key: &mut FlowKey,
    ) -> Option<(Option<&'t Arc<Rule>>, u32)> {
        self.priority = None;
        let whole = |clauses: u8| u64::MAX >> (64 - u32::from(clauses));
        let masks = std::mem::take(&mut self.masks);
        let ids = masks.iter().filter(|(_, n, bits)| *bits == whole(*n));
        for (id, ..) in ids {
            key.set(Field::ConjId, u128::from(*id));
            let mut rules = table.candidates(key);
            let found = rules.find(|rule| !rule.is_clause() && rule.matching().accepts(key));
            key.set(Field::ConjId, 0);
            if found.is_some() {
                return Some((found, *id));
            }
        }
        None
    }
}

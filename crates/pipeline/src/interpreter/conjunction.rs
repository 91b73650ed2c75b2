//! Conjunctive matches (`ovs-fields(7)`, "Conjunctive Match Fields").
//!
//! A rule whose actions are `conjunction(id, k/n)` does nothing itself: it says that
//! a frame which matches it fulfils clause *k* of *n*. Once clauses of one priority
//! fulfil all of a conjunction, the frame is looked up anew with the conjunction's
//! id in `conj_id`, and what it finds then is what it finds. It comes to that only
//! if no other rule of at least that priority matches.

use std::sync::Arc;

use flow::{Action, Extension, Field, FlowKey};

use crate::rules::Rule;
use crate::rules::table::Table;

/// The rule that a frame finds, and the conjunction by which it finds it; zero for
/// none.
pub(crate) fn look_up<'t>(table: &'t Table, key: &mut FlowKey) -> (Option<&'t Arc<Rule>>, u32) {
    let mut heard = SatisfiedClauses::default();
    let found = |rule: Option<&'t Arc<Rule>>| (rule, 0);
    for rule in table.rules() {
        if heard.priority.is_some_and(|p| p != rule.priority())
            && let Some(by_clauses) = heard.conclude(table, key)
        {
            return by_clauses;
        }
        if !rule.matching().accepts(key) {
            continue;
        }
        if !rule.is_clause() {
            return found(Some(rule));
        }
        heard.hear(rule);
    }
    heard.conclude(table, key).unwrap_or_else(|| found(None))
}

/// The clauses that hold, of one priority.
#[derive(Default)]
struct SatisfiedClauses {
    priority: Option<u16>,
    /// By conjunction: how many clauses there are, and which of them hold.
    held: Vec<(u32, u8, u64)>,
}

impl SatisfiedClauses {
    fn hear(&mut self, rule: &Rule) {
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
            let same = |held: &&mut (u32, u8, u64)| (held.0, held.1) == (*id, *clauses);
            match self.held.iter_mut().find(same) {
                Some((.., bits)) => *bits |= 1 << clause,
                None => self.held.push((*id, *clauses, 1 << clause)),
            }
        }
    }

    /// What the conjunctions that hold lead to; then all is forgotten.
    fn conclude<'t>(
        &mut self,
        table: &'t Table,
        key: &mut FlowKey,
    ) -> Option<(Option<&'t Arc<Rule>>, u32)> {
        self.priority = None;
        let whole = |clauses: u8| u64::MAX >> (64 - u32::from(clauses));
        let held = std::mem::take(&mut self.held);
        let ids = held.iter().filter(|(_, n, bits)| *bits == whole(*n));
        for (id, ..) in ids {
            key.set(Field::ConjId, u128::from(*id));
            let mut rules = table.rules();
            let found = rules.find(|rule| !rule.is_clause() && rule.matching().accepts(key));
            key.set(Field::ConjId, 0);
            if found.is_some() {
                return Some((found, *id));
            }
        }
        None
    }
}

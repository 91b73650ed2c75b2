//! Conjunctive matches (`ovs-fields(7)`, "Conjunctive Match Fields") by compiled lookups.
//!
//! The rules that a frame fits are met in the order in which they are tried, each by a
//! lookup for what stands behind the one before. Of a rule that is a clause it is noted what
//! it fulfils; the first that is none is what the frame finds, unless a conjunction of a
//! higher priority holds and leads to a rule. So a frame costs a lookup for each clause that
//! it fulfils, however many rules there are.

use std::sync::Arc;

use flow::{Action, Extension};
use pipeline::Rule;

use super::view::{TableView, View};
use crate::lanes::Lanes;

/// Most clauses that a frame may fulfil here, ...
const CLAUSES_MAX: usize = 64;

/// ... and most conjunctions of one priority that they are of: as many as stand side by
/// side in a few cache lines. What has more is left to the interpreter.
const HELD_MAX: usize = 16;

/// What a frame finds in a table that has clauses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ByClauses<'a> {
    /// A rule, or none.
    Rule(Option<&'a Arc<Rule>>),
    /// A rule, by the conjunction of this id.
    Conjunction(&'a Arc<Rule>, u32),
    /// It fulfils more than can be noted.
    TooMany,
}

impl View {
    /// What a frame finds in a table that has clauses.
    pub(crate) fn look_up_clauses<'a>(&self, table: &'a TableView, lanes: &Lanes) -> ByClauses<'a> {
        let mut held = Held::new();
        let mut last: Option<&Arc<Rule>> = None;
        for _ in 0..CLAUSES_MAX {
            let is_behind = |rule: &Rule| last.is_none_or(|last| last.precedes(rule));
            let met = self.look_up_of(table, lanes, is_behind);
            let changes =
                last.is_some_and(|last| met.is_none_or(|met| met.priority() != last.priority()));
            if changes && let Some((rule, id)) = self.conclude(&mut held, table, lanes) {
                return ByClauses::Conjunction(rule, id);
            }
            let Some(rule) = met.filter(|rule| rule.is_clause()) else {
                return ByClauses::Rule(met);
            };
            if held.hear(rule).is_err() {
                return ByClauses::TooMany;
            }
            last = Some(rule);
        }
        ByClauses::TooMany
    }

    /// What the conjunctions that hold lead to; then all is forgotten.
    fn conclude<'a>(
        &self,
        held: &mut Held,
        table: &'a TableView,
        lanes: &Lanes,
    ) -> Option<(&'a Arc<Rule>, u32)> {
        let led = |id: u32| {
            let rule =
                self.look_up_of(table, &lanes.with_conjunction(id), |rule| !rule.is_clause());
            rule.map(|rule| (rule, id))
        };
        let found = held.whole().find_map(led);
        held.count = 0;
        found
    }
}

/// There is no room for another conjunction.
struct Full;

/// The conjunctions of which clauses of one priority hold.
struct Held {
    all: [Conjunction; HELD_MAX],
    count: usize,
}

/// How many clauses a conjunction has, and which of them hold.
#[derive(Clone, Copy, Default)]
struct Conjunction {
    id: u32,
    clauses: u8,
    holding: u64,
}

impl Held {
    const fn new() -> Self {
        const NOTHING: Conjunction = Conjunction {
            id: 0,
            clauses: 0,
            holding: 0,
        };
        Self {
            all: [NOTHING; HELD_MAX],
            count: 0,
        }
    }

    /// Takes note of what a clause fulfils.
    fn hear(&mut self, rule: &Rule) -> Result<(), Full> {
        for action in &rule.instructions.apply {
            let Action::Extended(Extension::Conjunction {
                id,
                clause,
                clauses,
            }) = action
            else {
                continue;
            };
            let known = &mut self.all[..self.count];
            let same = |held: &&mut Conjunction| (held.id, held.clauses) == (*id, *clauses);
            if let Some(held) = known.iter_mut().find(same) {
                held.holding |= 1 << clause;
                continue;
            }
            *self.all.get_mut(self.count).ok_or(Full)? = Conjunction {
                id: *id,
                clauses: *clauses,
                holding: 1 << clause,
            };
            self.count += 1;
        }
        Ok(())
    }

    /// The ids of those of which all clauses hold.
    fn whole(&self) -> impl Iterator<Item = u32> {
        let is_whole =
            |held: &&Conjunction| held.holding == u64::MAX >> (64 - u32::from(held.clauses));
        let all = self.all[..self.count].iter();
        all.filter(is_whole).map(|held| held.id)
    }
}

//! Conjunctive matches (`ovs-fields(7)`, "Conjunctive Match Fields") by compiled lookups.
//!
//! A conjunction of `n` clauses is `n` sets of rules; it holds if a packet satisfies a rule of each.
//! The first rule that a packet matches and that is no clause is the result, unless a conjunction of
//! a higher priority is complete and a rule on its `conj_id` matches. The clauses of higher priorities
//! that the packet satisfies are enumerated in match order, each by a lookup among the clauses that
//! are tried after the previous one, in the forms that have clauses, and recorded:
//!
//! ```text
//!   priority 9   clause 1/2 of conjunction 7       recorded: 7 has {1}
//!   priority 9   clause 2/2 of conjunction 7       recorded: 7 has {1, 2}, complete
//!   priority 5   nw_src=10.0.0.1 ...               no clause is left: look up conj_id=7
//!                                                  a rule:  result is that rule
//!                                                  no rule: result is the rule of priority 5
//! ```
//!
//! Cost: one lookup for each clause that the packet satisfies and one for each complete conjunction,
//! however many rules the table has. A single clause completes nothing, so its conjunctions are not
//! recorded.
//!
//! ```
//! use base::{Instant, PortNo, TableId};
//! use fastpath::{Classifier, LookupScratch, ViewLookup};
//! use flow::PipelineFields;
//! use flow::text::parse_flow_line;
//! use packet::build::Stack;
//! use packet::{Depth, Headers};
//! use pipeline::{LookupResult, Limits, Lookup, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for line in [
//!     "priority=9,ip,nw_src=10.0.0.1,actions=conjunction(7,1/2)",
//!     "priority=9,tcp,tp_dst=80,actions=conjunction(7,2/2)",
//!     "priority=5,conj_id=7,actions=output:2",
//! ] {
//!     let command = parse_flow_line(line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! let view = classifier.publish(&pipeline);
//! let scratch = LookupScratch::new();
//! let lookup = ViewLookup::new(&view, &scratch);
//! let stack: Stack = "eth / ipv4(src=10.0.0.1) / tcp(dst=80)".parse().expect("a frame");
//! let headers = Headers::parse(&stack.build(), Depth::Transport).expect("well formed");
//! let found = lookup.look_up(TableId(0), &headers, &PipelineFields::new(PortNo(1)));
//! assert!(matches!(found, LookupResult::Conjunction(rule, 7) if rule.priority() == 5));
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::{Action, Extension};
use pipeline::Rule;

use super::view::{TableView, View};
use crate::packed_key::PackedKey;

/// Most clauses of a packet that are enumerated here. The interpreter handles packets with more.
const CLAUSES_MAX: usize = 1024;

/// Most conjunctions of one priority that are recorded without an allocation: a few cache lines. A
/// packet in more network policies than that is rare.
const CONJUNCTIONS_MAX: usize = 32;

/// Result of a lookup in a table with clauses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConjunctiveMatch<'a> {
    /// A rule that is not reached by a conjunction, or none.
    Rule(Option<&'a Arc<Rule>>),
    /// A rule on the `conj_id` of a complete conjunction, and that id.
    Conjunction(&'a Arc<Rule>, u32),
    /// The packet satisfies more clauses than are recorded.
    TooMany,
}

impl View {
    /// Looks up a packet in a table with clauses.
    pub(crate) fn look_up_conjunctive<'a>(
        &self,
        table: &'a TableView,
        key: &PackedKey,
    ) -> ConjunctiveMatch<'a> {
        let plain = self.look_up_eligible(table, key, |rule| !rule.is_clause());
        let priority = plain.map(|plain| plain.priority());
        let clause = self.look_up_clause(table, key, |_| true);
        let found =
            clause.and_then(|clause| self.look_up_conjunction(table, key, priority, clause));
        found.unwrap_or(ConjunctiveMatch::Rule(plain))
    }

    /// Returns the conjunction that a packet satisfies, if its clauses precede a rule of this
    /// priority, the highest of those that the packet matches and that are no clauses. `clause` is
    /// the first that the packet satisfies.
    pub(crate) fn look_up_conjunction<'a>(
        &self,
        table: &'a TableView,
        key: &PackedKey,
        plain: Option<u16>,
        clause: &'a Arc<Rule>,
    ) -> Option<ConjunctiveMatch<'a>> {
        let precedes_plain = |rule: &Rule| plain.is_none_or(|plain| rule.priority() > plain);
        if !precedes_plain(clause) {
            return None;
        }
        let mut conjunctions = PartialConjunctions::default();
        let mut last = clause;
        for _ in 0..CLAUSES_MAX {
            conjunctions.add(last);
            let is_next = |rule: &Rule| precedes_plain(rule) && last.precedes(rule);
            let next = self.look_up_clause(table, key, is_next);
            let priority_ends = next.is_none_or(|next| next.priority() != last.priority());
            if priority_ends && let Some((rule, id)) = self.resolve(&mut conjunctions, table, key) {
                return Some(ConjunctiveMatch::Conjunction(rule, id));
            }
            last = next?;
        }
        Some(ConjunctiveMatch::TooMany)
    }

    /// Returns the first rule on the id of a complete conjunction, and clears the records.
    fn resolve<'a>(
        &self,
        conjunctions: &mut PartialConjunctions<'_>,
        table: &'a TableView,
        key: &PackedKey,
    ) -> Option<(&'a Arc<Rule>, u32)> {
        let look_up = |id: u32| {
            let key = key.with_conjunction(id);
            let rule = self.look_up_eligible(table, &key, |rule| !rule.is_clause());
            rule.map(|rule| (rule, id))
        };
        let found = conjunctions.complete().find_map(look_up);
        conjunctions.clear();
        found
    }
}

/// Conjunctions of one priority of which some clauses hold, in the order of their first clause.
#[derive(Default)]
struct PartialConjunctions<'a> {
    /// The only rule so far, which is not recorded: alone it completes no conjunction, unless it is
    /// several clauses of one.
    only: Option<&'a Rule>,
    /// The first of them.
    all: Option<[PartialConjunction; CONJUNCTIONS_MAX]>,
    count: usize,
    /// Those beyond, and their places by id and number of clauses.
    more: Vec<PartialConjunction>,
    places: BTreeMap<(u32, u8), usize>,
}

/// A conjunction, and its clauses that hold.
#[derive(Clone, Copy, Default)]
struct PartialConjunction {
    id: u32,
    /// Number of its clauses.
    clauses: u8,
    /// Bit for each clause that holds.
    holding: u64,
}

impl<'a> PartialConjunctions<'a> {
    fn clear(&mut self) {
        self.only = None;
        self.count = 0;
        self.more.clear();
        self.places.clear();
    }

    /// Adds a rule that holds.
    fn add(&mut self, rule: &'a Rule) {
        match self.only.take() {
            Some(only) => {
                self.record(only);
                self.record(rule);
            }
            None if self.count == 0 => self.only = Some(rule),
            None => self.record(rule),
        }
    }

    /// Records the clauses of a rule.
    fn record(&mut self, rule: &Rule) {
        // Rules mostly have their conjunctions in the same order, so the next is likely the one
        // behind the last.
        let mut likely = 0;
        for action in &rule.instructions.apply {
            let Action::Extended(Extension::Conjunction {
                id,
                clause,
                clauses,
            }) = action
            else {
                continue;
            };
            let all = self.all.get_or_insert_default();
            let recorded = &mut all[..self.count];
            let is_same = |other: &PartialConjunction| (other.id, other.clauses) == (*id, *clauses);
            let place = match recorded.get(likely) {
                Some(other) if is_same(other) => Some(likely),
                _ => recorded.iter().position(is_same),
            };
            if let Some(place) = place {
                recorded[place].holding |= 1 << clause;
                likely = place + 1;
                continue;
            }
            let conjunction = PartialConjunction {
                id: *id,
                clauses: *clauses,
                holding: 1 << clause,
            };
            match all.get_mut(self.count) {
                Some(free) => {
                    *free = conjunction;
                    self.count += 1;
                    likely = self.count;
                }
                None => self.record_more(conjunction),
            }
        }
    }

    /// Records a clause of a conjunction that is not among the first.
    fn record_more(&mut self, conjunction: PartialConjunction) {
        let next = self.more.len();
        let key = (conjunction.id, conjunction.clauses);
        let place = *self.places.entry(key).or_insert(next);
        match self.more.get_mut(place) {
            Some(recorded) => recorded.holding |= conjunction.holding,
            None => self.more.push(conjunction),
        }
    }

    /// Ids of the conjunctions whose clauses all hold.
    fn complete(&mut self) -> impl Iterator<Item = u32> {
        if let Some(only) = self.only.take()
            && only.repeats_conjunction()
        {
            self.record(only);
        }
        let is_complete = |conjunction: &&PartialConjunction| {
            conjunction.holding == u64::MAX >> (64 - u32::from(conjunction.clauses))
        };
        let all = self.all.as_slice().as_flattened();
        let all = all[..self.count].iter().chain(&self.more);
        all.filter(is_complete).map(|conjunction| conjunction.id)
    }
}

//! Batch lookup in a table of several forms, or with clauses of conjunctions. Each form is searched
//! for all packets before the next, so that its memory latencies overlap; a form that cannot have a
//! better rule for a packet than the one found is not searched for it.
//!
//! ```text
//!   forms by highest priority    p0       p1       p2
//!   compiled set        40       rule 40   -        -
//!   tuple               30         .      rule 20   -       p0 is complete
//!   tuple               20         .       -       rule 5   p1 is complete
//! ```
//!
//! Of a packet that satisfies a clause, the best rule that is no clause is found in the same way; the
//! clauses are then looked up in the forms that have any.

use std::sync::Arc;

use pipeline::Rule;
use sys::cache::prefetch;

use super::{BatchLookup, NextTables, PacketGroup, TableResult};
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::classifier::{TableView, first_tried};
use crate::compiled_set::CompiledSet;
use crate::key_hash::KeyHash;
use crate::mask::masked_words;
use crate::match_result::{MatchResult, conjunctive_result, look_up};
use crate::segment::{HotEntry, Segment};
use crate::tuple::{HotLookups, TupleView};

/// Fewest packets whose lookups cost less together.
const PACKETS_MIN: u32 = 4;

/// The best rule of a packet so far.
#[derive(Clone, Copy)]
enum Candidate<'a> {
    None,
    /// A hot entry, with its segment and the hash by which it was found.
    Hot(&'a Segment, KeyHash, &'a HotEntry),
    /// The rank of a rule in a compiled set.
    Ranked(&'a CompiledSet, u32),
    Rule(&'a Arc<Rule>),
}

impl<'a> Candidate<'a> {
    fn rule(self) -> Option<&'a Arc<Rule>> {
        match self {
            Self::None => None,
            Self::Hot(segment, hash, hot) => segment.rule_of_hot_entry(hash, hot),
            Self::Ranked(compiled, rank) => compiled.rule(rank),
            Self::Rule(rule) => Some(rule),
        }
    }
}

/// The best rules of the packets of a batch.
struct Candidates<'a> {
    best: [Candidate<'a>; LOOKUP_BATCH],
    /// Priority of each, plus one; zero if there is none.
    ranks: [u32; LOOKUP_BATCH],
    /// Packets with several rules of one priority, which are looked up alone.
    ambiguous: BatchMask,
    /// The first clause that each packet satisfies, once one does.
    clauses: Option<[Option<&'a Arc<Rule>>; LOOKUP_BATCH]>,
}

impl<'a> Candidates<'a> {
    const fn new() -> Self {
        Self {
            best: [Candidate::None; LOOKUP_BATCH],
            ranks: [0; LOOKUP_BATCH],
            ambiguous: BatchMask::EMPTY,
            clauses: None,
        }
    }

    /// Records a rule that a packet matches.
    #[inline]
    fn offer(&mut self, index: usize, priority: u16, candidate: Candidate<'a>) {
        let (index, rank) = (index % LOOKUP_BATCH, u32::from(priority) + 1);
        if rank > self.ranks[index] {
            (self.ranks[index], self.best[index]) = (rank, candidate);
        } else if rank == self.ranks[index] {
            self.ambiguous.insert(BatchMask::single(index));
        }
    }

    /// Packets that may match a better rule in a form with this highest priority.
    #[inline]
    fn open(&self, packets: BatchMask, highest: u16) -> BatchMask {
        let is_open = |index: usize| self.ranks[index % LOOKUP_BATCH] <= u32::from(highest) + 1;
        let packets = packets.difference(self.ambiguous);
        packets.fold(BatchMask::EMPTY, |mut open, index| {
            open.insert(BatchMask::single_if(index, is_open(index)));
            open
        })
    }
}

impl<'a> BatchLookup<'a> {
    /// Looks up a group in all forms of a table. Returns the packets that continue.
    #[inline(never)]
    pub(super) fn look_up_forms(&mut self, group: PacketGroup, table: &'a TableView) -> NextTables {
        let view = self.state.context.view;
        if group.packets.len() < PACKETS_MIN || !table.is_compiled() {
            let has_options = self.state.has_options();
            return self.look_up_each(group, |_, key| look_up(view, Some(table), key, has_options));
        }
        let mut candidates = Candidates::new();
        for compiled in table.compiled_sets() {
            let packets = candidates.open(group.packets, compiled.highest);
            self.search_set(compiled, packets, &mut candidates);
        }
        for tuple in table.tuples() {
            let packets = candidates.open(group.packets, tuple.highest);
            if !packets.is_empty() {
                self.search_tuple(tuple, packets, &mut candidates);
            }
        }
        let mut result = self.table_result(group);
        for index in group.packets {
            self.apply_candidate(index, table, &candidates, &mut result);
        }
        self.finish_table(result)
    }

    /// Searches a compiled set.
    fn search_set(
        &self,
        compiled: &'a CompiledSet,
        packets: BatchMask,
        candidates: &mut Candidates<'a>,
    ) {
        if packets.is_empty() {
            return;
        }
        let (keys, epoch) = (&self.state.memory.keys, self.state.context.view.epoch());
        let ranks = compiled.likely_ranks(keys, packets, epoch);
        for index in packets {
            let rank = ranks[index % LOOKUP_BATCH];
            let Some(rule) = compiled.rule(rank) else {
                continue;
            };
            let key = &keys[index % LOOKUP_BATCH];
            let find_plain = || compiled.find_plain(key, epoch);
            match compiled.hot_rule(rank, epoch) {
                Some(_) if compiled.has_clauses => {
                    offer_rule(index, Some(rule), find_plain, candidates);
                }
                Some(hot) => {
                    candidates.offer(index, hot.priority, Candidate::Ranked(compiled, rank));
                }
                None => {
                    let rule = compiled.find(key, epoch, |_| true);
                    offer_rule(index, rule, find_plain, candidates);
                }
            }
        }
    }

    /// Searches a tuple.
    fn search_tuple(
        &self,
        tuple: &'a TupleView,
        packets: BatchMask,
        candidates: &mut Candidates<'a>,
    ) {
        match *tuple.mask() {
            [a] => self.search_hot_entries(tuple, packets, [a], candidates),
            [a, b] => self.search_hot_entries(tuple, packets, [a, b], candidates),
            [a, b, c] => self.search_hot_entries(tuple, packets, [a, b, c], candidates),
            [a, b, c, d] => self.search_hot_entries(tuple, packets, [a, b, c, d], candidates),
            _ => {
                let (view, keys) = (self.state.context.view, &self.state.memory.keys);
                let rules = view.look_up_batch_in(tuple, keys, packets);
                for index in packets {
                    let key = &keys[index % LOOKUP_BATCH];
                    let find_plain = || view.look_up_plain_in(tuple, key);
                    offer_rule(index, rules[index % LOOKUP_BATCH], find_plain, candidates);
                }
            }
        }
    }

    /// Searches a tuple that has hot entries; `mask` is its mask.
    fn search_hot_entries<const N: usize>(
        &self,
        tuple: &'a TupleView,
        packets: BatchMask,
        mask: [(u8, u64); N],
        candidates: &mut Candidates<'a>,
    ) {
        let (view, keys) = (self.state.context.view, &self.state.memory.keys);
        let lookups = tuple.begin_hot_lookups(view.hasher, keys, packets, mask);
        let HotLookups {
            segments,
            hot,
            missing,
        } = lookups;
        for index in packets.difference(missing) {
            let (segment, hash) = segments[index % LOOKUP_BATCH];
            let key = &keys[index % LOOKUP_BATCH];
            let words = masked_words(key, mask);
            let hit = hot[index % LOOKUP_BATCH];
            let hit = hit.filter(|hot| segment.is_hot_hit(hot, words, view.epoch()));
            let find_plain = || view.look_up_plain_in(tuple, key);
            match hit {
                Some(hot) if tuple.has_clauses => {
                    let rule = segment.rule_of_hot_entry(hash, hot);
                    offer_rule(index, rule, find_plain, candidates);
                }
                Some(hot) => {
                    let cell = hot.counters();
                    let cell = cell.and_then(|cell| cell.prefetch_target(self.state.memory.writer));
                    cell.into_iter().for_each(prefetch);
                    let candidate = Candidate::Hot(segment, hash, hot);
                    match tuple.priority_of((segment, hash), hot) {
                        Some(priority) => candidates.offer(index, priority, candidate),
                        None => candidates.ambiguous.insert(BatchMask::single(index)),
                    }
                }
                None => {
                    let rule = view.look_up_in(tuple, key);
                    offer_rule(index, rule, find_plain, candidates);
                }
            }
        }
    }

    /// Applies the best rule of a packet, or that of a conjunction that precedes it.
    #[inline]
    fn apply_candidate(
        &mut self,
        index: usize,
        table: &'a TableView,
        candidates: &Candidates<'a>,
        result: &mut TableResult,
    ) {
        if candidates.ambiguous.contains(index) {
            return self.apply_alone(index, table, result);
        }
        let clauses = candidates.clauses.as_ref();
        if let Some(clause) = clauses.and_then(|all| all[index % LOOKUP_BATCH]) {
            let rank = candidates.ranks[index % LOOKUP_BATCH];
            let priority = rank
                .checked_sub(1)
                .and_then(|rank| u16::try_from(rank).ok());
            let key = &self.state.memory.keys[index % LOOKUP_BATCH];
            let view = self.state.context.view;
            if let Some(found) = view.look_up_conjunction(table, key, priority, clause) {
                let found = conjunctive_result(found);
                return self.stop(BatchMask::single(index), found, &result.group);
            }
        }
        let candidate = candidates.best[index % LOOKUP_BATCH];
        let program = match candidate {
            Candidate::None => {
                return self.stop(BatchMask::single(index), MatchResult::MISS, &result.group);
            }
            Candidate::Hot(_, _, hot) => {
                let counters = hot.counters();
                counters.map(|counters| (hot.inline_program(), counters))
            }
            Candidate::Ranked(compiled, rank) => {
                let hot = compiled.hot_rule(rank, self.state.context.view.epoch());
                hot.map(|hot| (hot.inline_program, &hot.counters))
            }
            Candidate::Rule(rule) => {
                let program = rule.instructions.program_slot().inline_program();
                Some((program, &rule.counters))
            }
        };
        match program {
            Some(program) => {
                let rule = || candidate.rule().map(AsRef::as_ref);
                self.apply_hit(index, program, rule, result);
            }
            None => self.apply_alone(index, table, result),
        }
    }

    /// Looks up a packet alone.
    #[inline(never)]
    fn apply_alone(&mut self, index: usize, table: &'a TableView, result: &mut TableResult) {
        let view = self.state.context.view;
        let key = &self.state.memory.keys[index % LOOKUP_BATCH];
        match look_up(view, Some(table), key, self.state.has_options()) {
            MatchResult::Rule(Some(rule)) => self.apply_rule(index, rule, result),
            other => self.stop(BatchMask::single(index), other, &result.group),
        }
    }
}

/// Records a rule that a packet matches. If it is a clause, `find_plain` returns the best rule of the
/// form that is none.
#[inline]
fn offer_rule<'a>(
    index: usize,
    rule: Option<&'a Arc<Rule>>,
    find_plain: impl FnOnce() -> Option<&'a Arc<Rule>>,
    candidates: &mut Candidates<'a>,
) {
    let Some(mut rule) = rule else { return };
    if rule.is_clause() {
        let clauses = candidates.clauses.get_or_insert([None; LOOKUP_BATCH]);
        let clause = &mut clauses[index % LOOKUP_BATCH];
        *clause = first_tried(*clause, Some(rule));
        match find_plain() {
            Some(plain) => rule = plain,
            None => return,
        }
    }
    candidates.offer(index, rule.priority(), Candidate::Rule(rule));
}

//! Batch lookup in a table with one tuple: buckets are prefetched for all packets, then hot
//! entries, then, in a large table, counters.

use pipeline::Rule;
use sys::cache::prefetch;

use super::{BatchLookup, NextTables, PacketGroup, TableResult};
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::mask::{HOT_WORDS_MAX, masked_words};
use crate::match_result::MatchResult;
use crate::segment::HotEntry;
use crate::tuple::{HotLookups, TupleView};

const _: () = assert!(
    HOT_WORDS_MAX == 4,
    "look_up_in_tuple has a case for each number of words"
);

impl<'a> BatchLookup<'a> {
    /// Looks up a group in a tuple. Returns the packets that continue.
    pub(super) fn look_up_in_tuple(
        &mut self,
        group: PacketGroup,
        tuple: &'a TupleView,
    ) -> NextTables {
        // One branch here replaces one for each packet.
        match *tuple.mask() {
            [a] => self.look_up_hot_entries(group, tuple, [a]),
            [a, b] => self.look_up_hot_entries(group, tuple, [a, b]),
            [a, b, c] => self.look_up_hot_entries(group, tuple, [a, b, c]),
            [a, b, c, d] => self.look_up_hot_entries(group, tuple, [a, b, c, d]),
            _ => {
                let (view, keys) = (self.state.context.view, &self.state.memory.keys);
                let rules = view.look_up_batch_in(tuple, keys, group.packets);
                self.apply_far_rules(group, &rules)
            }
        }
    }

    /// Looks up a group in a tuple that has hot entries; `mask` is its mask.
    #[inline(never)]
    fn look_up_hot_entries<const N: usize>(
        &mut self,
        group: PacketGroup,
        tuple: &'a TupleView,
        mask: [(u8, u64); N],
    ) -> NextTables {
        let view = self.state.context.view;
        let keys = &self.state.memory.keys;
        let lookups = tuple.begin_hot_lookups(view.hasher, keys, group.packets, mask);
        let HotLookups {
            segments,
            hot,
            missing,
        } = lookups;
        if tuple.is_far() {
            self.prefetch_counters(&hot);
        }
        let mut result = self.table_result(group);
        for index in group.packets {
            let (segment, hash) = segments[index % LOOKUP_BATCH];
            let words = masked_words(&self.state.memory.keys[index % LOOKUP_BATCH], mask);
            let hit = hot[index % LOOKUP_BATCH];
            let hit = hit.filter(|hot| segment.is_hot_hit(hot, words, view.epoch()));
            match hit.and_then(|hot| Some((hot, (hot.inline_program(), hot.counters()?)))) {
                Some((hot, program)) => {
                    let rule = || segment.rule_of_hot_entry(hash, hot).map(AsRef::as_ref);
                    self.apply_hit(index, program, rule, &mut result);
                }
                None if missing.contains(index) => {
                    self.stop(BatchMask::single(index), MatchResult::MISS, &result.group);
                }
                None => self.look_up_entries(index, tuple, &mut result),
            }
        }
        self.finish_table(result)
    }

    /// Prefetches the worker's cells of the counters of these hot entries.
    #[inline(never)]
    fn prefetch_counters(&self, hot: &[Option<&HotEntry>; LOOKUP_BATCH]) {
        for hot in hot.iter().flatten() {
            let counters = hot.counters();
            let cell =
                counters.and_then(|counters| counters.prefetch_target(self.state.memory.writer));
            cell.into_iter().for_each(prefetch);
        }
    }

    /// Looks up one packet in the entries, where no hot entry is valid.
    #[inline(never)]
    fn look_up_entries(&mut self, index: usize, tuple: &'a TupleView, result: &mut TableResult) {
        let key = &self.state.memory.keys[index % LOOKUP_BATCH];
        match self.state.context.view.look_up_in(tuple, key) {
            Some(rule) => self.apply_rule(index, rule, result),
            None => self.stop(BatchMask::single(index), MatchResult::MISS, &result.group),
        }
    }

    /// Applies the rule that one packet matches.
    #[inline]
    pub(super) fn apply_rule(&mut self, index: usize, rule: &'a Rule, result: &mut TableResult) {
        let program = (
            rule.instructions.program_slot().inline_program(),
            &rule.counters,
        );
        self.apply_hit(index, program, || Some(rule), result);
    }
}

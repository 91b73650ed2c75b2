//! Stages of a lookup, for batches: each stage prefetches the memory of the next for all packets
//! of the batch, so that their latencies overlap.

use std::sync::Arc;

use pipeline::Rule;
use sys::cache::prefetch;

use super::block::{BLOCK_BITS, NEVER, position_of};
use super::hot_entry::HotEntry;
use super::{PREFERRED, SearchKey, Segment, TagBucket};
use crate::epoch::Epoch;
use crate::key_hash::KeyHash;

impl Segment {
    /// Prefetches the first bucket of a hash.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, hash: KeyHash) {
        let [first, _] = self.buckets_of(hash);
        prefetch(&self.buckets[first]);
    }

    /// Returns the number of the likely entry of a hash: the first with its tag. `None` means
    /// that no entry has the hash. The number may be that of no entry.
    #[inline(always)]
    pub(crate) fn likely(&self, hash: KeyHash) -> Option<u16> {
        let [first, second] = self.buckets_of(hash);
        let first = &self.buckets[first];
        first
            .likely(hash.tag())
            .or_else(|| self.likely_in_second(first, second, hash))
    }

    #[cold]
    fn likely_in_second(&self, first: &TagBucket, second: usize, hash: KeyHash) -> Option<u16> {
        let second = &self.buckets[second];
        first.has(PREFERRED).then(|| second.likely(hash.tag()))?
    }

    /// Prefetches an entry.
    #[inline]
    pub(crate) fn prefetch_entry(&self, number: u16) {
        if let Some(block) = self.blocks.get(usize::from(number >> BLOCK_BITS)) {
            let position = position_of(number);
            block.entries.get(position).into_iter().for_each(prefetch);
        }
    }

    /// Returns the hot entry of this number, or `None` if the tuple has none.
    #[inline]
    pub(super) fn hot_entry(&self, number: u16) -> Option<&HotEntry> {
        let block = self.blocks.get(usize::from(number >> BLOCK_BITS))?;
        block.hot.get(position_of(number))
    }

    /// Returns the hot entry of the [likely](Segment::likely) entry of a hash, one that is never
    /// valid if only the entry can decide, or `None` if no entry has the hash.
    #[inline(always)]
    pub(crate) fn likely_hot_entry(&self, hash: KeyHash) -> Option<&HotEntry> {
        static INVALID: HotEntry = HotEntry::empty();
        let number = self.likely(hash)?;
        Some(self.hot_entry(number).unwrap_or(&INVALID))
    }

    /// True if a packet with these masked words matches the rule of this hot entry, as of `epoch`.
    #[inline]
    pub(crate) fn is_hot_hit<const N: usize>(
        &self,
        hot: &HotEntry,
        words: [u64; N],
        epoch: Epoch,
    ) -> bool {
        // A reader is never of an earlier epoch than the segment.
        let age = epoch.wrapping_sub(self.origin).min(u64::from(NEVER) - 1);
        hot.is_hit(words, age)
    }

    /// Returns the rule of a hot entry of this segment that was found by this hash. The bucket may
    /// name another entry meanwhile.
    pub(crate) fn rule_of_hot_entry(&self, hash: KeyHash, hot: &HotEntry) -> Option<&Arc<Rule>> {
        let is_same = |number: u16| {
            let other = self.hot_entry(number);
            other.is_some_and(|other| std::ptr::eq(other, hot))
        };
        let buckets = self.buckets_of(hash).into_iter();
        let numbers = buckets.flat_map(|bucket| self.buckets[bucket].numbers(hash.tag()));
        let mut entries = numbers.flat_map(|number| self.list(number));
        let found = entries.find(|(number, _)| is_same(*number));
        found.map(|(_, entry)| &entry.rule)
    }

    /// Returns the rule of the entry of this number if it has the search key and is visible as of
    /// `epoch`: all entries behind it in the list of its match are tried later.
    #[inline]
    pub(crate) fn likely_rule(
        &self,
        number: u16,
        search: SearchKey<'_>,
        epoch: Epoch,
    ) -> Option<&Arc<Rule>> {
        let entry = self.entry(number)?;
        let is_result =
            entry.is_visible(self.age_to_read(epoch)) && self.is_hit(number, entry, search);
        is_result.then_some(&entry.rule)
    }
}

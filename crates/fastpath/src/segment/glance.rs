//! A lookup in steps, for those who do it for several frames at once: what comes next is asked
//! for of all of them, so that none waits for the memory of another.

use std::sync::Arc;

use base::sync::atomic::Ordering;
use pipeline::Rule;
use sys::cache::prefetch;

use super::block::{BLOCK_BITS, NEVER, NONE, place_of};
use super::line::Line;
use super::{Bucket, Epoch, PREFERRED, Segment, Sought};
use crate::shape::Hash;

impl Segment {
    /// Asks for the memory where an entry of this hash is found first.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, hash: Hash) {
        let [first, _] = self.places(hash);
        prefetch(&self.buckets[first]);
    }

    /// The number of the entry that is of this hash, if one is and all goes as it mostly does:
    /// of none, there is no entry. A number that no entry has says nothing.
    #[inline(always)]
    pub(crate) fn likely(&self, hash: Hash) -> Option<u16> {
        let [first, second] = self.places(hash);
        let first = &self.buckets[first];
        first
            .likely(hash.tag())
            .or_else(|| self.likely_in_second(first, second, hash))
    }

    #[cold]
    fn likely_in_second(&self, first: &Bucket, second: usize, hash: Hash) -> Option<u16> {
        let second = &self.buckets[second];
        first.has(PREFERRED).then(|| second.likely(hash.tag()))?
    }

    /// Asks for the memory of an entry.
    #[inline]
    pub(crate) fn prefetch_entry(&self, number: u16) {
        if let Some(block) = self.blocks.get(usize::from(number >> BLOCK_BITS)) {
            let place = place_of(number);
            block.entries.get(place).into_iter().for_each(prefetch);
        }
    }

    /// The line of the entry of this number, if it has one.
    #[inline]
    pub(super) fn line(&self, number: u16) -> Option<&Line> {
        let block = self.blocks.get(usize::from(number >> BLOCK_BITS))?;
        block.lines.get(place_of(number))
    }

    /// The line of the entry that is of this hash, as [`Segment::likely`]; one that tells
    /// nothing if that is not all there is to know.
    #[inline(always)]
    pub(crate) fn likely_line(&self, hash: Hash) -> Option<&Line> {
        static NOTHING: Line = Line::empty();
        let number = self.likely(hash)?;
        Some(self.line(number).unwrap_or(&NOTHING))
    }

    /// Whether this line of the segment tells what a frame of these words finds, as `epoch`
    /// saw it.
    #[inline]
    pub(crate) fn is_told<const N: usize>(
        &self,
        line: &Line,
        words: [u64; N],
        epoch: Epoch,
    ) -> bool {
        // Nobody sees it who is older than it.
        let age = epoch.wrapping_sub(self.made).min(u64::from(NEVER) - 1);
        line.tells(words, age)
    }

    /// The rule of the entry of this number, if there is one.
    #[inline]
    pub(crate) fn rule(&self, number: u16) -> Option<&Arc<Rule>> {
        Some(&self.entry(number)?.rule)
    }

    /// The rule of the entry of this number, if it is what is sought, is there as `epoch` saw
    /// it, and no other that wants the same is.
    #[inline]
    pub(crate) fn likely_rule(
        &self,
        number: u16,
        sought: Sought<'_>,
        epoch: Epoch,
    ) -> Option<&Arc<Rule>> {
        let entry = self.entry(number)?;
        let is_it = entry.next.load(Ordering::Acquire) == NONE
            && entry.is_seen(self.age_to_read(epoch))
            && self.is_sought(number, entry, sought);
        is_it.then_some(&entry.rule)
    }
}

//! A lookup in steps, for those who do it for several frames at once: what comes next is asked
//! for of all of them, so that none waits for the memory of another.

use std::sync::Arc;

use base::sync::atomic::Ordering;
use pipeline::Rule;
use sys::cache::prefetch;

use super::block::{BLOCK_BITS, NONE, place_of};
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
    /// of none, there is no entry.
    #[inline]
    pub(crate) fn likely(&self, hash: Hash) -> Option<u16> {
        let [first, second] = self.places(hash).map(|bucket| &self.buckets[bucket]);
        let number = |bucket: &Bucket| bucket.numbers(hash.tag).next();
        let in_second = || first.has(PREFERRED).then(|| number(second)).flatten();
        number(first).or_else(in_second)
    }

    /// Asks for the memory of an entry, and of the words beside it.
    #[inline]
    pub(crate) fn prefetch_entry(&self, number: u16) {
        if let Some(block) = self.blocks.get(usize::from(number >> BLOCK_BITS)) {
            let place = place_of(number);
            block.entries.get(place).into_iter().for_each(prefetch);
            block.words_of(place).first().into_iter().for_each(prefetch);
        }
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

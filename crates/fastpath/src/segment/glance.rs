//! A lookup in steps, for those who do it for several frames at once: one look each at what
//! comes next, so that none waits for the memory of another.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pipeline::Rule;

use super::block::NONE;
use super::{Bucket, Epoch, PREFERRED, Segment, Sought};
use crate::shape::Hash;

impl Segment {
    /// Looks at the memory where an entry of this hash is found first.
    #[inline]
    pub(crate) fn glance_at_bucket(&self, hash: Hash) -> u64 {
        let [first, _] = self.places(hash);
        self.buckets[first].glance()
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

    /// Looks at the memory of an entry.
    #[inline]
    pub(crate) fn glance_at_entry(&self, number: u16) -> u64 {
        let words = self.words_of(number).first();
        let word = words.map_or(0, |word| word.load(Ordering::Relaxed));
        let born = self.entry(number).map_or(0, |entry| entry.born);
        word ^ u64::from(born)
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

//! A bucket: for each of a few entries the tag of its hash, so that hardly any is looked at
//! in vain, and its number. All tags are compared at once, without a branch that would have
//! to wait for them.

use base::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// Slots of a bucket: half a cache line.
pub(super) const SLOTS: usize = 8;

/// Tags of a word.
const TAGS: usize = 4;

/// Slots are filled from the front, and none is emptied.
#[derive(Debug, Default)]
#[repr(align(32))]
pub(super) struct Bucket {
    /// The first in the lowest bits.
    tags: [AtomicU64; SLOTS / TAGS],
    /// Plus one; zero for none.
    numbers: [AtomicU16; SLOTS],
}

/// Slots, each as one bit of sixteen.
#[derive(Clone, Copy, Debug)]
struct Slots(u64);

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let bit = self.0.trailing_zeros() as usize;
        let slot = bit >> 4 & 3 | (bit & 1) << 2;
        let found = (self.0 != 0).then_some(slot);
        self.0 &= self.0.wrapping_sub(1);
        found
    }
}

impl Bucket {
    /// The numbers of the entries with this tag.
    #[inline]
    pub(super) fn numbers(&self, tag: u16) -> impl Iterator<Item = u16> + '_ {
        let [first, second] = &self.tags;
        let [first, second] = [first, second].map(|tags| same(tags.load(Ordering::Relaxed), tag));
        let slots = Slots(first >> 15 | second >> 14);
        slots.filter_map(|slot| self.number(slot))
    }

    /// The number of an entry with this tag, of which there may be several; none if there is
    /// no entry. An empty slot may be taken for one: then it is the number of none.
    #[inline]
    pub(super) fn likely(&self, tag: u16) -> Option<u16> {
        let [first, second] = &self.tags;
        let [first, second] = [first, second].map(|tags| lowest(tags.load(Ordering::Relaxed), tag));
        let bits = first >> 1 | second;
        if bits == 0 {
            return None;
        }
        let bit = bits.trailing_zeros() as usize;
        let number = &self.numbers[bit >> 4 & 3 | (bit & 1) << 2];
        Some(number.load(Ordering::Acquire).wrapping_sub(1))
    }

    /// The number of the entry in a slot, if there is one.
    #[inline]
    pub(super) fn number(&self, slot: usize) -> Option<u16> {
        self.numbers[slot].load(Ordering::Acquire).checked_sub(1)
    }

    /// The tag of the entry in a slot, for its one writer.
    pub(super) fn tag(&self, slot: usize) -> u16 {
        let tags = self.tags[slot / TAGS].load(Ordering::Relaxed).to_le_bytes();
        let at = 2 * (slot % TAGS);
        u16::from_le_bytes([tags[at], tags[at + 1]])
    }

    /// Whether there are so many entries, one at least.
    #[inline]
    pub(super) fn has(&self, entries: usize) -> bool {
        self.number(entries - 1).is_some()
    }

    /// The first slot that is free.
    pub(super) fn free(&self) -> Option<usize> {
        (0..SLOTS).find(|slot| self.number(*slot).is_none())
    }

    /// Puts an entry that was written into a slot that is free. By the one writer only:
    /// whoever sees the number sees the entry.
    pub(super) fn put(&self, slot: usize, tag: u16, number: u16) {
        let tags = &self.tags[slot / TAGS];
        let others = tags.load(Ordering::Relaxed);
        let shift = 16 * (slot % TAGS);
        tags.store(others | u64::from(tag) << shift, Ordering::Relaxed);
        self.numbers[slot].store(number + 1, Ordering::Release);
    }
}

/// Each of four sixteen bits one.
const ONES: u64 = 0x0001_0001_0001_0001;

/// The uppermost bit of the lowest sixteen that are `tag`, and perhaps of others above.
#[inline]
const fn lowest(tags: u64, tag: u16) -> u64 {
    let other = tags ^ (tag as u64 * ONES);
    // Only of what is zero, or above it, is one borrowed.
    other.wrapping_sub(ONES) & !other & (ONES << 15)
}

/// The uppermost bit of each sixteen that are `tag`.
#[inline]
const fn same(tags: u64, tag: u16) -> u64 {
    const LOWER: u64 = 0x7fff * ONES;
    let other = tags ^ (tag as u64 * ONES);
    // Of sixteen bits that are zero, no carry comes into the uppermost.
    !(((other & LOWER) + LOWER) | other | LOWER)
}

#[cfg(test)]
mod tests {
    use super::super::block::NONE;
    use super::*;

    #[test]
    fn a_bucket_is_half_a_cache_line() {
        assert_eq!(size_of::<Bucket>(), 32);
    }

    #[test]
    fn what_has_a_tag_is_found_by_it_and_by_no_other() {
        let tags = [0, 1, 0x8000, 0xffff, 1, 0x7fff, 0, 0x0100];
        for filled in 0..=SLOTS {
            let bucket = Bucket::default();
            for (slot, tag) in tags.iter().take(filled).enumerate() {
                assert_eq!(bucket.free(), Some(slot));
                assert!(!bucket.has(slot + 1) && (slot == 0 || bucket.has(slot)));
                bucket.put(slot, *tag, 100 + slot.to_le_bytes()[0] as u16);
            }
            for tag in tags.iter().copied().chain([2, 0x8001, 0xfffe]) {
                let mut found: Vec<_> = bucket.numbers(tag).collect();
                found.sort_unstable();
                let there = (100..).zip(tags).take(filled);
                let wanted: Vec<u16> = there
                    .filter(|(_, other)| *other == tag)
                    .map(|(number, _)| number)
                    .collect();
                assert_eq!(found, wanted, "{tag:#x} of {filled}");
                let is_it = |likely: u16| wanted.contains(&likely) || (likely, tag) == (NONE, 0);
                let likely = bucket.likely(tag);
                assert!(likely.map_or(wanted.is_empty(), is_it), "{tag:#x}");
            }
            for (slot, tag) in tags.iter().take(filled).enumerate() {
                assert_eq!(bucket.tag(slot), *tag);
            }
        }
    }
}

//! A bucket: the tag and the number of each of up to eight entries. All tags are compared together
//! by arithmetic on words, without a branch that could be mispredicted.

use base::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// Slots of a bucket: half a cache line.
pub(super) const SLOTS: usize = 8;

/// Tags of a word.
const TAGS: usize = 4;

/// Slots are filled in order, and none is emptied. The number in a slot may be replaced by that of
/// an entry from which the former is found.
#[derive(Debug, Default)]
#[repr(align(32))]
pub(super) struct TagBucket {
    /// The first in the lowest bits.
    tags: [AtomicU64; SLOTS / TAGS],
    /// Number of the entry plus one; zero if the slot is free.
    numbers: [AtomicU16; SLOTS],
}

/// Slots with a matching tag, one bit of sixteen for each.
#[derive(Clone, Copy, Debug)]
struct MatchingSlots(u64);

impl Iterator for MatchingSlots {
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

impl TagBucket {
    /// Numbers of the entries with this tag.
    #[inline]
    pub(super) fn numbers(&self, tag: u16) -> impl Iterator<Item = u16> + '_ {
        let [first, second] = &self.tags;
        let [first, second] =
            [first, second].map(|tags| equal_tags(tags.load(Ordering::Relaxed), tag));
        let slots = MatchingSlots(first >> 15 | second >> 14);
        slots.filter_map(|slot| self.number(slot))
    }

    /// Returns the number of the first entry with this tag, or `None` if there is none. A free
    /// slot has tag 0 and may be returned as the number of no entry.
    #[inline]
    pub(super) fn likely(&self, tag: u16) -> Option<u16> {
        let [first, second] = &self.tags;
        let [first, second] =
            [first, second].map(|tags| lowest_equal_tag(tags.load(Ordering::Relaxed), tag));
        let bits = first >> 1 | second;
        if bits == 0 {
            return None;
        }
        let bit = bits.trailing_zeros() as usize;
        let number = &self.numbers[bit >> 4 & 3 | (bit & 1) << 2];
        Some(number.load(Ordering::Acquire).wrapping_sub(1))
    }

    /// Returns the number of the entry in a slot, or `None` if the slot is free.
    #[inline]
    pub(super) fn number(&self, slot: usize) -> Option<u16> {
        self.numbers[slot].load(Ordering::Acquire).checked_sub(1)
    }

    /// Tag of the entry in a slot. For the one writer.
    pub(super) fn tag(&self, slot: usize) -> u16 {
        let tags = self.tags[slot / TAGS].load(Ordering::Relaxed).to_le_bytes();
        let at = 2 * (slot % TAGS);
        u16::from_le_bytes([tags[at], tags[at + 1]])
    }

    /// True if the bucket has at least `entries` entries, which is not zero.
    #[inline]
    pub(super) fn has(&self, entries: usize) -> bool {
        self.number(entries - 1).is_some()
    }

    /// Returns the first free slot.
    pub(super) fn free(&self) -> Option<usize> {
        (0..SLOTS).find(|slot| self.number(*slot).is_none())
    }

    /// Publishes an entry, which must be written, in a free slot. For the one writer: a reader
    /// that loads the number sees the entry.
    pub(super) fn insert(&self, slot: usize, tag: u16, number: u16) {
        let tags = &self.tags[slot / TAGS];
        let others = tags.load(Ordering::Relaxed);
        let shift = 16 * (slot % TAGS);
        tags.store(others | u64::from(tag) << shift, Ordering::Relaxed);
        self.numbers[slot].store(number + 1, Ordering::Release);
    }

    /// Publishes an entry, which must be written, in the slot of the entry with number `old`, from
    /// which readers continue. Returns false if there is no such slot. For the one writer.
    pub(super) fn replace(&self, old: u16, number: u16) -> bool {
        let slot = (0..SLOTS).find(|slot| self.number(*slot) == Some(old));
        let slot = slot.map(|slot| &self.numbers[slot]);
        slot.into_iter()
            .for_each(|slot| slot.store(number + 1, Ordering::Release));
        slot.is_some()
    }
}

/// One in each group of 16 bits.
const ONES: u64 = 0x0001_0001_0001_0001;

/// The uppermost bit of the lowest group of 16 bits that equals `tag`, and possibly of groups
/// above it.
#[inline]
const fn lowest_equal_tag(tags: u64, tag: u16) -> u64 {
    let other = tags ^ (tag as u64 * ONES);
    // A borrow starts only at a group that is zero, so groups below it are exact.
    other.wrapping_sub(ONES) & !other & (ONES << 15)
}

/// The uppermost bit of each group of 16 bits that equals `tag`.
#[inline]
const fn equal_tags(tags: u64, tag: u16) -> u64 {
    const LOWER: u64 = 0x7fff * ONES;
    let other = tags ^ (tag as u64 * ONES);
    // The sum of a group that is zero has no carry into its uppermost bit.
    !(((other & LOWER) + LOWER) | other | LOWER)
}

#[cfg(test)]
mod tests {
    use super::super::block::NO_ENTRY;
    use super::*;

    #[test]
    fn bucket_takes_half_a_cache_line() {
        assert_eq!(size_of::<TagBucket>(), 32);
    }

    #[test]
    fn entry_is_found_by_its_tag_only() {
        let tags = [0, 1, 0x8000, 0xffff, 1, 0x7fff, 0, 0x0100];
        for filled in 0..=SLOTS {
            let bucket = TagBucket::default();
            for (slot, tag) in tags.iter().take(filled).enumerate() {
                assert_eq!(bucket.free(), Some(slot));
                assert!(!bucket.has(slot + 1) && (slot == 0 || bucket.has(slot)));
                bucket.insert(slot, *tag, 100 + slot.to_le_bytes()[0] as u16);
            }
            for tag in tags.iter().copied().chain([2, 0x8001, 0xfffe]) {
                let mut found: Vec<_> = bucket.numbers(tag).collect();
                found.sort_unstable();
                let entries = (100..).zip(tags).take(filled);
                let expected: Vec<u16> = entries
                    .filter(|(_, other)| *other == tag)
                    .map(|(number, _)| number)
                    .collect();
                assert_eq!(found, expected, "{tag:#x} of {filled}");
                let is_valid =
                    |likely: u16| expected.contains(&likely) || (likely, tag) == (NO_ENTRY, 0);
                let likely = bucket.likely(tag);
                assert!(likely.map_or(expected.is_empty(), is_valid), "{tag:#x}");
            }
            for (slot, tag) in tags.iter().take(filled).enumerate() {
                assert_eq!(bucket.tag(slot), *tag);
            }
        }
    }
}

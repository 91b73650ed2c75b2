//! A hash table of numbers with open addressing and linear probing, in one allocation. A lookup or
//! insertion mostly touches one cache line. The upper bits of the hash select the slot, so a larger
//! table has the same order and is filled from front to back.

/// A hash and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) hash: u32,
    pub(super) number: u32,
}

impl IndexEntry {
    /// The number of a free slot.
    const NONE: u32 = u32::MAX;

    const EMPTY: Self = Self {
        hash: 0,
        number: Self::NONE,
    };

    const fn is_empty(self) -> bool {
        self.number == Self::NONE
    }
}

/// Slots of the smallest table: one cache line.
const LEAST: usize = 8;

/// The table.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexPartition {
    slots: Box<[IndexEntry]>,
    used: usize,
}

impl IndexPartition {
    /// Returns the slot at which the search for a hash begins.
    fn first_slot(&self, hash: u32) -> usize {
        let slot = (u64::from(hash) * self.slots.len() as u64) >> u32::BITS;
        usize::try_from(slot).expect("it is less than there are slots")
    }

    /// Returns the next slot; after the last, the first.
    const fn next_slot(&self, slot: usize) -> usize {
        let next = slot + 1;
        if next == self.slots.len() { 0 } else { next }
    }

    /// Reads a slot near the entry of this hash, so that it is in the cache: entries are mostly
    /// some slots after the first, perhaps in the next line.
    pub(super) fn touch(&self, hash: u32) -> u32 {
        let first_slot = self.first_slot(hash);
        let number = |slot: usize| self.slots.get(slot).map_or(0, |at| at.number);
        number(first_slot) ^ number(first_slot + LEAST / 2)
    }

    /// Returns the number with this hash that satisfies the predicate.
    pub(super) fn find(&self, hash: u32, is_number: impl Fn(u32) -> bool) -> Option<u32> {
        let slot = self.place_of(hash, is_number)?;
        Some(self.slots[slot].number)
    }

    fn place_of(&self, hash: u32, is_number: impl Fn(u32) -> bool) -> Option<usize> {
        let mut slot = self.first_slot(hash);
        loop {
            let entry = *self.slots.get(slot)?;
            if entry.is_empty() {
                return None;
            }
            if entry.hash == hash && is_number(entry.number) {
                return Some(slot);
            }
            slot = self.next_slot(slot);
        }
    }

    /// Inserts a new number.
    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        // A quarter stays free, so that searches are short.
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.grow();
        }
        self.put(IndexEntry { hash, number });
        self.used += 1;
    }

    fn put(&mut self, entry: IndexEntry) {
        let mut slot = self.first_slot(entry.hash);
        while !self.slots[slot].is_empty() {
            slot = self.next_slot(slot);
        }
        self.slots[slot] = entry;
    }

    fn grow(&mut self) {
        let more = (self.slots.len() / 2 * 3).max(LEAST);
        let larger = vec![IndexEntry::EMPTY; more].into_boxed_slice();
        let before = std::mem::replace(&mut self.slots, larger);
        for entry in before.iter().filter(|entry| !entry.is_empty()) {
            self.put(*entry);
        }
    }

    /// Removes the number with this hash that satisfies the predicate. Later entries of the same
    /// run move up, so that no search ends too early (Knuth, TAOCP vol. 3, 6.4, algorithm R).
    pub(super) fn remove(&mut self, hash: u32, is_number: impl Fn(u32) -> bool) -> Option<u32> {
        let mut free = self.place_of(hash, is_number)?;
        let number = self.slots[free].number;
        let mut slot = self.next_slot(free);
        while !self.slots[slot].is_empty() {
            if self.is_between(self.first_slot(self.slots[slot].hash), free, slot) {
                self.slots[free] = self.slots[slot];
                free = slot;
            }
            slot = self.next_slot(slot);
        }
        self.slots[free] = IndexEntry::EMPTY;
        self.used -= 1;
        Some(number)
    }

    /// True if a search from `first_slot` passes `free` before `slot`.
    const fn is_between(&self, first_slot: usize, free: usize, slot: usize) -> bool {
        let len = self.slots.len();
        (slot + len - first_slot) % len >= (slot + len - free) % len
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn partition_equals_a_map(
            steps in prop::collection::vec((any::<bool>(), 0..40_u32, prop::sample::select(vec![0, 1, u32::MAX / 2, u32::MAX])), 0..200)
        ) {
            // Numbers with few hashes, so that many collide, also around the end.
            let mut part = IndexPartition::default();
            let mut model = BTreeMap::new();
            for (comes, number, near) in steps {
                let hash = near ^ (number % 3);
                let is_number = |other: u32| other == number;
                prop_assert_eq!(part.find(hash, is_number).is_some(), model.contains_key(&(hash, number)));
                if comes && model.insert((hash, number), ()).is_none() {
                    part.insert(hash, number);
                } else if !comes {
                    let was = model.remove(&(hash, number)).map(|()| number);
                    prop_assert_eq!(part.remove(hash, is_number), was);
                }
                prop_assert_eq!(part.used, model.len());
            }
            for (hash, number) in model.into_keys() {
                prop_assert_eq!(part.find(hash, |other| other == number), Some(number));
            }
        }
    }
}

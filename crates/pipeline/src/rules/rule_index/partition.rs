//! A hash table of numbers that lies in one piece. Who looks for a hash needs a single line
//! of memory, mostly, whether it is there, is not, or is put there: an entry lies in the
//! first free place from the one that its hash names on. As the upper bits of the hash
//! name it, a larger table has the same order, and is filled from front to back.

/// A hash and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) hash: u32,
    pub(super) number: u32,
}

impl IndexEntry {
    /// The number that none has.
    const NONE: u32 = u32::MAX;

    const EMPTY: Self = Self {
        hash: 0,
        number: Self::NONE,
    };

    const fn is_empty(self) -> bool {
        self.number == Self::NONE
    }
}

/// Places of the smallest table: a line of memory.
const LEAST: usize = 8;

/// See the top of this file.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexPartition {
    places: Box<[IndexEntry]>,
    used: usize,
}

impl IndexPartition {
    /// The place at which the search for a hash begins.
    fn home(&self, hash: u32) -> usize {
        let place = (u64::from(hash) * self.places.len() as u64) >> u32::BITS;
        usize::try_from(place).expect("it is less than there are places")
    }

    /// The place behind this one; behind the last, the first.
    const fn behind(&self, place: usize) -> usize {
        let next = place + 1;
        if next == self.places.len() { 0 } else { next }
    }

    /// Has the memory near in which an entry of this hash is or would be: mostly some places
    /// behind the first, perhaps in the next line.
    pub(super) fn glance_at(&self, hash: u32) -> u32 {
        let home = self.home(hash);
        let number = |place: usize| self.places.get(place).map_or(0, |at| at.number);
        number(home) ^ number(home + LEAST / 2)
    }

    /// The number that has this hash and is the one.
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let place = self.place_of(hash, is_it)?;
        Some(self.places[place].number)
    }

    fn place_of(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let mut place = self.home(hash);
        loop {
            let entry = *self.places.get(place)?;
            if entry.is_empty() {
                return None;
            }
            if entry.hash == hash && is_it(entry.number) {
                return Some(place);
            }
            place = self.behind(place);
        }
    }

    /// Puts a number in that is not there.
    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        // A quarter stays free, so that searches are short.
        if 4 * (self.used + 1) > 3 * self.places.len() {
            self.grow();
        }
        self.put(IndexEntry { hash, number });
        self.used += 1;
    }

    fn put(&mut self, entry: IndexEntry) {
        let mut place = self.home(entry.hash);
        while !self.places[place].is_empty() {
            place = self.behind(place);
        }
        self.places[place] = entry;
    }

    fn grow(&mut self) {
        let more = (self.places.len() / 2 * 3).max(LEAST);
        let larger = vec![IndexEntry::EMPTY; more].into_boxed_slice();
        let before = std::mem::replace(&mut self.places, larger);
        for entry in before.iter().filter(|entry| !entry.is_empty()) {
            self.put(*entry);
        }
    }

    /// Takes the number out that has this hash and is the one. What lies behind it for want
    /// of a place moves up, so that no search ends too early.
    pub(super) fn remove(&mut self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut free = self.place_of(hash, is_it)?;
        let number = self.places[free].number;
        let mut place = self.behind(free);
        while !self.places[place].is_empty() {
            if self.is_between(self.home(self.places[place].hash), free, place) {
                self.places[free] = self.places[place];
                free = place;
            }
            place = self.behind(place);
        }
        self.places[free] = IndexEntry::EMPTY;
        self.used -= 1;
        Some(number)
    }

    /// Whether a search that begins at `home` comes by `free` before it comes to `place`.
    const fn is_between(&self, home: usize, free: usize, place: usize) -> bool {
        let len = self.places.len();
        (place + len - home) % len >= (place + len - free) % len
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_what_a_map_has(
            steps in prop::collection::vec((any::<bool>(), 0..40_u32, prop::sample::select(vec![0, 1, u32::MAX / 2, u32::MAX])), 0..200)
        ) {
            // Numbers of a few hashes, so that many are in the way of each other, also
            // around the end.
            let mut part = IndexPartition::default();
            let mut model = BTreeMap::new();
            for (comes, number, near) in steps {
                let hash = near ^ (number % 3);
                let is_it = |other: u32| other == number;
                prop_assert_eq!(part.find(hash, is_it).is_some(), model.contains_key(&(hash, number)));
                if comes && model.insert((hash, number), ()).is_none() {
                    part.insert(hash, number);
                } else if !comes {
                    let was = model.remove(&(hash, number)).map(|()| number);
                    prop_assert_eq!(part.remove(hash, is_it), was);
                }
                prop_assert_eq!(part.used, model.len());
            }
            for (hash, number) in model.into_keys() {
                prop_assert_eq!(part.find(hash, |other| other == number), Some(number));
            }
        }
    }
}

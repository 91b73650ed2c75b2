//! A piece of a hash table that one thread writes while others read, without a
//! lock and without ever waiting.
//!
//! A place is found by either of two buckets, so that a full bucket is rare; what
//! finds no place makes the segment *full*, and its owner makes a larger one or
//! two of it. Nothing is ever moved, and an entry is written once: a reader finds
//! it whole or not at all.
//!
//! Which entries a reader sees is decided by its *epoch*: an entry is there from
//! the epoch in which it was born until the one in which it died. So a reader of
//! an older epoch sees what was there then, whatever is written meanwhile.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pipeline::Rule;

/// The number of a publication. Readers of it see what was born until then and
/// had not died.
pub(crate) type Epoch = u64;

/// Entries of the smallest segment, and of the largest. Remaking the largest
/// takes some tens of microseconds, which is how long a flow-mod may wait for it.
pub(crate) const CAPACITY_MIN: usize = 4;
pub(crate) const CAPACITY_MAX: usize = 1024;

/// Slots of a bucket: half a cache line.
const SLOTS: usize = 8;

/// No entry.
const NONE: u16 = u16::MAX;

/// Sixteen bits of the hash above, an entry's number plus one below; zero for none.
#[derive(Debug, Default)]
struct Bucket([AtomicU32; SLOTS]);

#[derive(Debug)]
struct Entry {
    rule: OnceLock<Arc<Rule>>,
    born: AtomicU64,
    /// [`u64::MAX`] while it lives.
    died: AtomicU64,
    /// The next entry with the same key.
    next: AtomicU16,
}

impl Entry {
    const fn new() -> Self {
        Self {
            rule: OnceLock::new(),
            born: AtomicU64::new(0),
            died: AtomicU64::new(u64::MAX),
            next: AtomicU16::new(NONE),
        }
    }

    #[inline]
    fn seen(&self, epoch: Epoch) -> Option<&Arc<Rule>> {
        let there =
            self.born.load(Ordering::Relaxed) <= epoch && epoch < self.died.load(Ordering::Relaxed);
        self.rule.get().filter(|_| there)
    }
}

/// There was no room: a larger segment, or two, must take its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Words of a key.
    words: usize,
    buckets: Box<[Bucket]>,
    keys: Box<[AtomicU64]>,
    entries: Box<[Entry]>,
    /// How many entries were written; the writer's own.
    used: AtomicU32,
    /// How many of them have died; the writer's own.
    dead: AtomicU32,
}

impl Segment {
    /// One with room for `capacity` entries, a power of two, with keys of so many words.
    pub(crate) fn new(capacity: usize, words: usize) -> Self {
        // Two slots an entry.
        let buckets = (2 * capacity).div_ceil(SLOTS).next_power_of_two();
        Self {
            words,
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            keys: (0..capacity * words).map(|_| AtomicU64::new(0)).collect(),
            entries: (0..capacity).map(|_| Entry::new()).collect(),
            used: AtomicU32::new(0),
            dead: AtomicU32::new(0),
        }
    }

    /// How many entries there can be.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Whether most of what was written has died.
    pub(crate) fn is_mostly_dead(&self) -> bool {
        let dead = self.dead.load(Ordering::Relaxed);
        dead > 8 && 2 * dead > self.used.load(Ordering::Relaxed)
    }

    /// The rule of the highest priority under the key, as `epoch` saw it.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: u64,
        key: impl Iterator<Item = u64> + Clone,
        epoch: Epoch,
    ) -> Option<&Arc<Rule>> {
        let mut place = self.first(hash, key);
        let mut best: Option<&Arc<Rule>> = None;
        while let Some(entry) = place.and_then(|place| self.entries.get(usize::from(place))) {
            if let Some(rule) = entry.seen(epoch)
                && best.is_none_or(|best| rule.priority() > best.priority())
            {
                best = Some(rule);
            }
            place = Some(entry.next.load(Ordering::Acquire));
        }
        best
    }

    /// The first entry under the key.
    #[inline]
    fn first(&self, hash: u64, key: impl Iterator<Item = u64> + Clone) -> Option<u16> {
        let tag = tag(hash);
        for bucket in self.places(hash) {
            for slot in &self.buckets[bucket].0 {
                let [high, low] = split(slot.load(Ordering::Acquire));
                // They are filled from the first on, and never emptied.
                if low == 0 {
                    break;
                }
                if high == tag && self.has_key(low - 1, key.clone()) {
                    return Some(low - 1);
                }
            }
        }
        None
    }

    #[inline]
    fn has_key(&self, entry: u16, key: impl Iterator<Item = u64>) -> bool {
        let start = usize::from(entry) * self.words;
        let stored = self.keys[start..start + self.words].iter();
        stored
            .zip(key)
            .all(|(stored, wanted)| stored.load(Ordering::Relaxed) == wanted)
    }

    /// The two buckets that a key may be in.
    #[inline]
    fn places(&self, hash: u64) -> [usize; 2] {
        let [.., second, first] = quarters(hash);
        let mask = self.buckets.len() - 1;
        [usize::from(first) & mask, usize::from(second) & mask]
    }

    /// Writes an entry that is there from `epoch` on. By the one writer only.
    pub(crate) fn insert(
        &self,
        hash: u64,
        key: &[u64],
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Result<(), Full> {
        let place = self.written();
        let entry = self.entries.get(place).ok_or(Full)?;
        let number = u16::try_from(place).expect("the capacity is less");
        let link = self.link_for(hash, key).ok_or(Full)?;
        let start = place * self.words;
        for (stored, word) in self.keys[start..].iter().zip(key) {
            stored.store(*word, Ordering::Relaxed);
        }
        entry.born.store(epoch, Ordering::Relaxed);
        let fresh = entry.rule.set(Arc::clone(rule));
        fresh.expect("an entry is written once");
        match link {
            Link::After(last) => last.next.store(number, Ordering::Release),
            Link::Slot(slot) => {
                let value = u32::from(tag(hash)) << 16 | u32::from(number + 1);
                slot.store(value, Ordering::Release);
            }
        }
        self.used.store(u32::from(number) + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Where a new entry under the key is to be found from.
    fn link_for(&self, hash: u64, key: &[u64]) -> Option<Link<'_>> {
        if let Some(first) = self.first(hash, key.iter().copied()) {
            let mut last = &self.entries[usize::from(first)];
            while let Some(next) = self
                .entries
                .get(usize::from(last.next.load(Ordering::Relaxed)))
            {
                last = next;
            }
            return Some(Link::After(last));
        }
        let places = self.places(hash);
        let room = |bucket: &usize| {
            let free = |slot: &&AtomicU32| slot.load(Ordering::Relaxed) == 0;
            self.buckets[*bucket].0.iter().filter(free).count()
        };
        let emptier = places.into_iter().max_by_key(room)?;
        let mut slots = self.buckets[emptier].0.iter();
        slots
            .find(|slot| slot.load(Ordering::Relaxed) == 0)
            .map(Link::Slot)
    }

    /// Lets the entry of `rule` die in `epoch`. Answers whether there was one. By
    /// the one writer only.
    pub(crate) fn remove(&self, hash: u64, key: &[u64], rule: &Arc<Rule>, epoch: Epoch) -> bool {
        let mut place = self.first(hash, key.iter().copied());
        while let Some(entry) = place.and_then(|place| self.entries.get(usize::from(place))) {
            let alive = entry.died.load(Ordering::Relaxed) == Epoch::MAX;
            if alive && entry.rule.get().is_some_and(|of| Arc::ptr_eq(of, rule)) {
                entry.died.store(epoch, Ordering::Relaxed);
                self.dead.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            place = Some(entry.next.load(Ordering::Relaxed));
        }
        false
    }

    /// Whether as many entries were written as there can be.
    pub(crate) fn is_used_up(&self) -> bool {
        self.written() == self.capacity()
    }

    fn written(&self) -> usize {
        usize::try_from(self.used.load(Ordering::Relaxed)).expect("an index")
    }

    /// What has not died.
    pub(crate) fn living(&self) -> impl Iterator<Item = Living<'_>> {
        let entries = self.entries[..self.written()].iter().enumerate();
        entries.filter_map(|(number, entry)| {
            let alive = entry.died.load(Ordering::Relaxed) == Epoch::MAX;
            let rule = entry.rule.get().filter(|_| alive)?;
            let start = number * self.words;
            let key = self.keys[start..start + self.words].iter();
            Some(Living {
                key: key.map(|word| word.load(Ordering::Relaxed)).collect(),
                born: entry.born.load(Ordering::Relaxed),
                rule,
            })
        })
    }
}

/// An entry that has not died.
#[derive(Clone, Debug)]
pub(crate) struct Living<'a> {
    pub(crate) key: Box<[u64]>,
    pub(crate) born: Epoch,
    pub(crate) rule: &'a Arc<Rule>,
}

/// From where an entry is found.
enum Link<'a> {
    /// From the last one with the same key.
    After(&'a Entry),
    /// From this free slot.
    Slot(&'a AtomicU32),
}

/// What a slot keeps of the hash, so that few keys are compared in vain.
fn tag(hash: u64) -> u16 {
    let [_, tag, ..] = quarters(hash);
    tag
}

/// The sixteens of bits, from above.
#[inline]
fn quarters(hash: u64) -> [u16; 4] {
    let [a, b, c, d, e, f, g, h] = hash.to_be_bytes();
    [[a, b], [c, d], [e, f], [g, h]].map(u16::from_be_bytes)
}

#[inline]
fn split(slot: u32) -> [u16; 2] {
    let [a, b, c, d] = slot.to_be_bytes();
    [[a, b], [c, d]].map(u16::from_be_bytes)
}

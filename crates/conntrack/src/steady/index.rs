//! The index of entries: buckets of eight ways with two choices (Broder and Mitzenmacher, "Using
//! multiple hash functions to improve IP lookups", 2001), where the second bucket is the neighbour of
//! the first one.
//!
//! ```text
//!  hash: lower half -> bucket          upper half -> tag
//!  bucket   [ tag, slot | tag, slot | 0 | ... ]     8 ways, one cache line
//! ```
//!
//! The index is a cache: a connection that is absent is found in its shard, and inserted again. So a
//! full bucket may give up a way, and a larger index begins empty. It is grown by
//! [`SteadyIndex::grow`], which only the control thread calls: no worker waits for memory. Smaller
//! indices stay allocated, a third of the memory of the largest.

use base::sync::OnceLock;
use base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Ways of a bucket.
const WAYS: usize = 8;
/// Buckets of the smallest index, and the factor of growth.
const BUCKETS_MIN: usize = if cfg!(feature = "model") { 2 } else { 1024 };
const GROWTH: usize = 4;
/// Sizes: the largest has four million buckets, for more than twenty million connections.
const LEVELS: usize = 7;
/// Connections per bucket above which the index grows.
const LOAD_MAX: usize = 4;

/// A bucket: zero, or tag and slot.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct SteadyBucket([AtomicU64; WAYS]);

impl SteadyBucket {
    /// Returns the slot of a way with a tag, or zero. All ways are compared: which one it is cannot be
    /// predicted.
    #[inline]
    fn find(&self, tag: u64) -> u32 {
        let found = self.0.iter().fold(0, |found, way| {
            let word = way.load(Ordering::Relaxed);
            let is_equal = word >> 32 == tag;
            if is_equal { word } else { found }
        });
        slot_of(found)
    }

    /// Replaces the first way that is `old`. Returns false if there is none.
    fn replace(&self, old: u64, new: u64) -> bool {
        let exchange = |way: &AtomicU64| {
            way.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        self.0.iter().any(exchange)
    }

    fn holds(&self, word: u64) -> bool {
        self.0.iter().any(|way| way.load(Ordering::Relaxed) == word)
    }
}

/// The index.
#[derive(Debug)]
pub(crate) struct SteadyIndex {
    levels: [OnceLock<Box<[SteadyBucket]>>; LEVELS],
    /// The level in use.
    level: AtomicUsize,
}

impl SteadyIndex {
    pub(crate) fn new() -> Self {
        let index = Self {
            levels: std::array::from_fn(|_| OnceLock::new()),
            level: AtomicUsize::new(0),
        };
        index.allocate(0);
        index
    }

    /// Returns the first bucket of a hash, for a prefetch.
    #[inline]
    pub(crate) fn bucket(&self, hash: u64) -> Option<&SteadyBucket> {
        let buckets = self.buckets();
        buckets.get(bucket_of(hash, buckets))
    }

    /// Returns the slot of a hash, or zero.
    #[inline]
    pub(crate) fn find(&self, hash: u64) -> u32 {
        let buckets = self.buckets();
        let at = bucket_of(hash, buckets);
        let tag = hash >> 32;
        let find = |at: usize| buckets.get(at).map_or(0, |bucket| bucket.find(tag));
        match find(at) {
            0 => find(at ^ 1),
            slot => slot,
        }
    }

    /// Inserts a slot, unless it is there. If both buckets are full, another slot is given up.
    pub(crate) fn insert(&self, hash: u64, slot: u32) {
        let word = word_of(hash, slot);
        let buckets = self.buckets();
        let at = bucket_of(hash, buckets);
        let (Some(first), Some(second)) = (buckets.get(at), buckets.get(at ^ 1)) else {
            return;
        };
        if first.holds(word) || second.holds(word) {
            return;
        }
        if !first.replace(0, word) && !second.replace(0, word) {
            first.0[slot as usize % WAYS].store(word, Ordering::Relaxed);
        }
    }

    /// Removes a slot.
    pub(crate) fn remove(&self, hash: u64, slot: u32) {
        let word = word_of(hash, slot);
        let buckets = self.buckets();
        let at = bucket_of(hash, buckets);
        let remove = |at: usize| {
            buckets
                .get(at)
                .is_some_and(|bucket| bucket.replace(word, 0))
        };
        let _ = remove(at) || remove(at ^ 1);
    }

    /// Uses a larger index if this one has too many connections.
    pub(crate) fn grow(&self, connections: usize) {
        let level = self.level.load(Ordering::Relaxed);
        if connections > LOAD_MAX * self.buckets().len() && level + 1 < LEVELS {
            self.allocate(level + 1);
            self.level.store(level + 1, Ordering::Release);
        }
    }

    fn allocate(&self, level: usize) {
        let count = (0..level).fold(BUCKETS_MIN, |count, _| count * GROWTH);
        let buckets = (0..count).map(|_| SteadyBucket::default()).collect();
        // A level that exists is used as it is.
        let _ = self.levels[level].set(buckets);
    }

    #[inline]
    fn buckets(&self) -> &[SteadyBucket] {
        let level = &self.levels[self.level.load(Ordering::Acquire) % LEVELS];
        level.get().map_or(&[], AsRef::as_ref)
    }
}

#[inline]
fn bucket_of(hash: u64, buckets: &[SteadyBucket]) -> usize {
    let [.., a, b, c, d] = hash.to_be_bytes();
    // The number of buckets is a power of two.
    u32::from_be_bytes([a, b, c, d]) as usize & buckets.len().wrapping_sub(1)
}

#[inline]
const fn word_of(hash: u64, slot: u32) -> u64 {
    hash >> 32 << 32 | slot as u64
}

#[inline]
const fn slot_of(word: u64) -> u32 {
    let [.., a, b, c, d] = word.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u32) -> u64 {
        u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn index_returns_the_slots_of_hashes() {
        let index = SteadyIndex::new();
        for slot in 1..=2000 {
            index.insert(hash(slot), slot);
            index.insert(hash(slot), slot);
        }
        assert!((1..=2000).all(|slot| index.find(hash(slot)) == slot));
        index.remove(hash(7), 7);
        assert_eq!((index.find(hash(7)), index.find(hash(8))), (0, 8));
    }

    #[test]
    fn full_bucket_gives_up_a_slot() {
        let index = SteadyIndex::new();
        // The same bucket, with different tags.
        let hash = |tag: u32| u64::from(tag) << 32;
        (1..=17).for_each(|slot| index.insert(hash(slot), slot));
        let held = (1..=17).filter(|slot| index.find(hash(*slot)) == *slot);
        assert_eq!(held.count(), 16);
        assert_eq!(index.find(hash(17)), 17);
    }

    #[test]
    fn larger_index_begins_empty() {
        let index = SteadyIndex::new();
        index.insert(hash(1), 1);
        index.grow(BUCKETS_MIN * LOAD_MAX);
        assert_eq!(index.find(hash(1)), 1);
        index.grow(BUCKETS_MIN * LOAD_MAX + 1);
        assert_eq!(index.find(hash(1)), 0);
        index.insert(hash(1), 1);
        assert_eq!(index.find(hash(1)), 1);
    }
}

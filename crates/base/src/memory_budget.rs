//! A budget of memory that several parts of a process draw from: a counter of bytes with a ceiling.
//! Nothing is allocated here; a user reserves a share before it allocates, and keeps it as long as
//! the memory.

use std::sync::Arc;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A budget of memory. Clones share the counter; [`MemoryBudget::with_ceiling`] gives some users
/// less than others, so that they cannot exhaust it.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    usage: Arc<MemoryUsage>,
    ceiling: usize,
}

#[derive(Debug, Default)]
struct MemoryUsage {
    bytes: AtomicUsize,
    refused: AtomicU64,
}

impl MemoryBudget {
    /// Returns a budget of `ceiling` bytes.
    #[must_use]
    pub fn new(ceiling: usize) -> Self {
        Self {
            usage: Arc::default(),
            ceiling,
        }
    }

    /// Returns the same budget for users that are refused as soon as all users together have
    /// `ceiling` bytes.
    #[must_use]
    pub fn with_ceiling(&self, ceiling: usize) -> Self {
        Self {
            usage: Arc::clone(&self.usage),
            ceiling: ceiling.min(self.ceiling),
        }
    }

    /// Reserves so many bytes. A refusal is counted.
    #[must_use]
    pub fn reserve(&self, bytes: usize) -> Option<MemoryShare> {
        let share = self.reserve_at_most(bytes);
        if share.bytes == bytes {
            return Some(share);
        }
        self.usage.refused.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Reserves so many bytes, or as many as there are.
    #[must_use]
    pub fn reserve_at_most(&self, bytes: usize) -> MemoryShare {
        let mut reserved = 0;
        let take = |used: usize| {
            reserved = self.ceiling.saturating_sub(used).min(bytes);
            Some(used + reserved)
        };
        // The closure never refuses.
        let _ = self
            .usage
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        MemoryShare {
            usage: Arc::clone(&self.usage),
            bytes: reserved,
        }
    }

    /// Returns true if so many bytes are free at present.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.used() + bytes <= self.ceiling
    }

    /// Returns the bytes of all shares.
    #[must_use]
    pub fn used(&self) -> usize {
        self.usage.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of refused reservations.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.usage.refused.load(Ordering::Relaxed)
    }
}

/// A share of a budget, which returns when it is dropped.
#[derive(Debug)]
pub struct MemoryShare {
    usage: Arc<MemoryUsage>,
    bytes: usize,
}

impl MemoryShare {
    /// Returns its size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a part out of the share; `None` if the share is smaller.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Option<Self> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(Self {
            usage: Arc::clone(&self.usage),
            bytes,
        })
    }

    /// Adds a part of the same budget to the share.
    pub fn merge(&mut self, mut part: Self) {
        self.bytes += std::mem::take(&mut part.bytes);
    }
}

/// The copy of what the share stands for takes as much memory again, beyond the ceiling if there is
/// no room.
impl Clone for MemoryShare {
    fn clone(&self) -> Self {
        self.usage.bytes.fetch_add(self.bytes, Ordering::Relaxed);
        Self {
            usage: Arc::clone(&self.usage),
            bytes: self.bytes,
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.usage.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::MemoryBudget;

    #[test]
    fn shares_return_to_the_budget() {
        let budget = MemoryBudget::new(100);
        let mut first = budget.reserve(60).expect("there is room");
        assert!(budget.reserve(41).is_none());
        assert_eq!((budget.used(), budget.refused()), (60, 1));
        let part = first.split(20).expect("a part");
        assert!(first.split(41).is_none());
        drop(first);
        assert_eq!(budget.used(), 20);
        let rest = budget.reserve_at_most(1000);
        assert_eq!((rest.bytes(), budget.used()), (80, 100));
        let copy = part.clone();
        assert_eq!(budget.used(), 120);
        let mut both = rest;
        both.merge(part);
        drop((both, copy));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn lower_ceiling_leaves_room_for_others() {
        let budget = MemoryBudget::new(100);
        let guests = budget.with_ceiling(50);
        let guest = guests.reserve_at_most(80);
        assert_eq!(guest.bytes(), 50);
        assert!(!guests.has_room(1) && budget.has_room(50));
        let host = budget.reserve(50).expect("the rest is for others");
        drop(guest);
        assert!(guests.reserve(1).is_none(), "others use the guests' part");
        drop(host);
        assert!(guests.reserve(50).is_some());
    }
}

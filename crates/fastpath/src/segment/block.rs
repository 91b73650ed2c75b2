//! Entries of a segment, and the blocks that store them. One entry for each rule, with the ages at
//! which it was born and died.

use std::sync::Arc;

use base::sync::OnceLock;
use base::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use pipeline::Rule;

use super::hot_entry::HotEntry;

/// Most entries of a block: those that the lower bits of a number distinguish.
pub(super) const BLOCK: usize = 1 << BLOCK_BITS;
pub(super) const BLOCK_BITS: u32 = 10;

/// Most blocks of a segment: those that the upper bits of a number distinguish, without
/// [`NO_ENTRY`]. A table of a million rules uses two dozen.
pub(super) const BLOCKS_MAX: usize = (1 << (u16::BITS - BLOCK_BITS)) - 1;

/// Number of no entry.
pub(super) const NO_ENTRY: u16 = u16::MAX;

/// Age of death of a live entry.
pub(super) const NEVER: u16 = u16::MAX;

/// A rule, and its place in the list of rules with the same match. Small, since there may be a
/// million.
#[derive(Debug)]
pub(super) struct SegmentEntry {
    pub(super) rule: Arc<Rule>,
    pub(super) born: u16,
    /// [`NEVER`] while it is live.
    pub(super) died: AtomicU16,
    /// The next entry with the same match.
    pub(super) next: AtomicU16,
}

impl SegmentEntry {
    #[inline]
    pub(super) fn is_visible(&self, age: u16) -> bool {
        self.born <= age && age < self.died.load(Ordering::Relaxed)
    }

    pub(super) fn is_live(&self) -> bool {
        self.died.load(Ordering::Relaxed) == NEVER
    }
}

/// Memory of entries, shared by a segment and its successors.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryBlock {
    pub(super) entries: Arc<[OnceLock<SegmentEntry>]>,
    /// Hash of each entry without its tag; only the writer uses it.
    pub(super) hashes: Arc<[AtomicU32]>,
    /// Hot entries; empty if the mask has too many words.
    pub(super) hot: Arc<[HotEntry]>,
}

impl EntryBlock {
    /// A block for `capacity` entries, with a hot entry for each if `has_hot_entries`.
    pub(super) fn new(capacity: usize, has_hot_entries: bool) -> Self {
        let hot = if has_hot_entries { capacity } else { 0 };
        Self {
            hot: (0..hot).map(|_| HotEntry::empty()).collect(),
            entries: (0..capacity).map(|_| OnceLock::new()).collect(),
            hashes: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Size in bytes, divided by the number of segments that share the block.
    pub(super) fn bytes(&self) -> usize {
        let of_entries = size_of_val(&*self.entries) + size_of_val(&*self.hashes);
        let all = of_entries + size_of_val(&*self.hot);
        all / Arc::strong_count(&self.entries)
    }
}

/// Position of an entry in its block.
#[inline]
pub(super) const fn position_of(number: u16) -> usize {
    number as usize % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_has_24_bytes() {
        assert_eq!(size_of::<OnceLock<SegmentEntry>>(), 24);
    }
}

//! Entries, and the blocks in which they lie side by side: one for each rule, which says
//! when it is there. How one is found is the segment's.

use std::sync::Arc;

use base::sync::OnceLock;
use base::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use pipeline::Rule;

use super::line::Line;

/// Entries of a block at most: what the lower bits of a number tell apart.
pub(super) const BLOCK: usize = 1 << BLOCK_BITS;
pub(super) const BLOCK_BITS: u32 = 10;

/// Blocks of a segment at most: what the upper bits of a number tell apart, but for
/// [`NONE`]. A million rules come to two dozen.
pub(super) const BLOCKS_MAX: usize = (1 << (u16::BITS - BLOCK_BITS)) - 1;

/// No entry.
pub(super) const NONE: u16 = u16::MAX;

/// The age at which an entry dies that lives.
pub(super) const NEVER: u16 = u16::MAX;

/// There may be a million: it is kept small.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) rule: Arc<Rule>,
    pub(super) born: u16,
    /// [`NEVER`] while it lives.
    pub(super) died: AtomicU16,
    /// The next entry that wants the same.
    pub(super) next: AtomicU16,
}

impl Entry {
    #[inline]
    pub(super) fn is_seen(&self, age: u16) -> bool {
        self.born <= age && age < self.died.load(Ordering::Relaxed)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.died.load(Ordering::Relaxed) == NEVER
    }
}

/// Room for entries. The segments that it was handed on to share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) entries: Arc<[OnceLock<Entry>]>,
    /// What a tag leaves out of each entry's hash; the writer's own.
    pub(super) hashes: Arc<[AtomicU32]>,
    /// What a frame needs that finds an entry, if they are of few words.
    pub(super) lines: Arc<[Line]>,
}

impl Block {
    /// Room for so many entries, and for a line for each if they are to have one.
    pub(super) fn new(capacity: usize, has_lines: bool) -> Self {
        let lines = if has_lines { capacity } else { 0 };
        Self {
            lines: (0..lines).map(|_| Line::empty()).collect(),
            entries: (0..capacity).map(|_| OnceLock::new()).collect(),
            hashes: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// The bytes that each of those who share it must answer for.
    pub(super) fn bytes(&self) -> usize {
        let of_entries = size_of_val(&*self.entries) + size_of_val(&*self.hashes);
        let all = of_entries + size_of_val(&*self.lines);
        all / Arc::strong_count(&self.entries)
    }
}

/// Where in its block an entry of this number is.
#[inline]
pub(super) const fn place_of(number: u16) -> usize {
    number as usize % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<OnceLock<Entry>>(), 24);
    }
}

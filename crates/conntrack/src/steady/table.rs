//! Entries of connections in a steady state by slot, in segments that are allocated when their first
//! slot is used and do not move, and the index of their keys.
//!
//! ```text
//!   slot 8      one line                 slot 10 | WIDE    lines 10 and 11
//! ```
//!
//! A pair of lines that is free may become two slots of one line, of which the second is reset; two
//! slots never become a pair. So a slot that a packet has found in the index, and that belongs to
//! another connection by now, is still the first line of an entry.

use base::sync::OnceLock;
use base::sync::atomic::{AtomicU32, Ordering};

use super::entry::{SteadyEntry, SteadyLine, SteadyState};
use super::index::{SteadyBucket, SteadyIndex};
use super::key_words::{HashSecrets, KeyWords};
use crate::counters::OwnLine;
use crate::siphash::HashSeed;

/// Lines of a segment: 64 KiB.
const SEGMENT: usize = if cfg!(feature = "model") { 4 } else { 1024 };
/// Segments: for thirty million connections of one line. Others have no entry, and are found in
/// their shard.
const SEGMENTS: usize = if cfg!(feature = "model") { 4 } else { 32_768 };
/// Lines that a shard takes at a time: two pairs.
const LINES_TAKEN: u32 = 4;
/// Bit of a slot with two lines, above the numbers of all lines.
pub(crate) const WIDE: u32 = 1 << 25;
const _: () = assert!(SEGMENT * SEGMENTS <= 1 << 25, "lines have this many bits");

/// A segment of lines.
type SteadySegment = OnceLock<Box<[SteadyLine]>>;

/// The entries, shared by all workers.
#[derive(Debug)]
pub(crate) struct SteadyTable {
    segments: Box<[SteadySegment]>,
    index: SteadyIndex,
    pub(crate) secrets: HashSecrets,
    /// The first line that no shard has taken. Slot zero stands for none.
    lines: OwnLine<AtomicU32>,
    /// Number of connections.
    held: OwnLine<AtomicU32>,
}

/// Slots that a shard has taken and does not use.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots {
    narrow: Vec<u32>,
    wide: Vec<u32>,
}

impl FreeSlots {
    fn put(&mut self, slot: u32) {
        match is_wide(slot) {
            true => self.wide.push(slot),
            false => self.narrow.push(slot),
        }
    }
}

/// True if a slot has two lines.
pub(crate) const fn is_wide(slot: u32) -> bool {
    slot & WIDE != 0
}

impl SteadyTable {
    pub(crate) fn new(seed: HashSeed) -> Self {
        Self {
            segments: (0..SEGMENTS).map(|_| OnceLock::new()).collect(),
            index: SteadyIndex::new(),
            secrets: HashSecrets::of(seed),
            lines: OwnLine(AtomicU32::new(LINES_TAKEN)),
            held: OwnLine(AtomicU32::new(0)),
        }
    }

    /// Returns the first bucket of a hash, for a prefetch.
    #[inline]
    pub(crate) fn bucket(&self, hash: u64) -> Option<&SteadyBucket> {
        self.index.bucket(hash)
    }

    /// Returns the slot of a hash, or zero.
    #[inline]
    pub(crate) fn find(&self, hash: u64) -> u32 {
        self.index.find(hash)
    }

    /// Returns the first line of a slot, for a prefetch.
    #[inline]
    pub(crate) fn line(&self, slot: u32) -> Option<&SteadyLine> {
        let at = (slot & !WIDE) as usize;
        self.segments.get(at / SEGMENT)?.get()?.get(at % SEGMENT)
    }

    /// Returns the entry of a slot.
    #[inline]
    pub(crate) fn entry(&self, slot: u32) -> Option<SteadyEntry<'_>> {
        let at = (slot & !WIDE) as usize;
        let lines = self.segments.get(at / SEGMENT)?.get()?;
        let second = lines.get(at % SEGMENT + 1).filter(|_| is_wide(slot));
        Some(SteadyEntry::new(lines.get(at % SEGMENT)?, second))
    }

    /// Takes a slot for a connection of a shard. Returns none if all are in use.
    pub(crate) fn take(&self, wide: bool, free: &mut FreeSlots) -> Option<u32> {
        if !wide && let Some(slot) = free.narrow.pop() {
            self.held.0.fetch_add(1, Ordering::Relaxed);
            return Some(slot);
        }
        let pair = match free.wide.pop() {
            Some(slot) => slot,
            None => self.take_new(free)?,
        };
        self.held.0.fetch_add(1, Ordering::Relaxed);
        if wide {
            return Some(pair);
        }
        let first = pair & !WIDE;
        self.line(first + 1)?.reset();
        free.narrow.push(first + 1);
        Some(first)
    }

    /// Takes lines that no shard has taken. Returns a pair of them.
    fn take_new(&self, free: &mut FreeSlots) -> Option<u32> {
        let first = self.lines.0.load(Ordering::Relaxed);
        let segment = first as usize / SEGMENT;
        if segment >= SEGMENTS {
            return None;
        }
        let first = self.lines.0.fetch_add(LINES_TAKEN, Ordering::Relaxed);
        let segment = self.segments.get(first as usize / SEGMENT)?;
        if segment.get().is_none() {
            let lines = (0..SEGMENT).map(|_| SteadyLine::default()).collect();
            // Another worker may have been first.
            let _ = segment.set(lines);
        }
        free.wide.push((first + 2) | WIDE);
        Some(first | WIDE)
    }

    /// Adds the keys of an entry to the index.
    pub(crate) fn link(&self, state: &SteadyState, slot: u32) {
        self.index.insert(state.key.hash(&self.secrets), slot);
        if let Some((_, reply)) = &state.nat {
            self.index.insert(reply.hash(&self.secrets), slot);
        }
    }

    /// Takes an entry from its connection.
    pub(crate) fn release(
        &self,
        [original, reply]: [KeyWords; 2],
        slot: u32,
        free: &mut FreeSlots,
    ) {
        if let Some(entry) = self.entry(slot) {
            entry.write().clear();
        }
        self.index.remove(original.hash(&self.secrets), slot);
        if reply != original.reversed() {
            self.index.remove(reply.hash(&self.secrets), slot);
        }
        self.held.0.fetch_sub(1, Ordering::Relaxed);
        free.put(slot);
    }

    /// Grows the index, if it has too many connections.
    pub(crate) fn grow(&self) {
        let held = self.held.0.load(Ordering::Relaxed);
        self.index.grow(held as usize);
    }
}

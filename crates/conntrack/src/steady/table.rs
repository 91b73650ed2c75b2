//! Entries of connections in a steady state by slot, in segments that are allocated when their first
//! slot is used and do not move, and the index of their keys.

use base::sync::OnceLock;
use base::sync::atomic::{AtomicU32, Ordering};

use super::entry::{SteadyEntry, SteadyState};
use super::index::{SteadyBucket, SteadyIndex};
use super::key_words::{HashSecrets, KeyWords};
use crate::siphash::HashSeed;

/// Entries of a segment: 128 KiB.
const SEGMENT: usize = if cfg!(feature = "model") { 4 } else { 1024 };
/// Segments: for sixteen million connections. Others have no entry, and are found in their shard.
const SEGMENTS: usize = if cfg!(feature = "model") { 4 } else { 16_384 };
/// Slots that a shard takes at a time.
const SLOTS_TAKEN: u32 = 4;

/// A segment of entries.
type SteadySegment = OnceLock<Box<[SteadyEntry]>>;

/// The entries, shared by all workers.
#[derive(Debug)]
pub(crate) struct SteadyTable {
    segments: Box<[SteadySegment]>,
    index: SteadyIndex,
    pub(crate) secrets: HashSecrets,
    /// The first slot that no shard has taken. Slot zero stands for none.
    slots: AtomicU32,
    /// Number of connections.
    held: AtomicU32,
}

/// Slots that a shard has taken and does not use.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots(Vec<u32>);

impl SteadyTable {
    pub(crate) fn new(seed: HashSeed) -> Self {
        Self {
            segments: (0..SEGMENTS).map(|_| OnceLock::new()).collect(),
            index: SteadyIndex::new(),
            secrets: HashSecrets::of(seed),
            slots: AtomicU32::new(SLOTS_TAKEN),
            held: AtomicU32::new(0),
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

    /// Returns the entry of a slot.
    #[inline]
    pub(crate) fn entry(&self, slot: u32) -> Option<&SteadyEntry> {
        let slot = slot as usize;
        self.segments
            .get(slot / SEGMENT)?
            .get()?
            .get(slot % SEGMENT)
    }

    /// Takes a slot for a connection of a shard. Returns none if all are in use.
    pub(crate) fn take(&self, free: &mut FreeSlots) -> Option<u32> {
        let slot = match free.0.pop() {
            Some(slot) => slot,
            None => self.take_new(free)?,
        };
        self.held.fetch_add(1, Ordering::Relaxed);
        Some(slot)
    }

    fn take_new(&self, free: &mut FreeSlots) -> Option<u32> {
        let first = self.slots.load(Ordering::Relaxed);
        let segment = first as usize / SEGMENT;
        if segment >= SEGMENTS {
            return None;
        }
        let first = self.slots.fetch_add(SLOTS_TAKEN, Ordering::Relaxed);
        let segment = self.segments.get(first as usize / SEGMENT)?;
        if segment.get().is_none() {
            let entries = (0..SEGMENT).map(|_| SteadyEntry::default()).collect();
            // Another worker may have been first.
            let _ = segment.set(entries);
        }
        free.0.extend(first + 1..first + SLOTS_TAKEN);
        Some(first)
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
        self.held.fetch_sub(1, Ordering::Relaxed);
        free.0.push(slot);
    }

    /// Grows the index, if it has too many connections.
    pub(crate) fn grow(&self) {
        let held = self.held.load(Ordering::Relaxed);
        self.index.grow(held as usize);
    }
}

//! Directory of the segments of a tuple.

use std::sync::Arc;

use crate::key_hash::KeyHash;
use crate::segment::Segment;

/// Most bits of the hash that select a segment: all bits of that part.
pub(super) const DIRECTORY_BITS_MAX: u32 = u16::BITS;

/// Segments by the upper bits of the hash. A segment that was split less often than others is in
/// several adjacent slots.
#[derive(Clone, Debug)]
pub(super) struct SegmentDirectory {
    pub(super) bits: u32,
    pub(super) segments: Vec<Arc<Segment>>,
}

impl SegmentDirectory {
    #[inline]
    pub(super) fn slot(&self, hash: KeyHash) -> usize {
        let upper = u32::from(hash.segment()) >> (DIRECTORY_BITS_MAX - self.bits);
        usize::try_from(upper).expect("the slot has at most sixteen bits")
    }

    #[inline]
    pub(super) fn segment(&self, hash: KeyHash) -> &Arc<Segment> {
        &self.segments[self.slot(hash)]
    }

    /// Slots of the segment in `slot`.
    pub(super) fn slots_of(&self, slot: usize) -> std::ops::Range<usize> {
        let segment = &self.segments[slot];
        let same = |other: &&Arc<Segment>| Arc::ptr_eq(other, segment);
        let before = self.segments[..slot].iter().rev().take_while(same).count();
        let after = self.segments[slot..].iter().take_while(same).count();
        slot - before..slot + after
    }

    /// Doubles the number of slots; each segment is in twice as many.
    pub(super) fn double(&mut self) {
        let twice = |segment: &Arc<Segment>| [Arc::clone(segment), Arc::clone(segment)];
        self.segments = self.segments.iter().flat_map(twice).collect();
        self.bits += 1;
    }
}

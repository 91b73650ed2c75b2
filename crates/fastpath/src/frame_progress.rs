//! Progress of one frame through the tables: written by the batch lookup, read by the executor.

use base::{PortNo, TableId};
use flow::Action;
use pipeline::Totals;

use crate::match_result::MatchResult;

/// Most resubmissions of a packet that the batch lookup follows. Beyond it, the executor takes
/// over.
pub(crate) const BATCH_RESUBMITS_MAX: usize = 12;

/// Progress of one frame. Takes one cache line, so that its address needs no multiplication.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct FrameProgress<'a> {
    /// Result of the last lookup.
    pub(crate) result: MatchResult<'a>,
    /// Port by which the frame leaves as it is, if nothing else is to be done; the egress check
    /// has passed.
    pub(crate) egress: Option<PortNo>,
    /// Packets and bytes that the frame counts for.
    pub(crate) weight: Totals,
    /// The action set: an output, if anything.
    pub(crate) action_set: Option<&'a Action>,
    /// Table of the last lookup.
    pub(crate) table: TableId,
    /// Lookups before the last.
    pub(crate) lookups: u16,
    /// Number of them that were resubmissions.
    pub(crate) resubmits: u8,
    /// Resubmissions and tracked packets that were complete when the packet was tracked last.
    pub(crate) outer_nesting: u16,
}

impl FrameProgress<'_> {
    /// Progress before the first lookup.
    pub(crate) const START: Self = Self {
        result: MatchResult::MISS,
        egress: None,
        weight: Totals {
            packets: 0,
            bytes: 0,
        },
        action_set: None,
        table: TableId::FIRST,
        lookups: 0,
        resubmits: 0,
        outer_nesting: 0,
    };
}

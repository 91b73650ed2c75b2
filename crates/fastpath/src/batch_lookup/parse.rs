//! Parsing of the frames of a lookup batch, and the checks before the first lookup.

use std::ops::Range;

use packet::{Depth, Frame};
use pipeline::{DropReason, Pipeline, PortView, Totals};
use sys::cache::prefetch;

use super::{BatchLookup, PacketGroup};
use crate::action_program::{InlineProgram, SlowPathReason};
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::batch_state::{BatchContext, parse_uncommon, weight_of};
use crate::batch_stats::add;
use crate::match_result::MatchResult;
use crate::packed_key::{PackedKey, is_untagged_frame};

impl BatchLookup<'_> {
    /// Parses these frames. Returns those to look up; the others have their result.
    #[inline(never)]
    pub(super) fn parse_frames(&mut self, frames: Range<usize>) -> PacketGroup {
        let context = self.state.context;
        let filter = self.state.ingress.is_filtered.then_some(IngressFilter {
            pipeline: context.pipeline,
            ingress: self.state.ingress.port,
        });
        let mut group = PacketGroup {
            packets: BatchMask::first(frames.len()),
            totals: Totals::default(),
            table: self.ingress_tables.next_table,
            lookups: 0,
        };
        let lookups = self.ingress_tables.len();
        let skips_keys = self.state.ingress.depth == Depth::Link
            && filter.is_none()
            && self.ingress_tables_forward();
        if frames.start == 0 {
            self.prefetch_frames(frames.clone());
        }
        let memory = &mut *self.state.memory;
        let slots = memory.keys.iter_mut().zip(&mut self.progress);
        let frames_of_batch = self.state.frames[frames.clone()].iter().zip(slots);
        for (index, (frame, (key, progress))) in frames_of_batch.enumerate() {
            let weight = weight_of(frame);
            progress.weight = weight;
            progress.egress = None;
            (progress.lookups, progress.resubmits) = (lookups, 0);
            let needs_no_key = skips_keys && is_untagged_frame(frame);
            if !needs_no_key {
                let depth = self.state.ingress.depth;
                let is_common = key.parse(frame, context.in_port, depth).is_ok();
                if !is_common || filter.is_some() {
                    let early =
                        early_result(frame, key, is_common, (context, depth), filter.as_ref());
                    if let Some(result) = early {
                        (progress.result, progress.table) = (result, group.table);
                        group.packets = group.packets.difference(BatchMask::single(index));
                        continue;
                    }
                }
            }
            // The local copy, not the one that was just stored.
            add(&mut group.totals, weight);
        }
        let next = frames.end..self.state.frames.len().min(frames.end + LOOKUP_BATCH);
        self.prefetch_frames(next);
        group
    }

    /// True if all frames are forwarded by the result of the ingress tables, so that no key is
    /// read.
    fn ingress_tables_forward(&mut self) -> bool {
        let Some(MatchResult::Rule(Some(rule))) = self.ingress_tables.result else {
            return false;
        };
        let program = InlineProgram::decode(rule.instructions.program_slot().inline_program());
        matches!(program, InlineProgram::Output(port) if self.state.egress.may_egress(port))
    }

    /// Prefetches the first bytes of frames, while others are looked up.
    #[inline]
    fn prefetch_frames(&self, frames: Range<usize>) {
        for frame in &self.state.frames[frames] {
            frame.first_byte().into_iter().for_each(prefetch);
        }
    }
}

/// Returns the result of a frame before any lookup, if there is one: it is malformed or filtered.
/// The frame is parsed unless its key is filled already.
#[inline(never)]
fn early_result<'a>(
    frame: &Frame,
    key: &mut PackedKey,
    is_parsed: bool,
    (context, depth): (BatchContext<'_>, Depth),
    filter: Option<&IngressFilter<'_>>,
) -> Option<MatchResult<'a>> {
    let ports = context.pipeline.fragment_ports();
    let parsed = match is_parsed {
        true => Ok(()),
        false => parse_uncommon(key, frame, context.in_port, (depth, ports)),
    };
    match parsed {
        Ok(()) => filter.and_then(|filter| filter.check(key, frame)),
        Err(reason) => Some(MatchResult::Drop(reason)),
    }
}

/// Checks of frames before the first lookup.
struct IngressFilter<'a> {
    pipeline: &'a Pipeline,
    ingress: Option<PortView>,
}

impl IngressFilter<'_> {
    /// Returns the result of a frame that does not pass.
    fn check<'a>(&self, key: &PackedKey, frame: &Frame) -> Option<MatchResult<'a>> {
        let receives = |port: PortView| port.receives(key.eth_dst());
        if !self.ingress.is_some_and(receives) {
            return Some(MatchResult::Drop(DropReason::IngressClosed));
        }
        if self.pipeline.is_standalone() {
            return Some(MatchResult::Standalone);
        }
        if self.pipeline.drops_fragment(frame, None) {
            return Some(MatchResult::Drop(DropReason::Fragment));
        }
        let continues = self.pipeline.any_table_continues();
        continues.then_some(MatchResult::SlowPath(SlowPathReason::MissContinues))
    }
}

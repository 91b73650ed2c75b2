//! Frames are read, and told what is told before any lookup.

use std::ops::Range;

use flow::FragmentHandling;
use packet::{Depth, Frame};
use pipeline::{DropReason, Pipeline, PortView, Totals};
use sys::cache::prefetch;

use super::{AHEAD, Group};
use crate::lanes::{Lanes, is_whole_without_tag};
use crate::places::Places;
use crate::runner::{BatchContext, BatchRun, Seen, read_uncommon, weight_of};
use crate::steps::Brief;
use crate::tally::add;

impl BatchRun<'_> {
    /// Reads these frames. Answers which are to be looked up; of the others it is noted what
    /// is said of them.
    pub(super) fn read_ahead(&mut self, frames: Range<usize>) -> Group {
        let ground = self.ground;
        let guard = self.is_guarded.then_some(Guard {
            pipeline: ground.pipeline,
            ingress: self.ingress,
        });
        let mut group = Group {
            places: Places::NONE,
            totals: Totals::default(),
            table: self.trunk.table,
            lookups: 0,
        };
        let lookups = self.trunk.len();
        let is_unread = self.depth == Depth::Link && guard.is_none() && self.trunk_leaves();
        if frames.start == 0 {
            self.ask_for_frames(frames.clone());
        }
        let runner = &mut *self.runner;
        let places = runner.lanes.iter_mut().zip(&mut self.ahead);
        let these = self.frames[frames.clone()].iter().zip(places);
        for (place, (frame, (lanes, ahead))) in these.enumerate() {
            let weight = weight_of(frame);
            ahead.weight = weight;
            ahead.leaves = None;
            (ahead.lookups, ahead.resubmits) = (lookups, 0);
            let is_ordinary = is_unread && is_whole_without_tag(frame)
                || lanes.read(frame, ground.in_port, self.depth).is_ok();
            if !is_ordinary || guard.is_some() {
                let is_read = is_ordinary.then_some(false);
                let said = said_of(frame, lanes, is_read, (ground, self.depth), guard.as_ref());
                if let Some(seen) = said {
                    (ahead.seen, ahead.table) = (seen, group.table);
                    continue;
                }
            }
            group.places.add(Places::of(place));
            // From where it was told, not from where it has just been put.
            add(&mut group.totals, weight);
        }
        let next = frames.end..self.rest.end.min(frames.end + AHEAD);
        self.ask_for_frames(next);
        group
    }

    /// Whether all frames leave by what the trunk says, so that nobody looks at their words.
    fn trunk_leaves(&mut self) -> bool {
        let Some(Seen::Found(Some(rule))) = self.trunk.seen else {
            return false;
        };
        let brief = Brief::of(rule.instructions.inline_program());
        matches!(brief, Brief::Leaves(port) if self.doors.is_way_out(port))
    }

    /// Asks for the memory of frames, so that it comes together, while others are looked up.
    #[inline]
    fn ask_for_frames(&self, frames: Range<usize>) {
        for frame in &self.frames[frames] {
            frame.first_byte().into_iter().for_each(prefetch);
        }
    }
}

/// What is said of a frame before any lookup, if anything is: it is damaged, or the guard does
/// not let it pass. It is read, unless it was an ordinary frame and is.
#[inline(never)]
fn said_of<'a>(
    frame: &Frame,
    lanes: &mut Lanes,
    is_read: Option<bool>,
    (ground, depth): (BatchContext<'_>, Depth),
    guard: Option<&Guard<'_>>,
) -> Option<Seen<'a>> {
    let read = || read_uncommon(lanes, frame, ground, depth);
    match is_read.map_or_else(read, Ok) {
        Ok(is_fragment) => guard.and_then(|guard| guard.says(lanes, is_fragment)),
        Err(reason) => Some(Seen::Refused(reason)),
    }
}

/// What may be said of frames before they are looked up.
struct Guard<'a> {
    pipeline: &'a Pipeline,
    ingress: Option<PortView>,
}

impl Guard<'_> {
    /// What is said of a frame of these words, if anything is.
    fn says<'a>(&self, lanes: &Lanes, is_fragment: bool) -> Option<Seen<'a>> {
        let open = |port: PortView| port.receives(lanes.eth_dst());
        if !self.ingress.is_some_and(open) {
            return Some(Seen::Refused(DropReason::IngressClosed));
        }
        if self.pipeline.is_standalone() {
            return Some(Seen::Standalone);
        }
        let drops = self.pipeline.fragments() == FragmentHandling::Drop;
        (is_fragment && drops).then_some(Seen::Refused(DropReason::Fragment))
    }
}

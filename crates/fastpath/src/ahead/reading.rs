//! Frames are read, and told what is told before any lookup.

use std::ops::Range;

use flow::FragmentHandling;
use pipeline::{DropReason, Pipeline, PortView, Totals};
use sys::cache::prefetch;

use super::Group;
use crate::lanes::Lanes;
use crate::places::Places;
use crate::runner::{Batch, Seen, read, weight_of};
use crate::tally::add;

impl Batch<'_> {
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
        // They come from memory together, and not one after the other.
        for frame in &self.frames[frames.clone()] {
            frame.bytes().first().into_iter().for_each(prefetch);
        }
        let runner = &mut *self.runner;
        let places = runner.lanes.iter_mut().zip(&mut self.ahead);
        for (place, (frame, (lanes, ahead))) in self.frames[frames].iter().zip(places).enumerate() {
            ahead.weight = weight_of(frame);
            ahead.leaves = None;
            ahead.set = None;
            (ahead.lookups, ahead.resubmits) = (lookups, 0);
            let said = match read(lanes, frame, ground, self.depth) {
                Ok(is_fragment) => guard
                    .as_ref()
                    .and_then(|guard| guard.says(lanes, is_fragment)),
                Err(reason) => Some(Seen::Refused(reason)),
            };
            match said {
                Some(seen) => (ahead.seen, ahead.table) = (seen, group.table),
                None => {
                    group.places.add(Places::of(place));
                    add(&mut group.totals, ahead.weight);
                }
            }
        }
        group
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
        if self.pipeline.standalone() {
            return Some(Seen::Standalone);
        }
        let drops = self.pipeline.fragments() == FragmentHandling::Drop;
        (is_fragment && drops).then_some(Seen::Refused(DropReason::Fragment))
    }
}

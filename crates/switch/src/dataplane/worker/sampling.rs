//! Frames that collectors are told of: each goes its way alone, so that it is known where it
//! went. Those before and behind it stay together, and in order.

use std::sync::Arc;

use base::{Instant, PortNo};
use packet::Frame;
use ports::Batch;

use super::Worker;
use crate::dataplane::counters::Drop;
use crate::dataplane::messages::Event;
use crate::dataplane::program::BridgeProgram;
use crate::dataplane::sampling::{
    Chosen, Departure, Glimpse, Sampled, Sampler, SamplingView, seed,
};
use crate::dataplane::slots::PortKey;

const BATCH: usize = Batch::FRAMES_MAX;

/// What is noted of how a sampled frame leaves.
#[derive(Default)]
pub(super) struct Watch {
    snap: usize,
    departed: Vec<Departure>,
}

impl Worker {
    /// Has the frames' fates told and carried out, and tells of those that are sampled.
    pub(super) fn forward_sampling(
        &mut self,
        bridge: &BridgeProgram,
        view: &Arc<SamplingView>,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        let mut chosen = [Chosen::default(); BATCH];
        let any = self.choose(bridge, view, batch, &mut chosen, now);
        if !any {
            return self.forward_all::<false>(bridge, from, batch, now);
        }
        let mut together = self.onward.spare();
        for (frame, chosen) in batch.drain().zip(chosen) {
            if chosen.is_nothing() {
                together.put(frame);
                continue;
            }
            if !together.is_empty() {
                self.forward_all::<false>(bridge, from, &mut together, now);
            }
            let arrived = Glimpse::of(&frame, view.snap);
            self.watch.snap = view.snap;
            together.put(frame);
            self.forward_all::<true>(bridge, from, &mut together, now);
            let event = Event::Sampled(Box::new(Sampled {
                from,
                chosen,
                arrived,
                departed: std::mem::take(&mut self.watch.departed),
            }));
            self.tell_if_roomy(event, Drop::SampleNoRoom);
        }
        if !together.is_empty() {
            self.forward_all::<false>(bridge, from, &mut together, now);
        }
        self.onward.give_back(together);
    }

    /// Chooses frames; tells whether any is.
    fn choose(
        &mut self,
        bridge: &BridgeProgram,
        view: &Arc<SamplingView>,
        batch: &Batch,
        chosen: &mut [Chosen; BATCH],
        now: Instant,
    ) -> bool {
        let fresh = || Sampler::new(view, seed(self.writer as u64, bridge.id.0, now));
        let sampler = self.samplers.entry(bridge.id).or_insert_with(fresh);
        if !sampler.is_by(view) {
            *sampler = Sampler::new(view, seed(self.writer as u64, bridge.id.0, now));
        }
        let mut any = false;
        for (chosen, frame) in chosen.iter_mut().zip(batch.iter()) {
            *chosen = sampler.choose(frame.wire_frames());
            any |= !chosen.is_nothing();
        }
        any
    }

    /// Notes that frames leave as they are.
    pub(super) fn note_leaving(&mut self, port: PortNo, frames: &[Frame]) {
        let snap = self.watch.snap;
        let departed = frames.iter().map(|frame| Departure {
            port,
            frame: Glimpse::of(frame, snap),
        });
        self.watch.departed.extend(departed);
    }

    /// Notes by which exits a frame leaves, and with which tag.
    pub(super) fn note_exits(&mut self, frame: &Frame, first: usize) {
        for place in first..self.exits.len() {
            let exit = self.exits[place];
            if let Some(leaving) = self.as_it_leaves(frame, exit) {
                self.note_leaving(exit.port, std::slice::from_ref(&leaving));
                self.pool.put(leaving);
            }
        }
    }
}

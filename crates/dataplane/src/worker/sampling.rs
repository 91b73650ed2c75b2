//! Frames that collectors are told of: each goes its way alone, so that it is known where it
//! went. Those before and behind it stay together, and in order; where all are counted by flows,
//! it is noted of them, too, where they go.

use std::sync::Arc;

use base::{Instant, PortNo};
use flow_export::FrameExcerpt;
use packet::Frame;
use pipeline::DropReason;
use ports::Batch;

use super::Worker;
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::BridgeProgram;
use crate::sampling::{
    ActionSample, FrameSample, FrameSampler, SampleChoice, SampleRandom, SampledOutput,
    SamplingView, seed,
};
use crate::slots::PortKey;

const BATCH: usize = Batch::FRAMES_MAX;

/// What is noted of how frames leave.
pub(super) struct OutputObserver {
    /// What draws those that rules sample.
    random: SampleRandom,
    /// Whether frames are counted by flows.
    pub(super) counts: bool,
    /// Whether the frame at hand is sampled.
    samples: bool,
    snap: usize,
    departed: Vec<SampledOutput>,
}

impl OutputObserver {
    /// Nothing yet; what draws begins with this seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            random: SampleRandom::new(seed),
            counts: false,
            samples: false,
            snap: 0,
            departed: Vec::new(),
        }
    }
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
        self.watch.counts = view.flows;
        let mut chosen = [SampleChoice::default(); BATCH];
        let any = view.samples() && self.choose(bridge, view, batch, &mut chosen, now);
        if !any {
            return self.forward_passed_over(bridge, from, batch, now);
        }
        let mut together = self.onward.spare();
        for (frame, chosen) in batch.drain().zip(chosen) {
            if chosen.is_nothing() {
                together.put(frame);
                continue;
            }
            if !together.is_empty() {
                self.forward_passed_over(bridge, from, &mut together, now);
            }
            let arrived = FrameExcerpt::of(&frame, view.snap);
            (self.watch.samples, self.watch.snap) = (true, view.snap);
            together.put(frame);
            self.forward_all::<true>(bridge, from, &mut together, now);
            self.watch.samples = false;
            let event = WorkerEvent::Sampled(Box::new(FrameSample {
                from,
                chosen,
                missed: self
                    .samplers
                    .get(&bridge.id)
                    .map_or(0, |it| it.missed(chosen)),
                arrived,
                departed: std::mem::take(&mut self.watch.departed),
            }));
            let told = self.tell_if_roomy(event, WorkerDrop::SampleQueueFull);
            if let Some(sampler) = self.samplers.get_mut(&bridge.id) {
                sampler.settle(chosen, told);
            }
        }
        if !together.is_empty() {
            self.forward_passed_over(bridge, from, &mut together, now);
        }
        self.onward.give_back(together);
    }

    /// Has the fate of one frame told and carried out, and answers whether it left by a port.
    pub(super) fn leaves_by(
        &mut self,
        bridge: &BridgeProgram,
        (from, port): (PortKey, PortNo),
        frame: Frame,
        now: Instant,
    ) -> bool {
        self.watch.counts = bridge.sampling.as_ref().is_some_and(|view| view.flows);
        (self.watch.samples, self.watch.snap) = (true, 0);
        let mut alone = self.onward.spare();
        alone.put(frame);
        self.forward_all::<true>(bridge, from, &mut alone, now);
        self.onward.give_back(alone);
        self.watch.samples = false;
        let departed = std::mem::take(&mut self.watch.departed);
        departed.iter().any(|departure| departure.port == port)
    }

    /// The same of frames that are not sampled.
    fn forward_passed_over(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        match self.watch.counts {
            false => self.forward_all::<false>(bridge, from, batch, now),
            true => self.forward_all::<true>(bridge, from, batch, now),
        }
    }

    /// Has a frame told to a set of collectors, as often as the rule says.
    pub(super) fn sample_by_rule(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        sample: flow::SampleAction,
        frame: &Frame,
    ) {
        let sets = bridge.sampling.as_ref().map(|view| view.sets.as_slice());
        if sets.is_none_or(|sets| sets.binary_search(&sample.collectors).is_err()) {
            self.shared.counters.count_reason(DropReason::NoCollector);
        } else if self.watch.random.happens(sample.probability) {
            let sampled = ActionSample::of(frame, from, sample);
            let event = WorkerEvent::SampledByRule(Box::new(sampled));
            self.tell_if_roomy(event, WorkerDrop::SampleQueueFull);
        }
    }

    /// Chooses frames; tells whether any is.
    fn choose(
        &mut self,
        bridge: &BridgeProgram,
        view: &Arc<SamplingView>,
        batch: &Batch,
        chosen: &mut [SampleChoice; BATCH],
        now: Instant,
    ) -> bool {
        let fresh = || FrameSampler::new(view, seed(self.writer as u64, bridge.id.0, now));
        let sampler = self.samplers.entry(bridge.id).or_insert_with(fresh);
        if !sampler.is_by(view) {
            *sampler = FrameSampler::new(view, seed(self.writer as u64, bridge.id.0, now));
        }
        let mut any = false;
        for (chosen, frame) in chosen.iter_mut().zip(batch.iter()) {
            *chosen = sampler.choose(frame.wire_frames());
            any |= !chosen.is_nothing();
        }
        any
    }

    /// Notes that frames leave as they are, and that is all.
    pub(super) fn note_leaving(&mut self, port: PortNo, frames: &[Frame]) {
        self.accounts.leave(port, frames.len());
        self.note_departures(port, frames);
    }

    fn note_departures(&mut self, port: PortNo, frames: &[Frame]) {
        if !self.watch.samples {
            return;
        }
        let snap = self.watch.snap;
        let departed = frames.iter().map(|frame| SampledOutput {
            port,
            frame: FrameExcerpt::of(frame, snap),
        });
        self.watch.departed.extend(departed);
    }

    /// Notes by which exits a frame leaves, and with which tag.
    pub(super) fn note_exits(&mut self, frame: &Frame, first: usize) {
        if let [.., last] = self.exits[first..] {
            self.accounts.add_exits(self.exits.len() - first, last.port);
        }
        if !self.watch.samples {
            return;
        }
        for place in first..self.exits.len() {
            let exit = self.exits[place];
            if let Some(leaving) = self.as_it_leaves(frame, exit) {
                self.note_departures(exit.port, std::slice::from_ref(&leaving));
                self.pool.put(leaving);
            }
        }
    }
}

//! Sampled frames in a worker: each runs alone, so that its outputs are known. The frames before
//! and after it stay together and in order; with NetFlow their outputs are recorded too.

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

/// The recorder of outputs.
pub(super) struct OutputObserver {
    /// The random numbers of `sample` actions.
    random: SampleRandom,
    /// True if frames are counted by flow.
    pub(super) counts: bool,
    /// True if the current frame is sampled.
    samples: bool,
    snap: usize,
    departed: Vec<SampledOutput>,
}

impl OutputObserver {
    /// Returns a recorder with this random seed.
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
    /// Runs a batch through the tables, and reports the sampled frames.
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

    /// Runs one frame through the tables. Returns whether it left by a port.
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

    /// Runs frames that are not sampled through the tables.
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

    /// Executes a `sample` action, with the probability of the action.
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

    /// Chooses the frames to sample. Returns whether there are any.
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

    /// Records that frames leave unmodified, by this port only.
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

    /// Records the outputs of a frame, and its tag on each.
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

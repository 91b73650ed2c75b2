//! Sampled frames in a worker: each runs alone, so that its outputs are known. The frames before
//! and after it stay together and in order; with NetFlow their outputs are recorded too.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo, SplitMix64};
use fastpath::Runner;
use flow_export::FrameExcerpt;
use packet::Frame;
use pipeline::DropReason;
use ports::Batch;

use super::flow_meter::FlowMeters;
use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::{BridgeId, BridgeProgram, Program};
use crate::sampling::{
    ActionSample, FrameSample, FrameSampler, SampleChoice, SampledOutput, SamplingView, happens,
    seed,
};
use crate::slots::PortKey;

const BATCH: usize = Batch::FRAMES_MAX;

/// The recorder of outputs.
pub(super) struct OutputObserver {
    /// The random numbers of `sample` actions.
    random: SplitMix64,
    /// True if frames are counted by flow.
    pub(super) counts: bool,
    /// True if the current frame is sampled.
    samples: bool,
    snap: usize,
    outputs: Vec<SampledOutput>,
}

/// The samples and flow counts of a worker.
pub(super) struct SamplingState {
    /// The index of the worker, for random seeds.
    writer: usize,
    /// The samplers of bridges with sampling.
    pub(super) samplers: BTreeMap<BridgeId, FrameSampler>,
    /// The outputs of a sampled frame.
    pub(super) observer: OutputObserver,
    /// The NetFlow counts.
    pub(super) flow_meters: FlowMeters,
}

impl OutputObserver {
    /// Returns a recorder with this random seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            counts: false,
            samples: false,
            snap: 0,
            outputs: Vec::new(),
        }
    }

    /// Records the outputs of a sampled frame.
    fn note(&mut self, port: PortNo, frames: &[Frame]) {
        if self.samples {
            let snap = self.snap;
            let outputs = frames.iter().map(|frame| SampledOutput {
                port,
                frame: FrameExcerpt::of(frame, snap),
            });
            self.outputs.extend(outputs);
        }
    }
}

impl SamplingState {
    /// Returns the state of a worker without bridges.
    pub(super) fn new(writer: usize) -> Self {
        Self {
            writer,
            samplers: BTreeMap::new(),
            observer: OutputObserver::new(seed(writer as u64, 0, Instant::START)),
            flow_meters: FlowMeters::default(),
        }
    }

    /// Removes the samplers of bridges without sampling.
    pub(super) fn retain(&mut self, program: &Program) {
        self.samplers.retain(|id, _| {
            let bridge = program.bridge(*id);
            bridge.is_some_and(|bridge| bridge.sampling.is_some())
        });
    }

    /// Chooses the frames to sample. Returns whether there are any.
    fn choose(
        &mut self,
        (bridge, view): (BridgeId, &Arc<SamplingView>),
        batch: &Batch,
        chosen: &mut [SampleChoice; BATCH],
        now: Instant,
    ) -> bool {
        let fresh = || FrameSampler::new(view, seed(self.writer as u64, bridge.0, now));
        let sampler = self.samplers.entry(bridge).or_insert_with(fresh);
        if !sampler.uses(view) {
            *sampler = fresh();
        }
        let mut any = false;
        for (chosen, frame) in chosen.iter_mut().zip(batch.iter()) {
            *chosen = sampler.choose(frame.wire_frames());
            any |= !chosen.is_nothing();
        }
        any
    }

    /// Records that frames leave as they are, by this port only.
    pub(super) fn note_leaving(&mut self, port: PortNo, frames: &[Frame]) {
        self.flow_meters.set_output(port, frames.len());
        self.observer.note(port, frames);
    }
}

impl BatchForwarder {
    /// Runs a batch through the tables, and reports the sampled frames.
    pub(super) fn forward_sampling(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        view: &Arc<SamplingView>,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        self.sampling.observer.counts = view.flows;
        let mut chosen = [SampleChoice::default(); BATCH];
        let any = view.samples()
            && self
                .sampling
                .choose((bridge.id, view), batch, &mut chosen, now);
        if !any {
            return self.forward_unsampled(bridge, runner, from, batch, now);
        }
        let mut unsampled = self.recirculation.spare();
        for (frame, chosen) in batch.drain().zip(chosen) {
            if chosen.is_nothing() {
                unsampled.put(frame);
                continue;
            }
            if !unsampled.is_empty() {
                self.forward_unsampled(bridge, runner, from, &mut unsampled, now);
            }
            let ingress = FrameExcerpt::of(&frame, view.snap);
            (self.sampling.observer.samples, self.sampling.observer.snap) = (true, view.snap);
            unsampled.put(frame);
            self.forward_all::<true>(bridge, runner, from, &mut unsampled, now);
            self.sampling.observer.samples = false;
            let event = WorkerEvent::Sampled(Box::new(FrameSample {
                from,
                chosen,
                missed: self
                    .sampling
                    .samplers
                    .get(&bridge.id)
                    .map_or(0, |it| it.missed(chosen)),
                ingress,
                outputs: std::mem::take(&mut self.sampling.observer.outputs),
            }));
            let was_sent = self
                .reporter
                .report_if_room(event, WorkerDrop::SampleQueueFull);
            if let Some(sampler) = self.sampling.samplers.get_mut(&bridge.id) {
                sampler.record_result(chosen, was_sent);
            }
        }
        if !unsampled.is_empty() {
            self.forward_unsampled(bridge, runner, from, &mut unsampled, now);
        }
        self.recirculation.give_back(unsampled);
    }

    /// Runs one frame through the tables. Returns whether it left by a port.
    pub(super) fn leaves_by(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        (from, port): (PortKey, PortNo),
        frame: Frame,
        now: Instant,
    ) -> bool {
        self.sampling.observer.counts = bridge.sampling.as_ref().is_some_and(|view| view.flows);
        (self.sampling.observer.samples, self.sampling.observer.snap) = (true, 0);
        let mut alone = self.recirculation.spare();
        alone.put(frame);
        self.forward_all::<true>(bridge, runner, from, &mut alone, now);
        self.recirculation.give_back(alone);
        self.sampling.observer.samples = false;
        let outputs = std::mem::take(&mut self.sampling.observer.outputs);
        outputs.iter().any(|departure| departure.port == port)
    }

    /// Runs frames that are not sampled through the tables.
    fn forward_unsampled(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        match self.sampling.observer.counts {
            false => self.forward_all::<false>(bridge, runner, from, batch, now),
            true => self.forward_all::<true>(bridge, runner, from, batch, now),
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
            self.reporter
                .links
                .counters
                .count_reason(DropReason::NoCollector);
        } else if happens(&mut self.sampling.observer.random, sample.probability) {
            let sampled = ActionSample::of(frame, from, sample);
            let event = WorkerEvent::SampledByRule(Box::new(sampled));
            self.reporter
                .report_if_room(event, WorkerDrop::SampleQueueFull);
        }
    }

    /// Records the outputs of a frame, and its tag on each.
    pub(super) fn note_exits(&mut self, frame: &Frame, first: usize) {
        if let [.., last] = self.outputs.exits[first..] {
            self.sampling
                .flow_meters
                .add_exits(self.outputs.exits.len() - first, last.port);
        }
        if !self.sampling.observer.samples {
            return;
        }
        for place in first..self.outputs.exits.len() {
            let exit = self.outputs.exits[place];
            if let Some(leaving) = self.egress_copy(frame, exit) {
                self.sampling
                    .observer
                    .note(exit.port, std::slice::from_ref(&leaving));
                self.pool.put(leaving);
            }
        }
    }
}

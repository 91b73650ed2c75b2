//! The forwarding of batches: the stages before the tables, the run of the tables, and the results.

use std::io;

use base::Instant;
use fastpath::{FrameOutcome, Runner};
use flow::PipelineFields;
use packet::{Checksum, Frame, Pool};
use pipeline::{Destination, DropReason, OUTPUTS_PER_FRAME_MAX, Verdict};
use ports::{Batch, Queue};

use super::WorkerLinks;
use super::capture::FrameRecording;
use super::events::EventReporter;
use super::flow_recorder::FlowRecorder;
use super::mirror::MirrorState;
use super::outputs::PortOutput;
use super::recirculation::Recirculation;
use super::sampling::SamplingState;
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::{BridgeProgram, Program};
use crate::slots::{PortKey, PortSlots};
use crate::vlans::TagRewrite;

/// Buffers of a worker: one batch in flight, the pending frames of each port, and copies, with room
/// to spare.
const BUFFERS_MAX: usize = 4096;

/// Frames of a batch after which statistics are deferred.
pub(super) const DEFERRED_MIN: usize = 16;

/// The forwarding of batches. It borrows the program and the runner of its worker.
pub(super) struct BatchForwarder {
    pub(super) reporter: EventReporter,
    /// The index of the worker among the writers of shared counters.
    pub(super) writer: usize,
    pub(super) pool: Pool,
    /// Segments of a frame for a tunnel or a mirror.
    pub(super) segments: Vec<Frame>,
    pub(super) slots: PortSlots,
    pub(super) outputs: VerdictOutputs,
    pub(super) recirculation: Recirculation,
    pub(super) sampling: SamplingState,
    /// The counts by flow; none while the list of active flows is not requested.
    pub(super) flow_recorder: Option<Box<FlowRecorder>>,
    /// The start of the turn.
    pub(super) now: Instant,
}

/// The outputs of the current verdict and their observers.
#[derive(Default)]
pub(super) struct VerdictOutputs {
    pub(super) exits: Vec<PortOutput>,
    /// The record of the current frame, if it is captured.
    pub(super) recording: Option<FrameRecording>,
    pub(super) mirrored: MirrorState,
}

impl BatchForwarder {
    /// Returns a forwarder without ports.
    pub(super) fn new(writer: usize, shared: WorkerLinks) -> Self {
        Self {
            reporter: EventReporter::new(shared),
            writer,
            pool: Pool::new(BUFFERS_MAX),
            segments: Vec::new(),
            slots: PortSlots::default(),
            outputs: VerdictOutputs::default(),
            recirculation: Recirculation::default(),
            sampling: SamplingState::new(writer),
            flow_recorder: None,
            now: Instant::START,
        }
    }

    /// Sends all flow counts to the control thread.
    pub(super) fn report_flows(&mut self, now: Instant) {
        self.sampling.report_flows(&mut self.reporter, now);
    }

    /// Removes the samplers and the flow tables of bridges that no longer need them.
    pub(super) fn retain_sampling(&mut self, program: &Program, now: Instant) {
        self.sampling.retain(program);
        self.sampling.retain_flows(program, &mut self.reporter, now);
    }

    /// Runs a batch through a bridge: punt, port state filter, in-band rules, then the tables.
    pub(super) fn forward(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        if let Some(punts) = &bridge.punts {
            self.punt(punts, from, batch);
        }
        let stp_filter = bridge.stp_filter.as_deref();
        if let Some(blocked) = stp_filter.and_then(|stp_filter| stp_filter.of(from.port)) {
            return self.filter_blocked(bridge, runner, (from, blocked), batch, now);
        }
        if let Some(in_band) = &bridge.in_band {
            self.forward_in_band((bridge, in_band), runner, from, batch, now);
        }
        match &bridge.sampling {
            None => self.forward_all::<false>(bridge, runner, from, batch, now),
            Some(view) => self.forward_sampling(bridge, runner, view, from, batch, now),
        }
    }

    /// Runs a batch of frames that no capture selects through the compiled tables, and sends the
    /// results. `NOTED` enables the record of outputs for samples and flow counts.
    pub(super) fn forward_compiled<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        self.mirror_ingress(bridge, from, batch);
        if NOTED {
            self.sampling.read_flows(from, batch, now);
        }
        let batch_context = bridge.batch_context(from.port, now);
        batch.iter_mut().for_each(finish_if_sctp);
        // Statistics are deferred only after a long batch, when more frames are likely to wait. They
        // are added in the first turn without frames.
        let puts_off = batch.len() >= DEFERRED_MIN;
        let fields = self.recirculation.fields();
        if let Some(fields) = fields.as_deref().filter(|fields| fields.need_interpreter()) {
            return self.forward_uncompiled::<NOTED>(bridge, runner, (from, fields), batch, now);
        }
        // The scope ends the run in place: the run is large, and a call of `drop` would copy it.
        let all_leave = {
            let mut run = runner.begin_with_fields(batch_context, fields.as_deref(), batch);
            let all_leave = match bridge.mirrors.as_deref() {
                None => run.forward_all(),
                Some(_) => self.apply_mirrored::<NOTED>(bridge, from, &mut run, now),
            };
            while let Some(outcome) = run.next(&mut self.pool) {
                match outcome {
                    FrameOutcome::Forward(frames, port) => {
                        if NOTED {
                            self.sampling.note_leaving(port, frames);
                        }
                        self.send_together(PortKey { port, ..from }, frames);
                    }
                    FrameOutcome::Verdict(verdict) => {
                        self.apply_verdict::<NOTED>(bridge, from, verdict, now)
                    }
                }
            }
            all_leave
        };
        if let Some(port) = all_leave {
            if NOTED {
                self.sampling.note_leaving(port, batch);
            }
            self.send_batch(PortKey { port, ..from }, batch);
        }
        if !puts_off {
            runner.flush_stats();
        }
        batch.clear();
        let counters = &self.reporter.links.counters;
        counters.add_slow_path(runner.take_slow_path_packets());
        counters.set_flow_cache_hits(runner.flow_cache_hits());
        counters.set_walk_cache_hits(runner.walk_cache_hits());
        if NOTED {
            self.sampling
                .count_flows(bridge.id, &mut self.reporter, now);
        }
    }

    /// Runs a batch through the interpreter, since compiled tables do not match its pipeline fields.
    #[cold]
    fn forward_uncompiled<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        (from, fields): (PortKey, &PipelineFields),
        batch: &mut Batch,
        now: Instant,
    ) {
        let context = bridge.batch_context(from.port, now);
        for frame in batch.drain() {
            let verdict = runner.run_uncompiled(context, fields, frame, &mut self.pool);
            self.apply_verdict::<NOTED>(bridge, from, verdict, now);
        }
        runner.flush_stats();
        let counters = &self.reporter.links.counters;
        counters.add_slow_path(runner.take_slow_path_packets());
        if NOTED {
            self.sampling
                .count_flows(bridge.id, &mut self.reporter, now);
        }
    }

    pub(super) fn apply_verdict<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        verdict: &mut Verdict,
        now: Instant,
    ) {
        for reason in &verdict.drops {
            self.reporter.links.counters.count_reason(*reason);
        }
        self.outputs.exits.clear();
        for (place, egress) in verdict.egress.iter().enumerate() {
            let frame = &verdict.frames[egress.frame];
            let before = self.outputs.exits.len();
            // `NORMAL` floods: a verdict within its limit may have many more exits than outputs.
            if before >= OUTPUTS_PER_FRAME_MAX {
                let counters = &self.reporter.links.counters;
                counters.count_reason(DropReason::TooManyOutputs);
                break;
            }
            match &egress.to {
                Destination::Port(port) => self.outputs.exits.push(PortOutput {
                    frame: egress.frame,
                    port: *port,
                    retag: TagRewrite::KEEP,
                    priority: egress.priority,
                }),
                Destination::Normal => {
                    let index = (egress.frame, egress.priority);
                    self.normal(bridge, from, index, frame, now);
                }
                Destination::Controller(meta) => {
                    let mirrored = self.with_mirrors(bridge, meta);
                    let meta = mirrored.as_ref().unwrap_or(meta);
                    self.send_packet_ins(from, meta, frame, now);
                }
                Destination::Collectors(sample) => {
                    self.sample_by_rule(bridge, from, **sample, frame);
                }
            }
            self.mirror_egress(bridge, from, (frame, before));
            if self.outputs.recording.is_some() {
                self.record_exits(place, frame, &egress.to, before);
            }
            if NOTED {
                self.note_exits(frame, before);
            }
            if let Some(fields) = &egress.registers {
                self.depart_with(from, frame, before, fields);
            }
        }
        if NOTED {
            self.sampling.flow_meters.end_frame();
        }
        for learned in verdict.learn_requests.drain(..) {
            self.report_rule(from, learned);
        }
        self.send_all(from, verdict);
    }

    /// Removes a port whose device disappeared, and reports it.
    pub(super) fn retire(&mut self, key: PortKey, error: io::Error) {
        self.discard(key);
        self.reporter
            .report_reliably(WorkerEvent::QueueGone(key, error));
    }

    /// Removes a port, and returns its queue.
    pub(super) fn discard(&mut self, key: PortKey) -> Option<Box<dyn Queue>> {
        let mut slot = self.slots.remove(key)?;
        let left = slot.out.len();
        slot.out.release(left, &mut self.pool);
        self.reporter.turn.ports_changed = true;
        Some(slot.queue)
    }

    pub(super) fn drop_frame(&mut self, frame: Frame, reason: WorkerDrop) {
        self.pool.put(frame);
        self.reporter.count(reason);
    }
}

/// Completes an SCTP checksum. A virtio-net header cannot express SCTP's CRC32c, so a later
/// completion would compute the Internet checksum instead.
fn finish_if_sctp(frame: &mut Frame) {
    /// The offset of the checksum in SCTP's header (RFC 9260, 3); no other protocol has it there.
    const SCTP: u16 = 8;
    if let Checksum::Partial { offset: SCTP, .. } = frame.offload.checksum {
        frame.complete_checksum();
    }
}

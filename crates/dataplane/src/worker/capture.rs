//! Captured frames: the interpreter runs them one by one, in their order among the others, and
//! records each step; the records are sent to the control thread.

use std::sync::Arc;

use base::{Instant, PortNo};
use fastpath::Runner;
use flow::{FlowKey, PipelineFields};
use packet::Frame;
use pipeline::Destination;
use ports::Batch;

use super::forwarder::BatchForwarder;
use crate::capture::{
    Capture, CaptureRecord, CaptureTrace, CapturedOutput, Captures, FrameSnapshot,
};
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::BridgeProgram;
use crate::slots::PortKey;

/// The record of the current frame.
pub(super) struct FrameRecording {
    record: Box<CaptureRecord>,
    /// The number of table lookups before each output.
    sent: Vec<usize>,
}

impl BatchForwarder {
    /// Runs a batch through the tables, with captures if the bridge has any.
    pub(super) fn forward_all<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        match &bridge.captures {
            None => self.forward_compiled::<NOTED>(bridge, runner, from, batch, now),
            Some(captures) => {
                self.forward_captured::<NOTED>((bridge, captures), runner, from, batch, now)
            }
        }
    }

    /// Runs a batch of which captures may select some frames.
    fn forward_captured<const NOTED: bool>(
        &mut self,
        (bridge, captures): (&BridgeProgram, &Captures),
        runner: &mut Runner,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        let fields = self.recirculation.fields();
        let registers = match &fields {
            None => PipelineFields::new(from.port),
            Some(fields) => PipelineFields {
                in_port: from.port,
                ..PipelineFields::clone(fields)
            },
        };
        let (mut key, depth) = (FlowKey::new(), captures.depth());
        let mut others = self.recirculation.spare();
        for frame in batch.drain() {
            let is_read = key.read(&frame, depth, &registers);
            let watchers = captures.of_frame(is_read.then_some(&key));
            if watchers.is_empty() {
                others.put(frame);
                continue;
            }
            self.forward_compiled::<NOTED>(bridge, runner, from, &mut others, now);
            self.interpret::<NOTED>(bridge, runner, from, (frame, watchers), &registers, now);
        }
        self.forward_compiled::<NOTED>(bridge, runner, from, &mut others, now);
        self.recirculation.give_back(others);
    }

    /// Runs one captured frame through the interpreter, sends the results, and reports the record.
    fn interpret<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        from: PortKey,
        (frame, captures): (Frame, Vec<Arc<Capture>>),
        registers: &PipelineFields,
        now: Instant,
    ) {
        let Some(frame) = self.mirror_single(bridge, from, frame) else {
            return;
        };
        let mut record = Box::new(CaptureRecord {
            captures,
            at: now,
            from,
            ingress: FrameSnapshot::of(&frame, 0),
            lookups: Vec::new(),
            outputs: Vec::new(),
            drops: Vec::new(),
        });
        record.ingress = FrameSnapshot::of(&frame, record.snaplen());
        if NOTED {
            self.sampling
                .read_flows(from, std::slice::from_ref(&frame), now);
        }
        let batch_context = bridge.batch_context(from.port, now);
        let mut notes = CaptureTrace::default();
        let verdict =
            runner.run_traced(batch_context, registers, frame, &mut self.pool, &mut notes);
        record.lookups = notes.lookups;
        record.drops.clone_from(&verdict.drops);
        let sent = notes.sent;
        self.outputs.recording = Some(FrameRecording { record, sent });
        self.apply_verdict::<NOTED>(bridge, from, verdict, now);
        if NOTED {
            self.sampling
                .count_flows(bridge.id, &mut self.reporter, now);
        }
        self.reporter
            .links
            .counters
            .add_slow_path(runner.take_slow_path_packets());
        if let Some(FrameRecording { record, .. }) = self.outputs.recording.take() {
            self.report_capture(record);
        }
    }

    /// Records the outputs of a captured frame, from the output `first` on.
    pub(super) fn record_exits(
        &mut self,
        place: usize,
        frame: &Frame,
        to: &Destination,
        first: usize,
    ) {
        let Some(mut recording) = self.outputs.recording.take() else {
            return;
        };
        let record = &mut recording.record;
        let (snaplen, all) = (record.snaplen(), record.lookups.len());
        let lookups = recording.sent.get(place).copied().unwrap_or(all);
        if matches!(to, Destination::Controller(_)) {
            record.outputs.push(CapturedOutput {
                port: PortNo::CONTROLLER,
                frame: FrameSnapshot::of(frame, snaplen),
                lookups,
            });
        }
        for place in first..self.outputs.exits.len() {
            let exit = self.outputs.exits[place];
            if let Some(leaving) = self.egress_copy(frame, exit) {
                record.outputs.push(CapturedOutput {
                    port: exit.port,
                    frame: FrameSnapshot::of(&leaving, snaplen),
                    lookups,
                });
                self.pool.put(leaving);
            }
        }
        self.outputs.recording = Some(recording);
    }

    /// Sends a record, unless the remaining room is reserved for other events.
    fn report_capture(&mut self, record: Box<CaptureRecord>) {
        let captures = record.captures.clone();
        if !self
            .reporter
            .report_if_room(WorkerEvent::Captured(record), WorkerDrop::CaptureQueueFull)
        {
            captures.iter().for_each(|capture| capture.miss());
        }
    }
}

//! Mirrors in a worker. With mirrors, frames that leave together are examined one by one.

use base::{Instant, PortNo};
use fastpath::FrameOutcome;
use packet::{Frame, Link};
use pipeline::PacketInMeta;
use ports::Batch;

use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::mirrors::{MirrorContext, MirrorDirection, MirrorSet, MirrorSink};
use crate::program::BridgeProgram;
use crate::slots::PortKey;

/// The mirrors that have copied the current frames.
#[derive(Default)]
pub(super) struct MirrorState {
    /// One set for each frame of the batch.
    batch: Vec<MirrorSet>,
    /// The set for the frame of the current verdict.
    verdict: MirrorSet,
}

/// A mirror sink that sends copies by the worker's queues.
struct WorkerMirrorSink<'a> {
    forwarder: &'a mut BatchForwarder,
    from: PortKey,
}

impl MirrorSink for WorkerMirrorSink<'_> {
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        let copy = self.forwarder.pool.duplicate(frame);
        if copy.is_none() {
            self.forwarder.reporter.count(WorkerDrop::NoBuffer);
        }
        copy
    }

    fn send(&mut self, port: PortNo, copy: Frame, snaplen: Option<u16>) {
        let exit = PortKey { port, ..self.from };
        match snaplen {
            Some(snaplen) => self
                .forwarder
                .send_truncated(exit, copy, usize::from(snaplen)),
            None => self.forwarder.send(exit, copy),
        }
    }

    fn release(&mut self, copy: Frame) {
        self.forwarder.drop_frame(copy, WorkerDrop::Tag);
    }
}

/// Returns the inputs of mirroring; none if the bridge has no mirrors.
fn context(bridge: &BridgeProgram, from: PortKey) -> Option<MirrorContext<'_>> {
    Some(MirrorContext {
        mirrors: bridge.mirrors.as_deref()?,
        pipeline: &bridge.pipeline,
        switching: bridge.switching.as_deref(),
        from: from.port,
    })
}

impl BatchForwarder {
    /// Copies arriving frames, unmodified, to the mirrors. Drops frames received on a port that is
    /// reserved for mirror output.
    #[inline]
    pub(super) fn mirror_ingress(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        batch: &mut Batch,
    ) {
        if let Some(context) = context(bridge, from) {
            self.mirror_all(&context, from, batch);
        }
    }

    #[inline(never)]
    fn mirror_all(&mut self, context: &MirrorContext<'_>, from: PortKey, batch: &mut Batch) {
        if context.mirrors.is_output(from.port) {
            self.drop_batch(batch, WorkerDrop::MirrorOutput);
        }
        let mut taken = std::mem::take(&mut self.outputs.mirrored.batch);
        taken.clear();
        for frame in batch.iter() {
            taken.push(self.copy_ingress(context, from, frame));
        }
        self.outputs.mirrored.batch = taken;
    }

    /// Copies an arriving frame outside a batch to the mirrors. Returns none if the frame is
    /// dropped.
    pub(super) fn mirror_single(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        frame: Frame,
    ) -> Option<Frame> {
        let Some(context) = context(bridge, from) else {
            return Some(frame);
        };
        if context.mirrors.is_output(from.port) {
            self.drop_frame(frame, WorkerDrop::MirrorOutput);
            return None;
        }
        self.outputs.mirrored.verdict = self.copy_ingress(&context, from, &frame);
        Some(frame)
    }

    /// Copies an arriving frame to the mirrors, if its port receives it. Returns the mirrors that
    /// have copied it.
    fn copy_ingress(
        &mut self,
        context: &MirrorContext<'_>,
        from: PortKey,
        frame: &Frame,
    ) -> MirrorSet {
        let mut copied = MirrorSet::default();
        if context.is_watched(from.port, MirrorDirection::In, copied) {
            let port_view = context.pipeline.port(from.port);
            let is_received = Link::parse(frame.bytes())
                .is_ok_and(|link| port_view.is_none_or(|port_view| port_view.receives(link.dst)));
            if is_received {
                let mut sink = WorkerMirrorSink {
                    forwarder: self,
                    from,
                };
                context.mirror(
                    frame,
                    (from.port, MirrorDirection::In),
                    &mut copied,
                    &mut sink,
                );
            }
        }
        copied
    }

    /// Sends the results of a batch, and copies frames on egress. Returns none: the batch never
    /// leaves as a whole.
    #[inline(never)]
    pub(super) fn apply_mirrored<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        run: &mut fastpath::BatchRun<'_>,
        now: Instant,
    ) -> Option<PortNo> {
        let context = context(bridge, from)?;
        let taken = std::mem::take(&mut self.outputs.mirrored.batch);
        let mut taken_by = taken.iter().copied();
        while let Some(outcome) = run.next(&mut self.pool) {
            match outcome {
                FrameOutcome::Forward(frames, port) => {
                    let mut sink = WorkerMirrorSink {
                        forwarder: self,
                        from,
                    };
                    for (frame, mut copied) in frames.iter().zip(&mut taken_by) {
                        context.mirror(frame, (port, MirrorDirection::Out), &mut copied, &mut sink);
                    }
                    if NOTED {
                        self.sampling.note_leaving(port, frames);
                    }
                    self.send_together(PortKey { port, ..from }, frames);
                }
                FrameOutcome::Verdict(verdict) => {
                    self.outputs.mirrored.verdict = taken_by.next().unwrap_or_default();
                    self.apply_verdict::<NOTED>(bridge, from, verdict, now);
                }
            }
        }
        self.outputs.mirrored.batch = taken;
        None
    }

    /// Copies a frame on egress to the mirrors, for its outputs from `first` on.
    pub(super) fn mirror_egress(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        (frame, first): (&Frame, usize),
    ) {
        let Some(context) = context(bridge, from) else {
            return;
        };
        let mut copied = self.outputs.mirrored.verdict;
        for place in first..self.outputs.exits.len() {
            let exit = self.outputs.exits[place];
            if !context.is_watched(exit.port, MirrorDirection::Out, copied) {
                continue;
            }
            let Some(leaving) = self.egress_copy(frame, exit) else {
                continue;
            };
            let mut sink = WorkerMirrorSink {
                forwarder: self,
                from,
            };
            context.mirror(
                &leaving,
                (exit.port, MirrorDirection::Out),
                &mut copied,
                &mut sink,
            );
            self.pool.put(leaving);
        }
        self.outputs.mirrored.verdict = copied;
    }

    /// Returns the packet-in of a paused packet with the mirrors that have copied it; none if there
    /// are none.
    pub(super) fn with_mirrors(
        &self,
        bridge: &BridgeProgram,
        meta: &PacketInMeta,
    ) -> Option<PacketInMeta> {
        if bridge.mirrors.is_none() || meta.continuation.is_none() {
            return None;
        }
        let mut meta = meta.clone();
        if let Some(continuation) = &mut meta.continuation {
            continuation.mirrors = self.outputs.mirrored.verdict.bits();
        }
        Some(meta)
    }

    /// Sends the first bytes of a frame, or of each of its segments.
    fn send_truncated(&mut self, exit: PortKey, mut frame: Frame, len: usize) {
        if frame.offload.segmentation.is_none() {
            frame.complete_checksum();
            frame.truncate(len);
            return self.send(exit, frame);
        }
        let mut segments = std::mem::take(&mut self.segments);
        let cut = packet::segment(&frame, &mut self.pool, &mut segments);
        self.pool.put(frame);
        if let Err(error) = cut {
            self.reporter.count(error.into());
        }
        for mut segment in segments.drain(..) {
            segment.truncate(len);
            self.send(exit, segment);
        }
        self.segments = segments;
    }
}

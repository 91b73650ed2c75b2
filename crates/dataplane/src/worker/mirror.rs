//! Mirrors in a worker. With mirrors, frames that leave together are examined one by one.

use base::{Instant, PortNo};
use fastpath::FrameOutcome;
use packet::{Frame, Link};
use ports::Batch;

use super::Worker;
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
    worker: &'a mut Worker,
    from: PortKey,
}

impl MirrorSink for WorkerMirrorSink<'_> {
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        let copy = self.worker.pool.duplicate(frame);
        if copy.is_none() {
            self.worker.shared.counters.count(WorkerDrop::NoBuffer);
        }
        copy
    }

    fn send(&mut self, port: PortNo, copy: Frame, snaplen: Option<u16>) {
        let exit = PortKey { port, ..self.from };
        match snaplen {
            Some(snaplen) => self.worker.send_short(exit, copy, usize::from(snaplen)),
            None => self.worker.send(exit, copy),
        }
    }

    fn give_up(&mut self, copy: Frame) {
        self.worker.drop_frame(copy, WorkerDrop::Tag);
    }
}

/// Returns the inputs of mirroring; none if the bridge has no mirrors.
fn scene(bridge: &BridgeProgram, from: PortKey) -> Option<MirrorContext<'_>> {
    Some(MirrorContext {
        mirrors: bridge.mirrors.as_deref()?,
        pipeline: &bridge.pipeline,
        switching: bridge.switching.as_deref(),
        from: from.port,
    })
}

impl Worker {
    /// Copies arriving frames, unmodified, to the mirrors. Drops frames received on a port that is
    /// reserved for mirror output.
    #[inline]
    pub(super) fn mirror_arriving(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        batch: &mut Batch,
    ) {
        if let Some(scene) = scene(bridge, from) {
            self.mirror_all(&scene, from, batch);
        }
    }

    #[inline(never)]
    fn mirror_all(&mut self, scene: &MirrorContext<'_>, from: PortKey, batch: &mut Batch) {
        if scene.mirrors.is_output(from.port) {
            self.give_up(batch, WorkerDrop::MirrorOutput);
        }
        let mut taken = std::mem::take(&mut self.mirrored.batch);
        taken.clear();
        for frame in batch.iter() {
            taken.push(self.take_arriving(scene, from, frame));
        }
        self.mirrored.batch = taken;
    }

    /// Copies an arriving frame outside a batch to the mirrors. Returns none if the frame is
    /// dropped.
    pub(super) fn mirror_alone(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        frame: Frame,
    ) -> Option<Frame> {
        let Some(scene) = scene(bridge, from) else {
            return Some(frame);
        };
        if scene.mirrors.is_output(from.port) {
            self.drop_frame(frame, WorkerDrop::MirrorOutput);
            return None;
        }
        self.mirrored.verdict = self.take_arriving(&scene, from, &frame);
        Some(frame)
    }

    /// Copies an arriving frame to the mirrors, if its port receives it. Returns the mirrors that
    /// have copied it.
    fn take_arriving(
        &mut self,
        scene: &MirrorContext<'_>,
        from: PortKey,
        frame: &Frame,
    ) -> MirrorSet {
        let mut had = MirrorSet::default();
        if scene.is_watched(from.port, MirrorDirection::In, had) {
            let way = scene.pipeline.port(from.port);
            let comes_in = Link::parse(frame.bytes())
                .is_ok_and(|link| way.is_none_or(|way| way.receives(link.dst)));
            if comes_in {
                let mut copying = WorkerMirrorSink { worker: self, from };
                scene.mirror(
                    frame,
                    (from.port, MirrorDirection::In),
                    &mut had,
                    &mut copying,
                );
            }
        }
        had
    }

    /// Sends the results of a batch, and copies frames on egress. Returns none: the batch never
    /// leaves as a whole.
    #[inline(never)]
    pub(super) fn carry_out_mirrored<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        run: &mut fastpath::BatchRun<'_>,
        now: Instant,
    ) -> Option<PortNo> {
        let scene = scene(bridge, from)?;
        let taken = std::mem::take(&mut self.mirrored.batch);
        let mut taken_by = taken.iter().copied();
        while let Some(fate) = run.next(&mut self.pool) {
            match fate {
                FrameOutcome::Forward(frames, port) => {
                    let mut copying = WorkerMirrorSink { worker: self, from };
                    for (frame, mut had) in frames.iter().zip(&mut taken_by) {
                        scene.mirror(frame, (port, MirrorDirection::Out), &mut had, &mut copying);
                    }
                    if NOTED {
                        self.note_leaving(port, frames);
                    }
                    self.send_together(PortKey { port, ..from }, frames);
                }
                FrameOutcome::Verdict(verdict) => {
                    self.mirrored.verdict = taken_by.next().unwrap_or_default();
                    self.carry_out::<NOTED>(bridge, from, verdict, now);
                }
            }
        }
        self.mirrored.batch = taken;
        None
    }

    /// Copies a frame on egress to the mirrors, for its outputs from `first` on.
    pub(super) fn mirror_leaving(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        (frame, first): (&Frame, usize),
    ) {
        let Some(scene) = scene(bridge, from) else {
            return;
        };
        let mut had = self.mirrored.verdict;
        for place in first..self.exits.len() {
            let exit = self.exits[place];
            if !scene.is_watched(exit.port, MirrorDirection::Out, had) {
                continue;
            }
            let Some(leaving) = self.as_it_leaves(frame, exit) else {
                continue;
            };
            let mut copying = WorkerMirrorSink { worker: self, from };
            scene.mirror(
                &leaving,
                (exit.port, MirrorDirection::Out),
                &mut had,
                &mut copying,
            );
            self.pool.put(leaving);
        }
        self.mirrored.verdict = had;
    }

    /// Sends the first bytes of a frame, or of each of its segments.
    fn send_short(&mut self, exit: PortKey, mut frame: Frame, len: usize) {
        if frame.offload.segmentation.is_none() {
            frame.complete_checksum();
            frame.truncate(len);
            return self.send(exit, frame);
        }
        let mut segments = std::mem::take(&mut self.segments);
        let cut = packet::segment(&frame, &mut self.pool, &mut segments);
        self.pool.put(frame);
        if cut.is_err() {
            self.shared.counters.count(WorkerDrop::NoBuffer);
        }
        for mut segment in segments.drain(..) {
            segment.truncate(len);
            self.send(exit, segment);
        }
        self.segments = segments;
    }
}

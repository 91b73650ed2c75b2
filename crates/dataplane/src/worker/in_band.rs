//! In-band control in a worker.

use base::{Instant, PortNo, Priority};
use fastpath::Runner;
use packet::Frame;
use ports::Batch;

use super::forwarder::BatchForwarder;
use super::outputs::PortOutput;
use crate::counters::WorkerDrop;
use crate::in_band::{InBand, InBandPath};
use crate::normal::forwards;
use crate::program::BridgeProgram;
use crate::slots::PortKey;
use crate::vlans::TagRewrite;

impl BatchForwarder {
    /// Takes in-band frames out of a batch and forwards them by `NORMAL`, or also to the bridge's
    /// local interface. Most batches have none.
    pub(super) fn forward_in_band(
        &mut self,
        (bridge, in_band): (&BridgeProgram, &InBand),
        runner: &mut Runner,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        let path = |frame: &Frame| in_band.path(from.port, frame.bytes());
        if !batch.iter().any(|frame| path(frame).is_some()) {
            return;
        }
        let mut others = Batch::new();
        let queue = in_band.config().queue;
        let priority = queue.and_then(Priority::for_queue).unwrap_or_default();
        for frame in batch.drain() {
            match path(&frame) {
                None => others.put(frame),
                Some(InBandPath::AlsoLocal) => {
                    self.forward_and_copy_to_local(bridge, runner, from, frame, now)
                }
                Some(InBandPath::Normal) => {
                    in_band.count(from.port, frame.bytes());
                    self.outputs.exits.clear();
                    self.normal(bridge, from, (0, priority), &frame, now);
                    let exits = std::mem::take(&mut self.outputs.exits);
                    match exits.split_last() {
                        None => self.pool.put(frame),
                        Some((last, others)) => {
                            self.send_copies(from, frame, others.iter(), last);
                        }
                    }
                    self.outputs.exits = exits;
                }
            }
        }
        *batch = others;
    }

    /// Runs a frame through the tables, and sends a copy to the bridge's local interface unless the
    /// tables did.
    fn forward_and_copy_to_local(
        &mut self,
        bridge: &BridgeProgram,
        runner: &mut Runner,
        from: PortKey,
        frame: Frame,
        now: Instant,
    ) {
        let copy = self.pool.duplicate(&frame);
        let is_there = self.leaves_by(bridge, runner, (from, PortNo::LOCAL), frame, now);
        let Some(copy) = copy else {
            self.reporter.count(WorkerDrop::NoBuffer);
            return;
        };
        if is_there || !forwards(&bridge.pipeline, PortNo::LOCAL) {
            self.pool.put(copy);
            return;
        }
        let here = PortOutput {
            frame: 0,
            port: PortNo::LOCAL,
            retag: TagRewrite::KEEP,
            priority: Priority::default(),
        };
        self.send_copies(from, copy, std::iter::empty(), &here);
    }
}

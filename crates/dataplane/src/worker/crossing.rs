//! Reports of frames that cross the datapath, for the control thread's list of active flows. Only
//! datapaths of dummies report them: a dummy has no traffic but that of tests.

use base::Instant;
use packet::Frame;
use ports::Batch;

use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::messages::{CrossingReport, WorkerEvent};
use crate::program::Program;
use crate::slots::PortKey;

/// The tunnel key of a frame that a device received.
const NO_KEY: u64 = 0;

impl BatchForwarder {
    /// Reports the frames of a received batch, except those that the port punts.
    #[cold]
    pub(super) fn report_crossing(
        &mut self,
        program: &Program,
        from: PortKey,
        batch: &Batch,
        now: Instant,
    ) {
        let Some(bridge) = program.bridge(from.bridge) else {
            return;
        };
        let punted = bridge.punts.as_ref().and_then(|punts| punts.of(from.port));
        let crosses =
            |bytes: &&[u8]| punted.is_none_or(|protocols| !protocols.takes(bytes, NO_KEY));
        let frames = batch.iter().map(Frame::bytes);
        let frames: Vec<Box<[u8]>> = frames.filter(crosses).map(Into::into).collect();
        if !frames.is_empty() {
            let report = CrossingReport {
                from,
                frames,
                at: now,
            };
            let event = WorkerEvent::Crossed(Box::new(report));
            self.reporter
                .report_if_room(event, WorkerDrop::FlowQueueFull);
        }
    }
}

//! Frames that cross the datapath, for the control thread's list of active flows. Datapaths with
//! dummies report each of them: a dummy has no traffic but that of tests. Others count them by flow
//! while the list is requested (`flow_recorder`).

use base::Instant;
use packet::Frame;
use packet::tunnel::OuterHeaders;
use ports::Batch;

use super::forwarder::BatchForwarder;
use super::tunnel::InnerPacket;
use crate::counters::WorkerDrop;
use crate::messages::{CrossingReport, CrossingTunnel, WorkerEvent};
use crate::program::{CrossingMode, Program};
use crate::slots::PortKey;

/// The tunnel key of a frame that a device received.
const NO_KEY: u64 = 0;

impl BatchForwarder {
    /// Reports or counts the frames of a received batch, except those that the port punts.
    #[cold]
    pub(super) fn note_crossing(
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
            |frame: &&Frame| punted.is_none_or(|protocols| !protocols.takes(frame.bytes(), NO_KEY));
        let frames = batch.iter().filter(crosses);
        if program.crossing == CrossingMode::Count {
            return frames.for_each(|frame| self.record_frame(from, None, frame, now));
        }
        let frames: Vec<Box<[u8]>> = frames.map(|frame| frame.bytes().into()).collect();
        if !frames.is_empty() {
            self.report_frames(CrossingReport {
                from,
                tunnel: None,
                frames,
                at: now,
            });
        }
    }

    /// Reports or counts a decapsulated frame, unless the tunnel port punts it.
    #[cold]
    pub(super) fn note_decapsulated(
        &mut self,
        program: &Program,
        outer: &OuterHeaders,
        inner: &InnerPacket,
        frame: &Frame,
    ) {
        let from = inner.port;
        let punts = program
            .bridge(from.bridge)
            .and_then(|bridge| bridge.punts.as_ref());
        let punted = punts.and_then(|punts| punts.of(from.port));
        let tunnel_key = inner.fields.tunnel_id;
        if punted.is_some_and(|protocols| protocols.takes(frame.bytes(), tunnel_key)) {
            return;
        }
        let tunnel = CrossingTunnel {
            outer: *outer,
            header: inner.header.clone(),
            fields: inner.fields.clone(),
        };
        if program.crossing == CrossingMode::Count {
            return self.record_frame(from, Some(tunnel), frame, self.now);
        }
        self.report_frames(CrossingReport {
            from,
            tunnel: Some(Box::new(tunnel)),
            frames: vec![frame.bytes().into()],
            at: self.now,
        });
    }

    fn report_frames(&mut self, report: CrossingReport) {
        let event = WorkerEvent::Crossed(Box::new(report));
        self.reporter
            .report_if_room(event, WorkerDrop::FlowQueueFull);
    }
}

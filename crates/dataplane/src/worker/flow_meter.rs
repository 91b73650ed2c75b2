//! NetFlow counts: frames are parsed on ingress, and counted when their outputs are known. The
//! batch stays together. The counts are sent to the control thread once a second.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Instant, PortNo};
use packet::Frame;

use super::events::EventReporter;
use super::sampling::SamplingState;
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::{BridgeId, Program};
use crate::slots::PortKey;
use flow_export::flows::{self, FlowOutput, Ipv4Flow, Ipv4FlowTable};

/// The interval of reports to the control thread.
const REPORT: Duration = Duration::from_secs(1);

/// The minimum interval, if a flow table is full. It limits the unread reports of a busy control
/// thread to some tens of megabytes.
const REPORT_FULL: Duration = Duration::from_millis(100);

/// The flow tables of a worker.
#[derive(Default)]
pub(super) struct FlowMeters {
    bridges: BTreeMap<BridgeId, Ipv4FlowTable>,
    /// The time of the last report.
    reported: Instant,
    /// The flows of the current frames, in order; none for frames without a flow.
    frames: Vec<Option<Ipv4Flow>>,
    /// The number of current frames with known outputs.
    done: usize,
    /// The output of the current frame.
    output: FlowOutput,
}

impl FlowMeters {
    /// Returns whether a report is due.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        !self.bridges.is_empty() && self.reported + REPORT <= now
    }

    /// Records that the next `count` frames have this port as their only output.
    pub(super) fn set_output(&mut self, port: PortNo, count: usize) {
        let frames = self.frames.iter_mut().skip(self.done).take(count);
        for (key, _) in frames.flatten() {
            key.output = FlowOutput::Port(port);
        }
        self.done += count;
    }

    /// Records `count` outputs of the current frame, the last of them to this port.
    pub(super) fn add_exits(&mut self, count: usize, last: PortNo) {
        self.output = self.output.and(count, last);
    }

    /// Records that the current frame is flooded.
    pub(super) const fn flood(&mut self) {
        self.output = FlowOutput::Flood;
    }

    /// Ends the current frame: all its outputs are known.
    pub(super) fn end_frame(&mut self) {
        let output = std::mem::take(&mut self.output);
        if let Some(Some((key, _))) = self.frames.get_mut(self.done) {
            key.output = output;
        }
        self.done += 1;
    }
}

impl SamplingState {
    /// Parses the flows of frames, if they are to be counted.
    pub(super) fn read_flows(&mut self, from: PortKey, frames: &[Frame], now: Instant) {
        let flow_meters = &mut self.flow_meters;
        flow_meters.frames.clear();
        (flow_meters.done, flow_meters.output) = (0, FlowOutput::Nowhere);
        if self.observer.counts {
            let read = frames
                .iter()
                .map(|frame| flows::flow_of_frame(frame, from.port, now));
            flow_meters.frames.extend(read);
        }
    }

    /// Counts the frames with known outputs.
    pub(super) fn count_flows(
        &mut self,
        bridge: BridgeId,
        reporter: &mut EventReporter,
        now: Instant,
    ) {
        if !self.observer.counts {
            return;
        }
        let flow_meters = &mut self.flow_meters;
        if flow_meters.bridges.is_empty() {
            flow_meters.reported = now;
        }
        let flows = flow_meters.bridges.entry(bridge).or_default();
        for flow in flow_meters.frames.drain(..).flatten() {
            if !flows.count(&flow) {
                let lost = usize::try_from(flow.1.packets).unwrap_or(usize::MAX);
                reporter.links.counters.add(WorkerDrop::FlowsLost, lost);
            }
        }
        if flows.is_full() && flow_meters.reported + REPORT_FULL <= now {
            self.report_flows(reporter, now);
        }
    }

    /// Sends all flows to the control thread. Flows stay here if the ring is full.
    pub(super) fn report_flows(&mut self, reporter: &mut EventReporter, now: Instant) {
        self.flow_meters.reported = now;
        for (bridge, flows) in &mut self.flow_meters.bridges {
            if !flows.is_empty() && !reporter.links.events.is_full() {
                let event = WorkerEvent::Flows(*bridge, flows.drain());
                reporter.turn.news |= reporter.links.events.push(event).is_ok();
            }
        }
    }

    /// Keeps the flow tables of bridges that count, and reports the others for the last time.
    pub(super) fn retain_flows(
        &mut self,
        program: &Program,
        reporter: &mut EventReporter,
        now: Instant,
    ) {
        let counts = |id: BridgeId| {
            let view = program
                .bridge(id)
                .and_then(|bridge| bridge.sampling.as_ref());
            view.is_some_and(|view| view.flows)
        };
        if self.flow_meters.bridges.keys().all(|id| counts(*id)) {
            return;
        }
        self.report_flows(reporter, now);
        let counters = &reporter.links.counters;
        self.flow_meters.bridges.retain(|id, flows| {
            let stays = counts(*id);
            if !stays {
                let left = flows.drain();
                let lost: u64 = left.iter().map(|(_, counts)| counts.packets).sum();
                let lost = usize::try_from(lost).unwrap_or(usize::MAX);
                counters.add(WorkerDrop::FlowsLost, lost);
            }
            stays
        });
    }
}

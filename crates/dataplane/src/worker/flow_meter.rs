//! Frames that are counted by flows: read as they come, counted when it is known where they
//! go. The batch stays together. What was counted goes to the control thread once a second.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Instant, PortNo};
use packet::Frame;

use super::Worker;
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::{BridgeId, Program};
use crate::slots::PortKey;
use flow_export::flows::{self, FlowOutput, Ipv4Flow, Ipv4FlowTable};

/// How often the control thread is told.
const REPORT: Duration = Duration::from_secs(1);

/// How often at most, if there is no room for more flows: so what waits for a control thread
/// that has other things to do stays some tens of megabytes.
const REPORT_FULL: Duration = Duration::from_millis(100);

/// What a worker keeps of flows.
#[derive(Default)]
pub(super) struct FlowMeters {
    bridges: BTreeMap<BridgeId, Ipv4FlowTable>,
    /// When the control thread was told last.
    told: Instant,
    /// The frames at hand, in order; none of those that are of no flow.
    frames: Vec<Option<Ipv4Flow>>,
    /// How many of them have gone their way.
    gone: usize,
    /// Where the one goes that is about to.
    output: FlowOutput,
}

impl FlowMeters {
    /// Whether the control thread is to be told.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        !self.bridges.is_empty() && self.told + REPORT <= now
    }

    /// So many frames leave by this port, and that is all.
    pub(super) fn leave(&mut self, port: PortNo, count: usize) {
        let frames = self.frames.iter_mut().skip(self.gone).take(count);
        for (key, _) in frames.flatten() {
            key.output = FlowOutput::Port(port);
        }
        self.gone += count;
    }

    /// The frame at hand leaves by so many exits, the last of which is by this port.
    pub(super) fn add_exits(&mut self, count: usize, last: PortNo) {
        self.output = self.output.and(count, last);
    }

    /// The frame at hand is flooded.
    pub(super) const fn flood(&mut self) {
        self.output = FlowOutput::Flood;
    }

    /// All of the frame's exits are known.
    pub(super) fn go(&mut self) {
        let output = std::mem::take(&mut self.output);
        if let Some(Some((key, _))) = self.frames.get_mut(self.gone) {
            key.output = output;
        }
        self.gone += 1;
    }
}

impl Worker {
    /// Reads frames of which each is to be counted.
    pub(super) fn read_flows(&mut self, from: PortKey, frames: &[Frame], now: Instant) {
        let accounts = &mut self.accounts;
        accounts.frames.clear();
        (accounts.gone, accounts.output) = (0, FlowOutput::Nowhere);
        if self.watch.counts {
            let read = frames
                .iter()
                .map(|frame| flows::flow_of_frame(frame, from.port, now));
            accounts.frames.extend(read);
        }
    }

    /// Counts those that have gone their way.
    pub(super) fn count_flows(&mut self, bridge: BridgeId, now: Instant) {
        if !self.watch.counts {
            return;
        }
        let accounts = &mut self.accounts;
        if accounts.bridges.is_empty() {
            accounts.told = now;
        }
        let flows = accounts.bridges.entry(bridge).or_default();
        for flow in accounts.frames.drain(..).flatten() {
            if !flows.count(&flow) {
                let lost = usize::try_from(flow.1.packets).unwrap_or(usize::MAX);
                self.shared.counters.add(WorkerDrop::FlowsLost, lost);
            }
        }
        if flows.is_full() && accounts.told + REPORT_FULL <= now {
            self.report_flows(now);
        }
    }

    /// Tells the control thread of all flows. They stay where it has no room for them.
    pub(super) fn report_flows(&mut self, now: Instant) {
        self.accounts.told = now;
        for (bridge, flows) in &mut self.accounts.bridges {
            if !flows.is_empty() && !self.shared.events.is_full() {
                let event = WorkerEvent::Flows(*bridge, flows.drain());
                self.turn.news |= self.shared.events.push(event).is_ok();
            }
        }
    }

    /// Keeps flows of bridges that count them, and tells of others for the last time.
    pub(super) fn keep_flows(&mut self, program: &Program, now: Instant) {
        let counts = |id: BridgeId| {
            let view = program
                .bridge(id)
                .and_then(|bridge| bridge.sampling.as_ref());
            view.is_some_and(|view| view.flows)
        };
        if self.accounts.bridges.keys().all(|id| counts(*id)) {
            return;
        }
        self.report_flows(now);
        let counters = &self.shared.counters;
        self.accounts.bridges.retain(|id, flows| {
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

//! The active flows of a datapath, as Open vSwitch's data path would hold them. Workers
//! report the frames that dummies receive or decapsulate; a frame without a flow is translated, like
//! an upcall of Open vSwitch, and its megaflow is listed from then on.
//!
//! Real ports report no frames: workers count them while the list is requested (`flow_watch`).

mod error_log;
mod translation;

use std::collections::BTreeMap;
use std::time::Duration;

use base::Instant;
use base::sync::thread;
use flow::{FlowKey, PacketType, PipelineFields};
use packet::tunnel::TunnelPayload;
use packet::wire::ethernet;
use packet::{Depth, Frame};
use ports::dummy::DummyType;
use tracing::Level;

use super::Control;
use super::bridge_runtime::BridgeRuntime;
use super::commands::tracing::tracer;
use super::datapath_ports::DatapathName;
use super::flow_watch::WATCHED_FLOWS_MAX;
use config::PortKind;
use dataplane::messages::{CrossingReport, CrossingTunnel};
use dataplane::slots::PortKey;
use error_log::TranslationErrorLog;
use switch::megaflow::{
    ActiveFlow, ActiveFlowTable, FlowUfid, KeyDetail, Megaflow, PacketSummary, Revalidation,
};
use switch::odp::OdpTunnel;
use switch::trace::ArrivalTunnel;
pub(super) use translation::translate;
use translation::{megaflow_and_actions, translation_of};

/// The interval of maintenance while there are flows, as in Open vSwitch.
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(500);

/// The interval at which a command checks for frames that workers have not taken, and the number of
/// checks before it gives up.
const WAIT: Duration = Duration::from_millis(1);
const WAITS_MAX: usize = 100;

/// The maximum number of bursts of events that a command reads from the workers.
const READS_MAX: usize = 64;

/// The thread that received the packets of a flow: the core of a PMD thread; none for the main
/// thread, to which all dummies belong that no PMD thread polls.
pub(super) type FlowThread = Option<usize>;

/// The active flows, and the state of their maintenance.
#[derive(Default)]
pub(super) struct ActiveFlows {
    /// The flows of each thread.
    tables: BTreeMap<FlowThread, ActiveFlowTable<PortKey>>,
    /// True if tables or ports have changed since the last revalidation.
    pub(super) is_stale: bool,
    /// The time of the last maintenance.
    maintained: Option<Instant>,
    /// Packets that hit a flow.
    pub(super) hits: u64,
    /// Packets that set up a flow.
    pub(super) misses: u64,
    /// The log of the errors of translations.
    errors: TranslationErrorLog,
}

impl ActiveFlows {
    /// Returns the time of the next maintenance.
    pub(super) fn next_maintenance(&self) -> Option<Instant> {
        let since = self.maintained.filter(|_| !self.is_empty())?;
        Some(since + MAINTENANCE_INTERVAL)
    }

    /// Returns the number of flows of all threads.
    pub(super) fn len(&self) -> usize {
        self.tables.values().map(ActiveFlowTable::len).sum()
    }

    fn is_empty(&self) -> bool {
        self.tables.values().all(ActiveFlowTable::is_empty)
    }

    /// Returns the cores of PMD threads that have flows.
    pub(super) fn cores(&self) -> Vec<usize> {
        self.tables.keys().copied().flatten().collect()
    }

    /// Returns all flows with their threads.
    pub(super) fn iter(
        &self,
    ) -> impl Iterator<Item = (FlowThread, FlowUfid, &ActiveFlow<PortKey>)> {
        self.tables.iter().flat_map(|(thread, table)| {
            let flows = table.iter();
            flows.map(move |(ufid, flow)| (*thread, ufid, flow))
        })
    }

    /// Returns a flow with this identity, of any thread.
    pub(super) fn get(&self, ufid: FlowUfid) -> Option<&ActiveFlow<PortKey>> {
        self.tables.values().find_map(|table| table.get(ufid))
    }

    /// Counts packets in their flow of a thread. Returns false if they have no flow.
    pub(super) fn count(&mut self, thread: FlowThread, packets: &PacketSummary<'_>) -> bool {
        let table = self.tables.get_mut(&thread);
        table.is_some_and(|table| table.count(packets))
    }

    /// Removes the flows that were idle for too long.
    fn expire(&mut self, now: Instant) -> Vec<(FlowUfid, ActiveFlow<PortKey>)> {
        let tables = self.tables.values_mut();
        let expired = tables.flat_map(|table| table.expire(now)).collect();
        self.tables.retain(|_, table| !table.is_empty());
        expired
    }
}

/// A frame of the datapath, with its fields.
pub(super) struct CrossedFrame {
    frame: Frame,
    tunnel: Option<ArrivalTunnel>,
    pub(super) exact: Megaflow,
    /// The datapath's number of the ingress port.
    number: u32,
}

impl CrossedFrame {
    /// Returns the number of bytes of the frame that the packet does not have: a bare packet has no
    /// Ethernet header.
    pub(super) fn header_len(&self) -> u64 {
        let is_bare = |arrival: &ArrivalTunnel| !arrival.packet_type.is_ethernet();
        match self.tunnel.as_ref().is_some_and(is_bare) {
            true => ethernet::LEN as u64,
            false => 0,
        }
    }
}

/// Returns the tunnel of a decapsulated frame.
fn arrival_of(crossing: &CrossingTunnel) -> ArrivalTunnel {
    let CrossingTunnel {
        outer,
        header,
        fields,
    } = crossing;
    ArrivalTunnel {
        tunnel: OdpTunnel::received(outer, header, fields),
        packet_type: match header.payload {
            TunnelPayload::Ethernet => PacketType::ETHERNET,
            TunnelPayload::Packet(eth_type) => PacketType::of_ether_type(eth_type.0),
        },
    }
}

/// True if the data path's log module writes debug messages.
fn logs_flows() -> bool {
    tracing::enabled!(target: "dpif_netdev", Level::DEBUG)
}

/// True if the log module of the data path's interface writes debug messages.
fn logs_operations() -> bool {
    tracing::enabled!(target: "dpif", Level::DEBUG)
}

impl Control {
    /// Counts frames that a worker received in their flows, and sets up flows for those without one.
    pub(super) fn handle_crossed(&mut self, report: &CrossingReport, worker: usize) {
        let CrossingReport {
            from,
            tunnel,
            frames,
            at,
        } = report;
        self.revalidate_flows();
        let thread = self.flow_thread(*from, worker);
        for bytes in frames {
            let Some(crossed) = self.crossed_frame(*from, tunnel.as_deref(), bytes) else {
                continue;
            };
            let summary = PacketSummary {
                exact: &crossed.exact,
                packets: 1,
                bytes: (crossed.frame.len() as u64).saturating_sub(crossed.header_len()),
                now: *at,
            };
            if self.flows.count(thread, &summary) {
                self.flows.hits += 1;
            } else {
                self.flows.misses += 1;
                self.set_up_flow((*from, thread), crossed, *at);
            }
        }
    }

    /// Returns the thread to which the flows of a port and a worker belong.
    pub(super) fn flow_thread(&self, from: PortKey, worker: usize) -> FlowThread {
        let port = self.sites.get(&from.bridge)?.ports.get(&from.port)?;
        match port.spec.kind {
            PortKind::Dummy(DummyType::Pmd) => self.pmd.core_of(worker),
            _ => None,
        }
    }

    pub(super) fn crossed_frame(
        &mut self,
        from: PortKey,
        tunnel: Option<&CrossingTunnel>,
        bytes: &[u8],
    ) -> Option<CrossedFrame> {
        let number = self.datapath_ports().number((from.bridge, from.port))?;
        let frame = Frame::from_bytes(bytes);
        let mut fields = tunnel.map_or_else(
            || PipelineFields::new(from.port),
            |tunnel| tunnel.fields.clone(),
        );
        let tunnel = tunnel.map(arrival_of);
        fields.in_port = from.port;
        if let Some(tunnel) = &tunnel {
            fields.packet_type = tunnel.packet_type;
        }
        let mut key = FlowKey::new();
        let is_read = key.read(&frame, Depth::Transport, &fields);
        let exact = is_read.then(|| Megaflow::exact(&key, &frame).for_datapath(number))?;
        let exact = match &tunnel {
            Some(arrival) => exact.with_tunnel(&arrival.tunnel, |_| None),
            None => exact,
        };
        Some(CrossedFrame {
            frame,
            tunnel,
            exact,
            number,
        })
    }

    /// Translates a frame, and adds its flow, unless the list of the thread is full.
    pub(super) fn set_up_flow(
        &mut self,
        (from, thread): (PortKey, FlowThread),
        crossed: CrossedFrame,
        now: Instant,
    ) {
        let CrossedFrame {
            frame,
            tunnel,
            exact,
            number,
        } = crossed;
        let is_full = |table: &ActiveFlowTable<PortKey>| table.is_full();
        if self.flows.tables.get(&thread).is_some_and(is_full) {
            return;
        }
        let port = number.to_string();
        if logs_flows() {
            let key = exact.to_odp(&port, KeyDetail::Packet);
            let name = self.flow_datapath(from).backer();
            let packet = exact.describe_packet();
            tracing::debug!(target: "dpif_netdev", "{name}: miss upcall:\n{key}\n{packet}");
        }
        let arrived = (&frame, tunnel.as_ref());
        let translation = translation_of(&tracer(self), from, arrived, false);
        self.flows.errors.log(&translation, now);
        let (megaflow, actions) = megaflow_and_actions(translation);
        let megaflow = match (megaflow, self.commands.upcalls.has_megaflows) {
            (Some(megaflow), true) => megaflow.for_datapath(number),
            _ => exact,
        };
        let flow = ActiveFlow {
            port: from,
            frame,
            tunnel,
            megaflow,
            actions,
            packets: 0,
            bytes: 0,
            used: None,
            tcp_flags: 0,
            created: now,
        };
        if logs_flows() {
            log_flow("flow_add", &flow, &port);
        }
        let is_watched = !self.reports_flows();
        let table = self.flows.tables.entry(thread).or_default();
        if is_watched {
            table.capacity = WATCHED_FLOWS_MAX;
        }
        if table.insert(flow).is_some() && self.flows.maintained.is_none() {
            self.flows.maintained = Some(now);
        }
    }

    /// Translates the flows again after a change.
    pub(super) fn revalidate_flows(&mut self) {
        if !std::mem::take(&mut self.flows.is_stale) || self.flows.is_empty() {
            return;
        }
        let tracer = tracer(self);
        let mut results = Vec::new();
        for (thread, ufid, flow) in self.flows.iter() {
            let is_destroyed = thread.is_some_and(|core| !self.pmd.has_thread(core));
            let number = self
                .devices
                .datapath_ports
                .number((flow.port.bridge, flow.port.port))
                .filter(|_| !is_destroyed);
            let arrived = (&flow.frame, flow.tunnel.as_ref());
            let (megaflow, actions) = translate(&tracer, flow.port, arrived, false);
            let result = match (megaflow, number) {
                (_, None) => Revalidation::Delete,
                (Some(megaflow), Some(number)) => {
                    flow.revalidate(&megaflow.for_datapath(number), &actions)
                }
                (None, Some(_)) if flow.actions == actions => Revalidation::Keep,
                (None, Some(_)) => Revalidation::Modify(actions),
            };
            results.push((thread, ufid, result));
        }
        for (thread, ufid, result) in results {
            match result {
                Revalidation::Keep => {}
                Revalidation::Modify(actions) => self.modify_flow(thread, ufid, actions),
                Revalidation::Delete => self.delete_flow(thread, ufid),
            }
        }
    }

    fn modify_flow(&mut self, thread: FlowThread, ufid: FlowUfid, actions: String) {
        let Some(table) = self.flows.tables.get_mut(&thread) else {
            return;
        };
        table.modify(ufid, actions);
        let flow = self.flows.tables.get(&thread);
        let Some(flow) = flow.and_then(|table| table.get(ufid)) else {
            return;
        };
        let port = self.port_text(flow.port);
        if logs_flows() {
            log_flow("flow_mod", flow, &port);
        }
        if logs_operations() {
            let (key, actions) = (flow.megaflow.to_odp(&port, KeyDetail::All), &flow.actions);
            let name = self.flow_datapath(flow.port).full();
            tracing::debug!(target: "dpif", "{name}: put[modify] {ufid} {key}, actions:{actions}");
        }
    }

    /// Removes a flow.
    fn delete_flow(&mut self, thread: FlowThread, ufid: FlowUfid) {
        let table = self.flows.tables.get_mut(&thread);
        if let Some(flow) = table.and_then(|table| table.remove(ufid)) {
            self.log_deletion(ufid, &flow);
        }
    }

    fn log_deletion(&self, ufid: FlowUfid, flow: &ActiveFlow<PortKey>) {
        if logs_operations() {
            let port = self.port_text(flow.port);
            let key = flow.megaflow.to_odp(&port, KeyDetail::Packet);
            let counters = flow.counters(self.now());
            let name = self.flow_datapath(flow.port).full();
            tracing::debug!(target: "dpif", "{name}: flow_del {ufid} {key}, {counters}");
        }
    }

    /// Removes all flows.
    pub(super) fn delete_flows(&mut self) {
        for mut table in std::mem::take(&mut self.flows.tables).into_values() {
            for (ufid, flow) in table.clear() {
                self.log_deletion(ufid, &flow);
            }
        }
    }

    /// Removes idle flows, translates the others again after a change, and logs them.
    pub(super) fn maintain_flows(&mut self, now: Instant) {
        let due = self.flows.next_maintenance();
        if due.is_none_or(|due| now < due) {
            return;
        }
        self.flows.maintained = Some(now);
        self.log_flows();
        for (ufid, flow) in self.flows.expire(now) {
            self.log_deletion(ufid, &flow);
        }
        // Flows of real ports are translated again when they are listed.
        if self.tools.dummies.is_enabled() {
            self.revalidate_flows();
        }
        if self.flows.is_empty() {
            self.flows.maintained = None;
        }
    }

    /// Logs all flows, as a revalidator of Open vSwitch does when it dumps them.
    pub(super) fn log_flows(&self) {
        if !logs_operations() {
            return;
        }
        let now = self.now();
        for (_, ufid, flow) in self.flows.iter() {
            let port = self.port_text(flow.port);
            let line = flow.line(&port, &flow.actions, KeyDetail::All, now);
            let name = self.flow_datapath(flow.port).full();
            tracing::debug!(target: "dpif", "{name}: flow_dump {ufid} {line}");
        }
    }

    /// Returns the datapath of a port.
    fn flow_datapath(&self, port: PortKey) -> DatapathName {
        let site = self.sites.get(&port.bridge);
        site.map_or(DatapathName::Netdev, BridgeRuntime::datapath)
    }

    /// Returns the datapath's number of a port.
    fn port_text(&self, port: PortKey) -> String {
        let number = self.devices.datapath_ports.number((port.bridge, port.port));
        number.map_or_else(|| "none".to_owned(), |number| number.to_string())
    }

    /// Waits until workers have taken all injected frames, for a limited time.
    fn await_injected(&self) {
        for _ in 0..WAITS_MAX {
            let ports = self.sites.values().flat_map(|site| site.ports.values());
            let mut devices = ports.filter_map(|port| port.device.as_ref()?.dummy());
            let is_queued = devices.any(|dummy| dummy.has_queued());
            let mut workers = self.tools.workers.iter();
            if !is_queued && workers.all(|worker| worker.handle.is_at_rest()) {
                return;
            }
            thread::park_timeout(WAIT);
        }
    }

    /// Makes the flows current: all injected frames are counted, and no change is pending.
    pub(super) fn settle_flows(&mut self) {
        if self.tools.dummies.is_enabled() {
            self.await_injected();
            for _ in 0..READS_MAX {
                if self.read_workers() {
                    break;
                }
            }
            self.publish_at_once();
            self.revalidate_flows();
        } else {
            self.publish_at_once();
            self.settle_watched_flows();
        }
        let now = self.now();
        for (ufid, flow) in self.flows.expire(now) {
            self.log_deletion(ufid, &flow);
        }
    }
}

/// Logs a flow that was added or modified, as Open vSwitch's data path does.
fn log_flow(operation: &str, flow: &ActiveFlow<PortKey>, port: &str) {
    let (actions, megaflow) = (&flow.actions, &flow.megaflow);
    let (ufid, key) = (
        FlowUfid::of(megaflow),
        megaflow.to_odp(port, KeyDetail::Examined),
    );
    tracing::debug!(
        target: "dpif_netdev",
        "{operation}: {ufid} mega_{ufid} {key}, actions:{actions}"
    );
    tracing::debug!(target: "dpif_netdev", "flow match: {megaflow}");
}

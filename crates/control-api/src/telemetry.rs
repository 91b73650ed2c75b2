//! State and counters of a running switch as one value: gathered by the control thread, exported
//! to Prometheus and, as JSON, by the control socket (`comporta top`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The command of the control socket that returns a [`Telemetry`] as JSON.
pub const TELEMETRY: &str = "comporta/telemetry";

/// Counters by name. Zero values are omitted.
pub type Counts = BTreeMap<String, u64>;

/// State and counters of the switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// The program's version.
    pub version: String,
    /// Nanoseconds since the start.
    pub uptime_ns: u64,
    /// Resources of the process.
    pub process: ProcessTelemetry,
    /// Counters of the control thread.
    pub control: Counts,
    /// The connection trackers.
    #[serde(default)]
    pub conntrack: ConntrackTelemetry,
    /// The workers, in their order.
    pub workers: Vec<WorkerTelemetry>,
    /// The bridges, by name.
    pub bridges: Vec<BridgeTelemetry>,
}

/// Resources of the process (proc(5)).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessTelemetry {
    /// Resident memory (`VmRSS`).
    pub resident_bytes: u64,
    /// Virtual memory (`VmSize`).
    pub virtual_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open files.
    pub open_files: u64,
}

/// The connection trackers of all datapaths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConntrackTelemetry {
    /// Connections.
    pub connections: u64,
    /// Largest number of connections.
    pub connections_max: u64,
    /// Connections by zone, those of zones without any omitted.
    pub zones: BTreeMap<u16, u64>,
    /// Counters.
    pub counts: Counts,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerTelemetry {
    /// The core on which it runs.
    pub core: usize,
    /// Nanoseconds of the turns that received frames.
    pub busy_ns: u64,
    /// Batches of frames.
    pub batches: u64,
    /// Frames received.
    pub frames: u64,
    /// Frames and events that it dropped, by reason.
    pub drops: Counts,
    /// Frames that the slow path processed, by reason.
    pub interpreted: Counts,
}

/// A bridge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BridgeTelemetry {
    /// Its name.
    pub name: String,
    /// Its datapath id, in hexadecimal.
    pub datapath_id: String,
    /// Rules of all its tables.
    pub rules: u64,
    /// Addresses in the forwarding database.
    pub stations: u64,
    /// Counters other than those of its tables and ports.
    pub counts: Counts,
    /// Its ports, by number.
    pub ports: Vec<PortTelemetry>,
    /// Its tables that have rules or processed frames.
    pub tables: Vec<TableTelemetry>,
    /// The controllers to which it connects.
    pub controllers: Vec<ControllerTelemetry>,
    /// The rules with the most frames among those with recent traffic, if requested.
    pub busiest: Vec<RuleTelemetry>,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortTelemetry {
    /// Its number, or `LOCAL`.
    pub number: String,
    /// Its name.
    pub name: String,
    /// True if the port is open, and administratively up.
    pub up: bool,
    /// True if it is up and has a carrier.
    pub carrier: bool,
    /// Frames received.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Received frames that were dropped.
    pub rx_dropped: u64,
    /// Frames that were dropped before they were sent.
    pub tx_dropped: u64,
    /// All other counters, including drops by reason.
    pub counts: Counts,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableTelemetry {
    /// Its number.
    pub table: u8,
    /// Its rules.
    pub rules: u64,
    /// Frames looked up.
    pub lookups: u64,
    /// Looked-up frames that matched a rule.
    pub matches: u64,
}

/// A controller to which a bridge connects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerTelemetry {
    /// Its connection target.
    pub target: String,
    /// Its role, while it is connected.
    pub role: Option<String>,
}

/// A rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleTelemetry {
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Its match, in the syntax of `ovs-ofctl`.
    pub matching: String,
    /// Its actions, in the same syntax.
    pub actions: String,
    /// Its frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

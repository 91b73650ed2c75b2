//! State and counters of a running switch as one value: gathered by the control thread, exported
//! to Prometheus and, as JSON, by the control socket (`comporta top`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The command of the control socket that answers a [`Telemetry`] as JSON.
pub const TELEMETRY: &str = "comporta/telemetry";

/// Counts by name. Those that are zero are left out.
pub type Counts = BTreeMap<String, u64>;

/// How the switch is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// The program's version.
    pub version: String,
    /// Nanoseconds since it began.
    pub uptime_ns: u64,
    /// What the system says of the process.
    pub process: ProcessTelemetry,
    /// What the control thread counts.
    pub control: Counts,
    /// The workers, in their order.
    pub workers: Vec<WorkerTelemetry>,
    /// The bridges, by name.
    pub bridges: Vec<BridgeTelemetry>,
}

/// What the system says of the process (proc(5)).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessTelemetry {
    /// Memory that it really has (`VmRSS`).
    pub resident_bytes: u64,
    /// Memory that it may use (`VmSize`).
    pub virtual_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open files.
    pub open_files: u64,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerTelemetry {
    /// The core that it runs on.
    pub core: usize,
    /// Nanoseconds of the turns in which frames came.
    pub busy_ns: u64,
    /// Batches of frames.
    pub batches: u64,
    /// Frames that came.
    pub frames: u64,
    /// Frames and events that it dropped, by reason.
    pub drops: Counts,
    /// Frames that were left to the interpreter, by reason.
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
    /// Stations that it knows.
    pub stations: u64,
    /// What it counts beside its tables and ports.
    pub counts: Counts,
    /// Its ports, by number.
    pub ports: Vec<PortTelemetry>,
    /// Its tables that have rules, or had frames.
    pub tables: Vec<TableTelemetry>,
    /// The controllers that it goes to.
    pub controllers: Vec<ControllerTelemetry>,
    /// The rules with the most frames of those that had any of late, if they were asked for.
    pub busiest: Vec<RuleTelemetry>,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortTelemetry {
    /// Its number, or `LOCAL`.
    pub number: String,
    /// Its name.
    pub name: String,
    /// Whether it is open, and administratively up.
    pub up: bool,
    /// Whether it is up and something is at the other end.
    pub carrier: bool,
    /// Frames received.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames received that were dropped.
    pub rx_dropped: u64,
    /// Frames to be sent that were dropped.
    pub tx_dropped: u64,
    /// All else that is counted, drops by reason among it.
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
    /// Of those, frames that found a rule.
    pub matches: u64,
}

/// A controller that a bridge goes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerTelemetry {
    /// Where it is met.
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
    /// Its match, in the words of `ovs-ofctl`.
    pub matching: String,
    /// Its actions, in the same words.
    pub actions: String,
    /// Its frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

//! Records of measurements: one JSON object a line, from which every report is made; and the
//! descriptions of experiments that give the numbers their meaning.
//!
//! The first line of a run is a session, with everything that its results depend on. Trials
//! follow, each written as soon as it is done. A resumed run has another session. Devices and
//! experiments are named in text, so that records of unknown ones can still be read.
//!
//! Not here: how anything is measured, and how it is shown.

mod change;
mod conditions;
mod experiment;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod inventory;
pub mod journal;
mod management;
mod names;
pub mod own;
mod parameter;
mod parameters;
mod passage;
mod point;
mod reading;
mod requests;
mod results;
mod settings;

use serde::{Deserialize, Serialize};

pub use change::{ChangeOutcome, ChangeTest};
pub use conditions::{Conditions, ProcessUse};
pub use experiment::{Better, Catalogue, Description, ExperimentName, Family, Figure, View};
pub use inventory::InventoryRecord;
pub use management::{AgentRecord, InterfaceRecord, ManagementRecord};
pub use names::{MatchSet, Prober, UnknownName, nearest};
pub use parameter::{Bound, Parameter, Role, Values};
pub use parameters::{
    BadOption, ChangeParameters, EchoParameters, FlowTableParameters, MeterParameters, Parameters,
    RateParameters, TcpParameters, are_distinct, first_broken,
};
pub use passage::{FrameCounts, PassageRecord};
pub use point::{Point, Value};
pub use reading::Reading;
pub use requests::RequestsOutcome;
pub use results::{ExperimentKey, Results};
pub use settings::{BadSetting, Profile, Settings};

/// The version of this form. A reader refuses a newer one.
pub const SCHEMA: u32 = 1;

/// A line of the records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Entry {
    /// The lab was started.
    Session(Box<Session>),
    /// A test was done.
    Trial(Box<Trial>),
}

/// Everything that the results of one start of the lab depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When it was started, as RFC 3339 has it, in UTC.
    pub started: String,
    /// The version of the lab.
    pub lab_version: String,
    /// The command that asked for it.
    pub command_line: String,
    /// What determined the order of tests.
    pub seed: u64,
    /// How often every test was to be done.
    pub runs: u32,
    /// How many tests the run was to have, those of sessions before included.
    pub planned: u64,
    /// How tests are done.
    pub parameters: Parameters,
    /// The machine.
    pub machine: MachineRecord,
    /// Cores for the lab and for hosts' programs.
    pub tester_cores: Vec<usize>,
    /// Cores for the devices.
    pub device_cores: Vec<usize>,
    /// The version of iperf3; none if it was not used.
    pub iperf3: Option<String>,
    /// The devices.
    pub devices: Vec<DeviceRecord>,
}

/// The machine that a session ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// How many cores there were to use.
    pub cores: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// What the kernel told the time by.
    pub clock_source: String,
    /// Whether it was a virtual machine.
    pub virtual_machine: bool,
}

/// A device, as it was set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Its name.
    pub name: String,
    /// What it says of its version.
    pub version: String,
    /// Whether it forwards by the rules of a controller.
    pub openflow: bool,
    /// Whether it is no device but a cable, for calibration.
    pub calibration: bool,
    /// The offloads that were on at both hosts, as `ethtool` names them.
    pub host_offloads: Vec<String>,
    /// The commands that set it up.
    pub commands: Vec<String>,
    /// What its user says of it, if it is a switch of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<InventoryRecord>,
    /// How it decides where frames go: `openflow` or `legacy`; not told by old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What its ports are; not told by old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<String>,
}

/// A test that was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What tells it from the others of the run.
    pub id: String,
    /// Name of the experiment.
    #[serde(rename = "scenario")]
    pub experiment: ExperimentName,
    /// The device.
    pub device: String,
    /// The how manieth time, from 1.
    pub run: u32,
    /// Its place in the plan, from 0.
    pub order: usize,
    /// When it began, as RFC 3339 has it, in UTC.
    pub started: String,
    /// How long it took, with what was done before and after, in seconds.
    pub seconds: f64,
    /// What is wrong with it; nothing, as a rule.
    pub flaws: Vec<Flaw>,
    /// How the machine fared meanwhile; none if the trial could not be done.
    pub conditions: Option<Conditions>,
    /// What came of it; none if it could not be done.
    pub outcome: Option<Outcome>,
}

impl Trial {
    /// Whether its outcome counts.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.outcome.is_some() && !self.flaws.iter().any(|flaw| flaw.void)
    }
}

/// Something about a trial that a reader should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaw {
    /// Whether it makes the outcome worthless.
    pub void: bool,
    /// What it is.
    pub reason: String,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Of `echo`.
    Echo(EchoOutcome),
    /// Of `tcp-throughput`.
    TcpThroughput(TcpOutcome),
    /// Of `forwarding-rate`.
    ForwardingRate(RateOutcome),
    /// Of `flow-table`.
    FlowTable(FlowTableOutcome),
    /// Of `meters`.
    Meter(MeterOutcome),
    /// Of `changes`.
    Change(ChangeOutcome),
    /// Of `tcp-requests`.
    Requests(RequestsOutcome),
    /// Of any experiment of the catalogue.
    Reading(Reading),
}

/// Round trips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EchoOutcome {
    /// What the rules matched on. A device without rules is tested in the same
    /// block, so that it can stand beside.
    pub match_set: MatchSet,
    /// Size of frames with their checksum (FCS).
    pub frame_bytes: u16,
    /// How echoes were sent and awaited.
    pub prober: Prober,
    /// Echoes sent before those that count.
    pub warm_up: u32,
    /// Of those, the ones that did not come back in time.
    pub warm_up_lost: u32,
    /// Requests that the server received, late ones and warm-up included.
    pub served: u64,
    /// Seconds over which the counted echoes were sent.
    pub seconds: f64,
    /// Each counted echo's round trip in nanoseconds, in the order of sending;
    /// null for one that did not come back in time.
    pub round_trip_ns: Vec<Option<u32>>,
    /// What the device's rules counted; none without OpenFlow.
    pub openflow: Option<OpenFlowEvidence>,
}

/// That frames took the path that the rules say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFlowEvidence {
    /// Frames that the device sent to the controller during the test.
    pub packet_ins: u64,
    /// Frames that the rule towards the server counted.
    pub towards_server: u64,
    /// Frames that the rule towards the client counted.
    pub towards_client: u64,
}

/// One TCP stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpOutcome {
    /// What the receiver got, in bit/s of payload.
    pub bits_per_second: f64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Per cent of one core that the sender used, by iperf3.
    pub sender_cpu_percent: f64,
    /// Per cent of one core that the receiver used, by iperf3.
    pub receiver_cpu_percent: f64,
    /// What the sender sent in each second, in bit/s.
    pub each_second: Vec<f64>,
}

/// Frames offered and frames that came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateOutcome {
    /// Size of frames with their checksum (FCS).
    pub frame_bytes: u16,
    /// The rate that was to be offered, in frames a second; none for flat out.
    pub intended_pps: Option<u32>,
    /// Seconds over which frames were sent.
    pub seconds: f64,
    /// Frames that the kernel took from the generator.
    pub offered: u64,
    /// Frames that came out at the server.
    pub received: u64,
    /// Where frames were seen on their way.
    pub path: RatePath,
    /// What came of a few marked frames sent one by one before.
    pub check: PathCheck,
}

impl RateOutcome {
    /// Frames a second that were offered.
    #[must_use]
    pub fn offered_pps(&self) -> f64 {
        self.offered as f64 / self.seconds
    }

    /// Frames a second that came out.
    #[must_use]
    pub fn received_pps(&self) -> f64 {
        self.received as f64 / self.seconds
    }

    /// Frames that did not come out.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.offered.saturating_sub(self.received)
    }
}

/// A large flow table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowTableOutcome {
    /// Flows that were added.
    pub flows: u32,
    /// How many of them count as the first, and as the last.
    pub part: u32,
    /// Seconds until all were added, by the device's barrier.
    pub add_seconds: f64,
    /// Of those, the seconds for the first.
    pub first_seconds: f64,
    /// Of those, the seconds for the last.
    pub last_seconds: f64,
    /// Memory that the device's process held before, in bytes.
    pub empty_bytes: u64,
    /// Memory that it held with all flows, in bytes.
    pub full_bytes: u64,
    /// Memory that it held two seconds after all were deleted, in bytes.
    pub left_bytes: u64,
    /// Flows that the device told of, those of its own rules among them.
    pub told: u64,
    /// Bytes in which it did.
    pub told_bytes: u64,
    /// Seconds that it took.
    pub tell_seconds: f64,
    /// Echoes that another connection had meanwhile.
    pub echoes: u64,
    /// The longest that one of them took, in nanoseconds.
    pub echo_ns_max: u64,
    /// Seconds until all were deleted, by the device's barrier.
    pub delete_seconds: f64,
}

impl FlowTableOutcome {
    /// Flows a second, of all.
    #[must_use]
    pub fn rate(&self) -> f64 {
        f64::from(self.flows) / self.add_seconds
    }

    /// Flows a second, of the first.
    #[must_use]
    pub fn first_rate(&self) -> f64 {
        f64::from(self.part) / self.first_seconds
    }

    /// Flows a second, of the last.
    #[must_use]
    pub fn last_rate(&self) -> f64 {
        f64::from(self.part) / self.last_seconds
    }

    /// Bytes of memory for each flow, of a process that held `unused` bytes before it had any:
    /// one that keeps what it had for others fills that again, and does not grow.
    #[must_use]
    pub fn bytes_per_flow(&self, unused: u64) -> f64 {
        self.full_bytes.saturating_sub(unused) as f64 / f64::from(self.flows)
    }
}

/// What a meter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterUnit {
    /// Frames (`OFPMF_PKTPS`).
    Packets,
    /// Thousands of their bits (`OFPMF_KBPS`).
    Kilobits,
}

/// What a meter does to what exceeds its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterAct {
    /// It is dropped.
    Drop,
    /// Its drop precedence is raised, and the next table drops it.
    Remark,
}

impl MeterUnit {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Packets, Self::Kilobits];

    /// Its name, as in a record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Kilobits => "kilobits",
        }
    }
}

impl MeterAct {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Drop, Self::Remark];

    /// Its name, as in a record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Remark => "remark",
        }
    }
}

/// A meter, and what it let pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeterOutcome {
    /// What it counted.
    pub unit: MeterUnit,
    /// What it did to the rest.
    pub act: MeterAct,
    /// Its rate, in its unit.
    pub rate: u32,
    /// The same in frames a second.
    pub nominal_pps: u32,
    /// Size of frames with their checksum (FCS), which no device counts.
    pub frame_bytes: u16,
    /// Frames that were offered, in the seconds of warm-up too.
    pub offered: u64,
    /// Seconds over which they were.
    pub seconds: f64,
    /// What came out in each second that counts.
    pub windows: Vec<MeterWindow>,
}

/// A second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeterWindow {
    /// How long it was.
    pub seconds: f64,
    /// Frames that came out in it.
    pub passed: u64,
}

impl MeterOutcome {
    /// How far the rate of the worst second was from the meter's, as a share of that.
    #[must_use]
    pub fn worst_error(&self) -> f64 {
        let nominal = f64::from(self.nominal_pps);
        let rates = self.windows.iter();
        let rates = rates.map(|window| window.passed as f64 / window.seconds);
        let errors = rates.map(|rate| (rate / nominal - 1.0).abs());
        errors.fold(0.0, f64::max)
    }

    /// Frames a second that came out, over all seconds.
    #[must_use]
    pub fn passed_pps(&self) -> f64 {
        let passed: u64 = self.windows.iter().map(|window| window.passed).sum();
        let seconds: f64 = self.windows.iter().map(|window| window.seconds).sum();
        passed as f64 / seconds
    }
}

/// Counts along the path of a test's frames, in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RatePath {
    /// Frames that left the client.
    pub client_sent: u64,
    /// Frames that could not.
    pub client_dropped: u64,
    /// Frames that came to the device's port; none without a device.
    pub device_in: Option<u64>,
    /// Frames that matched the device's rule; none without OpenFlow.
    pub device_matched: Option<u64>,
    /// Frames that left by the device's other port; none without a device.
    pub device_out: Option<u64>,
    /// Frames that could not leave by it; none without a device.
    pub device_out_dropped: Option<u64>,
    /// Frames that came to the server.
    pub server_received: u64,
}

/// What came of marked frames, each looked at when it came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCheck {
    /// Frames sent.
    pub sent: u32,
    /// Frames that came out as they went in.
    pub intact: u32,
    /// Frames that came out changed.
    pub changed: u32,
    /// Frames that came out more than once.
    pub duplicates: u32,
}

#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;

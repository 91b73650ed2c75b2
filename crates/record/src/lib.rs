//! Records of measurements: one JSON object per line, from which every report is made; and the
//! descriptions of experiments that give the numbers their meaning.
//!
//! The first line of a run is a [`Session`] with everything that its results depend on. [`Trial`]s
//! follow, each written as soon as it is complete. A resumed run has another session. Devices and
//! experiments are named in text, so that records of unknown ones can still be read.
//!
//! ```text
//! records.jsonl      session   trial   trial   trial ...   session (--resume)   trial ...
//!                       |        |
//!                    Settings  Reading: point, figures, reasons of absent figures, samples
//!                       |        |
//! Description  ---> parameters, figures, views ---> report
//! ```
//!
//! Trials of earlier versions of the lab had a form for each experiment; [`journal`] converts them
//! to a [`Reading`] when it reads them.
//!
//! Not here: how anything is measured, and how it is shown.

mod conditions;
mod experiment;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod headline;
mod inventory;
pub mod journal;
mod legacy;
mod management;
mod names;
mod parameter;
mod path_counters;
mod point;
mod reading;
mod results;
mod round_trips;
mod settings;
mod view;

use serde::{Deserialize, Serialize};

pub use conditions::{Conditions, ProcessUse};
pub use experiment::{Better, Catalogue, Description, DisplayUnit, ExperimentName, Family, Figure};
pub use headline::{Focus, Headline, HeadlineFigure};
pub use inventory::InventoryRecord;
pub use management::{AgentRecord, InterfaceRecord, ManagementRecord};
pub use names::{UnknownName, nearest};
pub use parameter::{Bound, Parameter, Role, Values};
pub use path_counters::{FrameCounts, PathCounters};
pub use point::{Point, Value};
pub use reading::{OpenFlowEvidence, Reading, Samples};
pub use results::{ExperimentKey, Results};
pub use round_trips::RoundTrips;
pub use settings::{BadSetting, Profile, Settings};
pub use view::View;

/// Version of the record format. A reader refuses a newer one.
pub const SCHEMA: u32 = 1;

/// A line of the records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Entry {
    /// Start of the lab.
    Session(Box<Session>),
    /// Completed or failed trial.
    Trial(Box<Trial>),
}

/// Start of the lab, with everything that its results depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Start time in RFC 3339 format, in UTC.
    pub started: String,
    /// Version of the lab.
    pub lab_version: String,
    /// Command line.
    pub command_line: String,
    /// Seed of the order of trials.
    pub seed: u64,
    /// Number of times that each trial is repeated.
    pub runs: u32,
    /// Number of planned trials of the run, those of earlier sessions included.
    pub planned: u64,
    /// Values of the experiments' parameters.
    pub parameters: SessionParameters,
    /// Machine.
    pub machine: MachineRecord,
    /// Cores of the lab and of the hosts' programs.
    pub tester_cores: Vec<usize>,
    /// Cores of the devices.
    pub device_cores: Vec<usize>,
    /// Version of iperf3; `None` if the run does not use it.
    pub iperf3: Option<String>,
    /// Devices.
    pub devices: Vec<DeviceRecord>,
}

/// Values of the experiments' parameters in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionParameters {
    /// Profile, and the values that were set.
    #[serde(default)]
    pub settings: Settings,
}

/// Machine of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Kernel release.
    pub kernel: String,
    /// Processor name.
    pub processor: String,
    /// Number of usable cores.
    pub cores: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// True for a virtual machine.
    pub virtual_machine: bool,
}

/// Device, as it was set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Name.
    pub name: String,
    /// Version that the device reports.
    pub version: String,
    /// True if the device forwards by the rules of a controller.
    pub openflow: bool,
    /// True for the bare link, which is no device and calibrates the tester.
    pub calibration: bool,
    /// Offloads enabled at both hosts, by the names of `ethtool`.
    pub host_offloads: Vec<String>,
    /// Commands that set up the device.
    pub commands: Vec<String>,
    /// Inventory of an external switch, from its description file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<InventoryRecord>,
    /// Forwarding mode: `openflow` or `legacy`; absent from old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Type of the device's ports; absent from old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<String>,
}

/// Trial: one measurement of one device at one point of an experiment's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Identifier, unique in the run.
    pub id: String,
    /// Name of the experiment.
    #[serde(rename = "scenario")]
    pub experiment: ExperimentName,
    /// Name of the device.
    pub device: String,
    /// Number of the repetition, from 1.
    pub run: u32,
    /// Position in the plan, from 0.
    pub order: usize,
    /// Start time in RFC 3339 format, in UTC.
    pub started: String,
    /// Duration with setup and teardown, in seconds.
    pub seconds: f64,
    /// Flaws of the trial; usually none.
    pub flaws: Vec<Flaw>,
    /// Conditions of the machine and the device; `None` if the trial failed.
    pub conditions: Option<Conditions>,
    /// Results; `None` if the trial failed.
    #[serde(rename = "outcome", with = "outcome")]
    pub reading: Option<Reading>,
}

impl Trial {
    /// Returns true if the results count.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.reading.is_some() && !self.flaws.iter().any(|flaw| flaw.void)
    }
}

/// Remark about a trial that a reader should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaw {
    /// True if the results of the trial do not count.
    pub void: bool,
    /// Reason, in words.
    pub reason: String,
}

/// The form of a reading in a record: an object with one member.
mod outcome {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Reading;

    #[derive(Serialize)]
    struct SerializedReading<'a> {
        reading: &'a Reading,
    }

    #[derive(Deserialize)]
    struct DeserializedReading {
        reading: Reading,
    }

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        reading: &Option<Reading>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written = reading
            .as_ref()
            .map(|reading| SerializedReading { reading });
        written.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Reading>, D::Error> {
        let read = Option::<DeserializedReading>::deserialize(deserializer)?;
        Ok(read.map(|read| read.reading))
    }
}

#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;

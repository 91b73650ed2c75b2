//! The lab: it offers load to devices that forward frames, this switch and others, and reports
//! their behaviour.
//!
//! A run measures all its devices in turn, appends a record of each trial as soon as it is
//! complete, and ends with a report that is a function of the records alone. The experiments are
//! those of published evaluations of OpenFlow switches, of OFLOPS and of RFC 2544, so that their
//! results are comparable.
//!
//! The lab is an instrument: it shares nothing with the switch that it measures but the language
//! of flows and the protocol.

mod calendar;
pub mod catalogue;
mod cores;
pub mod describe;
pub mod devices;
mod failure;
mod frame_echo;
mod frames;
mod generator;
pub mod instrument;
pub mod management;
mod names;
mod options;
mod plan;
mod probe;
pub mod progress;
mod quiesce;
mod rules;
mod run;
mod setup;
mod tools;
mod trial;

pub use catalogue::{CATALOGUE, Experiment};
pub use failure::{BadOption, LabError};
pub use names::{ExperimentId, Selection};
pub use openflow::VersionSet;
pub use options::RunOptions;
pub use plan::{PlannedTrial, plan};
pub use probe::Prober;
pub use progress::Progress;
pub use rules::MatchSet;
pub use run::{Summary, run, write_report};
pub use testbed::{Clock, DeviceKind, INTERRUPTED, Interrupt, UnknownDevice};

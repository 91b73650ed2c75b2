//! The lab: it offers load to devices that forward frames, ours and anybody's, and
//! reports what comes of it.
//!
//! A run tests all its devices in turns, appends a record of each test as it is
//! done, and ends with a report that is a function of those records alone. The
//! experiments are those of published evaluations of OpenFlow switches, so that
//! their figures can stand beside.
//!
//! The lab is an instrument: it shares nothing with the switch that it measures
//! but the language of flows and the protocol.

pub mod by_hand;
mod calendar;
pub mod catalogue;
mod cores;
pub mod describe;
pub mod devices;
mod failure;
mod frame_echo;
mod frames;
mod generator;
pub mod management;
mod names;
mod options;
mod plan;
mod probe;
pub mod progress;
mod rest;
mod rules;
mod run;
mod scenario;
mod station;
mod trial;

pub use catalogue::{CATALOGUE, Catalogued, Experiment};
pub use failure::LabError;
pub use names::{Asked, Scenario};
pub use openflow::VersionSet;
pub use options::Options;
pub use plan::{MeterTest, Offer, Step, Test, plan};
pub use progress::Progress;
pub use run::{Summary, run, write_report};
pub use testbed::{Clock, DeviceKind, INTERRUPTED, Interrupt, UnknownDevice};

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

mod analysis;
pub mod by_hand;
mod calendar;
pub mod catalogue;
pub mod compare;
mod cores;
pub mod describe;
pub mod devices;
pub mod export;
mod failure;
pub mod figures;
#[cfg(test)]
mod fixture;
mod format;
mod frame_echo;
mod frames;
mod generator;
pub mod journal;
pub mod management;
mod names;
mod options;
mod plan;
mod probe;
pub mod progress;
mod published;
pub mod record;
pub mod report;
mod rest;
mod results;
mod rules;
mod run;
mod scenario;
mod station;
mod summary;
pub mod threshold;
mod trial;

pub use catalogue::{Catalogued, Experiment, Family, Point, Profile, Settings};
pub use failure::LabError;
pub use names::{Asked, MatchSet, Prober, Scenario, UnknownName};
pub use openflow::VersionSet;
pub use options::{
    BadOption, ChangeParameters, EchoParameters, FlowTableParameters, MeterParameters, Options,
    Parameters, RateParameters, TcpParameters,
};
pub use plan::{ChangeTest, MeterTest, Offer, Step, Test, plan};
pub use progress::Progress;
pub use published::{
    MatchTypes, MatchTypesRow, Published, PublishedCurve, PublishedCurves, PublishedDevice,
    PublishedResult, PublishedResults, PublishedRow, PublishedSpan, PublishedTable, Range,
    TcpThroughput, TcpThroughputRow, published,
};
pub use report::Language;
pub use results::Results;
pub use run::{Summary, run, write_report};
pub use testbed::{Clock, DeviceKind, INTERRUPTED, Interrupt, UnknownDevice};

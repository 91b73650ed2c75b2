//! Control-plane experiments, after the modules of OFLOPS and its successors: the speed of a
//! device's flow table, and the truth of its barrier replies.
//!
//! One tester measures three times of each change with one clock: the write of its message to the
//! socket, the barrier reply, and the arrival of the first frame that shows the change. Each
//! experiment is written against a [`rig::ControlRig`], a switch under control with hosts at its ports, so
//! that tests can use a simulated switch with known faults.

pub(super) mod add_flow;
pub(super) mod barrier_truth;
mod changes;
pub(super) mod churn;
pub(super) mod consistency;
pub(super) mod control_echo;
mod figures;
pub(super) mod flow_table;
mod flows;
pub(super) mod interaction;
pub(super) mod packet_in;
pub(super) mod packet_out;
mod poll;
pub(super) mod port_stats;
pub(super) mod port_status;
pub(super) mod reactive;
pub(super) mod rig;
#[cfg(test)]
mod simulated;
pub(super) mod statistics;
pub(super) mod timers;
mod traffic;
pub(super) mod tuple_matrix;
pub(super) mod under_traffic;
pub(super) mod update_rate;

use openflow::Version;
use testbed::DeviceKind;

use crate::catalogue::prelude::*;
use crate::cores::run_on;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;
use rig::{ControlRig, LiveSwitch};

/// The version of OpenFlow.
const VERSION: Parameter = Parameter::axis(
    "version",
    "version of OpenFlow",
    Values::words(&["1.3"], &["1.0", "1.3"]),
);

/// Rate of the frames that sample the state of the rules.
const PPS: Parameter = Parameter::constant(
    "pps",
    "frames per second",
    Values::numbers(&[50_000], &[50_000], &[50_000], [100, 1_000_000]),
);

fn version(point: &Point) -> Version {
    match point.word("version") {
        "1.0" => Version::V10,
        _ => Version::V13,
    }
}

/// Returns true for devices that support OpenFlow.
const fn takes(device: DeviceKind, _: &Point) -> bool {
    device.speaks_openflow()
}

/// Result of an experiment: its figures, and reasons to doubt them.
#[derive(Debug, Default)]
struct TrialReport {
    reading: Reading,
    void: Vec<String>,
    notes: Vec<String>,
}

impl TrialReport {
    fn at(point: &Point) -> Self {
        Self {
            reading: Reading::at(point),
            ..Self::default()
        }
    }
}

/// Runs an experiment on the device of a test setup, and deletes all rules afterwards.
fn on_device(
    point: &Point,
    setup: &TestSetup,
    tools: &Tools<'_>,
    experiment: fn(&Point, &mut dyn ControlRig) -> Result<TrialReport, TrialError>,
) -> Result<TrialResult, TrialError> {
    on_rig(version(point), setup, tools, |live| experiment(point, live))
}

/// Runs an experiment as [`on_device`] does, with access to the live device.
fn on_rig<'a>(
    version: Version,
    setup: &TestSetup,
    tools: &Tools<'a>,
    experiment: impl FnOnce(&mut LiveSwitch<'a>) -> Result<TrialReport, TrialError> + Send,
) -> Result<TrialResult, TrialError> {
    let mut live = LiveSwitch::open(setup, version, tools)?;
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let report = run_on(tools.cores.first(), || {
        let report = experiment(&mut live);
        let cleared = live.clear();
        let report = report?;
        cleared.map(|()| report)
    })?;
    let conditions = watch.end(&setup.bench)?;
    let mut measured = TrialResult::new(report.reading, conditions);
    measured.note_pressure();
    report.void.into_iter().for_each(|why| measured.void(why));
    report.notes.into_iter().for_each(|why| measured.note(why));
    Ok(measured)
}

//! The control plane, after the modules of OFLOPS and its successors: how soon a device does
//! what it is told, and whether that is when it says so.
//!
//! Three clocks of one tester tell of each change: when its message was handed to the system,
//! when the barrier behind it was answered, and when the first frame met it. Each experiment
//! is written against a [`rig::Rig`], a switch under control with hosts at its ports, so that
//! one with known faults can stand in its place.

pub(super) mod add_flow;
pub(super) mod barrier_truth;
mod changes;
pub(super) mod churn;
pub(super) mod consistency;
pub(super) mod control_echo;
mod figures;
mod flows;
pub(super) mod interaction;
pub(super) mod packet_in;
pub(super) mod packet_out;
mod poll;
pub(super) mod port_stats;
pub(super) mod port_status;
pub(super) mod reactive;
mod rig;
#[cfg(test)]
mod simulated;
pub(super) mod statistics;
pub(super) mod timers;
mod traffic;
pub(super) mod tuple_matrix;
pub(super) mod update_rate;

use std::thread;

use openflow::Version;
use record::{Outcome, Reading};
use testbed::DeviceKind;

use super::{Bound, Parameter, Point, Values};
use crate::cores::Watch;
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};
use rig::{Live, Rig};

/// The version that is spoken.
const VERSION: Parameter = Parameter::axis(
    "version",
    "the version of OpenFlow that is spoken",
    Values::Words {
        quick: &["1.3"],
        all: &["1.0", "1.3"],
    },
);

/// How often frames come that tell what rules do.
const PPS: Parameter = Parameter::constant(
    "pps",
    "frames a second that look for changes",
    Values::Numbers {
        quick: &[50_000],
        paper: &[50_000],
        rfc: &[50_000],
        bound: Bound {
            least: 100,
            most: 1_000_000,
        },
    },
);

fn version(point: &Point) -> Version {
    match point.word("version") {
        "1.0" => Version::V10,
        _ => Version::V13,
    }
}

/// Whether a device can take part.
const fn takes(device: DeviceKind, _: &Point) -> bool {
    device.speaks_openflow()
}

/// What an experiment came to: its figures, and what is to be said against them.
#[derive(Debug, Default)]
struct Found {
    reading: Reading,
    void: Vec<String>,
    notes: Vec<String>,
}

impl Found {
    fn at(point: &Point) -> Self {
        Self {
            reading: Reading::at(point),
            ..Self::default()
        }
    }
}

/// Does an experiment on the device of a station, by a thread that never sleeps, and leaves
/// the device without rules.
fn on_device(
    point: &Point,
    station: &Station,
    tools: &Tools<'_>,
    experiment: fn(&Point, &mut dyn Rig) -> Result<Found, TrialError>,
) -> Result<Measured, TrialError> {
    on_rig(point, station, tools, |live| experiment(point, live))
}

/// The same of an experiment that wants more of the device than a rig has.
fn on_rig<'a>(
    point: &Point,
    station: &Station,
    tools: &Tools<'a>,
    experiment: impl FnOnce(&mut Live<'a>) -> Result<Found, TrialError> + Send,
) -> Result<Measured, TrialError> {
    let mut live = Live::open(station, version(point), tools)?;
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let found = thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            let cores = &tools.cores.tester;
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            let found = experiment(&mut live);
            // What was added goes, whatever came of it.
            let cleared = live.clear();
            let found = found?;
            cleared.map(|()| found)
        });
        measuring
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let conditions = watch.end(&station.bench)?;
    let mut measured = Measured::new(Outcome::Reading(found.reading), conditions);
    measured.note_pressure();
    found.void.into_iter().for_each(|why| measured.void(why));
    found.notes.into_iter().for_each(|why| measured.note(why));
    Ok(measured)
}

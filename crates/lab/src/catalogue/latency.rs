//! Experiments of OFLOPS with NetFPGA: latency and frame loss by size and by load, and the latency
//! of actions.

pub(super) mod action;
pub(super) mod load;
pub(super) mod size;
#[cfg(test)]
mod tests;

use std::time::Duration;

use trafficgen::Pace;

use super::offered::Load;
use super::plane::Plane;
use crate::catalogue::prelude::*;
use crate::trial::{TrialError, TrialResult};

/// Duration of the load.
const MILLIS: Parameter = Parameter::constant(
    "millis",
    "duration of the load in milliseconds",
    Values::numbers(&[400], &[3_000], &[60_000], [50, 3_600_000]),
);

/// Measures frames of the point's size at the point's rate.
fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let pace = Pace::Constant(line(point.number("mbit")));
    let load = Load::udp(point.number("size"), pace, length(point));
    let offered = plane.offer(&load)?;
    let reading = offered.reading(point);
    Ok(offered.measured(reading))
}

fn length(point: &Point) -> Duration {
    Duration::from_millis(point.number("millis"))
}

fn seconds(point: &Point) -> f64 {
    0.4 + length(point).as_secs_f64()
}

/// Returns a line rate from megabits per second.
const fn line(megabits: u64) -> trafficgen::Rate {
    trafficgen::Rate::Line(megabits * 1_000_000)
}

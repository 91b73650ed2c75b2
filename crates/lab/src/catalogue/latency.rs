//! The experiments of OFLOPS with NetFPGA: latency and frame loss by size and by load, and what
//! an action costs.

pub(super) mod action;
pub(super) mod load;
pub(super) mod size;

use std::time::Duration;

use super::{Bound, Parameter, Point, Values};

/// How long frames are offered.
const MILLIS: Parameter = Parameter::constant(
    "millis",
    "milliseconds for which frames are offered",
    Values::Numbers {
        quick: &[400],
        paper: &[3_000],
        rfc: &[60_000],
        bound: Bound {
            least: 50,
            most: 3_600_000,
        },
    },
);

fn length(point: &Point) -> Duration {
    Duration::from_millis(point.number("millis"))
}

fn seconds(point: &Point) -> f64 {
    0.4 + length(point).as_secs_f64()
}

/// Megabits a second of a line, as bits.
const fn line(megabits: u64) -> crate::instrument::Rate {
    crate::instrument::Rate::Line(megabits * 1_000_000)
}

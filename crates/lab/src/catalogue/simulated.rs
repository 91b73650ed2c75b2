//! Simulated device for the tests of experiments, on simulated time. An experiment must report the
//! configured speed and faults.
//!
//! The experiments' traits (`ControlRig`, `Plane`, `Offer`, `Wire`) are implemented on top of it.

mod actions;
mod function;
mod learning;
mod lines;
mod plane;
mod results;
mod rules;
mod switch;

use std::time::Duration;

pub(super) use function::{DeviceFunction, matched_rule, offer, offer_both};
pub(super) use learning::{LearningFaults, learning_switch};
pub(super) use lines::{SimulatedLines, dead_for};
pub(super) use plane::{Faults, SimulatedPlane};
pub(super) use results::*;
pub(super) use switch::{PortReports, SimulatedSwitch, SwitchFaults, TICK};

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}

//! Simulated device for the tests of experiments, on simulated time. An experiment must report the
//! configured speed and faults.
//!
//! The experiments' traits (`ControlRig`, `Plane`, `Offer`, `Wire`) are implemented on top of it.

mod actions;
mod function;
mod learning;
mod lines;
mod results;
mod rules;

pub(super) use actions::execute;
pub(super) use function::{DeviceFunction, matched_rule, offer, offer_both};
pub(super) use learning::{LearningFaults, learning_switch};
pub(super) use lines::{SimulatedLines, dead_for};
pub(super) use results::*;
pub(super) use rules::RuleTable;

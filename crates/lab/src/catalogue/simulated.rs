//! Simulated device for the tests of experiments, on simulated time. An experiment must report the
//! configured speed and faults.
//!
//! The experiments' traits (`ControlRig`, `Plane`, `Offer`, `Wire`) are implemented on top of it.

mod actions;
mod results;
mod rules;

pub(super) use actions::execute;
pub(super) use results::*;
pub(super) use rules::{RuleTable, best_match, fill_key};

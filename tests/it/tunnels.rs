//! Tunnels.

mod dummy_ports;
mod encapsulation;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[dummy_ports::TESTS, encapsulation::TESTS];

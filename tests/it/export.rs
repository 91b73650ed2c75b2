//! Flow export: sFlow, NetFlow and IPFIX.

pub(crate) mod collector;
mod netflow;
mod sample_action;
mod sflow_ipfix;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] =
    &[netflow::TESTS, sample_action::TESTS, sflow_ipfix::TESTS];

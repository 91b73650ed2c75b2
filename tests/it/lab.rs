//! The lab: experiments, devices under test, traffic generator and report.

mod controller;
mod devices;
mod experiments;
mod failures;
mod report;
mod traffic_generator;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    controller::TESTS,
    devices::TESTS,
    experiments::TESTS,
    failures::TESTS,
    report::TESTS,
    traffic_generator::TESTS,
];

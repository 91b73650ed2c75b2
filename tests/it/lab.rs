//! The lab: experiments, devices under test, traffic generator and report.

mod controller;
mod devices;
mod experiments;
mod failures;
mod report;
mod stateful;
mod traffic_generator;

use std::time::Duration;

use testbed::{Failure, Program};

use crate::support::command::{CommandOutput, comporta_program};
use crate::support::context::{SystemTest, TestContext};

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    controller::TESTS,
    devices::TESTS,
    experiments::TESTS,
    failures::TESTS,
    report::TESTS,
    stateful::TESTS,
    traffic_generator::TESTS,
];

/// The program `comporta lab` with these arguments.
fn lab_program(words: &str) -> Program<'static> {
    comporta_program().arg("lab").args(words.split_whitespace())
}

/// Runs `comporta lab`, which must succeed within `limit`, and returns its standard output.
fn run_lab(context: &TestContext, limit: Duration, words: &str) -> Result<String, Failure> {
    CommandOutput::run_within(limit, context, lab_program(words))?.expect_success()
}

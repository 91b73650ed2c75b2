//! Runs the conformance suites of other projects, and our cases on running switches.
//!
//! Installs the dependencies, and builds the switch and the package `suites`, which does the rest.

use std::process::{Command, ExitCode};

use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup, shared_build};

/// The suites of `cargo xtask test`: all but the os-ken cases that send for half a minute each,
/// which take longer than the others together.
pub(crate) const QUICK: [&str; 7] = [
    CASES,
    "of14/action",
    "of14/match",
    "of13/action",
    "of13/match",
    "of10/action",
    "of10/match",
];

/// The name of our own cases.
const CASES: &str = "cases";

/// The switches that our cases run on.
const SWITCHES: [&str; 2] = ["comporta", "open-vswitch"];

/// Installs missing packages and runs the suites with `options`.
pub(crate) fn run(shell: &mut Shell, options: &[&str]) -> Result<ExitCode, TaskError> {
    setup::run(shell)?;
    Ok(match conform(shell, options)? {
        ProgramOutcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Builds everything and runs the suites with `options`, in parallel: they mostly wait.
pub(crate) fn conform(shell: &mut Shell, options: &[&str]) -> Result<ProgramOutcome, TaskError> {
    if let Err(outcome) = shared_build::build(shell)? {
        return Ok(outcome);
    }
    let (cases, others): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|option| **option == CASES);
    let mut suites = Vec::new();
    if options.is_empty() || !cases.is_empty() {
        suites.extend(SWITCHES.map(|switch| {
            let mut replay = Command::new("target/debug/replay");
            replay.args(["--on", switch]);
            replay
        }));
    }
    if options.is_empty() || !others.is_empty() {
        let mut of_others = Command::new("target/debug/suites");
        of_others.args(others);
        suites.push(of_others);
    }
    shell.run_together(&mut suites)
}

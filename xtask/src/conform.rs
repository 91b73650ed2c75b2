//! Runs the conformance suites of other projects, and our cases on running switches.
//!
//! Installs the dependencies, and builds the switch and the package `suites`, which does the rest.

use std::process::{Command, ExitCode};

use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup, shared_build};

/// The suites of `cargo xtask test`: all but the os-ken cases that send for half a minute each,
/// which take longer than the others together, and a third of Open vSwitch's groups.
pub(crate) const QUICK: [&str; 8] = [
    CASES,
    AUTOTEST_THIRD,
    "of14/action",
    "of14/match",
    "of13/action",
    "of13/match",
    "of10/action",
    "of10/match",
];

/// The name of our own cases.
const CASES: &str = "cases";

/// Open vSwitch's autotest suite with our daemon: all groups, and every third of the quick ones.
const AUTOTEST: &str = "autotest";
const AUTOTEST_THIRD: &str = "autotest/3";

/// The document with the score of a complete run.
const DOCUMENT: &str = "docs/conformance.md";

/// The switches that our cases run on.
const SWITCHES: [&str; 2] = ["comporta", "open-vswitch"];

/// Installs missing packages and runs the suites with `options`.
pub(crate) fn run(shell: &mut Shell, options: &[&str]) -> Result<ExitCode, TaskError> {
    setup::run(shell)?;
    setup::autotest(shell)?;
    Ok(match conform(shell, options)? {
        ProgramOutcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Builds the daemon and runs Open vSwitch's autotest suite with it: all groups, or those that
/// `options` name.
pub(crate) fn autotest(shell: &mut Shell, options: &[&str]) -> Result<ExitCode, TaskError> {
    setup::run(shell)?;
    setup::autotest(shell)?;
    let outcome = match shared_build::build(shell)? {
        Ok(_) => shell.run(&mut autotest_command(options))?,
        Err(outcome) => outcome,
    };
    Ok(match outcome {
        ProgramOutcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Returns the command of the autotest suite. A complete run writes the score.
fn autotest_command(options: &[&str]) -> Command {
    let mut command = Command::new("target/debug/autotest");
    match options {
        [] => command.args(["--document", DOCUMENT]),
        options => command.args(options),
    };
    command
}

/// Builds everything and runs the suites with `options`, in parallel: they mostly wait.
pub(crate) fn conform(shell: &mut Shell, options: &[&str]) -> Result<ProgramOutcome, TaskError> {
    if let Err(outcome) = shared_build::build(shell)? {
        return Ok(outcome);
    }
    let (ours, others): (Vec<&str>, Vec<&str>) = options
        .iter()
        .partition(|option| [CASES, AUTOTEST, AUTOTEST_THIRD].contains(*option));
    let mut suites = Vec::new();
    if options.is_empty() || ours.contains(&AUTOTEST) {
        suites.push(autotest_command(&[]));
    } else if ours.contains(&AUTOTEST_THIRD) {
        suites.push(autotest_command(&["--every", "3"]));
    }
    if options.is_empty() || ours.contains(&CASES) {
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

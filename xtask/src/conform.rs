//! The conformance suites that others wrote, and our cases on switches that run: what they
//! need is installed, the switch and the package `suites` are built, and that does the
//! rest.

use std::process::{Command, ExitCode};

use crate::metadata::cargo;
use crate::shell::{Outcome, Shell};
use crate::{Failure, setup};

/// What `cargo xtask test` runs of the suites: all but the cases that send for half
/// a minute each, which take longer than all the others together.
pub(crate) const QUICK: [&str; 7] = [
    CASES,
    "of14/action",
    "of14/match",
    "of13/action",
    "of13/match",
    "of10/action",
    "of10/match",
];

/// Our own cases, played on switches that run.
const CASES: &str = "cases";

/// Those.
const SWITCHES: [&str; 2] = ["comporta", "open-vswitch"];

/// Installs what is missing and runs the suites with these options.
pub(crate) fn run(shell: &mut Shell, options: &[&str]) -> Result<ExitCode, Failure> {
    setup::run(shell)?;
    Ok(match conform(shell, options)? {
        Outcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Builds and runs the suites with these options, side by side: they mostly wait.
pub(crate) fn conform(shell: &mut Shell, options: &[&str]) -> Result<Outcome, Failure> {
    let mut build = Command::new(cargo());
    build.args(["build", "--package", "cli", "--package", "suites"]);
    let built = shell.run(&mut build)?;
    if built != Outcome::Success {
        return Ok(built);
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

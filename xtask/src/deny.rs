//! Dependencies of the workspace against `deny.toml`: licences, sources and bans; with `--advisories` also known
//! vulnerabilities, whose database is fetched from the network.

use std::process::ExitCode;

use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup};

/// The checks that need no network.
const OFFLINE: [&str; 3] = ["bans", "licenses", "sources"];

/// Runs cargo-deny as `words` say.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, TaskError> {
    let outcome = match words {
        [] => check(shell, &OFFLINE)?,
        ["--advisories"] => check(shell, &["advisories"])?,
        [word, ..] => return Err(format!("unknown option `{word}`").into()),
    };
    Ok(match outcome {
        ProgramOutcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Runs the checks that need no network.
pub(crate) fn check_offline(shell: &mut Shell) -> Result<ProgramOutcome, TaskError> {
    check(shell, &OFFLINE)
}

fn check(shell: &mut Shell, checks: &[&str]) -> Result<ProgramOutcome, TaskError> {
    setup::deny(shell)?;
    let root = shell.root().to_owned();
    let mut command = setup::cargo_deny(&root);
    command
        .args(["check", "--hide-inclusion-graph"])
        .args(checks);
    shell.run(&mut command)
}

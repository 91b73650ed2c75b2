//! Dependencies against `deny.toml`: licences, sources and bans; with `--advisories` also known
//! vulnerabilities, whose database is fetched from the network.

use std::process::ExitCode;

use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup};

/// The checks that need no network.
const OFFLINE: [&str; 3] = ["bans", "licenses", "sources"];

/// The manifests: the workspace, and that of the fuzz targets.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

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
    for manifest in MANIFESTS {
        let mut command = setup::cargo_deny(&root);
        command
            .args(["--manifest-path", manifest])
            .args(["check", "--config", "deny.toml", "--hide-inclusion-graph"])
            .args(checks);
        match shell.run(&mut command)? {
            ProgramOutcome::Success => {}
            outcome => return Ok(outcome),
        }
    }
    Ok(ProgramOutcome::Success)
}

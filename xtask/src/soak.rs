//! Random changes of a database under traffic, many: the system test that makes a few in each
//! run of the tests, told to make more.

use std::process::{Command, ExitCode};

use crate::metadata::cargo;
use crate::shell::{Outcome, Shell};
use crate::{Failure, setup};

/// Changes, where nobody says otherwise.
const CHANGES: u32 = 10_000;

/// Seconds that each may take, on a machine that does other things as well; and those that the
/// beginning and the end take.
const SECONDS_OF_CHANGE: f64 = 0.25;
const SECONDS: f64 = 240.0;

/// The test.
const TEST: &str = "ovsdb::random_changes::";

/// What is asked for.
#[derive(Debug, PartialEq)]
struct Plan {
    changes: u32,
    seed: u64,
}

impl Plan {
    fn of(words: &[&str]) -> Result<Self, Failure> {
        let mut plan = Self {
            changes: CHANGES,
            seed: 1,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let number: Option<u64> = words.next().and_then(|number| number.parse().ok());
            let number = number.filter(|number| *number > 0);
            match (word, number) {
                ("--changes", Some(number)) => plan.changes = u32::try_from(number)?,
                ("--seed", Some(number)) => plan.seed = number,
                ("--changes" | "--seed", None) => {
                    return Err(format!("{word} takes a number, one at least").into());
                }
                _ => return Err(format!("unknown option `{word}`").into()),
            }
        }
        Ok(plan)
    }
}

/// Builds what is changed and what changes it, and has it done.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, Failure> {
    let plan = Plan::of(words)?;
    setup::run(shell)?;
    let mut build = Command::new(cargo());
    build.args(["build", "--package", "cli"]);
    if shell.run(&mut build)? != Outcome::Success {
        return Ok(ExitCode::FAILURE);
    }
    let limit = SECONDS + SECONDS_OF_CHANGE * f64::from(plan.changes);
    let mut test = Command::new(cargo());
    test.args(["test", "--package", "tests", "--test", "it", TEST])
        .env("COMPORTA_CHANGES", plan.changes.to_string())
        .env("COMPORTA_SEED", plan.seed.to_string())
        .env("COMPORTA_LIMIT", limit.ceil().to_string());
    Ok(match shell.run(&mut test)? {
        Outcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read() {
        let plan = |changes, seed| Plan { changes, seed };
        assert_eq!(Plan::of(&[]).ok(), Some(plan(CHANGES, 1)));
        let words = ["--seed", "7", "--changes", "50"];
        assert_eq!(Plan::of(&words).ok(), Some(plan(50, 7)));
        for wrong in [&["--seed"][..], &["--changes", "0"], &["--forever", "1"]] {
            assert!(Plan::of(wrong).is_err(), "{wrong:?}");
        }
    }
}

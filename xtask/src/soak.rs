//! Random database changes under traffic: runs the system test that makes a few of them, with more.

use std::process::ExitCode;

use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup, shared_build};

/// Number of changes by default.
const CHANGES: u32 = 10_000;

/// Time limits in seconds: for one change on a busy machine, and for start and end.
const SECONDS_OF_CHANGE: f64 = 0.25;
const SECONDS: f64 = 240.0;

/// The package of the test, and the test.
const PACKAGE: &str = "tests";
const TEST: &str = "ovsdb::random_changes::";

/// Number of changes, and the seed.
#[derive(Debug, PartialEq)]
struct SoakPlan {
    changes: u32,
    seed: u64,
}

impl SoakPlan {
    fn of(words: &[&str]) -> Result<Self, TaskError> {
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

/// Builds the switch and the test, and runs the test.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, TaskError> {
    let plan = SoakPlan::of(words)?;
    setup::run(shell)?;
    let Ok(programs) = shared_build::build(shell)? else {
        return Ok(ExitCode::FAILURE);
    };
    let program = programs.iter().find(|program| program.package == PACKAGE);
    let mut test = program.ok_or("the build has no system tests")?.command();
    let limit = SECONDS + SECONDS_OF_CHANGE * f64::from(plan.changes);
    test.arg(TEST)
        .env("COMPORTA_CHANGES", plan.changes.to_string())
        .env("COMPORTA_SEED", plan.seed.to_string())
        .env("COMPORTA_LIMIT", limit.ceil().to_string());
    Ok(match shell.run(&mut test)? {
        ProgramOutcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soak_options_are_parsed() {
        let plan = |changes, seed| SoakPlan { changes, seed };
        assert_eq!(SoakPlan::of(&[]).ok(), Some(plan(CHANGES, 1)));
        let words = ["--seed", "7", "--changes", "50"];
        assert_eq!(SoakPlan::of(&words).ok(), Some(plan(50, 7)));
        for wrong in [&["--seed"][..], &["--changes", "0"], &["--forever", "1"]] {
            assert!(SoakPlan::of(wrong).is_err(), "{wrong:?}");
        }
    }
}

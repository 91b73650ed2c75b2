//! Long runs of system tests that are short otherwise: random database changes under traffic, and with
//! `--hostile` peers, ends and panics at their worst.

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

/// The hostile tests: that of peers and panics, and floods against a bond and a spanning tree.
const HOSTILE: [&str; 3] = [
    "daemon::hostile::",
    "l2::bonds::bond_stays_up_under_a_flood_of_addresses_and_rules",
    "l2::spanning_tree::spanning_tree_keeps_its_roles_under_a_flood_of_addresses_and_bpdus",
];

/// Minutes of a hostile run by default, its peers, the time of a flood in seconds, and the limit of
/// a barrier's time in milliseconds.
const MINUTES: u32 = 10;
const PEERS: u32 = 2048;
const FLOOD_SECONDS: u32 = 60;
const BARRIER_MS: u32 = 100;

/// Minutes of a hostile run; none if `words` are not about one.
fn hostile_minutes(words: &[&str]) -> Result<Option<u32>, TaskError> {
    let minutes = match words {
        ["--hostile"] => MINUTES,
        ["--hostile", "--minutes", number] => number.parse().unwrap_or(0),
        ["--hostile", ..] => 0,
        _ => return Ok(None),
    };
    match minutes {
        0 => Err("soak --hostile takes --minutes and a number, one at least".into()),
        minutes => Ok(Some(minutes)),
    }
}

/// Runs the hostile tests one after the other.
fn run_hostile(shell: &mut Shell, minutes: u32) -> Result<ExitCode, TaskError> {
    setup::run(shell)?;
    let Ok(programs) = shared_build::build(shell)? else {
        return Ok(ExitCode::FAILURE);
    };
    let program = programs.iter().find(|program| program.package == PACKAGE);
    let mut test = program.ok_or("the build has no system tests")?.command();
    let limit = SECONDS + 2.0 * 60.0 * f64::from(minutes);
    test.arg(HOSTILE.join("|"))
        .args(["--test-threads", "1", "--nocapture"])
        .env("COMPORTA_HOSTILE_SECONDS", (60 * minutes).to_string())
        .env("COMPORTA_HOSTILE_PEERS", PEERS.to_string())
        .env("COMPORTA_HOSTILE_BARRIER_MS", BARRIER_MS.to_string())
        .env("COMPORTA_FLOOD_SECONDS", FLOOD_SECONDS.to_string())
        .env("COMPORTA_LIMIT", limit.ceil().to_string());
    Ok(match shell.run(&mut test)? {
        ProgramOutcome::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

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
    if let Some(minutes) = hostile_minutes(words)? {
        return run_hostile(shell, minutes);
    }
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
    fn hostile_run_takes_minutes() {
        assert_eq!(hostile_minutes(&["--hostile"]).ok(), Some(Some(MINUTES)));
        let words = ["--hostile", "--minutes", "2"];
        assert_eq!(hostile_minutes(&words).ok(), Some(Some(2)));
        assert_eq!(hostile_minutes(&["--seed", "1"]).ok(), Some(None));
        for wrong in [&["--hostile", "--minutes", "0"][..], &["--hostile", "2"]] {
            assert!(hostile_minutes(wrong).is_err(), "{wrong:?}");
        }
    }

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

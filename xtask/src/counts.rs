//! Instruction counts of hot code: runs the package `counts` and compares with a baseline in the
//! tree.
//!
//! Instruction counts are not times. The same code has the same count with the same compiler, C library and
//! processor features, on a busy machine as well. The tolerance covers changes of inlining that are
//! caused elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::metadata::cargo;
use crate::setup::{self, RUNNER};
use crate::shell::{ProgramOutcome, Shell};
use crate::summary::TestTally;
use crate::{TaskError, test};

/// The baseline, from the project's root: one line for each bench, with its name and count.
const BASELINE: &str = "counts/baseline.txt";

/// Increase over the baseline that is tolerated, in per cent, ...
const TOLERANCE_PERCENT: u64 = 5;

/// ... and in instructions: in a bench of a few hundred, one call that is no longer inlined exceeds
/// the percentage.
const TOLERANCE_LEAST: u64 = 32;

/// Instructions by bench: group, function and case.
type InstructionCounts = BTreeMap<String, u64>;

/// Installs missing packages, counts, and reports changes; with `--bless` writes the baseline.
pub(crate) fn run(shell: &mut Shell, options: &[&str]) -> Result<ExitCode, TaskError> {
    let tally = match options {
        [] => check(shell)?,
        ["--bless"] => bless(shell)?,
        _ => return Err("`counts` takes nothing but --bless".into()),
    };
    for failure in &tally.failures {
        println!("failed: {failure}");
    }
    Ok(match tally.counts.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// InstructionCounts, and compares with the baseline.
pub(crate) fn check(shell: &mut Shell) -> Result<TestTally, TaskError> {
    setup::counting(shell)?;
    let measured = match measure(shell)? {
        Ok(measured) => measured,
        Err(outcome) => return Ok(TestTally::failed("counts", &test::explain(&outcome))),
    };
    let text = fs::read_to_string(shell.root().join(BASELINE))
        .map_err(|error| format!("{BASELINE}: {error}"))?;
    let compiler = compiler()?;
    if !text.lines().any(|line| line == made_by(&compiler)) {
        println!("{BASELINE} was made by another compiler than {compiler}");
    }
    Ok(compare(&parse(&text)?, &measured))
}

/// InstructionCounts, and writes the baseline.
fn bless(shell: &mut Shell) -> Result<TestTally, TaskError> {
    setup::counting(shell)?;
    let measured = match measure(shell)? {
        Ok(measured) => measured,
        Err(outcome) => return Ok(TestTally::failed("counts", &test::explain(&outcome))),
    };
    let text = written(&measured, &compiler()?);
    fs::write(shell.root().join(BASELINE), text).map_err(|error| format!("{BASELINE}: {error}"))?;
    println!("{BASELINE} has {} counts now", measured.len());
    Ok(TestTally::passed())
}

/// Builds the benches and runs each in its own process.
fn measure(shell: &mut Shell) -> Result<Result<InstructionCounts, ProgramOutcome>, TaskError> {
    let mut command = Command::new(cargo());
    command
        .args(["bench", "--package", "counts", "--"])
        // The counts exclude caches, so callgrind need not simulate them.
        .args(["--output-format=json", "--callgrind-args=--cache-sim=no"])
        .arg(format!("--parallel={PARALLEL}"))
        .env("GUNGRAUN_RUNNER", shell.root().join(RUNNER));
    let mut lines = Vec::new();
    let outcome = shell.run_taken(&mut command, &mut |line| lines.push(line.to_owned()))?;
    if outcome != ProgramOutcome::Success {
        return Ok(Err(outcome));
    }
    let counts = lines.iter().filter(|line| line.starts_with('{'));
    counts
        .map(|line| read(line))
        .collect::<Result<_, _>>()
        .map(Ok)
}

/// Number of benches that run in parallel, which does not change the counts.
const PARALLEL: usize = 2;

/// Parses the name and count of one bench from gungraun's output.
fn read(line: &str) -> Result<(String, u64), TaskError> {
    let bench: Value = serde_json::from_str(line)?;
    let word = |key: &str| bench.get(key).and_then(Value::as_str);
    let names = [word("group"), word("function_name"), word("id")];
    let name: Vec<&str> = names.into_iter().flatten().collect();
    let count = bench.pointer("/profiles/0/data/total/metrics/Ir/values/new");
    let count = count.and_then(Value::as_u64).filter(|_| name.len() == 3);
    let count = count.ok_or_else(|| format!("gungraun printed no count: {line}"))?;
    Ok((name.join("/"), count))
}

/// Returns the version line of the compiler.
fn compiler() -> Result<String, TaskError> {
    let output = Command::new("rustc").arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn made_by(compiler: &str) -> String {
    format!("# Made by {compiler}.")
}

/// Formats a baseline.
fn written(counts: &InstructionCounts, compiler: &str) -> String {
    let mut text = format!(
        "# Instructions of each bench of the package `counts`; `cargo xtask counts --bless` writes this.\n\
         # One fails that takes {TOLERANCE_PERCENT} % more, and more than {TOLERANCE_LEAST} instructions.\n{}\n",
        made_by(compiler)
    );
    let width = counts.keys().map(String::len).max().unwrap_or(0);
    for (name, count) in counts {
        text += &format!("{name:width$} {count:9}\n");
    }
    text
}

/// Parses a baseline.
fn parse(text: &str) -> Result<InstructionCounts, TaskError> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.trim().parse().ok()?))
    };
    let entry = |line: &str| {
        entry(line).ok_or_else(|| format!("{BASELINE}: no name and count: {line}").into())
    };
    lines.map(entry).collect()
}

/// Compares all benches with the baseline; each passes or fails.
fn compare(baseline: &InstructionCounts, measured: &InstructionCounts) -> TestTally {
    let mut tally = TestTally::default();
    for (name, is) in measured {
        match baseline.get(name) {
            None => tally.fail(name, &format!("{BASELINE} has no such bench; {BLESS}")),
            Some(was) if is_more(*is, *was) => tally.fail(name, &change("more", *was, *is)),
            Some(was) => {
                tally.counts.passed += 1;
                if is_more(*was, *is) {
                    println!("{name}: {}", change("fewer", *was, *is));
                }
            }
        }
    }
    for name in baseline.keys().filter(|name| !measured.contains_key(*name)) {
        tally.fail(name, &format!("the bench no longer exists; {BLESS}"));
    }
    tally
}

/// The remedy for an intended change.
const BLESS: &str = "accept the change with `cargo xtask counts --bless`";

/// True if `one` exceeds `other` by more than the tolerance.
const fn is_more(one: u64, other: u64) -> bool {
    let more = one.saturating_sub(other);
    more * 100 > other * TOLERANCE_PERCENT && more > TOLERANCE_LEAST
}

/// Describes a change, in tenths of a per cent.
fn change(which: &str, was: u64, is: u64) -> String {
    let tenths = was.abs_diff(is) * 1000 / was.max(1);
    format!(
        "{}.{} % {which} instructions: {was} in the baseline, {is} now; {BLESS}",
        tenths / 10,
        tenths % 10
    )
}

/// Returns the version of gungraun in the lock file; its runner must have the same.
pub(crate) fn gungraun_version(root: &Path) -> Result<String, TaskError> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| {
        let line = line.strip_prefix("gungraun = \"=")?;
        line.strip_suffix('"')
    });
    let version = version.ok_or("Cargo.toml pins no version of gungraun")?;
    Ok(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> InstructionCounts {
        let of = of.iter().map(|(name, count)| ((*name).to_owned(), *count));
        of.collect()
    }

    #[test]
    fn regression_is_reported_with_both_counts() {
        let baseline = counts(&[("a/b/c", 1000), ("a/b/d", 1000), ("a/b/e", 100)]);
        let measured = counts(&[("a/b/c", 1051), ("a/b/d", 1050), ("a/b/e", 120)]);
        let tally = compare(&baseline, &measured);
        assert_eq!(tally.counts.passed, 2);
        let failure = "a/b/c: 5.1 % more instructions: 1000 in the baseline, 1051 now; ";
        assert_eq!(tally.failures, [format!("{failure}{BLESS}")]);
    }

    #[test]
    fn decrease_passes() {
        let tally = compare(&counts(&[("a/b/c", 1000)]), &counts(&[("a/b/c", 500)]));
        assert_eq!((tally.counts.passed, tally.counts.failed), (1, 0));
    }

    #[test]
    fn benches_come_and_go_by_blessing_only() {
        let tally = compare(&counts(&[("old", 1)]), &counts(&[("new", 1)]));
        assert_eq!(tally.counts.failed, 2);
    }

    #[test]
    fn baseline_survives_a_round_trip() {
        let all = counts(&[("a/b/c", 1), ("longer/than/that", 1_000_000)]);
        let text = written(&all, "rustc 1.95.0");
        assert_eq!(parse(&text).ok(), Some(all));
        assert!(text.contains("\n# Made by rustc 1.95.0.\n"));
        assert!(parse("a/b/c\n").is_err());
    }

    #[test]
    fn count_is_parsed_from_gungraun_output() {
        let line = r#"{"group":"g","function_name":"f","id":"i","profiles":[{"data":{"total":
            {"metrics":{"Ir":{"values":{"new":244}}}}}}]}"#;
        assert_eq!(read(line).ok(), Some(("g/f/i".to_owned(), 244)));
        assert!(read(r#"{"group":"g"}"#).is_err());
    }
}

//! Instruction counts of hot code: the package `counts` takes them, and they are held
//! against a baseline in the tree.
//!
//! Not a measurement of time. The same code comes to the same counts each time, as far
//! as compiler, C library and what the processor can do are the same; so the tolerance
//! is not for noise, but for what a change elsewhere does to inlining.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::metadata::cargo;
use crate::setup::{self, RUNNER};
use crate::shell::{Outcome, Shell};
use crate::summary::Tally;
use crate::{Failure, test};

/// The baseline, from the project's root: a line for each bench, its name and its count.
const BASELINE: &str = "counts/baseline.txt";

/// How much more than its baseline a bench may take, in parts of a hundred, ...
const TOLERANCE_PERCENT: u64 = 5;

/// ... and in instructions, since of a bench of a few hundred a call that is no longer
/// inlined is more than that.
const TOLERANCE_LEAST: u64 = 20;

/// Instructions by bench: group, function and case.
type Counts = BTreeMap<String, u64>;

/// Installs what is missing, counts, and says what has changed, or with `--bless` makes
/// it the baseline.
pub(crate) fn run(shell: &mut Shell, options: &[&str]) -> Result<ExitCode, Failure> {
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

/// Counts, and holds the counts against the baseline.
pub(crate) fn check(shell: &mut Shell) -> Result<Tally, Failure> {
    setup::counting(shell)?;
    let measured = match measure(shell)? {
        Ok(measured) => measured,
        Err(outcome) => return Ok(Tally::failed("counts", &test::explain(&outcome))),
    };
    let text = fs::read_to_string(shell.root().join(BASELINE))
        .map_err(|error| format!("{BASELINE}: {error}"))?;
    let compiler = compiler()?;
    if !text.lines().any(|line| line == made_by(&compiler)) {
        println!("{BASELINE} was made by another compiler than {compiler}");
    }
    Ok(compare(&parse(&text)?, &measured))
}

/// Counts, and makes the counts the baseline.
fn bless(shell: &mut Shell) -> Result<Tally, Failure> {
    setup::counting(shell)?;
    let measured = match measure(shell)? {
        Ok(measured) => measured,
        Err(outcome) => return Ok(Tally::failed("counts", &test::explain(&outcome))),
    };
    let text = written(&measured, &compiler()?);
    fs::write(shell.root().join(BASELINE), text).map_err(|error| format!("{BASELINE}: {error}"))?;
    println!("{BASELINE} has {} counts now", measured.len());
    Ok(Tally::passed())
}

/// Builds the benches and runs them, each in a process of its own.
fn measure(shell: &mut Shell) -> Result<Result<Counts, Outcome>, Failure> {
    let mut command = Command::new(cargo());
    command
        .args(["bench", "--package", "counts", "--"])
        // Of caches nothing is asked, so they need not be imitated.
        .args(["--output-format=json", "--callgrind-args=--cache-sim=no"])
        .arg(format!("--parallel={PARALLEL}"))
        .env("GUNGRAUN_RUNNER", shell.root().join(RUNNER));
    let mut lines = Vec::new();
    let outcome = shell.run_taken(&mut command, &mut |line| lines.push(line.to_owned()))?;
    if outcome != Outcome::Success {
        return Ok(Err(outcome));
    }
    let counts = lines.iter().filter(|line| line.starts_with('{'));
    counts
        .map(|line| read(line))
        .collect::<Result<_, _>>()
        .map(Ok)
}

/// How many benches run at once. Counts do not mind.
const PARALLEL: usize = 2;

/// One bench's name and count, of what gungraun tells of it.
fn read(line: &str) -> Result<(String, u64), Failure> {
    let bench: Value = serde_json::from_str(line)?;
    let word = |key: &str| bench.get(key).and_then(Value::as_str);
    let names = [word("group"), word("function_name"), word("id")];
    let name: Vec<&str> = names.into_iter().flatten().collect();
    let count = bench.pointer("/profiles/0/data/total/metrics/Ir/values/new");
    let count = count.and_then(Value::as_u64).filter(|_| name.len() == 3);
    let count = count.ok_or_else(|| format!("gungraun tells no count: {line}"))?;
    Ok((name.join("/"), count))
}

/// The compiler, as it calls itself.
fn compiler() -> Result<String, Failure> {
    let output = Command::new("rustc").arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn made_by(compiler: &str) -> String {
    format!("# Made by {compiler}.")
}

/// The baseline's text.
fn written(counts: &Counts, compiler: &str) -> String {
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

/// The counts in a baseline's text.
fn parse(text: &str) -> Result<Counts, Failure> {
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

/// What has changed: each bench passes or fails.
fn compare(baseline: &Counts, measured: &Counts) -> Tally {
    let mut tally = Tally::default();
    for (name, is) in measured {
        match baseline.get(name) {
            None => tally.fail(name, &format!("{BASELINE} has no such bench; {BLESS}")),
            Some(was) if is_more(*is, *was) => tally.fail(name, &change("more", *was, *is)),
            Some(was) => {
                tally.counts.passed += 1;
                if is_more(*was, *is) {
                    println!("{name}: {}", change("less", *was, *is));
                }
            }
        }
    }
    for name in baseline.keys().filter(|name| !measured.contains_key(*name)) {
        tally.fail(name, &format!("no such bench is left; {BLESS}"));
    }
    tally
}

/// What to do about a change that is meant.
const BLESS: &str = "`cargo xtask counts --bless` makes it so";

/// Whether `one` is more than `other` by more than is tolerated.
const fn is_more(one: u64, other: u64) -> bool {
    let more = one.saturating_sub(other);
    more * 100 > other * TOLERANCE_PERCENT && more > TOLERANCE_LEAST
}

/// A change in a sentence, in parts of a thousand.
fn change(which: &str, was: u64, is: u64) -> String {
    let tenths = was.abs_diff(is) * 1000 / was.max(1);
    format!(
        "{}.{} % {which} instructions: it was {was}, is {is}; if that is meant, {BLESS}",
        tenths / 10,
        tenths % 10
    )
}

/// The version of gungraun that the project uses, and so its runner's.
pub(crate) fn gungraun_version(root: &Path) -> Result<String, Failure> {
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

    fn counts(of: &[(&str, u64)]) -> Counts {
        let of = of.iter().map(|(name, count)| ((*name).to_owned(), *count));
        of.collect()
    }

    #[test]
    fn a_regression_is_told_with_what_it_was_and_is() {
        let baseline = counts(&[("a/b/c", 1000), ("a/b/d", 1000), ("a/b/e", 100)]);
        let measured = counts(&[("a/b/c", 1051), ("a/b/d", 1050), ("a/b/e", 120)]);
        let tally = compare(&baseline, &measured);
        assert_eq!(tally.counts.passed, 2);
        let failure = "a/b/c: 5.1 % more instructions: it was 1000, is 1051; if that is meant, ";
        assert_eq!(tally.failures, [format!("{failure}{BLESS}")]);
    }

    #[test]
    fn what_takes_less_passes() {
        let tally = compare(&counts(&[("a/b/c", 1000)]), &counts(&[("a/b/c", 500)]));
        assert_eq!((tally.counts.passed, tally.counts.failed), (1, 0));
    }

    #[test]
    fn benches_come_and_go_by_blessing_only() {
        let tally = compare(&counts(&[("old", 1)]), &counts(&[("new", 1)]));
        assert_eq!(tally.counts.failed, 2);
    }

    #[test]
    fn a_baseline_is_read_as_it_was_written() {
        let all = counts(&[("a/b/c", 1), ("longer/than/that", 1_000_000)]);
        let text = written(&all, "rustc 1.95.0");
        assert_eq!(parse(&text).ok(), Some(all));
        assert!(text.contains("\n# Made by rustc 1.95.0.\n"));
        assert!(parse("a/b/c\n").is_err());
    }

    #[test]
    fn a_count_is_where_gungraun_tells_it() {
        let line = r#"{"group":"g","function_name":"f","id":"i","profiles":[{"data":{"total":
            {"metrics":{"Ir":{"values":{"new":244}}}}}}]}"#;
        assert_eq!(read(line).ok(), Some(("g/f/i".to_owned(), 244)));
        assert!(read(r#"{"group":"g"}"#).is_err());
    }
}

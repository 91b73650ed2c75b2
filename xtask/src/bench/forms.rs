//! Rows without devices: the package `bench` takes the time, and callgrind counts the
//! instructions of what it runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::figures::Figures;
use super::rows::{INSTRUCTIONS, OURS, Row};
use super::{Bench, Profile};
use crate::shell::{Outcome, Shell};
use crate::{Failure, setup};

/// The package, and its program.
const PACKAGE: &str = "bench";

/// How long a sample takes, in milliseconds.
const MILLIS: u32 = 300;
const MILLIS_QUICK: u32 = 20;

/// Measures rows of forms: nanoseconds, and instructions.
pub(super) fn measure(
    bench: &Bench,
    shell: &mut Shell,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    let program = bench.build(shell, PACKAGE, PACKAGE)?;
    take(bench, shell, &program, "forms", rows, figures)?;
    if bench.profile == Profile::Debug {
        return Ok(());
    }
    setup::valgrind(shell)?;
    for row in rows {
        match count(bench, shell, &program, row) {
            Ok(count) => figures.add(row, INSTRUCTIONS, count),
            Err(failure) => figures.fail(&row.id(), failure.to_string()),
        }
    }
    Ok(())
}

/// Measures rows of traffic: nanoseconds of each kind, and how even they are.
pub(super) fn measure_traffic(
    bench: &Bench,
    shell: &mut Shell,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    let program = bench.build(shell, PACKAGE, PACKAGE)?;
    take(bench, shell, &program, "traffic", rows, figures)
}

/// Runs the program for `rows`, and takes the samples that it prints.
fn take(
    bench: &Bench,
    shell: &mut Shell,
    program: &Path,
    what: &str,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    let millis = if bench.quick { MILLIS_QUICK } else { MILLIS };
    let mut command = Command::new(program);
    command
        .arg(what)
        .args(["--runs", &bench.runs.to_string()])
        .args(["--millis", &millis.to_string()])
        .args(rows.iter().map(|row| row.name));
    let mut lines = Vec::new();
    let outcome = shell.run_taken(&mut command, &mut |line| lines.push(line.to_owned()))?;
    if outcome != Outcome::Success {
        let last = lines.last().map_or("", String::as_str);
        return Err(format!("{}: {last}", crate::test::explain(&outcome)).into());
    }
    for line in &lines {
        let (name, column, value) = sample(line)?;
        let row = rows.iter().find(|row| row.name == name);
        let row = row.ok_or_else(|| format!("a sample of no row: {line}"))?;
        let column = if column == "time" { OURS } else { &column };
        figures.add(row, column, value);
    }
    Ok(())
}

/// What a line that the program prints says: row, column and value.
fn sample(line: &str) -> Result<(String, String, f64), Failure> {
    let sample: Value = serde_json::from_str(line)?;
    let word = |key| sample.get(key).and_then(Value::as_str);
    let value = sample.get("value").and_then(Value::as_f64);
    match (word("row"), word("column"), value) {
        (Some(row), Some(column), Some(value)) => Ok((row.to_owned(), column.to_owned(), value)),
        _ => Err(format!("no sample: {line}").into()),
    }
}

/// Instructions a frame.
fn count(bench: &Bench, shell: &mut Shell, program: &Path, row: &Row) -> Result<f64, Failure> {
    let file = bench.directory.join(format!("callgrind-{}.out", row.name));
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=callgrind", "--cache-sim=no"])
        .arg("--toggle-collect=*counted*")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["counted", row.name]);
    let mut frames = None;
    let outcome = shell.run_taken(&mut command, &mut |line| frames = sample(line).ok())?;
    let frames = frames.filter(|_| outcome == Outcome::Success);
    let (_, _, frames) = frames.ok_or_else(|| crate::test::explain(&outcome))?;
    let profile = fs::read_to_string(&file)?;
    let total = total(&profile).ok_or("callgrind counted nothing")?;
    Ok(total / frames)
}

/// All instructions of a profile that callgrind wrote.
fn total(profile: &str) -> Option<f64> {
    let words = |line: &str| {
        ["summary: ", "totals: "].map(|word| line.strip_prefix(word).map(str::to_owned))
    };
    let mut found = profile.lines().flat_map(words).flatten();
    found.find_map(|count| count.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_as_they_are_printed() {
        let line = r#"{"row":"acl-3","column":"Zipf","value":12.5}"#;
        let read = sample(line).ok();
        assert_eq!(read, Some(("acl-3".to_owned(), "Zipf".to_owned(), 12.5)));
        assert!(sample(r#"{"row":"acl-3"}"#).is_err());
    }

    #[test]
    fn the_sum_of_a_profile_is_found() {
        assert_eq!(total("version: 1\nsummary: 1234\n\nfn=x\n"), Some(1234.0));
        assert_eq!(total("fn=x\n1 2\ntotals: 99\n"), Some(99.0));
        assert_eq!(total("fn=x\n"), None);
    }
}

//! Rows that the package `bench` measures: it takes the time where there is no device, and
//! callgrind counts the instructions of what it runs; and it watches the switch.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::figures::Figures;
use super::huge_pages::HugePages;
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
    let asked = Asked::briefly("forms", bench);
    take(shell, &program, &asked, rows, figures)?;
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
    take(
        shell,
        &program,
        &Asked::briefly("traffic", bench),
        rows,
        figures,
    )
}

/// Measures rows of workers: frames a second of one and of two, and the memory of the
/// second.
pub(super) fn measure_workers(
    bench: &Bench,
    shell: &mut Shell,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    measure_switch(("workers", [3000, 300]), bench, shell, rows, figures)
}

/// Measures how near meters come to their rates.
pub(super) fn measure_meters(
    bench: &Bench,
    shell: &mut Shell,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    measure_switch(("meters", [1000, 200]), bench, shell, rows, figures)
}

/// Measures what the switch takes when nothing moves, and Open vSwitch.
pub(super) fn measure_idle(
    bench: &Bench,
    shell: &mut Shell,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    // The kernel tells processor time in hundredths of a second.
    measure_switch(("idle", [20_000, 2000]), bench, shell, rows, figures)
}

/// Measures the data path between devices of DPDK, beside those that it is held against.
pub(super) fn measure_dpdk(
    bench: &Bench,
    shell: &mut Shell,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    setup::run(shell)?;
    setup::dpdk_peers(shell)?;
    let _pages = HugePages::reserve(shell, HUGE_PAGES);
    let program = bench.build(shell, PACKAGE, PACKAGE)?;
    let comporta = bench.build_with(shell, "cli", "comporta", &["dpdk"])?;
    let millis = if bench.quick { 500 } else { 2000 };
    let asked = Asked {
        words: words("dpdk", bench.runs, millis),
        by_name: true,
    };
    take(
        shell,
        &program,
        &asked.of(bench, &comporta, "dpdk"),
        rows,
        figures,
    )
}

/// Memory for frames in huge pages of 2 MB: what Open vSwitch takes, which is the most.
const HUGE_PAGES: u32 = 768;

/// Measures what is asked of a switch that is started for it, in samples of so many
/// milliseconds, at full length and quick.
fn measure_switch(
    (what, millis): (&str, [u32; 2]),
    bench: &Bench,
    shell: &mut Shell,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    setup::run(shell)?;
    let program = bench.build(shell, PACKAGE, PACKAGE)?;
    let asked = Asked::with_switch(what, bench, shell, millis)?;
    take(shell, &program, &asked, rows, figures)
}

/// What the program is asked for.
struct Asked {
    words: Vec<String>,
    /// Whether rows are asked for by name.
    by_name: bool,
}

impl Asked {
    /// Samples of the processor alone.
    fn briefly(what: &str, bench: &Bench) -> Self {
        let millis = if bench.quick { MILLIS_QUICK } else { MILLIS };
        Self {
            words: words(what, bench.runs, millis),
            by_name: true,
        }
    }

    /// Samples of so many milliseconds, at full length and quick, for which the switch is
    /// started.
    fn with_switch(
        what: &str,
        bench: &Bench,
        shell: &mut Shell,
        [full, quick]: [u32; 2],
    ) -> Result<Self, Failure> {
        let millis = if bench.quick { quick } else { full };
        let comporta = bench.build(shell, "cli", "comporta")?;
        let asked = Self {
            words: words(what, bench.runs, millis),
            by_name: false,
        };
        Ok(asked.of(bench, &comporta, what))
    }

    /// Of this switch, in a directory of its own.
    fn of(mut self, bench: &Bench, comporta: &Path, what: &str) -> Self {
        let directory = bench.directory.join(what);
        let words = [
            "--comporta".as_ref(),
            comporta,
            "--directory".as_ref(),
            &directory,
        ];
        self.words
            .extend(words.map(|word: &Path| word.display().to_string()));
        self
    }
}

fn words(what: &str, runs: u32, millis: u32) -> Vec<String> {
    [
        what,
        "--runs",
        &runs.to_string(),
        "--millis",
        &millis.to_string(),
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Runs the program, and takes the samples of `rows` that it prints.
fn take(
    shell: &mut Shell,
    program: &Path,
    asked: &Asked,
    rows: &[&Row],
    figures: &mut Figures,
) -> Result<(), Failure> {
    let names = rows.iter().map(|row| row.name);
    let names = names.filter(|_| asked.by_name);
    let mut command = Command::new(program);
    command.args(&asked.words).args(names);
    let mut lines = Vec::new();
    let outcome = shell.run_taken(&mut command, &mut |line| lines.push(line.to_owned()))?;
    if outcome != Outcome::Success {
        let last = lines.last().map_or("", String::as_str);
        return Err(format!("{}: {last}", crate::test::explain(&outcome)).into());
    }
    for line in &lines {
        let (name, column, value) = sample(line)?;
        let Some(row) = rows.iter().find(|row| row.name == name) else {
            continue;
        };
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

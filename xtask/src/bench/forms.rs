//! Rows that the package `bench` measures: it takes the time where there is no device, and
//! callgrind counts the instructions of what it runs; and it watches the switch.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::figures::Figures;
use super::huge_pages::HugePages;
use super::rows::{BenchRow, Group, INSTRUCTIONS, OURS};
use super::{Bench, BuildProfile};
use crate::shell::{Outcome, Shell};
use crate::{Failure, setup};

/// The package, and its program.
const PACKAGE: &str = "bench";

/// The programs of the lab that hold its generator beside others, and its instrument against what is
/// known.
const GENERATOR: &str = "generator";
const IMPAIRED: &str = "impaired";

/// Measures `rows` of one group.
pub(super) fn measure(
    bench: &Bench,
    shell: &mut Shell,
    group: Group,
    rows: &[&BenchRow],
    figures: &mut Figures,
) -> Result<(), Failure> {
    match group {
        Group::Dpdk => setup::run(shell).and_then(|()| setup::dpdk_peers(shell))?,
        Group::Generator => setup::dpdk_peers(shell)?,
        Group::Workers | Group::Meters | Group::Idle | Group::Startup | Group::Crossing => {
            setup::run(shell)?;
        }
        _ => {}
    }
    let _pages = (group == Group::Dpdk).then(|| HugePages::reserve(shell, HUGE_PAGES));
    let program = match group {
        Group::Generator => bench.build_example(shell, "lab", GENERATOR)?,
        Group::Impaired => bench.build_example(shell, "lab", IMPAIRED)?,
        _ => bench.build(shell, PACKAGE, PACKAGE)?,
    };
    let asked = Asked::of(group, bench, shell)?;
    take(shell, &program, &asked, rows, figures)?;
    if group == Group::Forms && bench.profile == BuildProfile::Release {
        count_all(bench, shell, &program, rows, figures)?;
    }
    Ok(())
}

/// Counts the instructions of a frame by each of `rows`.
fn count_all(
    bench: &Bench,
    shell: &mut Shell,
    program: &Path,
    rows: &[&BenchRow],
    figures: &mut Figures,
) -> Result<(), Failure> {
    setup::valgrind(shell)?;
    for row in rows {
        match count(bench, shell, program, row) {
            Ok(count) => figures.add(row, INSTRUCTIONS, count),
            Err(failure) => figures.fail(&row.id(), failure.to_string()),
        }
    }
    Ok(())
}

/// Memory for frames in huge pages of 2 MB: what Open vSwitch takes, which is the most.
const HUGE_PAGES: u32 = 768;

/// How many milliseconds a sample takes, at full length and quick.
const fn millis(group: Group) -> [u32; 2] {
    match group {
        Group::Dpdk => [2000, 500],
        Group::Workers => [3000, 300],
        // The rate of a meter is that of a second.
        Group::Meters => [1000, 200],
        // The kernel tells processor time in hundredths of a second.
        Group::Idle => [20_000, 2000],
        Group::Crossing => [5000, 1000],
        // Shorter than the kernel lets real-time priority have a core without a pause.
        Group::Generator => [500, 200],
        Group::Impaired => [200, 100],
        _ => [300, 20],
    }
}

/// What the program is asked for.
struct Asked {
    words: Vec<String>,
    /// Whether rows are asked for by name.
    by_name: bool,
}

impl Asked {
    /// What a group's rows are measured by. Where a switch is started for them it is built,
    /// and gets a directory.
    fn of(group: Group, bench: &Bench, shell: &mut Shell) -> Result<Self, Failure> {
        let [full, quick] = millis(group);
        let millis = if bench.quick { quick } else { full };
        let mut words: Vec<String> = [group.name(), "--runs"].map(str::to_owned).to_vec();
        words.extend([bench.runs.to_string(), "--millis".to_owned()]);
        words.push(millis.to_string());
        let features: Option<&[&str]> = match group {
            Group::Dpdk => Some(&["dpdk"]),
            Group::Workers | Group::Meters | Group::Idle | Group::Startup | Group::Crossing => {
                Some(&[])
            }
            _ => None,
        };
        if let Some(features) = features {
            let comporta = bench.build_with(shell, "cli", "comporta", features)?;
            let directory = bench.directory.join(group.name());
            for (option, path) in [("--comporta", comporta), ("--directory", directory)] {
                words.extend([option.to_owned(), path.display().to_string()]);
            }
        }
        Ok(Self {
            words,
            // A row of workers tells of all the others, one who sleeps has no choice, a start is one,
            // and a chain is nothing without the bridge beside it.
            by_name: !matches!(
                group,
                Group::Workers | Group::Idle | Group::Startup | Group::Crossing
            ),
        })
    }
}

/// Runs the program, and takes the samples of `rows` that it prints.
fn take(
    shell: &mut Shell,
    program: &Path,
    asked: &Asked,
    rows: &[&BenchRow],
    figures: &mut Figures,
) -> Result<(), Failure> {
    let names = rows.iter().map(|row| row.name);
    let names = names.filter(|_| asked.by_name);
    let mut command = Command::new(program);
    command.args(&asked.words).args(names);
    let mut lines = Vec::new();
    let outcome = shell.run_taken(&mut command, &mut |line| lines.push(line.to_owned()))?;
    // What was measured before something failed counts.
    for (name, column, value) in lines.iter().filter_map(|line| sample(line).ok()) {
        let Some(row) = rows.iter().find(|row| row.name == name) else {
            continue;
        };
        let column = if column == "time" { OURS } else { &column };
        figures.add(row, column, value);
    }
    if outcome != Outcome::Success {
        let last = lines.last().map_or("", String::as_str);
        return Err(format!("{}: {last}", crate::test::explain(&outcome)).into());
    }
    match lines.iter().find_map(|line| sample(line).err()) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
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
fn count(bench: &Bench, shell: &mut Shell, program: &Path, row: &BenchRow) -> Result<f64, Failure> {
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

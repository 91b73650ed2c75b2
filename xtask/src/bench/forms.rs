//! Rows of the package `bench`: packet cost without devices, with instruction counts by callgrind,
//! and the switch between devices of memory or DPDK.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::figures::Figures;
use super::groups::BenchGroup;
use super::huge_pages::HugePages;
use super::rows::{BenchRow, INSTRUCTIONS, OURS};
use super::{Bench, BuildProfile};
use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup};

/// The package, and its program.
const PACKAGE: &str = "bench";

/// Examples of the lab that compare its generator with others, and its instrument with known
/// impairments.
const GENERATOR: &str = "generator";
const IMPAIRED: &str = "impaired";

/// Measures `rows` of one group.
pub(super) fn measure(
    bench: &Bench,
    shell: &mut Shell,
    group: BenchGroup,
    rows: &[&BenchRow],
    figures: &mut Figures,
) -> Result<(), TaskError> {
    match group {
        group if group.has_dpdk_devices() => {
            setup::run(shell).and_then(|()| setup::dpdk_peers(shell))?
        }
        BenchGroup::Generator => setup::dpdk_peers(shell)?,
        group if group.has_switch() => setup::run(shell)?,
        _ => {}
    }
    let with_dpdk = group.has_dpdk_devices();
    let _pages = with_dpdk.then(|| HugePages::reserve(shell, HUGE_PAGES));
    let program = match group {
        BenchGroup::Generator => bench.build_example(shell, "trafficgen", GENERATOR)?,
        BenchGroup::Impaired => bench.build_example(shell, "trafficgen", IMPAIRED)?,
        _ => bench.build(shell, PACKAGE, PACKAGE)?,
    };
    let asked = BenchArguments::of(group, bench, shell)?;
    take(shell, &program, &asked, rows, figures)?;
    if group == BenchGroup::Forms && bench.profile == BuildProfile::Release {
        count_all(bench, shell, &program, rows, figures)?;
    }
    Ok(())
}

/// Counts the instructions per packet of each row.
fn count_all(
    bench: &Bench,
    shell: &mut Shell,
    program: &Path,
    rows: &[&BenchRow],
    figures: &mut Figures,
) -> Result<(), TaskError> {
    setup::valgrind(shell)?;
    for row in rows {
        match count(bench, shell, program, row) {
            Ok(count) => figures.add(row, INSTRUCTIONS, count),
            Err(failure) => figures.fail(&row.id(), failure.to_string()),
        }
    }
    Ok(())
}

/// Number of 2 MB pages for DPDK: Open vSwitch's share, the largest.
const HUGE_PAGES: u32 = 768;

/// Length of a sample in milliseconds, at full length and quick.
const fn millis(group: BenchGroup) -> [u32; 2] {
    match group {
        group if group.has_dpdk_devices() => [2000, 500],
        BenchGroup::Workers => [3000, 300],
        // A meter's rate is defined over one second.
        BenchGroup::Meters => [1000, 200],
        // The kernel reports processor time in hundredths of a second.
        BenchGroup::Idle => [20_000, 2000],
        BenchGroup::Crossing => [5000, 1000],
        // Shorter than the time that the kernel grants to real-time priority without a pause.
        BenchGroup::Generator => [500, 200],
        BenchGroup::Impaired => [200, 100],
        _ => [300, 20],
    }
}

/// The option for the size of a group's network, and its value.
fn size(group: BenchGroup, bench: &Bench) -> Option<(&'static str, u32)> {
    match group {
        BenchGroup::OvnStart if bench.quick => Some(("--addresses", ADDRESSES_QUICK)),
        BenchGroup::OvnChassis => {
            let usual = if bench.quick { CHASSIS_QUICK } else { CHASSIS };
            Some(("--chassis", bench.chassis.unwrap_or(usual)))
        }
        _ => None,
    }
}

/// The size of OVN's networks: chassis, and addresses of an access list.
const CHASSIS: u32 = 50;
const CHASSIS_QUICK: u32 = 5;
const ADDRESSES_QUICK: u32 = 1000;

/// Arguments of the program.
struct BenchArguments {
    words: Vec<String>,
    /// True if rows are selected by name.
    by_name: bool,
}

impl BenchArguments {
    /// Returns the arguments for a group. Builds the switch if the group starts one, and passes it
    /// a directory.
    fn of(group: BenchGroup, bench: &Bench, shell: &mut Shell) -> Result<Self, TaskError> {
        let [full, quick] = millis(group);
        let millis = if bench.quick { quick } else { full };
        let mut words: Vec<String> = [group.name(), "--runs"].map(str::to_owned).to_vec();
        words.extend([bench.runs.to_string(), "--millis".to_owned()]);
        words.push(millis.to_string());
        let features: Option<&[&str]> = match group {
            group if group.has_dpdk_devices() => Some(&["dpdk"]),
            group if group.has_switch() => Some(&[]),
            _ => None,
        };
        if let Some(features) = features {
            let comporta = bench.build_with(shell, "cli", "comporta", features)?;
            let directory = bench.directory.join(group.name());
            for (option, path) in [("--comporta", comporta), ("--directory", directory)] {
                words.extend([option.to_owned(), path.display().to_string()]);
            }
        }
        if let Some((option, count)) = size(group, bench) {
            words.extend([option.to_owned(), count.to_string()]);
        }
        Ok(Self {
            words,
            // The rows of the other groups are measured together.
            by_name: !group.has_switch() || group == BenchGroup::Meters,
        })
    }
}

/// Runs the program, and adds the samples of `rows` that it prints.
fn take(
    shell: &mut Shell,
    program: &Path,
    asked: &BenchArguments,
    rows: &[&BenchRow],
    figures: &mut Figures,
) -> Result<(), TaskError> {
    let names = rows.iter().map(|row| row.name);
    let names = names.filter(|_| asked.by_name);
    let mut command = Command::new(program);
    command.args(&asked.words).args(names);
    let mut lines = Vec::new();
    let outcome = shell.run_taken(&mut command, &mut |line| lines.push(line.to_owned()))?;
    // Samples before a failure count.
    for (name, column, value) in lines.iter().filter_map(|line| sample(line).ok()) {
        let Some(row) = rows.iter().find(|row| row.name == name) else {
            continue;
        };
        let column = if column == "time" { OURS } else { &column };
        figures.add(row, column, value);
    }
    if outcome != ProgramOutcome::Success {
        let last = lines.last().map_or("", String::as_str);
        return Err(format!("{}: {last}", crate::test::explain(&outcome)).into());
    }
    match lines.iter().find_map(|line| sample(line).err()) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Parses a line of output: row, column and value.
fn sample(line: &str) -> Result<(String, String, f64), TaskError> {
    let sample: Value = serde_json::from_str(line)?;
    let word = |key| sample.get(key).and_then(Value::as_str);
    let value = sample.get("value").and_then(Value::as_f64);
    match (word("row"), word("column"), value) {
        (Some(row), Some(column), Some(value)) => Ok((row.to_owned(), column.to_owned(), value)),
        _ => Err(format!("no sample: {line}").into()),
    }
}

/// Returns the instructions per packet.
fn count(
    bench: &Bench,
    shell: &mut Shell,
    program: &Path,
    row: &BenchRow,
) -> Result<f64, TaskError> {
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
    let frames = frames.filter(|_| outcome == ProgramOutcome::Success);
    let (_, _, frames) = frames.ok_or_else(|| crate::test::explain(&outcome))?;
    let profile = fs::read_to_string(&file)?;
    let total = total(&profile).ok_or("callgrind counted nothing")?;
    Ok(total / frames)
}

/// Returns all instructions of a callgrind profile.
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
    fn profile_total_is_parsed() {
        assert_eq!(total("version: 1\nsummary: 1234\n\nfn=x\n"), Some(1234.0));
        assert_eq!(total("fn=x\n1 2\ntotals: 99\n"), Some(99.0));
        assert_eq!(total("fn=x\n"), None);
    }
}

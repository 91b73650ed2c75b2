//! Benchmarks: rows of figures next to those of peers in the same run, and the target of each row,
//! as Markdown, as JSON and in the project's documents.
//!
//! The package `bench` and the lab measure; this module calls them, interleaved, and collects their
//! samples.

mod chart;
mod figures;
mod forms;
mod groups;
mod huge_pages;
mod lab;
mod page;
mod rows;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use figures::Figures;
use groups::BenchGroup;
use rows::BenchRow;

use crate::TaskError;
use crate::metadata::cargo;
use crate::shared_build;
use crate::shell::{ProgramOutcome, Shell};
use crate::summary::TestTally;

/// The options of the command.
#[derive(Debug, PartialEq)]
struct BenchOptions {
    /// Prefixes of row names; all rows without any.
    rows: Vec<String>,
    /// Number of runs.
    runs: u32,
    /// Number of chassis, if it is not the usual one.
    chassis: Option<u32>,
    /// Short samples: they show that a row works, and prove nothing.
    quick: bool,
    /// True if the command only lists the rows.
    list: bool,
    /// True if the project's documents receive the results.
    publish: bool,
}

/// Number of runs without `--runs`.
const RUNS: u32 = 5;
const RUNS_QUICK: u32 = 3;

impl BenchOptions {
    fn parse(words: &[&str]) -> Result<Self, TaskError> {
        let (mut runs, mut chassis, mut rows) = (None, None, Vec::new());
        let (mut quick, mut list, mut publish) = (false, false, false);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match *word {
                "--quick" => quick = true,
                "--list" => list = true,
                // The older name of the option.
                "--publish" | "--readme" => publish = true,
                "--runs" => runs = Some(count(word, rest.next(), RUNS_MAX)?),
                "--chassis" => chassis = Some(count(word, rest.next(), CHASSIS_MAX)?),
                word if word.starts_with('-') => {
                    return Err(format!("unknown option `{word}`").into());
                }
                row => rows.push(row.to_owned()),
            }
        }
        if publish && quick {
            return Err("--publish needs full samples: omit --quick".into());
        }
        Ok(Self {
            rows,
            chassis,
            runs: runs.unwrap_or(if quick { RUNS_QUICK } else { RUNS }),
            quick,
            list,
            publish,
        })
    }
}

/// Parses the value of an option that is a number from 1 on.
fn count(option: &str, value: Option<&&str>, max: u32) -> Result<u32, TaskError> {
    let count = value.and_then(|value| value.parse().ok());
    let count = count.filter(|count| (1..=max).contains(count));
    count.ok_or_else(|| format!("{option} must be between 1 and {max}").into())
}

/// Largest number of runs, and of chassis.
const RUNS_MAX: u32 = 100;
const CHASSIS_MAX: u32 = 250;

/// Measures the rows that `words` name, and writes the results.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, TaskError> {
    let options = BenchOptions::parse(words)?;
    let chosen = rows::chosen(&options.rows)?;
    if options.list {
        print!("{}", page::list(&chosen));
        return Ok(ExitCode::SUCCESS);
    }
    if options.publish && !rows::are_whole_groups(&chosen) {
        return Err("--publish needs whole groups: name groups, not rows".into());
    }
    let directory = free_directory(shell)?;
    let bench = Bench {
        profile: BuildProfile::Release,
        runs: options.runs,
        chassis: options.chassis,
        quick: options.quick,
        directory: directory.clone(),
    };
    let figures = bench.measure(shell, &chosen);
    let command = format!("cargo xtask bench {}", words.join(" "));
    let table = page::table(&chosen, &figures, command.trim_end());
    fs::write(directory.join("bench.md"), &table)?;
    let json = page::json(&chosen, &figures, command.trim_end());
    fs::write(directory.join("bench.json"), json)?;
    println!("\n{table}");
    println!("{}", directory.join("bench.json").display());
    let all = figures.failures.is_empty();
    if options.publish && all && !shell.interrupted() {
        page::publish(shell.root(), &chosen, &figures, command.trim_end())?;
    }
    Ok(match all {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Measures one row quickly, to prove that the benchmarks still work.
pub(crate) fn try_one(shell: &mut Shell) -> Result<TestTally, TaskError> {
    let chosen = rows::chosen(&[TRIED.to_owned()])?;
    let bench = Bench {
        profile: BuildProfile::Debug,
        runs: 1,
        chassis: None,
        quick: true,
        directory: shell.root().join("target"),
    };
    let figures = bench.measure(shell, &chosen);
    let table = page::table(&chosen, &figures, &format!("cargo xtask bench {TRIED}"));
    println!("{table}\nOne unoptimized run: these figures prove nothing.");
    Ok(match figures.failures.first() {
        None => TestTally::passed(),
        Some((name, reason)) => TestTally::failed(name, reason),
    })
}

/// The row that [`try_one`] measures.
const TRIED: &str = "forms/one-tcp-port";

/// The build profile of the measured programs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BuildProfile {
    /// Optimized, for results.
    Release,
    /// Unoptimized, for [`try_one`].
    Debug,
}

/// The settings of a measurement.
struct Bench {
    profile: BuildProfile,
    runs: u32,
    /// Number of chassis, if it is not the usual one.
    chassis: Option<u32>,
    quick: bool,
    /// The directory of results, logs and sockets.
    directory: PathBuf,
}

impl Bench {
    /// Measures `rows`, group by group. A row that cannot be measured is reported, and the others
    /// are measured.
    fn measure(&self, shell: &mut Shell, rows: &[&'static BenchRow]) -> Figures {
        let mut figures = Figures::default();
        for group in BenchGroup::ALL {
            let of_group = rows.iter().copied().filter(|row| row.group == group);
            let of_group: Vec<_> = of_group.collect();
            if of_group.is_empty() || shell.interrupted() {
                continue;
            }
            println!("\n== {}", group.title());
            let done = match group {
                BenchGroup::Table
                | BenchGroup::Changes
                | BenchGroup::Veth
                | BenchGroup::Tap
                | BenchGroup::StatefulHosts => {
                    lab::measure(self, shell, group, &of_group, &mut figures)
                }
                _ => forms::measure(self, shell, group, &of_group, &mut figures),
            };
            if let Err(failure) = done {
                figures.fail(group.name(), failure.to_string());
            }
        }
        figures
    }

    /// Builds `program` of `package`, and returns its path.
    fn build(&self, shell: &mut Shell, package: &str, program: &str) -> Result<PathBuf, TaskError> {
        self.build_with(shell, package, program, &[])
    }

    /// Builds an example of `package`, and returns its path.
    fn build_example(
        &self,
        shell: &mut Shell,
        package: &str,
        example: &str,
    ) -> Result<PathBuf, TaskError> {
        let words = ["build", "--package", package, "--example", example];
        self.build_by(shell, &words, &format!("examples/{example}"))
    }

    /// Builds a program with these features, and returns its path.
    fn build_with(
        &self,
        shell: &mut Shell,
        package: &str,
        program: &str,
        features: &[&str],
    ) -> Result<PathBuf, TaskError> {
        let features = features.join(",");
        let mut words = vec!["build", "--package", package];
        if !features.is_empty() {
            words.extend(["--features", &features]);
        }
        self.build_by(shell, &words, program)
    }

    /// Runs cargo with `words`, and returns the path of the result.
    fn build_by(
        &self,
        shell: &mut Shell,
        words: &[&str],
        program: &str,
    ) -> Result<PathBuf, TaskError> {
        let (folder, outcome) = match self.profile {
            BuildProfile::Release => {
                let mut command = Command::new(cargo());
                command.args(words).arg("--release");
                ("target/release", shell.run(&mut command)?)
            }
            BuildProfile::Debug => {
                let built = shared_build::build(shell)?;
                (
                    "target/debug",
                    built.err().unwrap_or(ProgramOutcome::Success),
                )
            }
        };
        match outcome {
            ProgramOutcome::Success => Ok(shell.root().join(folder).join(program)),
            outcome => Err(crate::test::explain(&outcome).into()),
        }
    }
}

/// Creates the first of `results/bench-1`, `results/bench-2` ... that does not exist.
fn free_directory(shell: &Shell) -> Result<PathBuf, TaskError> {
    let results = shell.root().join("results");
    let free = (1_u32..)
        .map(|number| results.join(format!("bench-{number}")))
        .find(|directory| !directory.exists())
        .ok_or("no free directory name below results/")?;
    fs::create_dir_all(&free)?;
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let options =
            BenchOptions::parse(&["forms", "--runs", "7", "--quick"]).expect("valid options");
        assert_eq!(
            (options.rows, options.runs, options.quick),
            (vec!["forms".to_owned()], 7, true)
        );
        assert!(BenchOptions::parse(&["--runs", "0"]).is_err());
        let options = BenchOptions::parse(&["ovn-chassis", "--chassis", "10"]);
        assert!(options.is_ok_and(|options| options.chassis == Some(10)));
        assert!(BenchOptions::parse(&["--fast"]).is_err());
    }

    #[test]
    fn publication_needs_full_samples() {
        assert!(BenchOptions::parse(&["--publish", "forms"]).is_ok_and(|options| options.publish));
        assert!(BenchOptions::parse(&["--readme", "forms"]).is_ok_and(|options| options.publish));
        assert!(BenchOptions::parse(&["--publish", "--quick"]).is_err());
    }

    #[test]
    fn tried_row_exists() {
        assert_eq!(
            rows::chosen(&[TRIED.to_owned()])
                .map(|rows| rows.len())
                .ok(),
            Some(1)
        );
    }
}

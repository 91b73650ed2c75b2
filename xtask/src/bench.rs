//! Benchmarks that stay: rows of figures with their peers in the same run, the bar of each
//! where there is one, and whether it is reached; as a table and as JSON.
//!
//! What measures is elsewhere: the package `bench` where there is no device, the lab where
//! there is. This only calls them, turn and turn about, and lays side by side what they say.

mod figures;
mod forms;
mod huge_pages;
mod lab;
mod page;
mod rows;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use figures::Figures;
use rows::{Group, Row};

use crate::Failure;
use crate::metadata::cargo;
use crate::shell::{Outcome, Shell};
use crate::summary::Tally;

/// What is asked for.
#[derive(Debug, PartialEq)]
struct Options {
    /// Beginnings of rows' names; all rows if there are none.
    rows: Vec<String>,
    /// Samples of each figure.
    runs: u32,
    /// Short samples: enough to see that it works, too little to quote.
    quick: bool,
    /// Whether the rows are only to be named.
    list: bool,
    /// Whether the tables are put into the README, in place of those of the same groups.
    readme: bool,
}

/// Samples of each figure, unless another number is given.
const RUNS: u32 = 5;
const RUNS_QUICK: u32 = 3;

impl Options {
    fn read(words: &[&str]) -> Result<Self, Failure> {
        let (mut runs, mut rows) = (None, Vec::new());
        let (mut quick, mut list, mut readme) = (false, false, false);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match *word {
                "--quick" => quick = true,
                "--list" => list = true,
                "--readme" => readme = true,
                "--runs" => {
                    let count = rest.next().and_then(|count| count.parse().ok());
                    let some = count.filter(|count| (1..=RUNS_MAX).contains(count));
                    runs = Some(some.ok_or_else(|| format!("--runs wants 1 to {RUNS_MAX}"))?);
                }
                word if word.starts_with('-') => {
                    return Err(format!("unknown option `{word}`").into());
                }
                row => rows.push(row.to_owned()),
            }
        }
        if readme && quick {
            return Err("--readme wants rows at full length".into());
        }
        Ok(Self {
            rows,
            runs: runs.unwrap_or(if quick { RUNS_QUICK } else { RUNS }),
            quick,
            list,
            readme,
        })
    }
}

/// More runs than that are another experiment.
const RUNS_MAX: u32 = 100;

/// Measures the rows that `words` name, and writes what came of it.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, Failure> {
    let options = Options::read(words)?;
    let chosen = rows::chosen(&options.rows)?;
    if options.list {
        print!("{}", page::list(&chosen));
        return Ok(ExitCode::SUCCESS);
    }
    if options.readme && !rows::are_whole_groups(&chosen) {
        return Err("--readme wants groups with all their rows".into());
    }
    let directory = free_directory(shell)?;
    let bench = Bench {
        profile: Profile::Release,
        runs: options.runs,
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
    if options.readme && all && !shell.interrupted() {
        let sections = page::sections(&chosen, &figures, command.trim_end());
        page::put_into_readme(shell.root(), &sections)?;
    }
    Ok(match all {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Measures one quick row, so that benchmarks that nobody calls for a while still work.
pub(crate) fn try_one(shell: &mut Shell) -> Result<Tally, Failure> {
    let chosen = rows::chosen(&[TRIED.to_owned()])?;
    let bench = Bench {
        profile: Profile::Debug,
        runs: 1,
        quick: true,
        directory: shell.root().join("target"),
    };
    let figures = bench.measure(shell, &chosen);
    let table = page::table(&chosen, &figures, &format!("cargo xtask bench {TRIED}"));
    println!("{table}\nUnoptimized and once: these figures say nothing.");
    Ok(match figures.failures.first() {
        None => Tally::passed(),
        Some((name, reason)) => Tally::failed(name, reason),
    })
}

/// The row that is tried.
const TRIED: &str = "forms/one-tcp-port";

/// How programs are built.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Profile {
    /// For figures that count.
    Release,
    /// For trying whether it works.
    Debug,
}

/// How rows are measured.
struct Bench {
    profile: Profile,
    runs: u32,
    quick: bool,
    /// Where what comes of it is left.
    directory: PathBuf,
}

impl Bench {
    /// Measures `rows`, a group after the other. What cannot be measured is told, and the
    /// others are.
    fn measure(&self, shell: &mut Shell, rows: &[&'static Row]) -> Figures {
        let mut figures = Figures::default();
        for group in Group::ALL {
            let of_group = rows.iter().copied().filter(|row| row.group == group);
            let of_group: Vec<_> = of_group.collect();
            if of_group.is_empty() || shell.interrupted() {
                continue;
            }
            println!("\n== {}", group.title());
            let done = match group {
                Group::Table | Group::Changes | Group::Veth | Group::Tap => {
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

    /// Builds a package of ours, and says where its program of this name is.
    fn build(&self, shell: &mut Shell, package: &str, program: &str) -> Result<PathBuf, Failure> {
        self.build_with(shell, package, program, &[])
    }

    /// Builds a package's example of this name, and says where it is.
    fn build_example(
        &self,
        shell: &mut Shell,
        package: &str,
        example: &str,
    ) -> Result<PathBuf, Failure> {
        let words = ["build", "--package", package, "--example", example];
        self.build_by(shell, &words, &format!("examples/{example}"))
    }

    /// Builds a program, with these features.
    fn build_with(
        &self,
        shell: &mut Shell,
        package: &str,
        program: &str,
        features: &[&str],
    ) -> Result<PathBuf, Failure> {
        let features = features.join(",");
        let mut words = vec!["build", "--package", package];
        if !features.is_empty() {
            words.extend(["--features", &features]);
        }
        self.build_by(shell, &words, program)
    }

    /// Has cargo build by these words what will be at this place.
    fn build_by(
        &self,
        shell: &mut Shell,
        words: &[&str],
        program: &str,
    ) -> Result<PathBuf, Failure> {
        let mut command = Command::new(cargo());
        command.args(words);
        let folder = match self.profile {
            Profile::Release => {
                command.arg("--release");
                "target/release"
            }
            Profile::Debug => "target/debug",
        };
        match shell.run(&mut command)? {
            Outcome::Success => Ok(shell.root().join(folder).join(program)),
            outcome => Err(crate::test::explain(&outcome).into()),
        }
    }
}

/// Makes the first of `results/bench-1`, `results/bench-2` and so on that is not there yet.
fn free_directory(shell: &Shell) -> Result<PathBuf, Failure> {
    let results = shell.root().join("results");
    let free = (1_u32..)
        .map(|number| results.join(format!("bench-{number}")))
        .find(|directory| !directory.exists())
        .ok_or("there is no free number for results")?;
    fs::create_dir_all(&free)?;
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read() {
        let options = Options::read(&["forms", "--runs", "7", "--quick"]).expect("it is good");
        assert_eq!(
            (options.rows, options.runs, options.quick),
            (vec!["forms".to_owned()], 7, true)
        );
        assert!(Options::read(&["--runs", "0"]).is_err());
        assert!(Options::read(&["--fast"]).is_err());
    }

    #[test]
    fn the_readme_has_rows_at_full_length() {
        assert!(Options::read(&["--readme", "forms"]).is_ok());
        assert!(Options::read(&["--readme", "--quick"]).is_err());
    }

    #[test]
    fn the_row_that_is_tried_is_there() {
        assert_eq!(
            rows::chosen(&[TRIED.to_owned()])
                .map(|rows| rows.len())
                .ok(),
            Some(1)
        );
    }
}

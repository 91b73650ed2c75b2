//! Third-party conformance suites, run against the switch as a process: `cargo xtask conform`
//! builds it, installs the suites and starts this program.
//!
//! This program runs the switch tester of os-ken, which sends a case's frames through the
//! switch under test and compares the result. Its own switch is Open vSwitch. The program `replay`
//! runs the project's own cases on the switch and on Open vSwitch. The content of os-ken's cases
//! and their judgement belong to os-ken; `suites/os_ken/expected.toml` lists the expected failures
//! and their reasons.

#![allow(
    clippy::print_stdout,
    reason = "the output of this program is its product, for a person"
)]

mod catalogue;
mod lab;
mod run;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use suite_report::{CaseOutcome, ExpectedFailures, SuiteCase, SuiteReport};
use testbed::Failure;

use crate::catalogue::{Case, Catalogue};

/// List of expected failures.
const LIST: &str = include_str!("../os_ken/expected.toml");

/// Runs os-ken's switch tests against this project's switch.
#[derive(Debug, Parser)]
struct SuiteOptions {
    /// The Python environment with os-ken
    #[arg(long, value_name = "DIRECTORY", default_value = "target/venv-suites")]
    environment: PathBuf,
    /// The program of the switch
    #[arg(long, value_name = "FILE", default_value = "target/debug/comporta")]
    comporta: PathBuf,
    /// File for the verdicts, one JSON object per line
    #[arg(
        long,
        value_name = "FILE",
        default_value = "results/conformance/os-ken.jsonl"
    )]
    output: PathBuf,
    /// Number of labs that run in parallel
    #[arg(long, value_name = "NUMBER", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=32))]
    labs: u8,
    /// Only files with names that begin with this, as in of13/action [default: all that the switch
    /// supports]
    #[arg(value_name = "PREFIX")]
    only: Vec<String>,
}

/// Exit code of a program that SIGINT ended, by the convention of shells: 128 and the signal's
/// number.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match conform(&SuiteOptions::parse()) {
        Ok(code) => code,
        Err(failure) => {
            println!("suites: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn conform(options: &SuiteOptions) -> Result<ExitCode, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stop)).map_err(Failure::to("catch signals"))?;
    }
    let catalogue = Catalogue::read(&options.environment)?;
    let names = catalogue
        .cases()
        .map(|(case, _)| case.to_string())
        .collect();
    let expected = ExpectedFailures::read(LIST, &names)?;
    let chosen = catalogue.only(&options.only)?;
    println!(
        "os-ken's switch tests: {} cases of {} files, in {} labs",
        chosen.cases().count(),
        chosen.files.len(),
        options.labs
    );
    let verdicts = run::run(options, &chosen, &stop)?;
    let Some(verdicts) = verdicts else {
        println!("interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let outcomes = verdicts.into_iter().map(|(case, reason)| {
        let outcome = reason.map_or(CaseOutcome::Passed, CaseOutcome::Failed);
        (case.to_string(), outcome)
    });
    let cases = chosen.cases().map(|(case, title)| suite_case(&case, title));
    let report = SuiteReport::new(cases, &outcomes.collect(), &expected);
    report.write(&options.output)?;
    print!("{report}");
    println!("verdicts: {}", options.output.display());
    Ok(match report.is_as_expected() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn suite_case(case: &Case, title: &str) -> SuiteCase {
    SuiteCase {
        name: case.to_string(),
        title: title.to_owned(),
        group: case.group().to_owned(),
    }
}

//! Runs Open vSwitch's own autotest suite with Comporta's daemon in the place of `ovs-vswitchd`.
//! `cargo xtask autotest` builds the daemon, installs the sources and starts this program.
//!
//! The harness is Debian's, unmodified; it finds the daemon under the name `ovs-vswitchd` in
//! `AUTOTEST_PATH`. Only groups that start a switch run. `suites/autotest/expected.toml` lists the
//! groups that are known to fail, each with its reason. A failure that is not listed fails the run,
//! and so does a listed group that passes.

#![allow(
    clippy::print_stdout,
    reason = "the output of this program is its product, for a person"
)]

mod harness;
mod score;
mod source;
mod testsuite;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use suite_report::{ExpectedFailures, SuiteCase, SuiteReport};
use testbed::Failure;

use crate::harness::{GroupOutcomes, Harness};
use crate::source::SourceTree;
use crate::testsuite::{TestGroup, Testsuite};

/// List of expected failures.
const LIST: &str = include_str!("../../autotest/expected.toml");

/// Runs the groups of Open vSwitch's autotest suite that start a switch.
#[derive(Debug, Parser)]
struct AutotestOptions {
    /// The program that takes the place of ovs-vswitchd
    #[arg(long, value_name = "FILE", default_value = "target/debug/comporta")]
    daemon: PathBuf,
    /// Directory of the prepared sources and of the run
    #[arg(long, value_name = "DIRECTORY", default_value = "target/autotest")]
    directory: PathBuf,
    /// File for the results, one JSON object per line
    #[arg(
        long,
        value_name = "FILE",
        default_value = "results/conformance/autotest.jsonl"
    )]
    output: PathBuf,
    /// Document that receives the score by file
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// Number of groups that run in parallel: they mostly wait
    #[arg(long, value_name = "NUMBER", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Run every N-th of the chosen groups, without those that take long
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    every: u8,
    /// List the chosen groups only
    #[arg(long)]
    list: bool,
    /// Numbers (856), ranges (856-860) or files (ofproto.at) [default: all groups that start a
    /// switch]
    #[arg(value_name = "GROUPS|FILE")]
    only: Vec<String>,
}

/// Exit code of a program that SIGINT ended, by the convention of shells: 128 and the signal's
/// number.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match run(&AutotestOptions::parse()) {
        Ok(code) => code,
        Err(failure) => {
            println!("autotest: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Largest number of groups that are repeated: more have a common cause.
const REPEATED_MAX: usize = 40;

fn suite_case(group: &TestGroup) -> SuiteCase {
    SuiteCase {
        name: group.name(),
        title: format!("group {}", group.number),
        group: group.file.clone(),
    }
}

fn run(options: &AutotestOptions) -> Result<ExitCode, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stop)).map_err(Failure::to("catch signals"))?;
    }
    let source = SourceTree::prepare(&options.directory)?;
    let testsuite = Testsuite::read(&source.testsuite())?;
    let names: BTreeSet<String> = testsuite.groups.iter().map(TestGroup::name).collect();
    let expected = ExpectedFailures::read(LIST, &names)?;
    let chosen = testsuite.choose(&options.only, options.every.into())?;
    if options.list {
        for group in &chosen {
            println!("{:5} {}", group.number, group.name());
        }
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "Open vSwitch's autotest suite: {} groups that start a switch, {} in parallel",
        chosen.len(),
        options.jobs
    );
    let mut harness = Harness {
        source: &source,
        daemon: &options.daemon,
        directory: options.directory.join("run"),
        jobs: options.jobs,
    };
    let Some(mut outcomes) = harness.run(&chosen, &stop)? else {
        println!("interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let judge = |outcomes: &GroupOutcomes| {
        let cases = chosen.iter().map(suite_case);
        SuiteReport::new(cases, outcomes, &expected)
    };
    let mut report = judge(&outcomes);
    let again: BTreeSet<String> = report.unexpected_cases().map(str::to_owned).collect();
    if !again.is_empty() && again.len() <= REPEATED_MAX {
        // Many groups wait for real time, which a busy machine delays.
        println!("repeating {} groups, one by one", again.len());
        let again = chosen.iter().filter(|group| again.contains(&group.name()));
        let again: Vec<TestGroup> = again.cloned().collect();
        harness.jobs = 1;
        harness.directory = options.directory.join("repeated");
        let Some(repeated) = harness.run(&again, &stop)? else {
            println!("interrupted");
            return Ok(ExitCode::from(INTERRUPTED));
        };
        outcomes.extend(repeated);
        report = judge(&outcomes);
    }
    publish(options, (&report, &expected), &harness)?;
    Ok(match report.is_as_expected() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Prints the report, and writes the results, the score and the expected failures.
fn publish(
    options: &AutotestOptions,
    (report, expected): (&SuiteReport, &ExpectedFailures),
    harness: &Harness<'_>,
) -> Result<(), Failure> {
    report.write(&options.output)?;
    print!("{report}");
    println!("results: {}", options.output.display());
    println!("logs:    {}", harness.logs().display());
    if let Some(document) = &options.document {
        score::write(document, &report.scores(), expected)?;
        println!("score:   {}", document.display());
    }
    Ok(())
}

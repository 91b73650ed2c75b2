//! Plays the cases of `crates/pipeline/cases` on a real Open vSwitch: `cargo xtask
//! conform` starts it. Where the two differ, `crates/pipeline/cases/open_vswitch.toml`
//! says why; a difference that it does not explain fails, and so does an explanation
//! of none.
//!
//! Open vSwitch has dummy ports and a dummy clock then, so that frames come and go and
//! time passes exactly when a case says so; all else is what its users run.

#![allow(
    clippy::print_stdout,
    reason = "what this program says is its product, and it says it to a person"
)]

mod capture;
mod control;
mod explained;
mod judge;
mod peer;
mod subject;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use testbed::{Clock, Failure, Namespace, Requirement, Spawner};

use explained::Explained;
use judge::Outcome;
use subject::OpenVswitchSubject;

/// Plays the project's cases on Open vSwitch.
#[derive(Debug, Parser)]
struct Options {
    /// Where the cases are, and the explanations of differences.
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = "crates/pipeline/cases"
    )]
    cases: PathBuf,
    /// Where the outcomes are written, a line of JSON each.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "results/conformance/open-vswitch.jsonl"
    )]
    output: PathBuf,
    /// Only cases whose names begin so [default: all]
    #[arg(value_name = "PREFIX")]
    only: Vec<String>,
}

/// What a shell says of a program that Ctrl-C ended: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(Some(true)) => ExitCode::SUCCESS,
        Ok(Some(false)) => ExitCode::FAILURE,
        Ok(None) => {
            println!("interrupted");
            ExitCode::from(INTERRUPTED)
        }
        Err(failure) => {
            println!("replay: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the cases, and says whether all is as explained; nothing, if it was told to
/// end before it was done.
fn run(options: &Options) -> Result<Option<bool>, Failure> {
    let told_to_end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&told_to_end)).map_err(Failure::to("catch signals"))?;
    }
    let mut needs = vec![Requirement::Namespaces];
    needs.extend(testbed::OpenVswitch::requirements());
    testbed::check(&needs).map_err(|missing| Failure::to("run")(std::io::Error::other(missing)))?;
    let cases = cases(options)?;
    let explained = Explained::read(&options.cases.join("open_vswitch.toml"))?;
    let namespace = Namespace::new()?;
    let mut subject = OpenVswitchSubject::start(&Spawner::new()?, &namespace, &Clock::start())?;
    let mut outcomes = Vec::new();
    for (name, text) in cases {
        if told_to_end.load(Ordering::Relaxed) {
            return Ok(None);
        }
        subject.start_over()?;
        let played = testkit::case::replay(&text, &mut subject);
        outcomes.push(Outcome::new(name, played, &explained));
    }
    let stale = if options.only.is_empty() {
        explained.of_nothing(outcomes.iter().map(|outcome| outcome.case.as_str()))
    } else {
        Vec::new()
    };
    judge::write(&outcomes, &options.output)?;
    Ok(Some(judge::report(&outcomes, &stale, &options.output)))
}

/// The names and texts of the cases that are wanted, by name.
fn cases(options: &Options) -> Result<Vec<(String, String)>, Failure> {
    let failure = || Failure::to(format!("read {}", options.cases.display()));
    let mut cases = Vec::new();
    for entry in fs::read_dir(&options.cases).map_err(failure())? {
        let path = entry.map_err(failure())?.path();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let wanted = options.only.iter().any(|prefix| name.starts_with(prefix));
        if path.extension().is_some_and(|end| end == "case") && (wanted || options.only.is_empty())
        {
            cases.push((name, fs::read_to_string(&path).map_err(failure())?));
        }
    }
    cases.sort();
    Ok(cases)
}

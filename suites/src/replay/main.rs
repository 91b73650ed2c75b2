//! Runs the cases of `crates/pipeline/cases` on a real Open vSwitch, and on Comporta as users start
//! it. `cargo xtask conform` starts it. `crates/pipeline/cases/open_vswitch.toml` and
//! `comporta.toml` explain the differences from the cases; a difference without explanation fails,
//! and so does an explanation without difference.
//!
//! Open vSwitch has dummy ports and a simulated clock, so that frames and time follow the case
//! exactly; all else is the production code. Comporta has real interfaces and the machine's clock.

#![allow(
    clippy::print_stdout,
    reason = "the output of this program is its product, for a person"
)]

mod capture;
mod comporta;
mod control;
mod explained;
mod judge;
mod open_vswitch;
mod peer;
mod peers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use clap::{Parser, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use testbed::{Clock, Failure, Namespace, Requirement, Spawner};
use testkit::case::Subject;

use comporta::ComportaSubject;
use explained::Explanations;
use judge::Outcome;
use open_vswitch::OpenVswitchSubject;

/// Runs the project's cases on a running switch.
#[derive(Debug, Parser)]
struct ReplayOptions {
    /// Directory of the cases and of the explained differences
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = "crates/pipeline/cases"
    )]
    cases: PathBuf,
    /// The switch
    #[arg(long, value_enum, default_value_t = Switch::OpenVswitch)]
    on: Switch,
    /// The program `comporta`
    #[arg(long, value_name = "FILE", default_value = "target/debug/comporta")]
    comporta: PathBuf,
    /// File for the outcomes, one JSON object per line [default: results/conformance/SWITCH.jsonl]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only cases with names that begin with this [default: all]
    #[arg(value_name = "PREFIX")]
    only: Vec<String>,
}

/// Switches that can run cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    OpenVswitch,
    Comporta,
}

impl Switch {
    /// Returns the name in files.
    const fn file(self) -> &'static str {
        match self {
            Self::OpenVswitch => "open-vswitch",
            Self::Comporta => "comporta",
        }
    }

    /// Returns the name in sentences.
    const fn name(self) -> &'static str {
        match self {
            Self::OpenVswitch => "Open vSwitch",
            Self::Comporta => "comporta switch",
        }
    }

    /// Returns the list of explained differences.
    const fn list(self) -> &'static str {
        match self {
            Self::OpenVswitch => "open_vswitch.toml",
            Self::Comporta => "comporta.toml",
        }
    }

    /// Returns the requirements.
    fn needs(self) -> Vec<Requirement> {
        let mut needs = vec![Requirement::Namespaces];
        match self {
            Self::OpenVswitch => needs.extend(testbed::OpenVswitch::requirements()),
            Self::Comporta => needs.push(Requirement::Veth),
        }
        needs
    }
}

/// Switch that runs cases one by one.
trait Stage: Subject {
    /// Times to wait for the effects of an event: a case with an unexpected result is repeated with
    /// a longer one, because a busy machine may delay them.
    const LINGER: [Duration; 3];
    /// Prefixes of words that are not compared, because they depend on the machine's clock.
    const UNCERTAIN: &'static [&'static str];

    /// Begins a case, and removes the state of the previous one.
    fn start_over(&mut self, linger: Duration) -> Result<(), Failure>;
}

/// Number of cases that run in parallel on real interfaces.
const AT_ONCE: usize = 8;

/// Exit code of a program that SIGINT ended, by the convention of shells: 128 and the signal's
/// number.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match run(&ReplayOptions::parse()) {
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

/// Runs the cases, and returns true if all results are as explained; `None` if it was interrupted.
fn run(options: &ReplayOptions) -> Result<Option<bool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stop)).map_err(Failure::to("catch signals"))?;
    }
    let needs = options.on.needs();
    testbed::check(&needs).map_err(|missing| Failure::to("run")(std::io::Error::other(missing)))?;
    let explained = Explanations::read(&options.cases.join(options.on.list()))?;
    let outcomes = match options.on {
        Switch::OpenVswitch => on_open_vswitch(options, &explained, &stop)?,
        Switch::Comporta => on_comporta(options, &explained, &stop)?,
    };
    let Some(outcomes) = outcomes else {
        return Ok(None);
    };
    let stale = if options.only.is_empty() {
        explained.unknown_names(outcomes.iter().map(|outcome| outcome.case.as_str()))
    } else {
        Vec::new()
    };
    let by_default = || format!("results/conformance/{}.jsonl", options.on.file()).into();
    let output = options.output.clone().unwrap_or_else(by_default);
    judge::write(&outcomes, &output)?;
    let name = options.on.name();
    Ok(Some(judge::report(name, &outcomes, &stale, &output)))
}

/// Runs all cases on Open vSwitch; returns `None` if it was interrupted.
fn on_open_vswitch(
    options: &ReplayOptions,
    explained: &Explanations,
    stop: &AtomicBool,
) -> Result<Option<Vec<Outcome>>, Failure> {
    let namespace = Namespace::new()?;
    let mut subject = OpenVswitchSubject::start(&Spawner::new()?, &namespace, &Clock::start())?;
    let mut outcomes = Vec::new();
    for (name, text) in cases(options)? {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        outcomes.push(run_case(&name, &text, &mut subject, explained)?);
    }
    Ok(Some(outcomes))
}

/// Runs all cases on Comporta, several in parallel, since they mostly wait; returns `None` if it
/// was interrupted.
fn on_comporta(
    options: &ReplayOptions,
    explained: &Explanations,
    stop: &AtomicBool,
) -> Result<Option<Vec<Outcome>>, Failure> {
    let cases = Mutex::new(cases(options)?.into_iter());
    let play = |number| -> Result<Vec<Outcome>, Failure> {
        let (spawner, clock) = (Spawner::new()?, Clock::start());
        let program = options.comporta.clone();
        let mut subject = ComportaSubject::new(number, program, &spawner, &clock)?;
        let mut outcomes = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let next = cases.lock().expect("no thread panics with the lock").next();
            let Some((name, text)) = next else { break };
            outcomes.push(run_case(&name, &text, &mut subject, explained)?);
        }
        Ok(outcomes)
    };
    let outcomes: Result<Vec<_>, Failure> = thread::scope(|scope| {
        let players: Vec<_> = (0..AT_ONCE)
            .map(|number| scope.spawn(move || play(number)))
            .collect();
        let end =
            |player: thread::ScopedJoinHandle<'_, _>| player.join().expect("no player panics");
        players.into_iter().map(end).collect()
    });
    let mut outcomes: Vec<_> = outcomes?.into_iter().flatten().collect();
    outcomes.sort_by(|a, b| a.case.cmp(&b.case));
    Ok((!stop.load(Ordering::Relaxed)).then_some(outcomes))
}

/// Runs a case; repeats it with longer waits if the result is unexpected.
fn run_case<S: Stage>(
    name: &str,
    text: &str,
    stage: &mut S,
    explained: &Explanations,
) -> Result<Outcome, Failure> {
    let mut play = |linger| {
        stage.start_over(linger)?;
        let played = testkit::case::replay(text, stage);
        let name = name.to_owned();
        Ok(Outcome::new(name, played, explained, S::UNCERTAIN))
    };
    let [first, second, last] = S::LINGER;
    for linger in [first, second] {
        let outcome = play(linger)?;
        if outcome.is_as_explained() {
            return Ok(outcome);
        }
    }
    play(last)
}

/// Returns the names and texts of the selected cases, sorted by name.
fn cases(options: &ReplayOptions) -> Result<Vec<(String, String)>, Failure> {
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

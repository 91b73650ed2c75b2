//! A run from beginning to end: check, build, test in turns, record, report.

mod needs;
mod place;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::journal::{self, Journal, RECORDS};
use record::{Entry, Flaw, MachineRecord, Results, SCHEMA, Session, Trial};
use report::{Language, summary};
use testbed::{Clock, Machine, Program, Spawner};

use crate::calendar::rfc3339;
use crate::cores::Cores;
use crate::plan::{Step, plan};
use crate::progress::Progress;
use crate::scenario::{self, Tools};
use crate::station::Station;
use crate::trial::TrialError;
use crate::{CATALOGUE, Interrupt, LabError, Options, rest};
use needs::{requirements, wants_iperf3};
use place::Place;

/// What a run has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The report.
    pub report: PathBuf,
    /// The records.
    pub records: PathBuf,
    /// Tests done, those of the sessions before included.
    pub trials: usize,
    /// Tests among them whose outcome does not count.
    pub void: usize,
    /// What it comes to, a line for each experiment.
    pub glance: Vec<String>,
    /// Whether the user stopped it early.
    pub interrupted: bool,
}

impl Summary {
    /// What a program that did nothing else should return: 0, or 130 if the user stopped it.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        if self.interrupted {
            testbed::INTERRUPTED
        } else {
            0
        }
    }
}

/// Does the run that `options` describe, and tells `progress` how it goes. What was
/// measured is kept whatever happens; a report is written of it also after an interruption.
///
/// # Errors
/// Something is missing, a device cannot be set up, or records cannot be written.
pub fn run(
    options: &Options,
    interrupt: &Interrupt,
    progress: &mut dyn Progress,
) -> Result<Summary, LabError> {
    options.check()?;
    let machine = Machine::this();
    let cores = Cores::choose(options, machine.cores)?;
    testbed::check(&requirements(options))?;
    let (mut journal, done) = open(options)?;
    let clock = Clock::start();
    let spawner = Spawner::new()?;
    progress.note(&format!(
        "cores {:?} for the lab and its hosts, {:?} for the devices",
        cores.tester, cores.device
    ));
    let mut places = build(options, &cores, &spawner, &clock, progress)?;
    let session = session(options, &machine, &cores, &places, &spawner, &clock)?;
    journal.append(&Entry::Session(Box::new(session)))?;
    let tools = Tools {
        clock: &clock,
        spawner: &spawner,
        cores: &cores,
        interrupt,
        parameters: &options.parameters,
        options,
    };
    let steps = plan(options).into_iter().enumerate();
    let steps: Vec<(usize, Step)> = steps
        .filter(|(_, step)| !done.contains(&step.id()))
        .collect();
    let interrupted = !perform(&steps, options, &mut places, &tools, &mut journal, progress)?;
    // Devices are stopped before the report is written: nobody should wait for that with cores taken.
    drop(places);
    finish(options, interrupted)
}

/// Writes the report of the records in `directory`, and says where it is.
///
/// # Errors
/// There are no records, or they cannot be read, or the report cannot be written.
pub fn write_report(directory: &Path, language: Language) -> Result<PathBuf, LabError> {
    let results = Results::new(journal::read(directory)?, CATALOGUE);
    let html = report::render(&results, language);
    let path = directory.join("report.html");
    fs::write(&path, html).map_err(|source| LabError::Report {
        path: path.display().to_string(),
        source,
    })?;
    Ok(path)
}

/// Opens the records, and lists what need not be done again.
fn open(options: &Options) -> Result<(Journal, BTreeSet<String>), LabError> {
    let directory = &options.directory;
    let shown = directory.display().to_string();
    let there = directory.join(RECORDS).exists();
    if !options.resume {
        if there {
            return Err(LabError::Taken(shown));
        }
        fs::create_dir_all(directory)
            .map_err(testbed::Failure::to(format!("make the directory {shown}")))?;
        return Ok((Journal::create(directory)?, BTreeSet::new()));
    }
    if !there {
        return Err(LabError::NothingToResume(shown));
    }
    let (journal, entries) = Journal::resume(directory)?;
    let mut done = BTreeSet::new();
    for entry in entries {
        match entry {
            Entry::Session(session) => check_same(&session, options, &shown)?,
            Entry::Trial(trial) if trial.is_valid() => {
                done.insert(trial.id);
            }
            Entry::Trial(_) => {}
        }
    }
    Ok((journal, done))
}

/// Two sessions can only be one run if a test means the same in both.
fn check_same(session: &Session, options: &Options, directory: &str) -> Result<(), LabError> {
    let (then, now) = (&session.parameters, &options.parameters);
    // A test's size and fields are in its id: more of them do not change the others.
    let echo_differs = (then.echo.packets, then.echo.warm_up, then.echo.prober)
        != (now.echo.packets, now.echo.warm_up, now.echo.prober);
    let rate_differs = (
        then.forwarding_rate.milliseconds,
        then.forwarding_rate.frame_bytes,
    ) != (
        now.forwarding_rate.milliseconds,
        now.forwarding_rate.frame_bytes,
    );
    let differing: Vec<&str> = [
        (echo_differs, "packets, warm-up or prober of echo"),
        (
            then.tcp_throughput != now.tcp_throughput,
            "seconds of tcp-throughput",
        ),
        (rate_differs, "duration or frame size of forwarding-rate"),
        (then.flow_table != now.flow_table, "flows of flow-table"),
        (
            (then.meters.seconds, then.meters.frame_bytes)
                != (now.meters.seconds, now.meters.frame_bytes),
            "seconds or frame size of meters",
        ),
        (then.changes != now.changes, "parameters of changes"),
        (then.settings != now.settings, "profile or settings"),
        (session.seed != options.seed, "seed"),
    ]
    .into_iter()
    .filter_map(|(differs, name)| differs.then_some(name))
    .collect();
    if differing.is_empty() {
        return Ok(());
    }
    Err(LabError::OtherParameters {
        directory: directory.to_owned(),
        differing: differing.join("; "),
    })
}

/// Starts every device. One that cannot be started is told of, and tried again when its turn
/// comes, unless it is the only one.
fn build(
    options: &Options,
    cores: &Cores,
    spawner: &Spawner,
    clock: &Clock,
    progress: &mut dyn Progress,
) -> Result<Vec<Place>, LabError> {
    let (mut places, mut failed) = (Vec::new(), None);
    for &kind in &options.devices {
        match Station::build(kind, options, cores, spawner, clock) {
            Ok(station) => places.push(Place::of(kind, Ok(station))),
            Err(error) if error.is_the_devices() => {
                progress.note(&error.to_string());
                places.push(Place::of(kind, Err(&error)));
                failed.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) if places.iter().all(|place| place.station().is_none()) => Err(error),
        _ => Ok(places),
    }
}

fn session(
    options: &Options,
    machine: &Machine,
    cores: &Cores,
    places: &[Place],
    spawner: &Spawner,
    clock: &Clock,
) -> Result<Session, LabError> {
    let iperf3 = if wants_iperf3(options) {
        Some(iperf3_version(options, spawner)?)
    } else {
        None
    };
    let devices = places.iter().map(Place::record);
    Ok(Session {
        schema: SCHEMA,
        started: rfc3339(clock.calendar()),
        lab_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: options.command_line.clone(),
        seed: options.seed,
        runs: options.runs,
        planned: plan(options).len() as u64,
        parameters: options.parameters.clone(),
        machine: MachineRecord {
            kernel: machine.kernel.clone(),
            processor: machine.processor.clone(),
            cores: machine.cores,
            memory_bytes: machine.memory_bytes,
            clock_source: machine.clock_source.clone(),
            virtual_machine: machine.virtual_machine,
        },
        tester_cores: cores.tester.clone(),
        device_cores: cores.device.clone(),
        iperf3,
        devices: devices.collect::<Result<_, _>>()?,
    })
}

fn iperf3_version(options: &Options, spawner: &Spawner) -> Result<String, LabError> {
    let file = options.directory.join("iperf3-version.txt");
    let program = Program::new("iperf3").arg("--version").output(file);
    let mut process = spawner.start(program)?;
    process.wait(Duration::from_secs(5))?;
    let text = process.written()?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Does `steps` one after the other. False if the user wants no more.
fn perform(
    steps: &[(usize, Step)],
    options: &Options,
    places: &mut [Place],
    tools: &Tools<'_>,
    journal: &mut Journal,
    progress: &mut dyn Progress,
) -> Result<bool, LabError> {
    let forecast = steps.iter().map(|(_, step)| step.estimate(options)).sum();
    progress.begin(steps.len(), forecast);
    let mut passed = Duration::ZERO;
    for (order, step) in steps {
        progress.test(&step.id(), passed);
        passed += step.estimate(options);
        let others = places.iter().filter(|place| place.kind() != step.device);
        let others: Vec<&Station> = others.filter_map(Place::station).collect();
        let unrest = rest::wait(&others, tools.clock, tools.interrupt);
        let place = places
            .iter_mut()
            .find(|place| place.kind() == step.device)
            .expect("there is a place for every device of the plan");
        let Some(mut trial) = attempt(*order, step, place, tools) else {
            progress.end();
            return Ok(false);
        };
        trial.flaws.extend(unrest.map(|reason| Flaw {
            void: false,
            reason,
        }));
        progress.result(&summary::line(&trial, CATALOGUE));
        journal.append(&Entry::Trial(Box::new(trial)))?;
    }
    progress.end();
    Ok(true)
}

/// Does one test; none if the user wants no more. What goes wrong is in the trial.
fn attempt(order: usize, step: &Step, place: &mut Place, tools: &Tools<'_>) -> Option<Trial> {
    if tools.interrupt.is_set() {
        return None;
    }
    let started = rfc3339(tools.clock.calendar());
    let began = tools.clock.now();
    let mut interrupted = false;
    let (measured, told) = place.attempt(step.test.scenario(), tools, |station| {
        scenario::measure(&step.test, station, tools).map_err(|error| {
            interrupted |= matches!(error, TrialError::Interrupted);
            error.to_string()
        })
    });
    if interrupted {
        return None;
    }
    let seconds = tools.clock.now().since(began).as_secs_f64();
    let (mut flaws, conditions, outcome) = match measured {
        Ok(measured) => (
            measured.flaws,
            Some(measured.conditions),
            Some(measured.outcome),
        ),
        Err(reason) => (vec![Flaw { void: true, reason }], None, None),
    };
    flaws.extend(told.map(|reason| Flaw {
        void: false,
        reason,
    }));
    Some(Trial {
        id: step.id(),
        experiment: step.test.scenario().name().into(),
        device: step.device.name().to_owned(),
        run: step.run,
        order,
        started,
        seconds,
        flaws,
        conditions,
        outcome,
    })
}

fn finish(options: &Options, interrupted: bool) -> Result<Summary, LabError> {
    let report = write_report(&options.directory, options.language)?;
    let results = Results::new(journal::read(&options.directory)?, CATALOGUE);
    Ok(Summary {
        glance: report::glance(&results),
        report,
        records: options.directory.join(RECORDS),
        trials: results.trials().len(),
        void: results
            .trials()
            .iter()
            .filter(|trial| !trial.is_valid())
            .count(),
        interrupted,
    })
}

#[cfg(test)]
mod tests;

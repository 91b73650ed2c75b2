//! A run: checks, test setups, trials in turn, records and the report.
//!
//! ```text
//! Options -> plan -> [PlannedTrial] --+
//!                                     v
//!   DeviceSlot (shared setup) --> quiesce -> trial -> record (on disk) -> next
//!                                                            |
//!                                                            +--> report
//! ```

mod attempt;
mod device_slot;
mod requirements;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::journal::{self, Journal, RECORDS};
use record::{Entry, Flaw, MachineRecord, Results, SCHEMA, Session, SessionParameters, Settings};
use report::{Language, summary};
use testbed::{Clock, Machine, Program, Spawner};

use crate::calendar::rfc3339;
use crate::catalogue::CATALOGUE;
use crate::cores::Cores;
use crate::plan::{PlannedTrial, plan};
use crate::progress::Progress;
use crate::setup::{SetupRequest, TestSetup};
use crate::tools::{Paths, Tools};
use crate::{Interrupt, LabError, RunOptions, quiesce};
use device_slot::DeviceSlot;
use requirements::{requirements, uses_iperf3};

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Report.
    pub report: PathBuf,
    /// Records.
    pub records: PathBuf,
    /// Number of completed trials, those of earlier sessions included.
    pub trials: usize,
    /// Number of void trials among them.
    pub void: usize,
    /// Comparisons of devices, one line for each experiment.
    pub glance: Vec<String>,
    /// True if the user interrupted the run.
    pub interrupted: bool,
}

impl Summary {
    /// Returns the exit code of a program that only runs the lab: 0, or 130 after an interruption.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        if self.interrupted {
            testbed::INTERRUPTED
        } else {
            0
        }
    }
}

/// Executes the run of `options`, and reports its progress. Completed trials are kept in any case;
/// an interrupted run has a report too.
///
/// # Errors
/// A requirement is missing, a device cannot be set up, or records cannot be written.
pub fn run(
    options: &RunOptions,
    interrupt: &Interrupt,
    progress: &mut dyn Progress,
) -> Result<Summary, LabError> {
    options.check()?;
    let machine = Machine::this();
    let given = Cores {
        tester: options.tester_cores.clone(),
        device: options.device_cores.clone(),
    };
    let cores = Cores::choose(&given, machine.cores)?;
    testbed::check(&requirements(options))?;
    let (mut journal, done) = open(options)?;
    let planned = plan(options);
    let clock = Clock::start();
    let spawner = Spawner::new()?;
    progress.note(&format!(
        "cores {:?} for the lab and its hosts, {:?} for the devices",
        cores.tester, cores.device
    ));
    let paths = Paths {
        directory: options.directory.clone(),
        comporta: options.comporta.clone(),
    };
    let tools = Tools {
        clock: &clock,
        spawner: &spawner,
        cores: &cores,
        interrupt,
        paths: &paths,
    };
    let mut slots = build(options, &tools, progress)?;
    let session = session(options, &machine, planned.len(), &slots, &tools)?;
    journal.append(&Entry::Session(Box::new(session)))?;
    let pending: Vec<(usize, PlannedTrial)> = planned
        .into_iter()
        .enumerate()
        .filter(|(_, trial)| !done.contains(&trial.id()))
        .collect();
    let completed = perform(&pending, &mut slots, &tools, &mut journal, progress)?;
    // The devices end before the report is written, so that it does not have to wait for cores.
    drop(slots);
    finish(options, !completed)
}

/// Writes the report of the records in `directory`, and returns its path.
///
/// # Errors
/// The records cannot be read, or the report cannot be written.
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

/// Opens the records, and returns the identifiers of completed trials.
fn open(options: &RunOptions) -> Result<(Journal, BTreeSet<String>), LabError> {
    let directory = &options.directory;
    let shown = directory.display().to_string();
    let exists = directory.join(RECORDS).exists();
    if !options.resume {
        if exists {
            return Err(LabError::Taken(shown));
        }
        fs::create_dir_all(directory).map_err(testbed::Failure::to(format!(
            "create the directory {shown}"
        )))?;
        return Ok((Journal::create(directory)?, BTreeSet::new()));
    }
    if !exists {
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

/// Checks that the trials of an earlier session mean the same as those of this one: the constants
/// of the experiments are equal, and the seed. Axes may have other values, which are in the
/// identifiers.
fn check_same(session: &Session, options: &RunOptions, directory: &str) -> Result<(), LabError> {
    let (then, now) = (&session.parameters.settings, &options.settings);
    let differs = |name: &&'static str| {
        let experiment = CATALOGUE.find(name);
        experiment.is_some_and(|one| !constants_agree(then, now, one))
    };
    let names = options.experiments.iter().map(|one| one.name());
    let mut differing: Vec<String> = names
        .filter(differs)
        .map(|name| format!("parameters of {name}"))
        .collect();
    if session.seed != options.seed {
        differing.push("seed".to_owned());
    }
    if differing.is_empty() {
        return Ok(());
    }
    Err(LabError::OtherParameters {
        directory: directory.to_owned(),
        differing: differing.join("; "),
    })
}

/// Returns true if the constants of an experiment have the same values by both settings.
fn constants_agree(then: &Settings, now: &Settings, experiment: &record::Description) -> bool {
    match (then.constants(experiment), now.constants(experiment)) {
        (Ok(then), Ok(now)) => then == now,
        _ => false,
    }
}

/// Starts every device. A device that fails to start is reported, and started again for its next
/// trial, unless it is the only one.
fn build(
    options: &RunOptions,
    tools: &Tools<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<DeviceSlot>, LabError> {
    let (mut slots, mut failed) = (Vec::new(), None);
    for &kind in &options.devices {
        match TestSetup::build(SetupRequest::of(kind), tools) {
            Ok(setup) => slots.push(DeviceSlot::new(kind, Ok(setup))),
            Err(error) if error.is_of_one_device() => {
                progress.note(&error.to_string());
                slots.push(DeviceSlot::new(kind, Err(&error)));
                failed.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) if slots.iter().all(|slot| slot.setup().is_none()) => Err(error),
        _ => Ok(slots),
    }
}

fn session(
    options: &RunOptions,
    machine: &Machine,
    planned: usize,
    slots: &[DeviceSlot],
    tools: &Tools<'_>,
) -> Result<Session, LabError> {
    let iperf3 = match uses_iperf3(options) {
        true => Some(iperf3_version(tools)?),
        false => None,
    };
    let devices = slots.iter().map(DeviceSlot::record);
    Ok(Session {
        schema: SCHEMA,
        started: rfc3339(tools.clock.calendar()),
        lab_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: options.command_line.clone(),
        seed: options.seed,
        runs: options.runs,
        planned: planned as u64,
        parameters: SessionParameters {
            settings: options.settings.clone(),
        },
        machine: MachineRecord {
            kernel: machine.kernel.clone(),
            processor: machine.processor.clone(),
            cores: machine.cores,
            memory_bytes: machine.memory_bytes,
            clock_source: machine.clock_source.clone(),
            virtual_machine: machine.virtual_machine,
        },
        tester_cores: tools.cores.tester.clone(),
        device_cores: tools.cores.device.clone(),
        iperf3,
        devices: devices.collect::<Result<_, _>>()?,
    })
}

fn iperf3_version(tools: &Tools<'_>) -> Result<String, LabError> {
    let file = tools.paths.directory.join("iperf3-version.txt");
    let program = Program::new("iperf3").arg("--version").output(file);
    let mut process = tools.spawner.start(program)?;
    process.wait(Duration::from_secs(5))?;
    let text = process.written()?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Runs the trials in order. Returns false if the user interrupts them.
fn perform(
    trials: &[(usize, PlannedTrial)],
    slots: &mut [DeviceSlot],
    tools: &Tools<'_>,
    journal: &mut Journal,
    progress: &mut dyn Progress,
) -> Result<bool, LabError> {
    let forecast = trials.iter().map(|(_, trial)| trial.estimate()).sum();
    progress.begin(trials.len(), forecast);
    let mut passed = Duration::ZERO;
    for (order, planned) in trials {
        progress.test(&planned.id(), passed);
        passed += planned.estimate();
        let others = slots.iter().filter(|slot| slot.kind() != planned.device);
        let others: Vec<&TestSetup> = others.filter_map(DeviceSlot::setup).collect();
        let busy = quiesce::wait(&others, tools.clock, tools.interrupt);
        let slot = slots
            .iter_mut()
            .find(|slot| slot.kind() == planned.device)
            .expect("there is a slot for every device of the plan");
        let Some(mut trial) = attempt::run_trial(*order, planned, slot, tools) else {
            progress.end();
            return Ok(false);
        };
        trial.flaws.extend(busy.map(|reason| Flaw {
            void: false,
            reason,
        }));
        progress.result(&summary::line(&trial, CATALOGUE));
        journal.append(&Entry::Trial(Box::new(trial)))?;
    }
    progress.end();
    Ok(true)
}

fn finish(options: &RunOptions, interrupted: bool) -> Result<Summary, LabError> {
    let report = write_report(&options.directory, options.language)?;
    let results = Results::new(journal::read(&options.directory)?, CATALOGUE);
    let trials = results.trials();
    Ok(Summary {
        glance: report::glance(&results),
        report,
        records: options.directory.join(RECORDS),
        trials: trials.len(),
        void: trials.iter().filter(|trial| !trial.is_valid()).count(),
        interrupted,
    })
}

#[cfg(test)]
mod tests;

//! Commands of `comporta lab`: results on standard output, progress on standard error.

#![expect(clippy::print_stdout, reason = "results go to standard output")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use lab::{DeviceKind, ExperimentId, Interrupt, describe, devices, progress};
use report::Language;

use crate::lab_args::RunArgs;

/// Runs experiments and prints the path of the report.
pub(crate) fn run(mut args: RunArgs) -> Result<ExitCode, Box<dyn Error>> {
    let comporta = std::env::current_exe()?;
    let thresholds = std::mem::take(&mut args.thresholds).read()?;
    let options = args.into_options(comporta, command_line())?;
    let interrupt = Interrupt::on_signals()?;
    let summary = lab::run(&options, &interrupt, &mut *progress::on_stderr())?;
    for line in &summary.glance {
        println!("{line}");
    }
    let verdict = thresholds.judge(&options.directory)?;
    println!("{}", summary.report.display());
    let code = match summary.exit_code() {
        0 => verdict,
        interrupted => interrupted,
    };
    Ok(ExitCode::from(code))
}

/// Writes a report again and prints its path.
pub(crate) fn report(directory: &Path, language: Language) -> Result<ExitCode, Box<dyn Error>> {
    println!("{}", lab::write_report(directory, language)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Lists experiments and devices.
pub(crate) fn list() -> Result<ExitCode, Box<dyn Error>> {
    let comporta = std::env::current_exe()?;
    println!("{}", describe::experiments());
    println!("Devices");
    for device in DeviceKind::ALL {
        println!("  {:<16} {}", device.name(), device.about());
        if let Err(missing) = device.check_requirements(&comporta) {
            println!("  {:<16} not usable yet: {missing}", "");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists devices, with those of description files.
pub(crate) fn devices(described: &[DeviceKind], json: bool) -> Result<ExitCode, Box<dyn Error>> {
    let comporta = std::env::current_exe()?;
    let all = devices::list(&comporta, described);
    match json {
        true => println!("{}", devices::json(&all)),
        false => print!("{}", devices::text(&all)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Releases resources of killed runs; fails if it cannot release one.
pub(crate) fn clean() -> Result<ExitCode, Box<dyn Error>> {
    let left = devices::clean(Path::new(devices::STATE))?;
    for one in &left {
        println!("{}: {}", one.what, one.outcome);
    }
    match left.iter().any(|one| one.failed) {
        true => Ok(ExitCode::FAILURE),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Prints the method of an experiment.
pub(crate) fn show(experiment: ExperimentId) -> Result<ExitCode, Box<dyn Error>> {
    print!("{}", describe::method(experiment));
    Ok(ExitCode::SUCCESS)
}

/// Prints the plan of a run.
pub(crate) fn plan(args: RunArgs) -> Result<ExitCode, Box<dyn Error>> {
    let comporta = std::env::current_exe()?;
    let options = args.into_options(comporta, command_line())?;
    print!("{}", describe::planned(&options)?);
    Ok(ExitCode::SUCCESS)
}

/// Returns the command line, for the records.
fn command_line() -> String {
    let words: Vec<_> = std::env::args()
        .enumerate()
        .map(|(index, word)| {
            if index == 0 {
                "comporta".to_owned()
            } else {
                word
            }
        })
        .collect();
    words.join(" ")
}

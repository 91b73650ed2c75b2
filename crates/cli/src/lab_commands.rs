//! The commands of `comporta lab`: results on standard output, everything else
//! on standard error.

#![expect(clippy::print_stdout, reason = "standard output is where results go")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use lab::{DeviceKind, Interrupt, Scenario, describe, devices, progress};
use report::Language;

use crate::lab_args::RunArgs;

/// Runs experiments and prints where the report is.
pub(crate) fn run(mut args: RunArgs) -> Result<ExitCode, Box<dyn Error>> {
    let comporta = std::env::current_exe()?;
    let thresholds = std::mem::take(&mut args.thresholds).read()?;
    let options = args.into_options(comporta, command_line())?;
    let interrupt = Interrupt::on_signals()?;
    let summary = lab::run(&options, &interrupt, &mut *progress::on_stderr())?;
    for line in &summary.glance {
        println!("{line}");
    }
    let judged = thresholds.judge(&options.directory)?;
    println!("{}", summary.report.display());
    let code = match summary.exit_code() {
        0 => judged,
        interrupted => interrupted,
    };
    Ok(ExitCode::from(code))
}

/// Writes a report again and prints where it is.
pub(crate) fn report(directory: &Path, language: Language) -> Result<ExitCode, Box<dyn Error>> {
    println!("{}", lab::write_report(directory, language)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Lists what there is to measure, and to measure it on.
pub(crate) fn list() -> Result<ExitCode, Box<dyn Error>> {
    let comporta = std::env::current_exe()?;
    println!("{}", describe::scenarios());
    println!("Devices");
    for device in DeviceKind::ALL {
        println!("  {:<16} {}", device.name(), device.about());
        if let Err(missing) = device.check_requirements(&comporta) {
            println!("  {:<16} not usable yet: {missing}", "");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists devices, those that files describe among them.
pub(crate) fn devices(described: &[DeviceKind], json: bool) -> Result<ExitCode, Box<dyn Error>> {
    let comporta = std::env::current_exe()?;
    let all = devices::list(&comporta, described);
    match json {
        true => println!("{}", devices::json(&all)),
        false => print!("{}", devices::text(&all)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts back what runs have left behind. What it cannot put back is told, and fails.
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

/// Tells an experiment's method.
pub(crate) fn show(scenario: Scenario) -> Result<ExitCode, Box<dyn Error>> {
    print!("{}", describe::method(scenario));
    Ok(ExitCode::SUCCESS)
}

/// Tells what a run would do.
pub(crate) fn plan(args: RunArgs) -> Result<ExitCode, Box<dyn Error>> {
    let comporta = std::env::current_exe()?;
    let options = args.into_options(comporta, command_line())?;
    print!("{}", describe::planned(&options)?);
    Ok(ExitCode::SUCCESS)
}

/// How this program was called, for the record.
fn command_line() -> String {
    let words: Vec<_> = std::env::args()
        .enumerate()
        .map(|(place, word)| {
            if place == 0 {
                "comporta".to_owned()
            } else {
                word
            }
        })
        .collect();
    words.join(" ")
}

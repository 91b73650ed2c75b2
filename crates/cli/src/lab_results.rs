//! Commands of `comporta lab` on completed runs: comparisons, thresholds and exports.
//!
//! Exit codes of thresholds and of `--fail-on`: 1 if something is worse or not met, 4 if the runs
//! do not suffice.

#![expect(clippy::print_stdout, reason = "results go to standard output")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lab::CATALOGUE;
use record::{Results, journal};
use report::compare::{Method, compare, read_margin};
use report::export;
use report::threshold::{self, BadThreshold, INCONCLUSIVE, NOT_MET, Threshold};

/// Two runs, and the method of their comparison.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta lab compare results/run-1 results/run-2 --margin 5%")]
pub(crate) struct CompareArgs {
    /// Directory of the first run.
    before: PathBuf,
    /// Directory of the second run.
    after: PathBuf,
    /// Greatest change that counts as equal.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = read_margin)]
    margin: f64,
    /// Runs of the same number were measured in turn, so that common effects cancel.
    #[arg(long)]
    paired: bool,
    /// JSON instead of Markdown.
    #[arg(long)]
    json: bool,
    /// Finding that makes the exit code 1, or 4 if the runs do not suffice.
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
}

/// Finding that fails a comparison.
#[derive(Clone, Copy, ValueEnum)]
enum FailOn {
    /// Figure that is significantly worse.
    Regression,
}

/// Thresholds of a run.
#[derive(Args, Default)]
pub(crate) struct ThresholdArgs {
    /// Threshold, as 'echo[device=comporta].p99_us < 50' or 'tcp-throughput.bit_s >= 2.5 * ovs';
    /// the exit code is 1 if it is not met, 4 if it is inconclusive.
    #[arg(long = "threshold", value_name = "TEXT", value_parser = parse_threshold)]
    thresholds: Vec<Threshold>,
    /// File (TOML) with more thresholds.
    #[arg(long, value_name = "FILE")]
    slo: Option<PathBuf>,
    /// File for the verdicts as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Run and its thresholds.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta lab check results/run-1 --threshold 'echo.p99_us < 50'"
)]
pub(crate) struct CheckArgs {
    /// Directory of the run.
    directory: PathBuf,
    #[command(flatten)]
    thresholds: ThresholdArgs,
}

/// Run and the formats of its export.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta lab export results/run-1 --csv --markdown")]
pub(crate) struct ExportArgs {
    /// Directory of the run.
    directory: PathBuf,
    /// CSV tables, one for each experiment.
    #[arg(long)]
    csv: bool,
    /// Page of Markdown.
    #[arg(long)]
    markdown: bool,
    /// Directory for the files [default: the directory of the run].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Parsed thresholds, and the file for the verdicts.
pub(crate) struct Thresholds {
    all: Vec<Threshold>,
    junit: Option<PathBuf>,
}

impl ThresholdArgs {
    /// Parses the file before the run, so that an error in it does not show hours later.
    pub(crate) fn read(self) -> Result<Thresholds, Box<dyn Error>> {
        let mut all = self.thresholds;
        if let Some(path) = &self.slo {
            all.extend(threshold::read_rules(path, CATALOGUE)?);
        }
        let junit = self.junit;
        Ok(Thresholds { all, junit })
    }
}

impl Thresholds {
    /// Judges the run in `directory`, prints the verdicts, and returns the exit code.
    pub(crate) fn judge(&self, directory: &Path) -> Result<u8, Box<dyn Error>> {
        if self.all.is_empty() && self.junit.is_none() {
            return Ok(0);
        }
        let judgements = threshold::judge(&self.all, &read(directory)?)?;
        if let Some(path) = &self.junit {
            fs::write(path, threshold::junit(&judgements))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        print!("{}", threshold::markdown(&judgements));
        Ok(threshold::exit_code(&judgements))
    }
}

/// Prints the comparison of two runs.
pub(crate) fn compare_runs(args: &CompareArgs) -> Result<ExitCode, Box<dyn Error>> {
    let method = Method {
        margin: args.margin,
        paired: args.paired,
    };
    let comparison = compare(&read(&args.before)?, &read(&args.after)?, method);
    if args.json {
        println!("{}", comparison.json());
    } else {
        print!("{}", report::compare::markdown(&comparison));
    }
    let code = match (args.fail_on, comparison.regression()) {
        (Some(FailOn::Regression), Some(true)) => NOT_MET,
        (Some(FailOn::Regression), None) => INCONCLUSIVE,
        (Some(FailOn::Regression), Some(false)) | (None, _) => 0,
    };
    Ok(ExitCode::from(code))
}

/// Checks a run against thresholds.
pub(crate) fn check(args: CheckArgs) -> Result<ExitCode, Box<dyn Error>> {
    let thresholds = args.thresholds.read()?;
    if thresholds.all.is_empty() {
        return Err("no thresholds: expected --threshold or --slo".into());
    }
    Ok(ExitCode::from(thresholds.judge(&args.directory)?))
}

/// Writes tables and a page, or one of them if it is selected, and prints the paths.
pub(crate) fn export_run(args: &ExportArgs) -> Result<ExitCode, Box<dyn Error>> {
    let results = read(&args.directory)?;
    let out = args.out.as_ref().unwrap_or(&args.directory);
    let both = !args.csv && !args.markdown;
    let mut files = Vec::new();
    if args.csv || both {
        files.extend(export::write_csv(&results, out)?);
    }
    if args.markdown || both {
        files.push(export::write_markdown(&results, out)?);
    }
    for file in files {
        println!("{}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_threshold(text: &str) -> Result<Threshold, BadThreshold> {
    Threshold::parse(text, CATALOGUE)
}

fn read(directory: &Path) -> Result<Results, Box<dyn Error>> {
    Ok(Results::new(journal::read(directory)?, CATALOGUE))
}

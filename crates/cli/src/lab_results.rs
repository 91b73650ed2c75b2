//! The commands of `comporta lab` upon runs that were measured: they are compared, held against
//! thresholds, and handed to other programs. What is found goes to standard output.
//!
//! Exit codes: 1 something is worse or not met, 4 that cannot be told; only where it was
//! asked for.

#![expect(clippy::print_stdout, reason = "standard output is where results go")]

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

/// Two runs, and how they are compared.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta lab compare results/run-1 results/run-2 --margin 5%")]
pub(crate) struct CompareArgs {
    /// The directory of the run that was before.
    before: PathBuf,
    /// The directory of the run that came after.
    after: PathBuf,
    /// A change that nobody cares for.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = read_margin)]
    margin: f64,
    /// Runs of the same number were done in turns, so what both had in common falls out.
    #[arg(long)]
    paired: bool,
    /// JSON in place of Markdown.
    #[arg(long)]
    json: bool,
    /// What makes the exit code 1 (for certain) or 4 (it cannot be told).
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
}

/// What fails a comparison.
#[derive(Clone, Copy, ValueEnum)]
enum FailOn {
    /// A figure that is worse.
    Regression,
}

/// What results must come to.
#[derive(Args, Default)]
pub(crate) struct ThresholdArgs {
    /// What results must come to, as 'echo[device=comporta].p99_us < 50' or
    /// 'tcp-throughput.bit_s >= 2.5 * ovs'; the exit code is 1 if they do not, 4 if that cannot
    /// be told.
    #[arg(long = "threshold", value_name = "TEXT", value_parser = parse_threshold)]
    thresholds: Vec<Threshold>,
    /// A file (TOML) of more of them.
    #[arg(long, value_name = "FILE")]
    slo: Option<PathBuf>,
    /// Where to write what came of them as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// A run and what it must come to.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta lab check results/run-1 --threshold 'echo.p99_us < 50'"
)]
pub(crate) struct CheckArgs {
    /// The run's directory.
    directory: PathBuf,
    #[command(flatten)]
    thresholds: ThresholdArgs,
}

/// A run and what is made of it.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta lab export results/run-1 --csv --markdown")]
pub(crate) struct ExportArgs {
    /// The run's directory.
    directory: PathBuf,
    /// Tables of comma-separated values, one for each experiment.
    #[arg(long)]
    csv: bool,
    /// A page of Markdown.
    #[arg(long)]
    markdown: bool,
    /// Where they go [default: the run's directory].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Thresholds that were read, and where what comes of them goes.
pub(crate) struct Thresholds {
    all: Vec<Threshold>,
    junit: Option<PathBuf>,
}

impl ThresholdArgs {
    /// Reads the file too: a run that takes hours should not end with a slip in it.
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
    /// Holds the run in `directory` against them, prints what comes of it, and tells the exit code.
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

/// Prints what changed from one run to another.
pub(crate) fn compare_runs(args: &CompareArgs) -> Result<ExitCode, Box<dyn Error>> {
    let method = Method {
        margin: args.margin,
        paired: args.paired,
    };
    let found = compare(&read(&args.before)?, &read(&args.after)?, method);
    if args.json {
        println!("{}", found.json());
    } else {
        print!("{}", report::compare::markdown(&found));
    }
    let code = match (args.fail_on, found.regression()) {
        (Some(FailOn::Regression), Some(true)) => NOT_MET,
        (Some(FailOn::Regression), None) => INCONCLUSIVE,
        (Some(FailOn::Regression), Some(false)) | (None, _) => 0,
    };
    Ok(ExitCode::from(code))
}

/// Holds a run against thresholds.
pub(crate) fn check(args: CheckArgs) -> Result<ExitCode, Box<dyn Error>> {
    let thresholds = args.thresholds.read()?;
    if thresholds.all.is_empty() {
        return Err("there is nothing to check: --threshold or --slo is wanted".into());
    }
    Ok(ExitCode::from(thresholds.judge(&args.directory)?))
}

/// Writes tables and a page, both unless one is asked for, and prints where they are.
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

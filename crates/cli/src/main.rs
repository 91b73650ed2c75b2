//! `comporta`: parses the arguments, calls the crates `runtime`, `vswitchd`, `lab`, `tools`,
//! `watch` and `doctor`, and returns the exit code. It decides nothing itself.
//!
//! Exit codes: 0 success; 1 failure (one line states the reason and the remedy); 2 invalid
//! arguments, or a comparison found differences (as with `ovs-ofctl diff-flows`), or `doctor` found
//! problems; 4 inconclusive measurement; 130 interrupted (results so far are kept).

mod capture_args;
mod doctor_args;
mod dump_args;
mod input;
mod lab_args;
mod lab_commands;
mod lab_instrument;
mod lab_results;
mod manual;
mod print_args;
mod switch_args;
mod tables_args;
mod top_args;
mod trace_args;
mod vswitchd_args;
mod workers_args;

use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;

use capture_args::CaptureArgs;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use doctor_args::DoctorArgs;
use dump_args::{FlowsArgs, GroupsArgs, MetersArgs, PortsArgs, ToolOutput};
use lab_args::LabCommand;
use print_args::{ParseArgs, PrintArgs};
use switch_args::SwitchArgs;
use tables_args::TablesArgs;
use top_args::TopArgs;
use trace_args::TraceArgs;
use vswitchd::PROGRAM;
use vswitchd_args::VswitchdArgs;
use workers_args::WorkersArgs;

/// The version number, and the optional features of this build.
const VERSION: &str = match runtime::HAS_DPDK {
    true => concat!(env!("CARGO_PKG_VERSION"), ", with DPDK"),
    false => env!("CARGO_PKG_VERSION"),
};

fn main() -> ExitCode {
    let words = vswitchd_args::arguments(std::env::args_os());
    let is_daemon = words.get(1).is_some_and(|word| word == "vswitchd");
    let matches = match manual::with_manual(command()).try_get_matches_from(words) {
        Ok(matches) => matches,
        // Scripts of Open vSwitch expect this exit code.
        Err(error) if is_daemon && error.use_stderr() => {
            return complain(PROGRAM, &vswitchd_args::usage_error(&error));
        }
        Err(error) => error.exit(),
    };
    if let Some(("vswitchd", matches)) = matches.subcommand() {
        // The daemon configures its own logging.
        let done = run_vswitchd(matches);
        return done.unwrap_or_else(|error| complain(PROGRAM, &error.to_string()));
    }
    let level = matches.get_one::<String>("log");
    log_to_stderr(level.map_or("info", String::as_str));
    let done = match matches.subcommand() {
        Some(("switch", matches)) => run_switch(matches),
        Some((name, matches)) if TOOLS.contains(&name) => print_output(name, matches),
        Some(("lab", matches)) => run_lab(matches),
        Some(("top", matches)) => run_top(matches),
        Some(("capture", matches)) => run_capture(matches),
        Some(("completions", matches)) => manual::complete(&mut command(), matches),
        Some(("man", matches)) => manual::write(command(), matches),
        _ => unreachable!("a subcommand is required, and these are all"),
    };
    done.unwrap_or_else(|error| complain("comporta", &error.to_string()))
}

fn command() -> Command {
    let lab = Command::new("lab")
        .about("Measure OpenFlow data planes, this one and others, side by side")
        .subcommand_required(true)
        .arg_required_else_help(true);
    Command::new("comporta")
        .about("An OpenFlow switch in userspace, and a lab that measures OpenFlow data planes")
        .version(VERSION)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(AFTER_HELP)
        .arg(log().global(true))
        .subcommand(switch_args::command())
        // It has the log options of ovs-vswitchd.
        .subcommand(vswitchd_args::command().arg(log().hide(true)))
        .subcommand(DoctorArgs::augment_args(Command::new("doctor")))
        .subcommand(TraceArgs::augment_args(Command::new("trace")))
        .subcommand(TablesArgs::augment_args(Command::new("tables")))
        .subcommand(WorkersArgs::augment_args(Command::new("workers")))
        .subcommand(TopArgs::augment_args(Command::new("top")))
        .subcommand(CaptureArgs::augment_args(Command::new("capture")))
        .subcommand(FlowsArgs::augment_args(Command::new("flows")))
        .subcommand(GroupsArgs::augment_args(Command::new("groups")))
        .subcommand(MetersArgs::augment_args(Command::new("meters")))
        .subcommand(PortsArgs::augment_args(Command::new("ports")))
        .subcommand(PrintArgs::augment_args(Command::new("ofp-print")))
        .subcommand(ParseArgs::augment_args(Command::new("ofp-parse")))
        .subcommand(LabCommand::augment_subcommands(lab))
}

/// The log level, for all commands.
fn log() -> Arg {
    Arg::new("log")
        .long("log")
        .value_name("LEVEL")
        .help("Log level on standard error: error, warn, info, debug or trace")
        .value_parser(["error", "warn", "info", "debug", "trace"])
        .hide_possible_values(true)
        .default_value("info")
        .display_order(DISPLAY_LAST)
}

/// The position of an option after all options of a command.
const DISPLAY_LAST: usize = 900;

/// Examples after the help text.
const AFTER_HELP: &str = "\
Examples:
  comporta switch --bridge br0 --port eth1 --port eth2
  comporta doctor --cores 1 --port eth1 --port eth2
  comporta flows br0 --add tcp,tp_dst=23,actions=drop
  comporta lab run echo --device comporta,ovs --quick

`comporta COMMAND --help` describes a command; ovs-ofctl works with the bridges of a switch, too.";

fn run_switch(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let args = SwitchArgs::from_matches(matches)?;
    runtime::abort_on_panic(runtime::write_to_stderr);
    args.filter.apply()?;
    runtime::run(args.config, args.file, args.metrics)?;
    Ok(ExitCode::SUCCESS)
}

fn run_vswitchd(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    if matches.value_source("log") == Some(ValueSource::CommandLine) {
        return Err("--log: vswitchd takes the log options of ovs-vswitchd, as in -vdbg".into());
    }
    VswitchdArgs::from_arg_matches(matches)?.run()
}

/// The exit code for differences, and for problems that `doctor` found.
const DIFFERENT: u8 = 2;

/// Subcommands that query or translate, and print the result.
const TOOLS: [&str; 10] = [
    "doctor",
    "trace",
    "tables",
    "workers",
    "flows",
    "groups",
    "meters",
    "ports",
    "ofp-print",
    "ofp-parse",
];

#[expect(clippy::print_stdout, reason = "the output is the product")]
fn print_output(name: &str, matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let ToolOutput { text, differs } = match name {
        "doctor" => DoctorArgs::from_arg_matches(matches)?.examine()?,
        "flows" => FlowsArgs::from_arg_matches(matches)?.query(matches)?,
        "groups" => GroupsArgs::from_arg_matches(matches)?.query()?,
        "meters" => MetersArgs::from_arg_matches(matches)?.query()?,
        "ports" => PortsArgs::from_arg_matches(matches)?.query()?,
        "trace" => ToolOutput::same(TraceArgs::from_arg_matches(matches)?.query()?),
        "workers" => ToolOutput::same(WorkersArgs::from_arg_matches(matches)?.query()?),
        "tables" => ToolOutput::same(TablesArgs::from_arg_matches(matches)?.query()?),
        "ofp-print" => ToolOutput::same(PrintArgs::from_arg_matches(matches)?.print()?),
        _ => ToolOutput::same(ParseArgs::from_arg_matches(matches)?.parse()?),
    };
    print!("{text}");
    Ok(ExitCode::from(if differs { DIFFERENT } else { 0 }))
}

fn run_top(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    TopArgs::from_arg_matches(matches)?.run()?;
    Ok(ExitCode::SUCCESS)
}

fn run_capture(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    CaptureArgs::from_arg_matches(matches)?.run()?;
    Ok(ExitCode::SUCCESS)
}

fn run_lab(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    match LabCommand::from_arg_matches(matches)? {
        LabCommand::Run(args) => lab_commands::run(*args),
        LabCommand::Report {
            directory,
            language,
        } => lab_commands::report(&directory, language),
        LabCommand::List => lab_commands::list(),
        LabCommand::Devices { described, json } => lab_commands::devices(&described, json),
        LabCommand::Clean => lab_commands::clean(),
        LabCommand::Show { experiment } => lab_commands::show(experiment),
        LabCommand::Plan(args) => lab_commands::plan(*args),
        LabCommand::Compare(args) => lab_results::compare_runs(&args),
        LabCommand::Check(args) => lab_results::check(args),
        LabCommand::Export(args) => lab_results::export_run(&args),
        LabCommand::Instrument(command) => command.run(),
    }
}

/// Prints an error of this program as one line on standard error, and returns the exit code of a
/// failure.
#[expect(clippy::print_stderr, reason = "errors are printed on standard error")]
fn complain(program: &str, error: &str) -> ExitCode {
    eprintln!("{program}: {error}");
    ExitCode::from(1)
}

fn log_to_stderr(level: &str) {
    let filter = tracing_subscriber::EnvFilter::try_new(level).unwrap_or_default();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vswitchd_refuses_the_log_option() {
        for words in ["--log debug vswitchd", "vswitchd --log debug"] {
            let words = std::iter::once("comporta").chain(words.split(' '));
            let matches = command()
                .try_get_matches_from(words)
                .expect("valid arguments");
            let (_, matches) = matches.subcommand().expect("one is given");
            let error = run_vswitchd(matches).expect_err("it has log options of its own");
            assert!(error.to_string().contains("-vdbg"), "{error}");
        }
    }
}

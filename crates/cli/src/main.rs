//! `comporta`: arguments in, exit code out. What is to be done is done in the
//! crates `switch` and `lab`; nothing here decides anything.
//!
//! Exit codes: 0 done, 1 it could not be done (one line says why and what to do
//! about it), 2 the arguments make no sense.

mod switch_args;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Arg, Command};
use switch_args::SwitchArgs;

fn main() -> ExitCode {
    let matches = Command::new("comporta")
        .about("An OpenFlow switch in userspace, and a lab that measures OpenFlow data planes")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("log")
                .long("log")
                .global(true)
                .value_name("LEVEL")
                .help("What is told on standard error: error, warn, info, debug, trace")
                .default_value("info"),
        )
        .subcommand(switch_args::command())
        .get_matches();
    log_to_stderr(
        matches
            .get_one::<String>("log")
            .map_or("info", String::as_str),
    );
    match matches.subcommand() {
        Some(("switch", matches)) => run_switch(matches),
        _ => ExitCode::from(2),
    }
}

fn run_switch(matches: &clap::ArgMatches) -> ExitCode {
    let done = SwitchArgs::from_matches(matches)
        .map_err(switch::SwitchError::from)
        .and_then(|args| switch::run(args.config, args.file));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

/// One line on standard error, and the exit code for what could not be done.
#[expect(clippy::print_stderr, reason = "this is where a person is told")]
fn complain(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("comporta: {error}");
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

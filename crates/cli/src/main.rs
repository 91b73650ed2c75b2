//! `comporta`: arguments in, exit code out. What is to be done is done in the
//! crates `switch` and `lab`; nothing here decides anything.
//!
//! Exit codes: 0 done, 1 it could not be done (one line says why and what to do
//! about it), 2 the arguments make no sense.

mod switch_args;

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
    log_to_stderr(matches.get_one::<String>("log").map_or("info", String::as_str));
    match matches.subcommand() {
        Some(("switch", matches)) => run_switch(matches),
        _ => ExitCode::from(2),
    }
}

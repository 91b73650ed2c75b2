//! What frames cost where there is no device: tables and traffic of `testkit::workload`, run in
//! batches as workers run them, or by the switch itself from memory; and what the switch
//! takes when nothing moves. `cargo xtask bench` calls it and makes a table of what it
//! prints: a line of JSON for each sample.
//!
//! Not a judge: it knows neither bars nor what else stands in the table.

#![allow(
    clippy::print_stdout,
    reason = "samples are what this program is for, and they go to standard output"
)]

mod chosen;
mod clock;
mod crossing;
mod dpdk;
mod forms;
mod idle;
mod managed;
mod meters;
mod pcap;
mod sample;
mod startup;
mod steady;
mod stream;
mod switch;
mod trace;
mod traffic;
mod workers;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser};

/// Measures what frames cost where there is no device.
#[derive(Parser)]
#[command(name = "bench")]
enum Command {
    /// Nanoseconds a frame by each of these tables, or by all.
    Forms {
        /// Tables.
        names: Vec<String>,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Nanoseconds a frame by each kind of traffic for these lists of rules, or for all, and
    /// the slowest kind's rate beside the fastest's.
    Traffic {
        /// Lists.
        names: Vec<String>,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Frames a second that the switch forwards between ports in memory, with one worker and
    /// with two, and the memory that the second takes.
    Workers {
        /// Tables.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// By how much the worst second of meters is off, in per cent of their rate, with frames
    /// that come from memory as fast as they can.
    Meters {
        /// Rates.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Frames a second from a file to nowhere by devices of DPDK, on one core: of this
    /// switch, of Open vSwitch with DPDK, and of DPDK's own test program, which looks
    /// nothing up.
    Dpdk {
        /// Tables.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Writes frames into a FIFO as fast as they are read, addresses and ports made anew.
    Stream(stream::Stream),
    /// What the switch, and Open vSwitch, take of a core when nothing moves at four ports.
    Idle {
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Seconds that the switch, and Open vSwitch, take to be there with a thousand ports and a
    /// hundred thousand flows of a database, and what they take of memory.
    Startup {
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Frames a second that cross one bridge, and ten that are joined by patch ports, of the
    /// switch and of Open vSwitch.
    Crossing {
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Runs frames by a table once, for whoever counts the instructions of `counted`.
    Counted {
        /// The table.
        name: String,
    },
}

/// What is started, and where it keeps its files.
#[derive(Args)]
struct Programs {
    /// The program `comporta`.
    #[arg(long)]
    comporta: PathBuf,
    /// A directory for sockets, files and logs; made if it is not there.
    #[arg(long)]
    directory: PathBuf,
}

/// How often, and how long.
#[derive(Args, Clone, Copy)]
struct Rounds {
    /// Samples of each, taken turn and turn about.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// How long one takes, at least.
    #[arg(long, default_value_t = 200)]
    millis: u32,
}

/// Why something could not be measured.
type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let done: Result<(), Failure> = match Command::parse() {
        Command::Forms { names, rounds } => forms::measure(&names, rounds),
        Command::Traffic { names, rounds } => traffic::measure(&names, rounds),
        Command::Workers {
            names,
            programs,
            rounds,
        } => workers::measure(&names, &programs, rounds),
        Command::Meters {
            names,
            programs,
            rounds,
        } => meters::measure(&names, &programs, rounds),
        Command::Dpdk {
            names,
            programs,
            rounds,
        } => dpdk::measure(&names, &programs, rounds),
        Command::Stream(stream) => stream::run(&stream),
        Command::Idle { programs, rounds } => idle::measure(&programs, rounds),
        Command::Startup { programs, rounds } => startup::measure(&programs, rounds),
        Command::Crossing { programs, rounds } => crossing::measure(&programs, rounds),
        Command::Counted { name } => forms::count(&name),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

//! Benchmarks without network devices: the tables and traffic of `testkit::workload`, in batches as
//! workers run them, or in the whole switch with ports in memory; and the resources of an idle
//! switch. `cargo xtask bench` calls this program and makes a table from its output, one line of
//! JSON for each sample.
//!
//! The program does not judge its results: `cargo xtask bench` holds the limits.

#![allow(
    clippy::print_stdout,
    reason = "samples are what this program is for, and they go to standard output"
)]

mod cliffs;
mod clock;
mod connections;
mod crossing;
mod dpdk;
mod forms;
mod idle;
mod managed;
mod meters;
mod ovn;
mod pcap;
mod sample;
mod select;
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

/// Measures the cost of frames without network devices.
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
    /// Nanoseconds a frame by each kind of traffic for these rule lists, or for all, and the
    /// slowest kind's rate relative to the fastest's.
    Traffic {
        /// Rule lists.
        names: Vec<String>,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Nanoseconds a frame by these tables, or by all, without and with rules that are hard to
    /// compile.
    Cliffs {
        /// Kinds of rules.
        names: Vec<String>,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// New connections a second, memory and expiry of four million connections, and a flood of new
    /// ones, of the tracker alone.
    Connections {
        /// Measurements.
        names: Vec<String>,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Frames a second that the switch forwards between ports in memory, with one worker and with
    /// two, and the memory that the second worker requires.
    Workers {
        /// Tables.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Largest rate error of meters within a second, in per cent, at the highest rate of frames
    /// from memory.
    Meters {
        /// Rates.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Frames a second from a file to a null device with DPDK, on one core: this switch, Open
    /// vSwitch with DPDK, and `testpmd`, which forwards without a lookup.
    Dpdk {
        /// Tables.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// The same with a million flows.
    Million {
        /// Tables.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// The same with a stateful firewall.
    Ct {
        /// Tables.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// The same with rules that real controllers installed.
    Real {
        /// Tables.
        names: Vec<String>,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Writes frames into a FIFO as fast as the reader accepts them, with random addresses and
    /// ports.
    Stream(stream::Stream),
    /// Processor load of this switch and of Open vSwitch, idle with four ports.
    Idle {
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Seconds until this switch and Open vSwitch are ready with a thousand ports and a hundred
    /// thousand flows, and their memory.
    Startup {
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Time until a chassis of OVN with a hundred thousand flows forwards, its processor time and
    /// memory, and packets that it loses while rules change: this switch and Open vSwitch.
    OvnStart {
        #[command(flatten)]
        addresses: ovn::AddressCount,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Processor time and memory of many chassis of OVN with dummies as ports, and of its
    /// databases: this switch and Open vSwitch.
    OvnChassis {
        #[command(flatten)]
        chassis: ovn::ChassisCount,
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Processor time a frame through one bridge, and through ten that are joined by patch ports,
    /// of this switch and of Open vSwitch.
    Crossing {
        #[command(flatten)]
        programs: Programs,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Runs frames through a table once, to count the instructions of `counted`.
    Counted {
        /// The table.
        name: String,
    },
}

/// The program to start, and the directory for its files.
#[derive(Args)]
struct Programs {
    /// The program `comporta`.
    #[arg(long)]
    comporta: PathBuf,
    /// A directory for sockets, files and logs; created if it does not exist.
    #[arg(long)]
    directory: PathBuf,
}

/// Number and duration of samples.
#[derive(Args, Clone, Copy)]
struct Rounds {
    /// Samples of each row, interleaved.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Minimum duration of a sample, in milliseconds.
    #[arg(long, default_value_t = 200)]
    millis: u32,
}

/// The reason why a measurement failed.
type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    match Command::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

impl Command {
    fn run(self) -> Result<(), Failure> {
        match self {
            Self::Forms { names, rounds } => forms::measure(&names, rounds),
            Self::Traffic { names, rounds } => traffic::measure(&names, rounds),
            Self::Cliffs { names, rounds } => cliffs::measure(&names, rounds),
            Self::Connections { names, rounds } => connections::measure(&names, rounds),
            Self::Workers {
                names,
                programs,
                rounds,
            } => workers::measure(&names, &programs, rounds),
            Self::Meters {
                names,
                programs,
                rounds,
            } => meters::measure(&names, &programs, rounds),
            Self::Dpdk {
                names,
                programs,
                rounds,
            } => dpdk::measure(&names, &programs, rounds),
            Self::Million {
                names,
                programs,
                rounds,
            } => dpdk::measure_million(&names, &programs, rounds),
            Self::Ct {
                names,
                programs,
                rounds,
            } => dpdk::measure_ct(&names, &programs, rounds),
            Self::Real {
                names,
                programs,
                rounds,
            } => dpdk::measure_real(&names, &programs, rounds),
            Self::Stream(stream) => stream::run(&stream),
            Self::Idle { programs, rounds } => idle::measure(&programs, rounds),
            Self::Startup { programs, rounds } => startup::measure(&programs, rounds),
            Self::OvnStart {
                addresses,
                programs,
                rounds,
            } => ovn::measure_start(&programs, rounds, addresses),
            Self::OvnChassis {
                chassis,
                programs,
                rounds,
            } => ovn::measure_chassis(&programs, rounds, chassis),
            Self::Crossing { programs, rounds } => crossing::measure(&programs, rounds),
            Self::Counted { name } => forms::count(&name),
        }
    }
}

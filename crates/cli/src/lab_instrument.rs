//! The lab's instrument by hand: the arguments of `comporta lab generate`, `receive`, `reflect`, `replay`,
//! `calibrate` and `controller`, and what comes of them. Tallies go to standard output, how it
//! goes meanwhile to standard error; with `--json` both go to standard output, a line each.
//!
//! Exit codes: 4 the tester itself fell short, 130 the user ended it (the tally is that until then).

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "standard output is where results go, and a person watches meanwhile"
)]

mod send;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use lab::by_hand::{
    By, Calibrator, Listening, Place, PortName, Reception, Reflection, Role, Second, Swept,
    Turning, inside, parse_reflection,
};
use lab::{Clock, INTERRUPTED, Interrupt, VersionSet};
use send::{GenerateArgs, ReplayArgs};

/// The exit code that says that what was measured does not tell.
const INCONCLUSIVE: u8 = 4;

/// The instrument's commands.
#[derive(Subcommand)]
pub(crate) enum InstrumentCommand {
    /// Send frames by interfaces, and measure what comes out.
    Generate(Box<GenerateArgs>),
    /// Count frames that come by an interface, and what of a generator's never came.
    Receive(ReceiveArgs),
    /// Send back whatever comes by an interface.
    Reflect(ReflectArgs),
    /// Send the frames of a capture file again.
    Replay(ReplayArgs),
    /// Measure the instrument itself: its highest rates, and the delays of a bare cable.
    Calibrate(CalibrateArgs),
    /// Be an OpenFlow controller.
    Controller(ControllerArgs),
}

impl InstrumentCommand {
    /// Does it.
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self {
            Self::Generate(args) => args.run(),
            Self::Receive(args) => args.run(),
            Self::Reflect(args) => args.run(),
            Self::Replay(args) => args.run(),
            Self::Calibrate(args) => args.run(),
            Self::Controller(args) => args.run(),
        }
    }
}

/// Which interfaces, by which way, and how it is told.
#[derive(Args)]
struct CommonArgs {
    /// The namespace of interfaces that name none themselves (ip-netns(8)).
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Option<String>,
    /// By AF_XDP sockets both ways, in place of packet sockets.
    #[arg(long)]
    xdp: bool,
    /// JSON: a line a second, and the tally as the last one.
    #[arg(long)]
    json: bool,
}

impl CommonArgs {
    fn place(&self, name: PortName) -> Result<PortName, Box<dyn Error>> {
        Ok(inside(name, self.namespace.as_deref())?)
    }

    fn places(&self, names: Vec<PortName>) -> Result<Vec<PortName>, Box<dyn Error>> {
        names.into_iter().map(|name| self.place(name)).collect()
    }

    const fn by(&self) -> By {
        match self.xdp {
            true => By::Xdp,
            false => By::PacketSockets,
        }
    }

    /// Tells how it goes.
    fn tell(&self, second: &Second) {
        match self.json {
            true => println!("{}", second.json()),
            false => eprintln!("{}", second.line()),
        }
    }
}

/// What comes.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta lab receive eth1 --seconds 10 --json")]
pub(crate) struct ReceiveArgs {
    /// The interface: INTERFACE or NAMESPACE:INTERFACE.
    #[arg(value_name = "INTERFACE")]
    at: PortName,
    /// For how many seconds [default: until Ctrl-C].
    #[arg(long, value_name = "COUNT", value_parser = seconds)]
    seconds: Option<Duration>,
    /// How many frames are enough.
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    common: CommonArgs,
}

impl ReceiveArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let reception = Reception {
            at: common.place(self.at)?,
            time: self.seconds,
            frames: self.count,
            by: common.by(),
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = reception.run(&clock, &interrupt, &mut |second| common.tell(second))?;
        let (valid, ended) = (tally.is_valid(), tally.is_interrupted());
        Ok(done(common.json, tally.json(), &tally.text(), valid, ended))
    }
}

/// What is sent back.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta lab reflect eth1 --swap addresses")]
pub(crate) struct ReflectArgs {
    /// The interface: INTERFACE or NAMESPACE:INTERFACE.
    #[arg(value_name = "INTERFACE")]
    at: PortName,
    /// What is swapped: macs, or addresses of Ethernet and IP.
    #[arg(long, value_name = "WHAT", default_value = "macs", value_parser = parse_reflection)]
    swap: Reflection,
    /// For how many seconds [default: until Ctrl-C].
    #[arg(long, value_name = "COUNT", value_parser = seconds)]
    seconds: Option<Duration>,
    /// The core that it takes, all of it [default: the last].
    #[arg(long, value_name = "CORE")]
    core: Option<usize>,
    #[command(flatten)]
    common: CommonArgs,
}

impl ReflectArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let turning = Turning {
            at: common.place(self.at)?,
            reflection: self.swap,
            time: self.seconds,
            core: self.core,
            by: common.by(),
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = turning.run(&clock, &interrupt, &mut |second| common.tell(second))?;
        let (valid, ended) = (tally.is_valid(), tally.is_interrupted());
        Ok(done(common.json, tally.json(), &tally.text(), valid, ended))
    }
}

/// What the instrument can do.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta lab calibrate\n  comporta lab calibrate enp3s0f0 enp3s0f1 --sweep load --size 150"
)]
pub(crate) struct CalibrateArgs {
    /// The two ends of a cable [default: a cable of its own].
    #[arg(value_name = "INTERFACE", num_args = 2)]
    between: Vec<PortName>,
    /// What is varied: size, load, or both.
    #[arg(long, value_name = "WHAT", default_value = "both")]
    sweep: Swept,
    /// Bytes of frames with their checksum (FCS); loads are of the first.
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_values_t = [150, 64, 512, 1_518])]
    size: Vec<u16>,
    /// Loads in per cent of the highest rate.
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_values_t = [1, 10, 25, 50, 75, 90, 100, 110],
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    load: Vec<u32>,
    /// Milliseconds of each trial; there are some nine for each size, and one for each load.
    #[arg(long, value_name = "COUNT", default_value_t = 300, value_parser = clap::value_parser!(u64).range(20..=60_000))]
    millis: u64,
    /// One core to send and one to receive [default: one thread, on any core].
    #[arg(long, value_name = "CORE,CORE", value_delimiter = ',')]
    cores: Vec<usize>,
    #[command(flatten)]
    common: CommonArgs,
}

impl CalibrateArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let between = common.places(self.between)?;
        let calibrator = Calibrator {
            between: between.try_into().ok(),
            swept: self.sweep,
            sizes: self.size,
            loads: self.load,
            trial: Duration::from_millis(self.millis),
            by: common.by(),
            cores: self.cores,
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = calibrator.run(&clock, &interrupt)?;
        let ended = tally.is_interrupted();
        Ok(done(common.json, tally.json(), &tally.text(), true, ended))
    }
}

/// A controller.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta lab controller --application learning\n  \
                  comporta lab controller --listen unix:/run/br0.controller --rules flows.txt --versions OpenFlow13"
)]
pub(crate) struct ControllerArgs {
    /// Where switches call: ADDRESS:PORT or unix:PATH.
    #[arg(long, value_name = "PLACE", default_value = "127.0.0.1:6653")]
    listen: Place,
    /// What it does by itself: silent, learning or hub.
    #[arg(long, value_name = "NAME", default_value = "silent")]
    application: Role,
    /// A file of rules, as `ovs-ofctl add-flows` takes them: each switch is left with these and no
    /// others.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The versions of OpenFlow that it may speak [default: all].
    #[arg(long, value_name = "VERSION,...")]
    versions: Option<VersionSet>,
    /// For how many seconds [default: until Ctrl-C].
    #[arg(long, value_name = "COUNT", value_parser = seconds)]
    seconds: Option<Duration>,
    /// The tally as a line of JSON.
    #[arg(long)]
    json: bool,
}

impl ControllerArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let listening = Listening {
            at: self.listen,
            role: self.application,
            rules: self.rules,
            versions: self.versions.unwrap_or(VersionSet::ALL),
            time: self.seconds,
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = listening.run(&clock, &interrupt, &mut |line| eprintln!("{line}"))?;
        let ended = tally.is_interrupted();
        Ok(done(self.json, tally.json(), &tally.text(), true, ended))
    }
}

/// Prints the tally, and says by the exit code what it is worth.
fn done(
    json: bool,
    line: impl std::fmt::Display,
    text: &str,
    is_valid: bool,
    is_interrupted: bool,
) -> ExitCode {
    match json {
        true => println!("{line}"),
        false => print!("{text}"),
    }
    ExitCode::from(match (is_interrupted, is_valid) {
        (true, _) => INTERRUPTED,
        (false, false) => INCONCLUSIVE,
        (false, true) => 0,
    })
}

/// More is no trial any more.
const SECONDS_MAX: f64 = 1e7;

/// Seconds, which need not be whole.
fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| (0.001..=SECONDS_MAX).contains(number));
    let wanted = || format!("'{text}' is no time: seconds from 0.001 to {SECONDS_MAX} are wanted");
    number.map(Duration::from_secs_f64).ok_or_else(wanted)
}

#[cfg(test)]
mod tests;

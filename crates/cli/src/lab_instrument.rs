//! The lab's instruments as commands: the arguments of `comporta lab generate`, `receive`,
//! `reflect`, `replay`, `calibrate` and `controller`, and their output. The summary is printed on
//! standard output, progress on standard error; with `--json` both are lines on standard output.
//!
//! Exit codes: 4 the tester itself fell short, 130 the user interrupted it (the summary covers the
//! time until then).

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "results go to standard output, progress to standard error"
)]

mod send;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use lab::instrument::{
    Calibrator, ControllerCommand, ControllerEndpoint, IoMethod, PortName, ProgressReport,
    Reception, Reflection, ReflectorOptions, Role, SweepParameter, inside, parse_reflection,
};
use lab::{Clock, INTERRUPTED, Interrupt, VersionSet};
use send::{GenerateArgs, ReplayArgs};

/// The exit code of an inconclusive measurement.
const INCONCLUSIVE: u8 = 4;

/// Commands of the instrument.
#[derive(Subcommand)]
pub(crate) enum InstrumentCommand {
    /// Send frames from interfaces, and measure their reception.
    Generate(Box<GenerateArgs>),
    /// Count received frames, and the losses of a generator's frames.
    Receive(ReceiveArgs),
    /// Return all received frames to their sender.
    Reflect(ReflectArgs),
    /// Send the frames of a capture file.
    Replay(ReplayArgs),
    /// Measure the instrument itself: its maximum rates, and the delay of a bare link.
    Calibrate(CalibrateArgs),
    /// Run an OpenFlow controller.
    Controller(ControllerArgs),
}

impl InstrumentCommand {
    /// Runs the command.
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

/// Common arguments: interfaces, sockets and output.
#[derive(Args)]
struct CommonArgs {
    /// The namespace of interfaces without an own one (ip-netns(8)).
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Option<String>,
    /// Use AF_XDP sockets instead of packet sockets in both directions.
    #[arg(long)]
    xdp: bool,
    /// Print JSON: one line per second, and the summary as the last line.
    #[arg(long)]
    json: bool,
}

impl CommonArgs {
    fn in_namespace(&self, name: PortName) -> Result<PortName, Box<dyn Error>> {
        Ok(inside(name, self.namespace.as_deref())?)
    }

    fn in_namespaces(&self, names: Vec<PortName>) -> Result<Vec<PortName>, Box<dyn Error>> {
        names
            .into_iter()
            .map(|name| self.in_namespace(name))
            .collect()
    }

    const fn by(&self) -> IoMethod {
        match self.xdp {
            true => IoMethod::Xdp,
            false => IoMethod::PacketSockets,
        }
    }

    /// Prints the progress.
    fn report(&self, second: &ProgressReport) {
        match self.json {
            true => println!("{}", second.json()),
            false => eprintln!("{}", second.line()),
        }
    }
}

/// Arguments of the receiver.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta lab receive eth1 --seconds 10 --json")]
pub(crate) struct ReceiveArgs {
    /// The interface: INTERFACE or NAMESPACE:INTERFACE.
    #[arg(value_name = "INTERFACE")]
    at: PortName,
    /// Duration in seconds [default: until Ctrl-C].
    #[arg(long, value_name = "COUNT", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Stop after this number of frames.
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    common: CommonArgs,
}

impl ReceiveArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let reception = Reception {
            at: common.in_namespace(self.at)?,
            time: self.seconds,
            frames: self.count,
            by: common.by(),
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = reception.run(&clock, &interrupt, &mut |second| common.report(second))?;
        let (valid, ended) = (tally.is_valid(), tally.is_interrupted());
        Ok(done(common.json, tally.json(), &tally.text(), valid, ended))
    }
}

/// Arguments of the reflector.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta lab reflect eth1 --swap addresses")]
pub(crate) struct ReflectArgs {
    /// The interface: INTERFACE or NAMESPACE:INTERFACE.
    #[arg(value_name = "INTERFACE")]
    at: PortName,
    /// Addresses to swap: macs, or addresses (Ethernet and IP).
    #[arg(long, value_name = "WHAT", default_value = "macs", value_parser = parse_reflection)]
    swap: Reflection,
    /// Duration in seconds [default: until Ctrl-C].
    #[arg(long, value_name = "COUNT", value_parser = seconds)]
    seconds: Option<Duration>,
    /// The core, fully used by busy polling [default: the last].
    #[arg(long, value_name = "CORE")]
    core: Option<usize>,
    #[command(flatten)]
    common: CommonArgs,
}

impl ReflectArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let turning = ReflectorOptions {
            at: common.in_namespace(self.at)?,
            reflection: self.swap,
            time: self.seconds,
            core: self.core,
            by: common.by(),
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = turning.run(&clock, &interrupt, &mut |second| common.report(second))?;
        let (valid, ended) = (tally.is_valid(), tally.is_interrupted());
        Ok(done(common.json, tally.json(), &tally.text(), valid, ended))
    }
}

/// Arguments of the calibration.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta lab calibrate\n  comporta lab calibrate enp3s0f0 enp3s0f1 --sweep load --size 150"
)]
pub(crate) struct CalibrateArgs {
    /// The two ends of a link [default: a new link between two namespaces].
    #[arg(value_name = "INTERFACE", num_args = 2)]
    between: Vec<PortName>,
    /// The varied parameter: size, load, or both.
    #[arg(long, value_name = "WHAT", default_value = "both")]
    sweep: SweepParameter,
    /// Frame sizes in bytes, with the checksum (FCS); loads use the first size.
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_values_t = [150, 64, 512, 1_518])]
    size: Vec<u16>,
    /// Loads in percent of the maximum rate.
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_values_t = [1, 10, 25, 50, 75, 90, 100, 110],
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    load: Vec<u32>,
    /// Milliseconds of each trial; there are about nine per size, and one per load.
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
        let between = common.in_namespaces(self.between)?;
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

/// Arguments of the controller.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta lab controller --application learning\n  \
                  comporta lab controller --listen unix:/run/br0.controller --rules flows.txt --versions OpenFlow13"
)]
pub(crate) struct ControllerArgs {
    /// The address for switches: ADDRESS:PORT or unix:PATH.
    #[arg(long, value_name = "PLACE", default_value = "127.0.0.1:6653")]
    listen: ControllerEndpoint,
    /// The application: silent, learning or hub.
    #[arg(long, value_name = "NAME", default_value = "silent")]
    application: Role,
    /// A file of rules in the syntax of `ovs-ofctl add-flows`, which replace all rules of each
    /// switch.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The OpenFlow versions [default: all].
    #[arg(long, value_name = "VERSION,...")]
    versions: Option<VersionSet>,
    /// Duration in seconds [default: until Ctrl-C].
    #[arg(long, value_name = "COUNT", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Print the summary as a line of JSON.
    #[arg(long)]
    json: bool,
}

impl ControllerArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let listening = ControllerCommand {
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

/// Prints the summary, and returns the exit code.
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

/// Maximum duration of a trial, in seconds.
const SECONDS_MAX: f64 = 1e7;

/// Parses a number of seconds, which may have a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| (0.001..=SECONDS_MAX).contains(number));
    let invalid =
        || format!("'{text}' is not a time: expected seconds from 0.001 to {SECONDS_MAX}");
    number.map(Duration::from_secs_f64).ok_or_else(invalid)
}

#[cfg(test)]
mod tests;

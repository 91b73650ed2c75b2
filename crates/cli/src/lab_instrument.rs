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

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use lab::by_hand::{
    Bound, By, Calibrator, Generation, Listening, Looks, Mac, Pattern, Place, PortName, Reception,
    Reflection, Replay, Role, Second, Shape, Size, Speed, Station, Swept, Target, Turning, inside,
};
use lab::{Clock, INTERRUPTED, Interrupt, Versions};

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

/// Where frames come out.
#[derive(Args)]
struct TargetArgs {
    /// Where they come out, and are measured: one interface, or one for each that sends.
    #[arg(long, value_name = "INTERFACE,...", value_delimiter = ',')]
    to: Vec<PortName>,
    /// They come back to where they went in, sent by `comporta lab reflect` or its like, which
    /// swaps macs or addresses.
    #[arg(long, value_name = "WHAT", conflicts_with = "to", num_args = 0..=1, default_missing_value = "macs")]
    reflected: Option<Reflection>,
}

impl TargetArgs {
    fn target(self, common: &CommonArgs) -> Result<Target, Box<dyn Error>> {
        Ok(match self.reflected {
            Some(reflection) => Target::Back(reflection),
            None if self.to.is_empty() => Target::Nobody,
            None => Target::Interfaces(common.places(self.to)?),
        })
    }
}

/// Frames that are made.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta lab generate eth0 --to eth1 --rate 100kpps --size 64,512,imix\n  \
                  comporta lab generate lab:eth0 --frames vxlan+tcp --flows 10000 --random --rate flat-out"
)]
pub(crate) struct GenerateArgs {
    /// The interfaces that send: INTERFACE or NAMESPACE:INTERFACE.
    #[arg(required = true, value_name = "INTERFACE")]
    from: Vec<PortName>,
    #[command(flatten)]
    target: TargetArgs,
    /// How fast each of them does, several one after the other: 10kpps, 1.5Mpps, 100Mbit (of the
    /// line, with preambles and gaps), flat-out.
    #[arg(
        long,
        value_name = "RATE,...",
        value_delimiter = ',',
        default_value = "10kpps"
    )]
    rate: Vec<Speed>,
    /// Bytes of frames with their checksum (FCS), several one after the other; imix is 7 of 64, 4 of
    /// 570, 1 of 1518.
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "64"
    )]
    size: Vec<Size>,
    /// How frames follow each other: constant, poisson, burst or burst:FRAMES.
    #[arg(long, value_name = "PATTERN", default_value = "constant")]
    pattern: Pattern,
    /// Seconds of each trial.
    #[arg(long, value_name = "COUNT", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Frames of each trial, in place of seconds.
    #[arg(long, value_name = "FRAMES", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The cores for the instrument: one for both, or one to send and one to receive [default: one
    /// thread, on any core].
    #[arg(long, value_name = "CORE,...", value_delimiter = ',')]
    cores: Vec<usize>,
    #[command(flatten)]
    looks: LooksArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// What frames look like.
#[derive(Args)]
struct LooksArgs {
    /// What they carry (udp, udp6, tcp, icmp), what is around it (vlan, qinq, mpls, vxlan, gre,
    /// geneve), or both: vlan+tcp.
    #[arg(long, value_name = "KIND", default_value = "udp")]
    frames: Shape,
    /// How many flows they are of: their sources' IP addresses differ.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    flows: u32,
    /// Flows come by lot, and not one after the other.
    #[arg(long)]
    random: bool,
    /// What determines lots.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Ethernet address that they are from.
    #[arg(long, value_name = "MAC")]
    source_mac: Option<Mac>,
    /// Ethernet address that they are for.
    #[arg(long, value_name = "MAC")]
    destination_mac: Option<Mac>,
    /// IPv4 address that they are from.
    #[arg(long, value_name = "ADDRESS")]
    source_address: Option<Ipv4Addr>,
    /// IPv4 address that they are for.
    #[arg(long, value_name = "ADDRESS")]
    destination_address: Option<Ipv4Addr>,
    /// UDP or TCP port that they are from.
    #[arg(long, value_name = "PORT")]
    source_port: Option<u16>,
    /// UDP or TCP port that they are for.
    #[arg(long, value_name = "PORT")]
    destination_port: Option<u16>,
    /// Their VLAN, where they have one.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    vid: u16,
    /// Their MPLS label, where they have one.
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    label: u32,
    /// The network of a tunnel, where they are in one.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    vni: u32,
    /// Their class (DSCP).
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    dscp: u8,
}

impl LooksArgs {
    const fn looks(&self) -> Looks {
        Looks {
            shape: self.frames,
            source: Station {
                mac: self.source_mac,
                address: self.source_address,
                port: self.source_port,
            },
            destination: Station {
                mac: self.destination_mac,
                address: self.destination_address,
                port: self.destination_port,
            },
            vid: self.vid,
            label: self.label,
            vni: self.vni,
            dscp: self.dscp,
            flows: self.flows,
            random: self.random,
            seed: self.seed,
        }
    }
}

impl GenerateArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let generation = Generation {
            from: common.places(self.from)?,
            target: self.target.target(&common)?,
            looks: self.looks.looks(),
            sizes: self.size,
            speeds: self.rate,
            pattern: self.pattern,
            bound: self.count.map_or(Bound::Time(self.seconds), Bound::Frames),
            by: common.by(),
            cores: self.cores,
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = generation.run(&clock, &interrupt, &mut |second| common.tell(second))?;
        let (valid, ended) = (tally.is_valid(), tally.is_interrupted());
        Ok(done(common.json, tally.json(), &tally.text(), valid, ended))
    }
}

/// Frames of a file.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta lab replay trace.pcap eth0 --speed 2\n  \
                  comporta lab replay trace.pcap eth0 --to eth1 --rate 50kpps --loop 10"
)]
pub(crate) struct ReplayArgs {
    /// The file, as libpcap (pcap) or Wireshark (pcapng) writes it.
    file: PathBuf,
    /// The interface that sends: INTERFACE or NAMESPACE:INTERFACE.
    #[arg(value_name = "INTERFACE")]
    from: PortName,
    #[command(flatten)]
    target: TargetArgs,
    /// How much faster than they were recorded: 0.5 is half as fast.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = percent, conflicts_with = "rate")]
    speed: u32,
    /// How fast, in place of as they were recorded: as for `generate`.
    #[arg(long, value_name = "RATE")]
    rate: Option<Speed>,
    /// How often the file is sent; 0 is without end.
    #[arg(long = "loop", value_name = "COUNT", default_value_t = 1)]
    loops: u32,
    /// The cores for the instrument, as for `generate`.
    #[arg(long, value_name = "CORE,...", value_delimiter = ',')]
    cores: Vec<usize>,
    #[command(flatten)]
    common: CommonArgs,
}

impl ReplayArgs {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let replay = Replay {
            file: self.file,
            from: common.place(self.from)?,
            target: self.target.target(&common)?,
            speed: self.rate,
            percent: self.speed,
            loops: (self.loops > 0).then_some(self.loops),
            by: common.by(),
            cores: self.cores,
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = replay.run(&clock, &interrupt, &mut |second| common.tell(second))?;
        let (valid, ended) = (tally.is_valid(), tally.is_interrupted());
        Ok(done(common.json, tally.json(), &tally.text(), valid, ended))
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
    #[arg(long, value_name = "WHAT", default_value = "macs")]
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
    versions: Option<Versions>,
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
            versions: self.versions.unwrap_or(Versions::ALL),
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

/// A factor as per cent.
fn percent(text: &str) -> Result<u32, String> {
    let number: Option<f64> = text.parse().ok();
    let percent = number.map(|number| (number * 100.0).round());
    let percent = percent.filter(|percent| (1.0..=1e6).contains(percent));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is from 1 to a million"
    )]
    let percent = percent.map(|percent| percent as u32);
    percent.ok_or_else(|| format!("'{text}' is no speed: 0.01 to 10000 is wanted"))
}

#[cfg(test)]
mod tests;

//! The arguments of the commands that send frames: `comporta lab generate` and `replay`.

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lab::instrument::{
    Addresses, Bound, FrameKind, Generation, HeaderOptions, Mac, Pattern, PortName, Reflection,
    Replay, Size, Speed, Target, parse_reflection,
};
use lab::{Clock, Interrupt};

use super::{CommonArgs, done, seconds};

/// The receivers of frames.
#[derive(Args)]
pub(super) struct TargetArgs {
    /// The receiving interfaces: one, or one for each sender.
    #[arg(long, value_name = "INTERFACE,...", value_delimiter = ',')]
    pub(super) to: Vec<PortName>,
    /// Receive on the sending interfaces: `comporta lab reflect` or a similar tool returns the
    /// frames with swapped macs or addresses.
    #[arg(long, value_name = "WHAT", conflicts_with = "to", num_args = 0..=1, default_missing_value = "macs", value_parser = parse_reflection)]
    reflected: Option<Reflection>,
}

impl TargetArgs {
    pub(super) fn target(self, common: &CommonArgs) -> Result<Target, Box<dyn Error>> {
        Ok(match self.reflected {
            Some(reflection) => Target::Back(reflection),
            None if self.to.is_empty() => Target::Nobody,
            None => Target::Interfaces(common.in_namespaces(self.to)?),
        })
    }
}

/// Arguments of the generator.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta lab generate eth0 --to eth1 --rate 100kpps --size 64,512,imix\n  \
                  comporta lab generate lab:eth0 --frames vxlan+tcp --flows 10000 --random --rate flat-out"
)]
pub(crate) struct GenerateArgs {
    /// The interfaces that send: INTERFACE or NAMESPACE:INTERFACE.
    #[arg(required = true, value_name = "INTERFACE")]
    pub(super) from: Vec<PortName>,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// Rates of each interface, measured in turn: 10kpps, 1.5Mpps, 100Mbit (on the line, with
    /// preambles and gaps), flat-out.
    #[arg(
        long,
        value_name = "RATE,...",
        value_delimiter = ',',
        default_value = "10kpps"
    )]
    pub(super) rate: Vec<Speed>,
    /// Frame sizes in bytes, with the checksum (FCS), measured in turn; imix is 7 of 64, 4 of 570,
    /// 1 of 1518.
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "64"
    )]
    pub(super) size: Vec<Size>,
    /// Spacing of frames: constant, poisson, burst or burst:FRAMES.
    #[arg(long, value_name = "PATTERN", default_value = "constant")]
    pub(super) pattern: Pattern,
    /// Seconds of each trial.
    #[arg(long, value_name = "COUNT", default_value = "10", value_parser = seconds)]
    pub(super) seconds: Duration,
    /// Frames of each trial, instead of seconds.
    #[arg(long, value_name = "FRAMES", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Cores of the instrument: one for both directions, or one to send and one to receive
    /// [default: one thread, on any core].
    #[arg(long, value_name = "CORE,...", value_delimiter = ',')]
    cores: Vec<usize>,
    #[command(flatten)]
    pub(super) headers: LooksArgs,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// Template of the frames.
#[derive(Args)]
pub(super) struct LooksArgs {
    /// Payload (udp, udp6, tcp, icmp), encapsulation (vlan, qinq, mpls, vxlan, gre, geneve), or
    /// both: vlan+tcp.
    #[arg(long, value_name = "KIND", default_value = "udp")]
    frames: FrameKind,
    /// Number of flows, which differ in their IP source address.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    flows: u32,
    /// Pick flows at random instead of round-robin.
    #[arg(long)]
    random: bool,
    /// Seed of the random selection.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Source MAC address.
    #[arg(long, value_name = "MAC")]
    source_mac: Option<Mac>,
    /// Destination MAC address.
    #[arg(long, value_name = "MAC")]
    destination_mac: Option<Mac>,
    /// Source IPv4 address.
    #[arg(long, value_name = "ADDRESS")]
    source_address: Option<Ipv4Addr>,
    /// Destination IPv4 address.
    #[arg(long, value_name = "ADDRESS")]
    destination_address: Option<Ipv4Addr>,
    /// UDP or TCP source port.
    #[arg(long, value_name = "PORT")]
    source_port: Option<u16>,
    /// UDP or TCP destination port.
    #[arg(long, value_name = "PORT")]
    destination_port: Option<u16>,
    /// VLAN, of tagged frames.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    vid: u16,
    /// MPLS label, of MPLS frames.
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    label: u32,
    /// Network identifier (VNI), of tunnelled frames.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    vni: u32,
    /// DSCP.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    dscp: u8,
}

impl LooksArgs {
    pub(super) const fn headers(&self) -> HeaderOptions {
        HeaderOptions {
            kind: self.frames,
            source: Addresses {
                mac: self.source_mac,
                address: self.source_address,
                port: self.source_port,
            },
            destination: Addresses {
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
    pub(super) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let generation = Generation {
            from: common.in_namespaces(self.from)?,
            target: self.target.target(&common)?,
            headers: self.headers.headers(),
            sizes: self.size,
            speeds: self.rate,
            pattern: self.pattern,
            bound: self.count.map_or(Bound::Time(self.seconds), Bound::Frames),
            by: common.by(),
            cores: self.cores,
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = generation.run(&clock, &interrupt, &mut |second| common.report(second))?;
        let (valid, ended) = (tally.is_valid(), tally.is_interrupted());
        Ok(done(common.json, tally.json(), &tally.text(), valid, ended))
    }
}

/// Arguments of the replay.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  comporta lab replay trace.pcap eth0 --speed 2\n  \
                  comporta lab replay trace.pcap eth0 --to eth1 --rate 50kpps --loop 10"
)]
pub(crate) struct ReplayArgs {
    /// The capture file, in the format of libpcap (pcap) or Wireshark (pcapng).
    file: PathBuf,
    /// The interface that sends: INTERFACE or NAMESPACE:INTERFACE.
    #[arg(value_name = "INTERFACE")]
    from: PortName,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// Speed relative to the recording: 0.5 is half as fast.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = percent, conflicts_with = "rate")]
    speed: u32,
    /// Rate instead of the recorded times, as for `generate`.
    #[arg(long, value_name = "RATE")]
    rate: Option<Speed>,
    /// Number of repetitions of the file; 0 is endless.
    #[arg(long = "loop", value_name = "COUNT", default_value_t = 1)]
    loops: u32,
    /// Cores of the instrument, as for `generate`.
    #[arg(long, value_name = "CORE,...", value_delimiter = ',')]
    cores: Vec<usize>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

impl ReplayArgs {
    pub(super) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let common = self.common;
        let replay = Replay {
            file: self.file,
            from: common.in_namespace(self.from)?,
            target: self.target.target(&common)?,
            speed: self.rate,
            percent: self.speed,
            loops: (self.loops > 0).then_some(self.loops),
            by: common.by(),
            cores: self.cores,
        };
        let (clock, interrupt) = (Clock::start(), Interrupt::on_signals()?);
        let tally = replay.run(&clock, &interrupt, &mut |second| common.report(second))?;
        let (valid, ended) = (tally.is_valid(), tally.is_interrupted());
        Ok(done(common.json, tally.json(), &tally.text(), valid, ended))
    }
}

/// Parses a factor, and returns it in percent.
fn percent(text: &str) -> Result<u32, String> {
    let number: Option<f64> = text.parse().ok();
    let percent = number.map(|number| (number * 100.0).round());
    let percent = percent.filter(|percent| (1.0..=1e6).contains(percent));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is from 1 to a million"
    )]
    let percent = percent.map(|percent| percent as u32);
    percent.ok_or_else(|| format!("'{text}' is not a speed: expected 0.01 to 10000"))
}

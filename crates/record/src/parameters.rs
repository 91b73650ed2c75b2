//! How the experiments are done, with the defaults of the published ones, and the bounds within
//! which that makes sense.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{MatchSet, Prober, Settings};

/// The smallest frame of Ethernet, in bytes with its checksum.
const FRAME_BYTES_MIN: u16 = 64;
/// The largest that crosses a link with the usual MTU of 1,500 bytes.
const FRAME_BYTES_MAX: u16 = 1_518;
/// More would make a record of one test too long to handle: some 6 MB.
const PACKETS_MAX: u32 = 1_000_000;
/// What Open vSwitch takes in one table, and we nearly.
const FLOWS_MAX: u32 = 1_000_000;
/// Below the first a second has too few frames to speak of per cents; no generator here
/// comes near the last.
const METERED: RangeInclusive<u32> = 100..=10_000_000;
/// What iperf3 takes.
const STREAMS_MAX: u32 = 128;
/// Of each frame it is remembered when it was sent: some 300 MB of these.
const CHANGED_FRAMES_MAX: u64 = 20_000_000;
/// More than any device here takes.
const FLOW_MODS_MAX: u32 = 1_000_000;
/// An hour: more is a soak, and another experiment.
const TEST_MAX: Duration = Duration::from_secs(3_600);

/// An option that makes no sense; the text says what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOption(pub String);

/// What determines a test's meaning: two runs with the same parameters can be one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Of the scenario `echo`.
    pub echo: EchoParameters,
    /// Of the scenario `tcp-throughput`.
    pub tcp_throughput: TcpParameters,
    /// Of the scenario `forwarding-rate`.
    pub forwarding_rate: RateParameters,
    /// Of the scenario `flow-table`.
    #[serde(default)]
    pub flow_table: FlowTableParameters,
    /// Of the scenario `meters`.
    #[serde(default)]
    pub meters: MeterParameters,
    /// Of the scenario `changes`.
    #[serde(default)]
    pub changes: ChangeParameters,
    /// Of those of the catalogue.
    #[serde(default)]
    pub settings: Settings,
}

/// How echoes are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EchoParameters {
    /// Echoes a test, after the warm-up.
    pub packets: u32,
    /// Echoes before these, which fill caches and are not counted.
    pub warm_up: u32,
    /// Sizes of frames in bytes, from the Ethernet header to the checksum (FCS).
    pub frame_bytes: Vec<u16>,
    /// What the rules match on.
    pub match_sets: Vec<MatchSet>,
    /// How they are sent and awaited.
    pub prober: Prober,
}

/// How TCP throughput is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpParameters {
    /// Seconds a test.
    pub seconds: u32,
    /// Streams at once.
    #[serde(default = "one")]
    pub streams: u32,
    /// Whether the server sends, in place of the client.
    #[serde(default)]
    pub reverse: bool,
}

/// What records have that do not tell of streams.
const fn one() -> u32 {
    1
}

/// How forwarding rates are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateParameters {
    /// Milliseconds a test.
    pub milliseconds: u32,
    /// Size of frames in bytes, from the Ethernet header to the checksum (FCS).
    pub frame_bytes: u16,
    /// Rates to offer, in frames a second, beside as fast as the generator can.
    pub paced_pps: Vec<u32>,
}

/// How a large flow table is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowTableParameters {
    /// Flows that are added.
    pub flows: u32,
}

/// How meters are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeterParameters {
    /// Seconds a test, after one of warm-up. In the last, nothing is counted.
    pub seconds: u32,
    /// Size of frames in bytes, from the Ethernet header to the checksum (FCS).
    pub frame_bytes: u16,
    /// Rates that meters let pass, in frames a second: twice as many are offered.
    pub pps: Vec<u32>,
}

/// How rules that change are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeParameters {
    /// Milliseconds a test.
    pub milliseconds: u32,
    /// Frames of 64 bytes a second that move meanwhile; half of what each device carries, if
    /// none is given.
    pub pps: Option<u32>,
    /// Flow-mods of other flows a second, where there are any.
    pub flow_mods: u32,
    /// Flows of the table that is told.
    pub dump_flows: u32,
}

impl Default for EchoParameters {
    fn default() -> Self {
        Self {
            packets: 10_000,
            warm_up: 500,
            frame_bytes: vec![64, 128, 256],
            match_sets: MatchSet::ALL.to_vec(),
            prober: Prober::Solo,
        }
    }
}

impl Default for TcpParameters {
    fn default() -> Self {
        Self {
            seconds: 10,
            streams: 1,
            reverse: false,
        }
    }
}

impl Default for RateParameters {
    fn default() -> Self {
        Self {
            milliseconds: 2_000,
            frame_bytes: 64,
            paced_pps: vec![50_000, 100_000, 150_000, 200_000, 300_000, 400_000],
        }
    }
}

impl Default for FlowTableParameters {
    fn default() -> Self {
        Self { flows: 100_000 }
    }
}

impl MeterParameters {
    fn make_sense(&self) -> bool {
        let seconds = Duration::from_secs(self.seconds.into());
        let rates = self.pps.iter().all(|pps| METERED.contains(pps));
        self.seconds >= 2 && seconds <= TEST_MAX && rates && are_distinct(&self.pps)
    }
}

impl Default for MeterParameters {
    fn default() -> Self {
        Self {
            seconds: 4,
            frame_bytes: 64,
            pps: vec![1_000, 10_000, 100_000, 200_000],
        }
    }
}

impl TcpParameters {
    fn make_sense(&self) -> bool {
        let seconds = Duration::from_secs(self.seconds.into());
        self.seconds >= 1 && seconds <= TEST_MAX && (1..=STREAMS_MAX).contains(&self.streams)
    }
}

impl ChangeParameters {
    fn make_sense(&self) -> bool {
        let frames = |pps| u64::from(pps) * u64::from(self.milliseconds) / 1_000;
        let some = |pps| (1_000..=CHANGED_FRAMES_MAX).contains(&frames(pps));
        (100..=3_600_000).contains(&self.milliseconds)
            && self.pps.is_none_or(some)
            && (1..=FLOW_MODS_MAX).contains(&self.flow_mods)
            && (1..=FLOWS_MAX).contains(&self.dump_flows)
    }
}

impl ChangeParameters {
    /// Frames a second for a device that was found to carry so many, if it was asked.
    pub fn rate(&self, carried: Option<u32>) -> u32 {
        let most = CHANGED_FRAMES_MAX * 1_000 / u64::from(self.milliseconds);
        let half = u64::from(carried.unwrap_or(0) / 2).clamp(1_000, most);
        let half = u32::try_from(half).unwrap_or(u32::MAX);
        self.pps.unwrap_or(half)
    }
}

impl Default for ChangeParameters {
    fn default() -> Self {
        Self {
            milliseconds: 5_000,
            pps: None,
            flow_mods: 10_000,
            dump_flows: 100_000,
        }
    }
}

impl Parameters {
    /// Checks that the experiments make sense.
    pub fn check(&self) -> Result<(), BadOption> {
        let (echo, rate) = (&self.echo, &self.forwarding_rate);
        let fixed = [&rate.frame_bytes, &self.meters.frame_bytes];
        let frames = || echo.frame_bytes.iter().chain(fixed);
        let frame_fits = |size: &u16| (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(size);
        let limit_ms = u32::try_from(TEST_MAX.as_millis()).expect("an hour fits");
        first_broken(&[
            (
                (1..=PACKETS_MAX).contains(&echo.packets) && echo.warm_up <= PACKETS_MAX,
                "packets: from 1 to 1000000, and as many for the warm-up at most",
            ),
            (
                frames().all(frame_fits),
                "frame sizes: from 64 to 1518 bytes, the checksum (FCS) included",
            ),
            (
                are_distinct(&echo.frame_bytes) && !echo.frame_bytes.is_empty(),
                "frame sizes: at least one, and each once",
            ),
            (
                are_distinct(&echo.match_sets) && !echo.match_sets.is_empty(),
                "match sets: at least one, and each once",
            ),
            (
                self.tcp_throughput.make_sense() && (100..=limit_ms).contains(&rate.milliseconds),
                "durations: from 1 second (TCP, of 1 to 128 streams) or 100 milliseconds (frames) to an hour",
            ),
            (
                are_distinct(&rate.paced_pps) && !rate.paced_pps.contains(&0),
                "rates: each above zero, and once",
            ),
            (
                (2..=FLOWS_MAX).contains(&self.flow_table.flows),
                "flows: from 2 to 1000000",
            ),
            (
                self.meters.make_sense(),
                "meters: from 2 seconds to an hour, of 100 to 10000000 frames a second, each rate once",
            ),
            (
                self.changes.make_sense(),
                "changes: from 100 milliseconds to an hour, 1000 to 20000000 frames, 1 to 1000000 flow-mods a second and flows",
            ),
        ])
    }
}

/// The first of these rules that does not hold, by what it wants.
///
/// # Errors
/// One does not hold.
pub fn first_broken(rules: &[(bool, &str)]) -> Result<(), BadOption> {
    match rules.iter().find(|(holds, _)| !holds) {
        Some((_, wanted)) => Err(BadOption((*wanted).to_owned())),
        None => Ok(()),
    }
}

/// True if no two items are equal.
#[must_use]
pub fn are_distinct<T: PartialEq>(items: &[T]) -> bool {
    let mut rest = items;
    while let Some((first, others)) = rest.split_first() {
        if others.contains(first) {
            return false;
        }
        rest = others;
    }
    true
}

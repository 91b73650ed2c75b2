//! The data path alone, on one core: packets from a file or a generated stream, through the tables,
//! to devices that discard them. Comporta, Open vSwitch with DPDK and `testpmd`, which forwards
//! without a lookup, take turns over the same DPDK devices.
//!
//! Every device is measured when its rate is steady ([`crate::steady`]), and a row of its own shows
//! the first seconds after the start. Open vSwitch is measured with each setting of its caches in
//! the first run, and in the following runs with the setting that was fastest.

mod feed;
mod recorded;
mod tables;

use std::time::Duration;

use base::SplitMix64;
use testbed::{DpdkCores, Namespace, OpenVswitch, Program, huge_pages_are_free};
use testkit::workload::Workload;

use crate::sample::Sample;
use crate::select::select;
use crate::steady::warm_up;
use crate::switch::{BenchSwitch, BridgeTarget, PEER_SOCKET, Site};
use crate::{Failure, Programs, Rounds};
use feed::{FeedTrace, ReplyTrace};
use tables::{
    CONNECTIONS_MAX, CT_TABLES, FrameSource, MILLION_TABLES, REAL_TABLES, StartState, TABLES,
    TrafficTable,
};

/// The core of the data path, and the core of everything else.
const FORWARDING: usize = 1;
const OTHERS: usize = 0;

/// Frame buffers in addition to those that a device keeps.
const BUFFERS: usize = 8192;

/// Column names.
const OURS: &str = "Comporta";
const PEER: &str = "OVS-DPDK";
const CEILING: &str = "testpmd";
const STREAM: &str = "stream alone";

/// The columns of warm-up times, in seconds.
const OURS_WARM_UP: &str = "warm-up of Comporta, s";
const PEER_WARM_UP: &str = "warm-up of OVS-DPDK, s";

/// Length of a measurement of a cold device: from its first packet.
const COLD: Duration = Duration::from_secs(10);

/// Measures the rows called `names` of the group `dpdk`.
pub(crate) fn measure(
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    measure_tables(&TABLES, names, programs, rounds)
}

/// Measures the rows called `names` of the group `million`.
pub(crate) fn measure_million(
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    measure_tables(&MILLION_TABLES, names, programs, rounds)
}

/// Measures the rows called `names` of the group `ct`.
pub(crate) fn measure_ct(
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    measure_tables(&CT_TABLES, names, programs, rounds)
}

/// Measures the rows called `names` of the group `real`.
pub(crate) fn measure_real(
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    measure_tables(&REAL_TABLES, names, programs, rounds)
}

/// Measures the tables called `names`: every device once in each run, in turn.
fn measure_tables(
    tables: &[TrafficTable],
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    let selected = select(names, tables, |table| table.name)?;
    let site = Site::new(programs)?;
    for table in selected {
        let workload = (table.workload)();
        let frames = match table.source {
            FrameSource::Sessions { .. } => workload.frames(),
            _ => shuffled(workload.frames()),
        };
        let trace = FeedTrace::write(&site, table, &frames)?;
        let replies = match workload.replies() {
            frames if frames.is_empty() => None,
            frames => Some(ReplyTrace::write(&site, &shuffled(frames))?),
        };
        let path = DataPath {
            site: &site,
            workload: &workload,
            start: table.start,
            trace,
            replies,
            time: Duration::from_millis(rounds.millis.into()),
        };
        let print = |column, value| {
            let row = table.name;
            Sample { row, column, value }.print();
        };
        let mut settings = match table.start {
            StartState::Cold => CACHES[..1].to_vec(),
            StartState::Steady => CACHES.to_vec(),
        };
        if let Some(limit) = path.trace.limit(rounds.millis)? {
            print(STREAM, limit);
        }
        for _ in 0..rounds.runs {
            let ours = path.ours()?;
            print(OURS, ours.rate);
            let peer = path.peer(&mut settings)?;
            print(PEER, peer.rate);
            if table.start == StartState::Steady {
                if path.replies.is_none() {
                    print(CEILING, path.ceiling()?);
                }
                print(OURS_WARM_UP, ours.warm_up_seconds);
                print(PEER_WARM_UP, peer.warm_up_seconds);
            }
        }
    }
    Ok(())
}

/// One device with its tables and its packets.
struct DataPath<'a> {
    site: &'a Site,
    workload: &'a Workload,
    start: StartState,
    trace: FeedTrace<'a>,
    /// Frames that arrive at port 2, if any.
    replies: Option<ReplyTrace>,
    /// Length of a measurement of a steady device.
    time: Duration,
}

/// The packets per second of a device, and how long it took until they were steady.
#[derive(Clone, Copy)]
struct SteadyRate {
    rate: f64,
    warm_up_seconds: f64,
}

/// Repeats `frames` to fill several batches, in a random order that is the same in every run, so
/// that packets do not arrive in the order of the rules.
fn shuffled(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let times = 512_usize.div_ceil(frames.len());
    let count = times * frames.len();
    let mut frames: Vec<_> = frames.into_iter().cycle().take(count).collect();
    SplitMix64::new(7).shuffle(&mut frames);
    frames
}

/// Settings of Open vSwitch's flow caches, its default first; the fastest one counts.
const CACHES: [&str; 3] = [
    "other_config:emc-insert-inv-prob=100 other_config:smc-enable=false",
    "other_config:emc-insert-inv-prob=0 other_config:smc-enable=false",
    "other_config:emc-insert-inv-prob=0 other_config:smc-enable=true",
];

impl DataPath<'_> {
    /// Measures Comporta.
    fn ours(&self) -> Result<SteadyRate, Failure> {
        let feed = self.trace.feed()?;
        // A device that repeats a file keeps all its frames in memory.
        let buffers = self.trace.kept + BUFFERS;
        let ingress = format!("dpdk:net_pcap1=1,{},buffers={buffers}", feed.words);
        let others = (2..=4).map(|number| match self.reply_words(number) {
            Some(words) => {
                let buffers = BUFFERS + self.replies.as_ref().map_or(0, |replies| replies.kept);
                format!("dpdk:net_pcap{number}={number},{words},buffers={buffers}")
            }
            None => format!("dpdk:net_null{number}={number},no-rx=1"),
        });
        let ports = [ingress].into_iter().chain(others);
        let mut arguments: Vec<String> =
            ports.flat_map(|port| ["--port".to_owned(), port]).collect();
        arguments.extend(["--cores".to_owned(), FORWARDING.to_string()]);
        let switch = BenchSwitch::start(self.site, "dpdk", Namespace::new()?, &arguments)?;
        let inputs = 1..=1 + u32::from(self.replies.is_some());
        for port in inputs.clone() {
            switch.bridge.set_port(port, "down")?;
        }
        self.add_rules(&switch.bridge)?;
        switch
            .bridge
            .set_connections_max("br0.ctl", CONNECTIONS_MAX)?;
        for port in inputs {
            switch.bridge.set_port(port, "up")?;
        }
        self.rate(&switch.bridge, || Ok(None))
    }

    /// Measures Open vSwitch with each of `settings`, and leaves the fastest one there.
    fn peer(&self, settings: &mut Vec<&'static str>) -> Result<SteadyRate, Failure> {
        let directory = self.site.directory.join("dpdk-ovs");
        // The database of an earlier run has that run's bridges.
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        std::fs::create_dir_all(&directory)?;
        let inside = Namespace::new()?;
        let place = testbed::Site {
            spawner: &self.site.spawner,
            inside: &inside,
            directory: &directory,
            cores: &[OTHERS],
        };
        let cores = DpdkCores {
            main: &[OTHERS],
            polling: &[FORWARDING],
        };
        let feed = self.trace.feed()?;
        let mut peer = OpenVswitch::start_with_dpdk(place, &self.site.clock, cores, &[])?;
        peer.vsctl("add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure")?;
        for number in (2..=4).filter(|number| self.reply_words(*number).is_none()) {
            peer.vsctl(&device(number, &format!("net_null{number},no-rx=1")))?;
        }
        let bridge = BridgeTarget {
            site: self.site,
            directory,
        };
        self.add_rules(&bridge)?;
        bridge.set_connections_max(PEER_SOCKET, CONNECTIONS_MAX)?;
        peer.vsctl(&format!("set Open_vSwitch . {}", settings[0]))?;
        // After the rules: packets without a rule would occupy the daemon.
        peer.vsctl(&device(1, &format!("net_pcap1,{}", feed.words)))?;
        if let Some(words) = self.reply_words(2) {
            peer.vsctl(&device(2, &format!("net_pcap2,{words}")))?;
        }
        let mut best = self.rate(&bridge, || bridge.cached_flows())?;
        let mut fastest = settings[0];
        for caches in settings.iter().copied().skip(1) {
            peer.vsctl(&format!("set Open_vSwitch . {caches}"))?;
            let steady = self.rate(&bridge, || bridge.cached_flows())?;
            if steady.rate > best.rate {
                fastest = caches;
                best.rate = steady.rate;
            }
        }
        *settings = vec![fastest];
        Ok(best)
    }

    /// The device arguments of a port that receives replies.
    fn reply_words(&self, port: u32) -> Option<&str> {
        let replies = self.replies.as_ref().filter(|_| port == 2)?;
        Some(&replies.words)
    }

    /// Adds the groups and flows of the workload.
    fn add_rules(&self, bridge: &BridgeTarget<'_>) -> Result<(), Failure> {
        if !self.workload.group_lines().is_empty() {
            bridge.add_groups(self.workload.group_lines())?;
        }
        bridge.add_flows(self.workload.flow_lines())
    }

    /// Measures the rate of a device that has just received its rules.
    fn rate(
        &self,
        bridge: &BridgeTarget<'_>,
        cached_flows: impl FnMut() -> Result<Option<f64>, Failure>,
    ) -> Result<SteadyRate, Failure> {
        Ok(match self.start {
            StartState::Cold => SteadyRate {
                rate: bridge.rate(Duration::ZERO, COLD)?,
                warm_up_seconds: 0.0,
            },
            StartState::Steady => SteadyRate {
                warm_up_seconds: warm_up(bridge, cached_flows)?,
                rate: bridge.rate(Duration::ZERO, self.time)?,
            },
        })
    }

    /// Measures `testpmd`.
    fn ceiling(&self) -> Result<f64, Failure> {
        let memory: &[&str] = match huge_pages_are_free() {
            true => &["--in-memory"],
            false => &["--no-huge", "--no-shconf", "-m", "1024"],
        };
        let inside = Namespace::new()?;
        let feed = self.trace.feed()?;
        let program = Program::new("dpdk-testpmd")
            .args([
                "-l",
                &format!("{OTHERS},{FORWARDING}"),
                "--no-pci",
                "--no-telemetry",
            ])
            .args(memory)
            .arg(format!("--vdev=net_pcap1,{}", feed.words))
            .args(["--vdev=net_null2,no-rx=1", "--"])
            .args(["--auto-start", "--forward-mode=io", "--no-flush-rx", PERIOD])
            .arg(format!("--total-num-mbufs={}", self.trace.kept + BUFFERS))
            .inside(&inside)
            .log(self.site.directory.join("testpmd.log"));
        let mut process = self.site.spawner.start(program)?;
        let poll = || {
            let reports = rates(&process.written()?);
            if reports.len() < REPORTS && !process.is_running() {
                let status = process.wait(Duration::ZERO)?;
                return Err(process.failed(status));
            }
            Ok(reports.get(REPORTS - 1).copied())
        };
        let clock = &self.site.clock;
        Ok(clock.wait_for("testpmd to report its rate", REPORTS_TIMEOUT, poll)?)
    }
}

/// Returns the `ovs-vsctl` command that adds a DPDK device to the bridge.
fn device(number: u32, arguments: &str) -> String {
    format!(
        "add-port br0 d{number} -- set interface d{number} type=dpdk ofport_request={number} \
         options:dpdk-devargs=\"{arguments}\""
    )
}

/// Interval of `testpmd`'s rate reports, and the report that counts: the device forwards without a
/// cache, so its third second is like any other.
const PERIOD: &str = "--stats-period=1";
const REPORTS: usize = 3;

/// Longest time until that report.
const REPORTS_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the transmit rates of the second device from the reports of `testpmd`, oldest first.
fn rates(reports: &str) -> Vec<f64> {
    let sent = reports
        .lines()
        .filter_map(|line| line.split_once("Tx-pps:"));
    let rates = sent.filter_map(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    // A report lists both devices; only the second one transmits.
    rates.skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_second_device() {
        let reports = "  Rx-pps:  9   Rx-bps: 1\n  Tx-pps:            0   Tx-bps: 0\n\
                    #### NIC statistics for port 1\n  Tx-pps:     38214345     Tx-bps: 2\n\
                    \n  Tx-pps: 0 Tx-bps: 0\n  Tx-pps: 7 Tx-bps: 0\n";
        assert_eq!(rates(reports), [38_214_345.0, 7.0]);
    }

    #[test]
    fn shuffle_permutes_the_frames() {
        let frames: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut mixed = shuffled(frames.clone());
        assert_ne!(mixed[..256], frames[..]);
        mixed.sort();
        mixed.dedup();
        assert_eq!(mixed, frames);
    }
}

//! The data path alone: frames of a file, over and over, or of a stream that is made anew
//! all the while, from one device of DPDK to another that forgets them, on one core. This switch, Open vSwitch with DPDK and `testpmd`, which
//! hands each frame on and looks nothing up, take turns; the devices are the same.

mod feed;
mod tables;

use std::time::Duration;

use testbed::{DpdkCores, Namespace, OpenVswitch, Program, huge_pages_are_free};
use testkit::bed::Scene;

use crate::chosen::chosen;
use crate::sample::Sample;
use crate::switch::{Bridge, Site, Switch};
use crate::{Failure, Programs, Rounds};
use feed::Trace;
use tables::{Coming, TABLES};

/// The core that forwards, and the one for everything else.
const FORWARDING: usize = 1;
const OTHERS: usize = 0;

/// Frames on their way, beside those that a device keeps.
const BUFFERS: usize = 8192;

/// The columns.
const OURS: &str = "Comporta";
const PEER: &str = "OVS-DPDK";
const CEILING: &str = "testpmd";
const STREAM: &str = "stream alone";

/// Takes `rounds` of samples of each, turn and turn about.
pub(crate) fn measure(
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    let chosen = chosen(names, &TABLES, |table| table.name)?;
    let site = Site::new(programs)?;
    for table in chosen {
        let scene = (table.scene)();
        let trace = Trace::write(&site, table, &shuffled(scene.frames()))?;
        let trial = Trial {
            site: &site,
            scene: &scene,
            warm_up: warm_up(table.coming, rounds.millis),
            trace,
            millis: rounds.millis,
        };
        let mut settings = CACHES.to_vec();
        if let Some(value) = trial.trace.limit(rounds.millis)? {
            let (row, column) = (table.name, STREAM);
            Sample { row, column, value }.print();
        }
        for _ in 0..rounds.runs {
            let print = |column, value| {
                let row = table.name;
                Sample { row, column, value }.print();
            };
            print(OURS, trial.ours()?);
            print(PEER, trial.peer(&mut settings)?);
            print(CEILING, trial.ceiling()?);
        }
    }
    Ok(())
}

/// How long frames move before they are counted for so many milliseconds: caches of flows
/// are filled meanwhile, and where each frame is of another flow, tables are compiled and
/// masks are found.
const fn warm_up(coming: Coming, millis: u32) -> Duration {
    match coming {
        Coming::Repeated => SETTLED,
        Coming::Streamed { .. } => Duration::from_millis(2000 + 2 * millis as u64),
    }
}

/// The same where all that is known already, but for caches.
const SETTLED: Duration = Duration::from_secs(1);

/// What is measured.
struct Trial<'a> {
    site: &'a Site,
    scene: &'a Scene,
    trace: Trace<'a>,
    warm_up: Duration,
    /// How long frames are counted.
    millis: u32,
}

/// The frames as often as makes several batches of them, in an order by chance that is
/// always the same: what is in the tables in order does not come in order.
fn shuffled(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let times = 512_usize.div_ceil(frames.len());
    let count = times * frames.len();
    let mut frames: Vec<_> = frames.into_iter().cycle().take(count).collect();
    // Fisher and Yates', by Knuth's generator.
    let mut state = 7_u64;
    for place in (1..frames.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let chance = usize::try_from(state >> 33).expect("31 bits");
        frames.swap(place, chance % (place + 1));
    }
    frames
}

/// What Open vSwitch keeps flows in, beside its tables: the settings among which the best
/// for a row counts.
const CACHES: [&str; 3] = [
    "other_config:emc-insert-inv-prob=100 other_config:smc-enable=false",
    "other_config:emc-insert-inv-prob=0 other_config:smc-enable=false",
    "other_config:emc-insert-inv-prob=0 other_config:smc-enable=true",
];

impl Trial<'_> {
    /// This switch.
    fn ours(&self) -> Result<f64, Failure> {
        let feed = self.trace.feed()?;
        // Of a file that is repeated, the device keeps all frames in its memory.
        let buffers = self.trace.kept + BUFFERS;
        let coming = format!("dpdk:net_pcap1=1,{},buffers={buffers}", feed.words);
        let going = (2..=4).map(|number| format!("dpdk:net_null{number}={number},no-rx=1"));
        let ports = [coming].into_iter().chain(going);
        let mut arguments: Vec<String> =
            ports.flat_map(|port| ["--port".to_owned(), port]).collect();
        arguments.extend(["--cores".to_owned(), FORWARDING.to_string()]);
        let switch = Switch::start(self.site, "dpdk", Namespace::new()?, &arguments)?;
        switch.bridge.set_port(1, "down")?;
        switch.bridge.add_flows(self.scene.flow_lines())?;
        switch.bridge.set_port(1, "up")?;
        switch.bridge.rate(self.warm_up, self.millis)
    }

    /// Open vSwitch with DPDK, in the best of `settings`. Where frames are streamed, that is
    /// the only one from then on: each takes longer to warm up than to measure.
    fn peer(&self, settings: &mut Vec<&'static str>) -> Result<f64, Failure> {
        let directory = self.site.directory.join("dpdk-ovs");
        // A database of a run before would have its bridges.
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
        for number in 2..=4 {
            peer.vsctl(&device(number, &format!("net_null{number},no-rx=1")))?;
        }
        let bridge = Bridge {
            site: self.site,
            directory,
        };
        bridge.add_flows(self.scene.flow_lines())?;
        // Only now, or it would be busy with frames that no flow is for yet.
        peer.vsctl(&device(1, &format!("net_pcap1,{}", feed.words)))?;
        let mut warm_up = self.warm_up;
        let mut best = (0.0, CACHES[0]);
        for caches in settings.iter().copied() {
            peer.vsctl(&format!("set Open_vSwitch . {caches}"))?;
            let rate = bridge.rate(warm_up, self.millis)?;
            if rate > best.0 {
                best = (rate, caches);
            }
            warm_up = SETTLED;
        }
        if self.trace.is_streamed() {
            *settings = vec![best.1];
        }
        Ok(best.0)
    }

    /// DPDK's own test program.
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
            .args([
                "--auto-start",
                "--forward-mode=io",
                "--no-flush-rx",
                TELLING,
            ])
            .arg(format!("--total-num-mbufs={}", self.trace.kept + BUFFERS))
            .inside(&inside)
            .log(self.site.directory.join("testpmd.log"));
        let mut process = self.site.spawner.start(program)?;
        let look = || {
            let told = rates(&process.written()?);
            if told.len() < TOLD && !process.is_running() {
                let status = process.wait(Duration::ZERO)?;
                return Err(process.failed(status));
            }
            Ok(told.get(TOLD - 1).copied())
        };
        let clock = &self.site.clock;
        Ok(clock.wait_for("testpmd to tell its rate", PATIENCE, look)?)
    }
}

/// What has Open vSwitch open a device of DPDK.
fn device(number: u32, arguments: &str) -> String {
    format!(
        "add-port br0 d{number} -- set interface d{number} type=dpdk ofport_request={number} \
         options:dpdk-devargs=\"{arguments}\""
    )
}

/// How often `testpmd` tells its rate, and when it has told enough.
const TELLING: &str = "--stats-period=1";
const TOLD: usize = 3;

/// How long `testpmd` may take until then.
const PATIENCE: Duration = Duration::from_secs(30);

/// The rates at which frames left by the second device, in the order in which they were told.
fn rates(told: &str) -> Vec<f64> {
    let sent = told.lines().filter_map(|line| line.split_once("Tx-pps:"));
    let rates = sent.filter_map(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    // It tells of one device after the other; frames leave by the second only.
    rates.skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_second_device() {
        let told = "  Rx-pps:  9   Rx-bps: 1\n  Tx-pps:            0   Tx-bps: 0\n\
                    #### NIC statistics for port 1\n  Tx-pps:     38214345     Tx-bps: 2\n\
                    \n  Tx-pps: 0 Tx-bps: 0\n  Tx-pps: 7 Tx-bps: 0\n";
        assert_eq!(rates(told), [38_214_345.0, 7.0]);
    }

    #[test]
    fn all_frames_are_there_in_another_order() {
        let frames: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut mixed = shuffled(frames.clone());
        assert_ne!(mixed[..256], frames[..]);
        mixed.sort();
        mixed.dedup();
        assert_eq!(mixed, frames);
    }
}

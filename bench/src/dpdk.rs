//! The data path alone: frames of a file, over and over, from one device of DPDK to another
//! that forgets them, on one core. This switch, Open vSwitch with DPDK and `testpmd`, which
//! hands each frame on and looks nothing up, take turns; the devices are the same.

use std::time::Duration;

use testbed::{DpdkCores, Namespace, OpenVswitch, Program, huge_pages_are_free};
use testkit::bed::{Scene, Traffic};

use crate::chosen::chosen;
use crate::forms::FRAMES;
use crate::sample::Sample;
use crate::switch::{Bridge, Site, Switch, word};
use crate::{Failure, Programs, Rounds, pcap};

/// Tables by the name that they are asked for.
struct Table {
    name: &'static str,
    scene: fn() -> Scene,
}

#[rustfmt::skip]
const TABLES: [Table; 15] = {
    const fn row(name: &'static str, scene: fn() -> Scene) -> Table {
        Table { name, scene }
    }
    const fn list(rules: u64, traffic: Traffic) -> (u64, Traffic) {
        (rules, traffic)
    }
    fn listed((rules, traffic): (u64, Traffic)) -> Scene {
        Scene::access_list_met("a list", rules, traffic, MANY)
    }
    [
        row("one-port",         Scene::one_rule),
        row("macs-1000",        || Scene::stations("1,000 stations", 1000)),
        row("flows-1000",       || Scene::exact_met("1,000 flows", 1000, 1)),
        row("flows-10000",      || Scene::exact_met("10,000 flows", 10_000, 1)),
        row("flows-100000",     || Scene::exact_met("100,000 flows", 100_000, 1)),
        row("networks-1000",    || Scene::networks_met("1,000 networks", 1000, FRAMES)),
        row("networks-10000",   || Scene::networks_met("10,000 networks", 10_000, MANY)),
        row("tables-repeated",  || Scene::routed("ten tables, 1,000 flows", Traffic::Fitting, FRAMES)),
        row("tables-random",    || Scene::routed("ten tables", Traffic::Random, MANY)),
        row("acl-10-random",    || listed(list(10, Traffic::Random))),
        row("acl-1000-random",  || listed(list(1000, Traffic::Random))),
        row("acl-10000-random", || listed(list(10_000, Traffic::Random))),
        row("acl-3-fitting",    || Scene::three_rules_met("a list of 3", Traffic::Fitting, MANY)),
        row("acl-3-random",     || Scene::three_rules_met("a list of 3", Traffic::Random, MANY)),
        row("acl-3-attack",     || Scene::three_rules_met("a list of 3", Traffic::Attack, MANY)),
    ]
};

/// Frames of a trace in which hardly any flow comes twice before all have come.
const MANY: u64 = 100_000;

/// The core that forwards, and the one for everything else.
const FORWARDING: usize = 1;
const OTHERS: usize = 0;

/// How long frames move before they are counted: caches of flows are filled meanwhile.
const WARM_UP: Duration = Duration::from_millis(1000);

/// The columns.
const OURS: &str = "Comporta";
const PEER: &str = "OVS-DPDK";
const CEILING: &str = "testpmd";

/// The frames.
const FILE: &str = "frames.pcap";

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
        let frames = shuffled(scene.frames());
        pcap::write(&site.directory.join(FILE), &frames)?;
        for _ in 0..rounds.runs {
            let print = |column, value| {
                let row = table.name;
                Sample { row, column, value }.print();
            };
            print(OURS, ours(&site, &scene, frames.len(), rounds.millis)?);
            print(PEER, peer(&site, &scene, rounds.millis)?);
            print(CEILING, ceiling(&site, frames.len())?);
        }
    }
    Ok(())
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

/// This switch.
fn ours(site: &Site, scene: &Scene, frames: usize, millis: u32) -> Result<f64, Failure> {
    let file = word(&site.directory.join(FILE));
    // Of a file that is repeated, the device keeps all frames in its memory.
    let buffers = frames + 8192;
    let coming = format!("dpdk:net_pcap1=1,rx_pcap={file},infinite_rx=1,buffers={buffers}");
    let going = (2..=4).map(|number| format!("dpdk:net_null{number}={number},no-rx=1"));
    let ports = [coming].into_iter().chain(going);
    let mut arguments: Vec<String> = ports.flat_map(|port| ["--port".to_owned(), port]).collect();
    arguments.extend(["--cores".to_owned(), FORWARDING.to_string()]);
    let switch = Switch::start(site, "dpdk", Namespace::new()?, &arguments)?;
    switch.bridge.set_port(1, "down")?;
    switch.bridge.add_flows(scene.flow_lines())?;
    switch.bridge.set_port(1, "up")?;
    switch.bridge.rate(WARM_UP, millis)
}

/// What Open vSwitch keeps flows in, beside its tables: the settings among which the best
/// for a row counts.
const CACHES: [&str; 3] = [
    "other_config:emc-insert-inv-prob=100 other_config:smc-enable=false",
    "other_config:emc-insert-inv-prob=0 other_config:smc-enable=false",
    "other_config:emc-insert-inv-prob=0 other_config:smc-enable=true",
];

/// Open vSwitch with DPDK, in the best of its settings.
fn peer(site: &Site, scene: &Scene, millis: u32) -> Result<f64, Failure> {
    let directory = site.directory.join("dpdk-ovs");
    // A database of a run before would have its bridges.
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    let inside = Namespace::new()?;
    let place = testbed::Site {
        spawner: &site.spawner,
        inside: &inside,
        directory: &directory,
        cores: &[OTHERS],
    };
    let cores = DpdkCores {
        main: &[OTHERS],
        polling: &[FORWARDING],
    };
    let mut peer = OpenVswitch::start_with_dpdk(place, &site.clock, cores, &[])?;
    peer.vsctl("add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure")?;
    for number in 2..=4 {
        peer.vsctl(&device(number, &format!("net_null{number},no-rx=1")))?;
    }
    let bridge = Bridge { site, directory };
    bridge.add_flows(scene.flow_lines())?;
    // Only now, or it would be busy with frames that no flow is for yet.
    let file = word(&site.directory.join(FILE));
    peer.vsctl(&device(
        1,
        &format!("net_pcap1,rx_pcap={file},infinite_rx=1"),
    ))?;
    let mut best = 0.0;
    for caches in CACHES {
        peer.vsctl(&format!("set Open_vSwitch . {caches}"))?;
        best = bridge.rate(WARM_UP, millis)?.max(best);
    }
    Ok(best)
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
const TOLD: usize = 4;

/// How long `testpmd` may take until then.
const PATIENCE: Duration = Duration::from_secs(30);

/// DPDK's own test program.
fn ceiling(site: &Site, frames: usize) -> Result<f64, Failure> {
    let file = word(&site.directory.join(FILE));
    let memory: &[&str] = match huge_pages_are_free() {
        true => &["--in-memory"],
        false => &["--no-huge", "--no-shconf", "-m", "1024"],
    };
    let inside = Namespace::new()?;
    let program = Program::new("dpdk-testpmd")
        .args([
            "-l",
            &format!("{OTHERS},{FORWARDING}"),
            "--no-pci",
            "--no-telemetry",
        ])
        .args(memory)
        .arg(format!("--vdev=net_pcap1,rx_pcap={file},infinite_rx=1"))
        .args(["--vdev=net_null2,no-rx=1", "--"])
        .args([
            "--auto-start",
            "--forward-mode=io",
            "--no-flush-rx",
            TELLING,
        ])
        .arg(format!("--total-num-mbufs={}", frames + 8192))
        .inside(&inside)
        .log(site.directory.join("testpmd.log"));
    let mut process = site.spawner.start(program)?;
    let rate = site
        .clock
        .wait_for("testpmd to tell its rate", PATIENCE, || {
            let told = rates(&process.written()?);
            if told.len() < TOLD && !process.is_running() {
                let status = process.wait(Duration::ZERO)?;
                return Err(process.failed(status));
            }
            Ok(told.get(TOLD - 1).copied())
        })?;
    Ok(rate)
}

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

//! Migration by packages from Open vSwitch to Comporta and back, under traffic: bridges, a bond,
//! patch ports, a tunnel, QoS and rules stay, and packets are lost only during the restarts.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use testbed::Failure;

use super::packages::{DebianPackages, OVS_CTL, Overlay};
use crate::support::command::program;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] =
    tests![packages_migrate_to_comporta_and_back_under_traffic,];

/// Commands of `ovs-vsctl` for the configuration: host 1 on one bridge, the others on another.
const CONFIGURATION: [&str; 6] = [
    "add-br br0 -- set Bridge br0 datapath_type=netdev",
    "add-br br1 -- set Bridge br1 datapath_type=netdev",
    "add-port br0 p1 -- add-port br1 p2",
    "add-port br0 to1 -- set Interface to1 type=patch options:peer=to0 -- add-port br1 to0 -- set Interface to0 type=patch options:peer=to1",
    "add-bond br1 bond0 p3 p4 bond_mode=active-backup -- add-port br1 vx0 -- set Interface vx0 type=vxlan options:remote_ip=10.99.0.1 options:key=5",
    "set Port p1 qos=@q -- --id=@q create QoS type=linux-htb other_config:max-rate=1000000000",
];

/// A rule that must survive the restarts.
const RULE: &str = "priority=7,udp,in_port=1,tp_dst=9 actions=drop";

/// The address of the interface of a bridge, which Comporta takes over.
const ADDRESS: &str = "10.98.0.1/24";

/// Packets per swap, and the time between two of them in ms.
const PACKETS: u32 = 1_500;
const PERIOD: u32 = 10;

/// Packets that may be lost beside those that were sent during a swap.
const ALLOWANCE: u32 = 100;

/// The traffic during a swap.
struct SwapTraffic {
    /// Lost packets.
    lost: u32,
    /// The most packets lost in succession.
    lost_in_succession: u32,
    /// The packets that are sent in the duration of the swap, up to the first reply after it.
    during_swap: u32,
}

impl SwapTraffic {
    /// Counts the packets without a reply in the output of fping.
    fn of(output: &str, swap: Duration) -> Self {
        let replies: BTreeSet<u32> = output.lines().filter_map(reply_number).collect();
        let mut traffic = Self {
            lost: 0,
            lost_in_succession: 0,
            during_swap: u32::try_from(swap.as_millis()).unwrap_or(u32::MAX) / PERIOD,
        };
        let mut in_succession = 0;
        for number in 0..PACKETS {
            in_succession = match replies.contains(&number) {
                true => 0,
                false => in_succession + 1,
            };
            traffic.lost += u32::from(in_succession > 0);
            traffic.lost_in_succession = traffic.lost_in_succession.max(in_succession);
        }
        traffic
    }

    /// Prints the figures, and asserts that packets were lost during the swap only. The bound is
    /// relative to the duration of the swap, since restarts take longer on a busy machine.
    #[track_caller]
    fn check(&self, direction: &str) -> Result<(), Failure> {
        let Self {
            lost,
            lost_in_succession,
            during_swap,
        } = self;
        let text = format!(
            "{direction}: lost {lost} of {PACKETS} packets, one each {PERIOD} ms, \
             {lost_in_succession} in succession; the swap took {} ms",
            during_swap.saturating_mul(PERIOD)
        );
        writeln!(io::stdout(), "{text}").map_err(Failure::to("print the lost packets"))?;
        assert!(
            *lost < PACKETS && *lost <= during_swap.saturating_add(ALLOWANCE),
            "{text}"
        );
        Ok(())
    }
}

/// Returns the number of the packet in a line of fping: `10.1.0.2 : [7], 64 bytes, 0.03 ms ...`.
fn reply_number(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once(" : [")?;
    let (number, rest) = rest.split_once("], ")?;
    let (bytes, _) = rest.split_once(" bytes, ")?;
    bytes.parse::<u32>().ok()?;
    number.parse().ok()
}

/// Sends packets from host 1 to host 2 while `swap` runs.
fn traffic_during(
    network: &TestNetwork<'_>,
    swap: impl FnOnce() -> Result<(), Failure>,
) -> Result<SwapTraffic, Failure> {
    let (one, two) = network.host_pair();
    let words = format!("fping -c {PACKETS} -p {PERIOD} -t 1000 {}", two.address);
    let context = network.context;
    let fping = program(&words)
        .inside(&one.namespace)
        .output(context.unique_path("fping.out"))
        .log(context.unique_path("fping.log"));
    let mut traffic = context.spawner.start(fping)?;
    let start = context.clock.now();
    swap()?;
    one.ping_until_reply(two.address)?;
    let took = context.clock.now() - start;
    let limit = Duration::from_millis((PACKETS * PERIOD * 4).into());
    // fping fails if it has lost packets.
    let _ = traffic.wait(limit)?;
    Ok(SwapTraffic::of(&traffic.written()?, took))
}

fn packages_migrate_to_comporta_and_back_under_traffic(context: &TestContext) -> TestResult {
    let packages = DebianPackages::build(context, "dist")?;
    let network = TestNetwork::new(context, 4)?;
    let (one, two) = network.host_pair();
    let overlay = Overlay::new(&network)?;
    overlay.run("update-alternatives --auto ovs-vswitchd")?;
    overlay.install(&packages.comporta)?;
    overlay.start_services()?;
    for words in CONFIGURATION {
        overlay.run(&format!("ovs-vsctl {words}"))?;
    }
    overlay.run(&format!(
        "ovs-ofctl add-flow br0 {}",
        RULE.replace(' ', ",")
    ))?;
    overlay.run(&format!("ip address add {ADDRESS} dev br0"))?;
    one.ping_until_reply(two.address)?;
    let restart =
        format!("{OVS_CTL} restart --system-id=random --no-record-hostname --no-mlockall");
    let check = |version: &str| -> Result<(), Failure> {
        let output = overlay.run("ovs-appctl version")?;
        assert!(output.starts_with(version), "{output}");
        let errors = overlay.run("ovs-vsctl --bare --columns=error list Interface")?;
        assert_eq!(errors.trim(), "");
        let rules = overlay.run("ovs-ofctl --no-stats dump-flows br0")?;
        assert!(rules.contains(RULE), "{rules}");
        let bond = overlay.run("ovs-appctl bond/show bond0")?;
        assert!(bond.contains("bond_mode: active-backup"), "{bond}");
        Ok(())
    };
    check("ovs-vswitchd (Open vSwitch)")?;
    let there = traffic_during(&network, || {
        overlay.install(&packages.vswitchd)?;
        overlay.run(&restart).map(drop)
    })?;
    there.check("Open vSwitch to Comporta")?;
    check("ovs-vswitchd (Comporta,")?;
    let addresses = overlay.run("ip address show dev br0")?;
    assert!(addresses.contains(ADDRESS), "{addresses}");
    let back = traffic_during(&network, || {
        overlay.run("dpkg --no-triggers --remove comporta-vswitchd")?;
        overlay.run(&restart).map(drop)
    })?;
    back.check("Comporta to Open vSwitch")?;
    check("ovs-vswitchd (Open vSwitch)")?;
    overlay.run(&format!("{OVS_CTL} stop"))?;
    Ok(())
}

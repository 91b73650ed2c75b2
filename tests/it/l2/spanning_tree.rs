//! STP and RSTP in rings with Open vSwitch, and the state that both report.

use std::collections::BTreeMap;

use packet::build::Stack;
use testbed::{Failure, Process};

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, flood_time, tests};
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};

pub(crate) const TESTS: &[SystemTest] = tests![
    stp_opens_a_ring_with_open_vswitch,
    rstp_opens_a_ring_with_open_vswitch,
    rstp_blocks_parallel_cables,
    spanning_tree_state_is_reported_like_open_vswitch,
    traces_skip_blocked_ports_like_open_vswitch,
    bpdu_counters_match_open_vswitch,
    spanning_tree_keeps_its_roles_under_a_flood_of_addresses_and_bpdus,
];

/// The shortest timers of STP.
const SHORT_TIMERS: &str =
    "other_config:stp-hello-time=1 other_config:stp-max-age=6 other_config:stp-forward-delay=4";

/// Cables of the ring.
const CABLES: [(&str, &str); 3] = [("r12", "r21"), ("r23", "r32"), ("r31", "r13")];

/// Three bridges in a ring: `s1` and `s2` are Comporta's, `s3` is Open vSwitch's. One host is
/// connected to `s1`, another to `s2`.
struct BridgeRing<'s, 'g> {
    comporta: &'s Deployment<'s, 'g>,
    ovs: &'s Deployment<'s, 'g>,
    /// Protocol, `stp` or `rstp`: prefix of columns and keys.
    protocol: &'static str,
    _daemons: (VswitchdProcess<'s, 'g>, Process),
}

fn add_cable(network: &TestNetwork<'_>, (one, other_end): (&str, &str)) -> Result<(), Failure> {
    network
        .run(&format!(
            "ip link add {one} type veth peer name {other_end}"
        ))?
        .expect_success()?;
    for end in [one, other_end] {
        network
            .run(&format!("ip link set {end} up"))?
            .expect_success()?;
    }
    Ok(())
}

impl<'s, 'g> BridgeRing<'s, 'g> {
    fn new(
        comporta: &'s Deployment<'s, 'g>,
        ovs: &'s Deployment<'s, 'g>,
        protocol: &'static str,
    ) -> Result<Self, Failure> {
        CABLES
            .into_iter()
            .try_for_each(|ends| add_cable(comporta.network, ends))?;
        let ring = Self {
            _daemons: (comporta.start_daemon()?, start_ovs_vswitchd(ovs, "")?),
            comporta,
            ovs,
            protocol,
        };
        // Of the three cables, `s2` blocks the one between `s2` and `s3`.
        let enable = |bridge: &str, priority: u32| {
            format!(
                "set Bridge {bridge} {protocol}_enable=true other_config:{protocol}-priority={priority} {SHORT_TIMERS}"
            )
        };
        comporta.vsctl(&format!(
            "add-br s1 -- {} -- add-br s2 -- {} -- add-port s1 p1 -- add-port s2 p2 -- \
             add-port s1 r12 -- add-port s1 r13 -- add-port s2 r21 -- add-port s2 r23",
            enable("s1", 4096),
            enable("s2", 12288),
        ))?;
        ovs.vsctl(&format!(
            "add-br s3 -- set Bridge s3 datapath_type=netdev -- {} -- \
             add-port s3 r31 -- add-port s3 r32",
            enable("s3", 8192),
        ))?;
        Ok(ring)
    }

    /// Waits until a port has this role and state.
    fn wait_for_port(&self, port: &str, role: &str, state: &str) -> Result<(), Failure> {
        let column = match self.protocol {
            "rstp" => "rstp_status",
            _ => "status",
        };
        let deployment = match port.starts_with("r3") {
            true => self.ovs,
            false => self.comporta,
        };
        let what = format!("{port} to be {role} and {state}");
        deployment.network.context.wait_until(&what, || {
            let status = deployment
                .vsctl(&format!("get Port {port} {column}"))?
                .to_lowercase();
            let blocked = match self.protocol {
                "rstp" => "discarding",
                _ => "blocking",
            };
            let state = if state == "blocked" { blocked } else { state };
            Ok(status.contains(&format!("role={role}"))
                && status.contains(&format!("state={state}")))
        })
    }

    /// Waits until the cable between `s2` and `s3` is blocked, and the tree has converged.
    fn wait_until_open(&self) -> Result<(), Failure> {
        self.wait_for_port("r23", "alternate", "blocked")?;
        for port in ["r12", "r13", "r32"] {
            self.wait_for_port(port, "designated", "forwarding")?;
        }
        self.wait_for_port("r21", "root", "forwarding")?;
        self.wait_for_port("r31", "root", "forwarding")?;
        self.wait_for_port("p1", "designated", "forwarding")?;
        self.wait_for_port("p2", "designated", "forwarding")
    }
}

/// Asserts that broadcast frames arrive at the other host exactly once.
fn expect_delivery_once(from: &TestHost<'_>, to: &TestHost<'_>) -> TestResult {
    let lengths = [100, 101, 102, 103];
    let mut capture = to.capture_frames()?;
    for length in lengths {
        let frame = format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:51) / data({length})");
        from.send(&[&frame])?;
    }
    let mut received = Vec::new();
    while received.last() != lengths.last() {
        let stack = Stack::dissect(&capture.next_frame()?).to_string();
        if stack.contains("src=02:00:00:00:00:51") {
            let has_value = |length: &&i32| stack.contains(&format!("data({length})"));
            received.extend(lengths.iter().find(has_value));
        }
    }
    assert_eq!(received, lengths, "each frame once");
    Ok(())
}

fn check_ring(context: &TestContext, protocol: &'static str) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (comporta, ovs) = (
        Deployment::in_directory(&network, "comporta")?,
        Deployment::in_directory(&network, "ovs")?,
    );
    let ring = BridgeRing::new(&comporta, &ovs, protocol)?;
    let (one, two) = network.host_pair();
    ring.wait_until_open()?;
    one.ping_until_reply(two.address)?;
    expect_delivery_once(one, two)?;
    // Without the cable between `s1` and `s2`, frames are forwarded by `s3`.
    network.run("ip link set r12 down")?.expect_success()?;
    ring.wait_for_port("r23", "root", "forwarding")?;
    one.ping_until_reply(two.address)?;
    expect_delivery_once(one, two)?;
    network.run("ip link set r12 up")?.expect_success()?;
    ring.wait_until_open()?;
    one.ping_until_reply(two.address)?;
    expect_delivery_once(one, two)?;
    // Another bridge becomes the root, one cable away from Open vSwitch's.
    comporta.vsctl(&format!("set Bridge s2 other_config:{protocol}-priority=0"))?;
    let (column, key) = match protocol {
        "rstp" => ("rstp_status:rstp_root_id", "rstp_status:rstp_bridge_id"),
        _ => ("status:stp_designated_root", "status:stp_bridge_id"),
    };
    let what = "the new root";
    context.wait_until(what, || {
        let root = comporta.vsctl(&format!("get Bridge s2 {key}"))?;
        let ovs_root = ovs.vsctl(&format!("get Bridge s3 {column}"))?;
        let comporta_root = comporta.vsctl(&format!("get Bridge s1 {column}"))?;
        Ok(root.starts_with("\"0") && ovs_root == root && comporta_root == root)
    })?;
    ring.wait_for_port("r32", "root", "forwarding")?;
    ring.wait_for_port("r23", "designated", "forwarding")?;
    one.ping_until_reply(two.address)?;
    expect_delivery_once(one, two)?;
    Ok(())
}

fn stp_opens_a_ring_with_open_vswitch(context: &TestContext) -> TestResult {
    check_ring(context, "stp")
}

fn rstp_opens_a_ring_with_open_vswitch(context: &TestContext) -> TestResult {
    check_ring(context, "rstp")
}

fn rstp_blocks_parallel_cables(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    add_cable(&network, ("a1", "b1"))?;
    add_cable(&network, ("a2", "b2"))?;
    deployment.vsctl(
        "add-br s1 -- set Bridge s1 rstp_enable=true other_config:rstp-priority=0 \
         -- add-br s2 -- set Bridge s2 rstp_enable=true \
         -- add-port s1 p1 -- add-port s1 a1 -- add-port s1 a2 \
         -- add-port s2 p2 -- add-port s2 b1 -- add-port s2 b2",
    )?;
    let (one, two) = network.host_pair();
    deployment.wait_for_column("get Port b2 rstp_status:rstp_port_role", "Alternate")?;
    deployment.wait_for_column("get Port b1 rstp_status:rstp_port_state", "Forwarding")?;
    one.ping_until_reply(two.address)?;
    // The port priority selects the second cable.
    deployment.vsctl("set Port a2 other_config:rstp-port-priority=16")?;
    deployment.wait_for_column("get Port b1 rstp_status:rstp_port_role", "Alternate")?;
    deployment.wait_for_column("get Port b2 rstp_status:rstp_port_state", "Forwarding")?;
    one.ping_until_reply(two.address)?;
    // A blocked port neither receives nor sends, whatever the rules.
    for (bridge, host, ends) in [("s1", "p1", ["a1", "a2"]), ("s2", "p2", ["b1", "b2"])] {
        let add = |what: &str| {
            let flow = format!("priority=9,dl_src=02:00:00:00:00:51,{what}");
            deployment.run_tool(&format!("ovs-ofctl add-flow {bridge} {flow}"))
        };
        add(&format!("in_port={host},actions={},{}", ends[0], ends[1]))?;
        for end in ends {
            add(&format!("in_port={end},actions={host}"))?;
        }
    }
    expect_delivery_once(one, two)?;
    expect_delivery_once(two, one)?;
    Ok(())
}

/// Enables the protocol on `br0`, waits until it has converged, and returns the reported state
/// without times.
fn converged_state(
    deployment: &Deployment<'_, '_>,
    protocol: &str,
) -> Result<Vec<String>, Failure> {
    deployment.vsctl(&format!(
        "set Bridge br0 stp_enable=false rstp_enable=false -- set Bridge br0 {protocol}_enable=true"
    ))?;
    let column = if protocol == "rstp" {
        "rstp_status"
    } else {
        "status"
    };
    deployment
        .network
        .context
        .wait_until("both ports to be forwarding", || {
            let output = deployment.run_tool(&format!("ovs-appctl {protocol}/show br0"))?;
            Ok(output.to_lowercase().matches("forwarding").count() == 2)
        })?;
    let is_told = || {
        let status = deployment.vsctl(&format!("get Port p2 {column}"))?;
        Ok(status.to_lowercase().contains("forwarding"))
    };
    deployment
        .network
        .context
        .wait_until("the state in the database", is_told)?;
    let output = deployment.run_tool(&format!("ovs-appctl {protocol}/show br0"))?;
    let mut status = vec![
        output,
        deployment.run_tool(&format!("ovs-appctl {protocol}/tcn"))?,
    ];
    for row in ["Bridge br0", "Port p1", "Port p2"] {
        let converged_state =
            deployment.vsctl(&format!("--columns=status,rstp_status list {row}"))?;
        // The time in the state is left out.
        let converged_state = converged_state.split(", ");
        let stable: Vec<_> = converged_state
            .filter(|part| !part.contains("sec_in_state"))
            .collect();
        status.push(stable.join(", "));
    }
    Ok(status)
}

fn spanning_tree_state_is_reported_like_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let (_daemon, _ovs_vswitchd) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    for deployment in [&comporta, &ovs] {
        deployment.vsctl(&format!(
            "add-br br0 -- set Bridge br0 datapath_type=netdev {SHORT_TIMERS} \
             other_config:stp-system-id=02:00:00:00:00:77 other_config:rstp-address=02:00:00:00:00:78 \
             other_config:stp-priority=4660 other_config:rstp-priority=8193 \
             -- add-port br0 p1 -- add-port br0 p2 \
             -- set Port p1 other_config:stp-port-num=7 other_config:stp-path-cost=9 \
             other_config:rstp-port-num=8 other_config:rstp-path-cost=90 \
             -- set Port p2 other_config:stp-port-num=3 other_config:stp-port-priority=16 \
             other_config:rstp-port-num=9 other_config:rstp-port-priority=16"
        ))?;
    }
    for protocol in ["stp", "rstp"] {
        assert_eq!(
            converged_state(&comporta, protocol)?,
            converged_state(&ovs, protocol)?,
            "{protocol}"
        );
    }
    for deployment in [&comporta, &ovs] {
        deployment.vsctl("set Bridge br0 stp_enable=true rstp_enable=true")?;
        assert_eq!(deployment.run_tool("ovs-appctl stp/show")?, "");
        assert!(
            deployment
                .run_tool("ovs-appctl rstp/show")?
                .contains("---- br0 ----")
        );
    }
    assert!(
        comporta
            .vsctl("get Bridge br0 status:stp_enable")?
            .contains("rstp_enable takes precedence")
    );
    Ok(())
}

/// A frame with a BPDU of type `kind`, from an STP bridge with the lowest precedence.
fn bpdu(kind: u8) -> Vec<u8> {
    let bridge = [0xff, 0xff, 2, 0, 0, 0, 0, 0x99];
    let link = [
        &[
            1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 0x99, 0, 38, 0x42, 0x42, 3,
        ][..],
        &[0, 0, 0, kind, 0],
    ];
    let times = [0, 0, 20, 0, 2, 0, 15, 0];
    let rest = [&bridge[..], &[0; 4], &bridge, &[0x80, 1], &times];
    let mut frame = [link.concat(), rest.concat()].concat();
    frame.resize(60, 0);
    frame
}

/// Counters of a port's statistics column, by name.
fn statistics(
    deployment: &Deployment<'_, '_>,
    protocol: &str,
    port: &str,
) -> Result<BTreeMap<String, u64>, Failure> {
    let column = match protocol {
        "rstp" => "rstp_statistics",
        _ => "statistics",
    };
    let converged_state = deployment.vsctl(&format!("get Port {port} {column}"))?;
    let pairs = converged_state.trim_matches(['{', '}']).split(", ");
    let pairs = pairs.filter_map(|pair| {
        let (name, count) = pair.split_once('=')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    Ok(pairs.collect())
}

fn bpdu_counters_match_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let (_daemon, _ovs_vswitchd) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    for deployment in [&comporta, &ovs] {
        deployment.vsctl(&format!(
            "add-br br0 -- set Bridge br0 datapath_type=netdev {SHORT_TIMERS} \
             -- add-port br0 p1 -- add-port br0 p2"
        ))?;
    }
    let both = [&comporta, &ovs];
    for protocol in ["stp", "rstp"] {
        for deployment in both {
            converged_state(deployment, protocol)?;
            // Three BPDUs of a bridge that is not the root, and two of an unknown type.
            let sent = [0, 0x55, 0, 0x55, 0].map(bpdu);
            deployment.network.host(1).send_bytes(&sent)?;
        }
        let mut names = Vec::new();
        for deployment in both {
            let expected = [("rx", 3), ("error", 2)];
            let what = format!("the counters of received BPDUs: {protocol}");
            deployment.network.context.wait_until(&what, || {
                let statistics = statistics(deployment, protocol, "p1")?;
                let has_value = |(what, number)| {
                    statistics.get(&format!("{protocol}_{what}_count")) == Some(number)
                };
                Ok(expected
                    .iter()
                    .map(|(what, number)| (what, number))
                    .all(has_value))
            })?;
            let (first, second) = (
                statistics(deployment, protocol, "p1")?,
                statistics(deployment, protocol, "p2")?,
            );
            assert_eq!(second[&format!("{protocol}_rx_count")], 0, "{second:?}");
            names
                .push([first, second].map(|statistics| statistics.into_keys().collect::<Vec<_>>()));
        }
        assert_eq!(names[0], names[1], "{protocol}");
        // A BPDU is sent every second. Open vSwitch counts for RSTP those of the last second.
        for (deployment, port) in both.into_iter().zip(["p1", "p2"]) {
            if protocol == "stp" || deployment.rundir == comporta.rundir {
                let what = format!("the counters of sent BPDUs: {protocol} {port}");
                deployment.network.context.wait_until(&what, || {
                    let statistics = statistics(deployment, protocol, port)?;
                    let uptime = statistics.get("rstp_uptime").copied();
                    Ok(statistics[&format!("{protocol}_tx_count")] > 2
                        && uptime.is_none_or(|time| time > 2))
                })?;
            }
        }
    }
    // A port without a spanning tree has no counters.
    comporta.vsctl("set Bridge br0 stp_enable=false rstp_enable=false")?;
    comporta.wait_for_column("get Port p1 rstp_statistics", "{}")?;
    comporta.wait_for_column("get Port p1 statistics", "{}")?;
    Ok(())
}

fn traces_skip_blocked_ports_like_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    for deployment in both.deployments() {
        deployment
            .run_tool("ovs-ofctl add-flow br0 dl_type=0x88b5,actions=output:2,output:3,flood")?;
    }
    for protocol in ["stp", "rstp"] {
        // From here on ports do not forward for some seconds; the first port takes no part.
        both.vsctl(&format!(
            "set Bridge br0 {protocol}_enable=true -- set Port p1 other_config:{protocol}-enable=false"
        ))?;
        let mut skipped = Vec::new();
        for frame in ["dl_type=0x88b5", "dl_type=0x88b7"] {
            for port in [1, 2] {
                let command = format!("ofproto/trace br0 in_port={port},{frame}");
                let results = both.deployments().map(|deployment| {
                    let output = appctl(deployment, &command)?;
                    let notes = output.lines().filter(|line| line.contains(" >> "));
                    let has_actions = output.lines().any(|line| line.starts_with("    "));
                    Ok::<_, Failure>((notes.map(str::to_owned).collect::<Vec<_>>(), has_actions))
                });
                let [comporta, ovs] = results;
                let (comporta, ovs) = (comporta?, ovs?);
                let count = |(lines, has_actions): &(Vec<String>, bool)| {
                    let line = format!(
                        "     >> {} not in forwarding state, skipping output",
                        protocol.to_uppercase()
                    );
                    (
                        lines.iter().filter(|note| **note == line).count(),
                        *has_actions,
                    )
                };
                assert_eq!(
                    count(&comporta),
                    count(&ovs),
                    "{command}: {comporta:?} {ovs:?}"
                );
                skipped.push(count(&comporta));
            }
        }
        // Two outputs and a flood, or NORMAL, are suppressed; a frame by a blocked port is not
        // looked up.
        assert_eq!(skipped, [(5, true), (0, false), (3, true), (0, false)]);
        both.vsctl(&format!("set Bridge br0 {protocol}_enable=false"))?;
    }
    Ok(())
}

/// Frames from a station to itself: the first from its own address, the others from addresses that
/// no other round has. The bridge learns them and forwards none.
fn frames_of_new_stations(station: [u8; 6], round: u32) -> Vec<Vec<u8>> {
    let [_, high, middle, low] = round.to_be_bytes();
    let frame = |number: u16| {
        let [first, second] = number.to_be_bytes();
        let source = match number {
            0 => station,
            _ => [2, high, middle, low, first, second],
        };
        [&station[..], &source, &[0x88, 0xb5], &[0; 46]].concat()
    };
    (0..2048).map(frame).collect()
}

fn spanning_tree_keeps_its_roles_under_a_flood_of_addresses_and_bpdus(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (comporta, ovs) = (
        Deployment::in_directory(&network, "comporta")?,
        Deployment::in_directory(&network, "ovs")?,
    );
    let ring = BridgeRing::new(&comporta, &ovs, "stp")?;
    let (one, two) = network.host_pair();
    ring.wait_until_open()?;
    one.ping_until_reply(two.address)?;
    let tree = || -> Result<[String; 2], Failure> {
        let shown = |bridge: &str| appctl(&comporta, &format!("stp/show {bridge}"));
        Ok([shown("s1")?, shown("s2")?])
    };
    let before = tree()?;
    let bpdus: Vec<_> = (0..512).map(|_| bpdu(0)).collect();
    let end = context.clock.now() + flood_time();
    let mut round = 0;
    while context.clock.now() < end {
        round += 1;
        two.send_bytes(&frames_of_new_stations(two.mac, round))?;
        two.send_bytes(&bpdus)?;
        assert_eq!(tree()?, before, "round {round}");
    }
    let counters = appctl(&comporta, "comporta/counters")?;
    assert!(counters.contains("punt_policed"), "{counters}");
    one.ping_until_reply(two.address)?;
    Ok(())
}

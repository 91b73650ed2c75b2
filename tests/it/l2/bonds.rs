//! Bonds configured in the database, with a real Open vSwitch at the other end of their cables.

use std::collections::BTreeMap;

use openflow::Version;
use testbed::{Failure, Process};

use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, flood_time, tests};
use crate::support::controller::TestController;
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::frames::FrameCapture;
use crate::support::host::TestHost;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd, wait_for_appctl};

pub(crate) const TESTS: &[SystemTest] = tests![
    bond_commands_reply_like_open_vswitch,
    active_backup_bond_fails_over,
    balance_slb_shares_sources_without_duplicates_or_reflections,
    balance_tcp_with_lacp_shares_flows,
    lacp_fallback_uses_one_member_without_a_partner,
    bond_stays_up_under_a_flood_of_addresses_and_rules,
];

/// Ethernet type that no other program uses (IEEE 802 local experimental).
const TEST_ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// Number of frames in a burst.
const BURST: u16 = 64;

/// Two networks with two cables between the switches; tests use host 1 of Comporta's and host 2 of
/// Open vSwitch's.
fn connected_pair(context: &TestContext) -> Result<NetworkPair<'_>, Failure> {
    let pair = NetworkPair::with_hosts(context, 2)?;
    pair.connect(&["c1", "c2"])?;
    Ok(pair)
}

/// Arguments of `ovs-vsctl` for a bridge with the port of a host, and further commands.
fn add_bridge(port: &str, more: &str) -> String {
    format!("add-br br0 -- set Bridge br0 datapath_type=netdev -- add-port br0 {port} -- {more}")
}

/// Arguments of `ovs-vsctl` for two independent ports.
const SEPARATE_PORTS: &str = "add-port br0 c1 -- add-port br0 c2";

/// Numbered frames to `to`, from the sources that `from` returns.
fn numbered_frames(to: [u8; 6], from: impl Fn(u16) -> [u8; 6], count_copies: u16) -> Vec<Vec<u8>> {
    let frame = |number: u16| {
        let parts = [
            &to[..],
            &from(number),
            &TEST_ETHER_TYPE,
            &number.to_be_bytes(),
            &[0; 44],
        ];
        parts.concat()
    };
    (0..count_copies).map(frame).collect()
}

/// Address of an imaginary station.
fn imaginary_address(number: u16) -> [u8; 6] {
    let [high, low] = number.to_be_bytes();
    [2, 0, 0, 7, high, low]
}

/// Adds the received copies of each numbered frame to `copies`, until it has this many numbers.
/// Frames by one cable may overtake those by the other.
fn count_copies(
    capture: &mut FrameCapture<'_>,
    copies: &mut BTreeMap<u16, usize>,
    numbers: usize,
) -> Result<(), Failure> {
    while copies.len() < numbers {
        let frame = capture.next_frame()?;
        let bytes = frame.bytes();
        if bytes.get(12..14) == Some(&TEST_ETHER_TYPE) {
            let number = u16::from_be_bytes([bytes[14], bytes[15]]);
            *copies.entry(number).or_insert(0) += 1;
        }
    }
    Ok(())
}

/// Sends broadcast frames from one host, and asserts that the other receives each exactly once.
fn expect_delivery_once(
    from: &TestHost<'_>,
    to: &TestHost<'_>,
    source: impl Fn(u16) -> [u8; 6],
) -> Result<(), Failure> {
    let mut capture = to.capture_frames()?;
    let mut copies = BTreeMap::new();
    from.send_bytes(&numbered_frames([0xff; 6], source, BURST))?;
    // A copy by the other cable may arrive after the last frame of the burst.
    for last in [BURST, BURST + 1] {
        let frames = numbered_frames([0xff; 6], |_| from.mac, last + 1);
        from.send_bytes(&frames[usize::from(last)..])?;
        count_copies(&mut capture, &mut copies, frames.len())?;
        assert!(copies.values().all(|count| *count == 1), "{copies:?}");
    }
    Ok(())
}

/// Number of frames that a port received.
fn received_frames(deployment: &Deployment<'_, '_>, port: &str) -> Result<u64, Failure> {
    let output = deployment.run_tool(&format!("ovs-ofctl dump-ports br0 {port}"))?;
    let count_copies = output.split_once("rx pkts=").map(|(_, rest)| rest);
    let count_copies = count_copies.and_then(|rest| rest.split(',').next()?.trim().parse().ok());
    Ok(count_copies.unwrap_or(0))
}

/// True if host 1 is learned at this port.
fn is_learned(deployment: &Deployment<'_, '_>, port: &str) -> Result<bool, Failure> {
    let number = deployment.vsctl(&format!("get Interface {port} ofport"))?;
    let entries = appctl(deployment, "fdb/show br0")?;
    let mut lines = entries.lines().map(str::split_whitespace);
    Ok(lines.any(|mut words| {
        words.next() == Some(number.as_str()) && words.any(|word| word == "02:00:00:00:00:01")
    }))
}

/// Waits until host 1 is learned at this port.
fn wait_until_learned(deployment: &Deployment<'_, '_>, port: &str) -> Result<(), Failure> {
    let condition = format!("the host to be learned at {port}");
    deployment
        .network
        .context
        .wait_until(&condition, || is_learned(deployment, port))
}

/// Starts both daemons, and adds bridges with a host port and the given ports.
fn start_bridges<'s, 'r, 'g>(
    comporta: &'s Deployment<'r, 'g>,
    ovs: &'s Deployment<'r, 'g>,
    (comporta_ports, ovs_ports): (&str, &str),
) -> Result<(VswitchdProcess<'s, 'g>, Process), TestError> {
    let daemons = (comporta.start_daemon()?, start_ovs_vswitchd(ovs, "")?);
    comporta.vsctl(&add_bridge("p1", comporta_ports))?;
    ovs.vsctl(&add_bridge("p2", ovs_ports))?;
    Ok(daemons)
}

/// Commands with equal replies, after changes of the database.
#[rustfmt::skip]
const COMMANDS: [(&str, &[&str]); 4] = [
    ("", &[
        "bond/list", "bond/show", "bond/show bond0", "bond/show nope",
        "bond/set-active-member bond0 p1", "bond/set-active-member bond0 p2", "bond/set-active-slave bond0 p1",
        "bond/set-active-member bond0 nope", "bond/set-active-member nope p1",
        "bond/migrate bond0 1 p1", "bond/migrate nope 1 p1",
        "bond/enable-member bond0 nope", "bond/enable-slave nope p1", "bond/disable-slave nope p1",
        "bond/disable-member bond0 p2", "bond/enable-member bond0 p2",
        "bond/hash 00:00:00:00:00:01", "bond/hash 00:00:00:00:00:01 1", "bond/hash 00:00:00:00:00:01 1 1",
        "bond/hash foo", "bond/hash 00:00:00:00:00:01 x", "bond/hash 00:00:00:00:00:01 1 x",
        "lacp/show", "lacp/show bond0", "lacp/show-stats", "lacp/show-stats bond0",
        "ofproto/trace br0 in_port=2,dl_type=0x88b5,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff -generate",
        "ofproto/trace br0 in_port=1,dl_type=0x88b5,dl_src=02:00:00:00:00:02,dl_dst=ff:ff:ff:ff:ff:ff -generate",
        "ofproto/trace br0 in_port=3,dl_type=0x88b5,dl_src=02:00:00:00:00:03,dl_dst=02:00:00:00:00:02 -generate",
        "fdb/show br0",
    ]),
    ("set Port bond0 bond_mode=balance-slb", &[
        "bond/list", "bond/show", "bond/migrate bond0 1 p1", "bond/migrate bond0 999 p2",
        "bond/migrate bond0 foo p2", "bond/migrate bond0 1 p9",
        "ofproto/trace br0 in_port=2,dl_type=0x88b5,dl_src=02:00:00:00:00:03,dl_dst=02:00:00:00:00:09",
        "ofproto/trace br0 in_port=2,dl_type=0x88b5,dl_src=02:00:00:00:00:04,dl_dst=ff:ff:ff:ff:ff:ff",
    ]),
    ("set Port bond0 bond_mode=active-backup bond_updelay=200 bond_downdelay=100 other_config:bond-primary=p9", &["bond/show"]),
    ("set Port bond0 other_config:bond-primary=p1 other_config:bond-hash-basis=7 other_config:lacp-fallback-ab=true", &["bond/show"]),
];

/// Reply without values that change over time or between machines.
fn stable_lines(output: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some(("next rebalance", _)) => "next rebalance".to_owned(),
        Some(("active member mac", member)) => {
            let (_, name) = member.split_once('(').unwrap_or_default();
            format!("active member ({name}")
        }
        Some(("Megaflow" | "Datapath actions", _)) => String::new(),
        // Addresses behind a bond are listed with the number of any member, and have an age.
        _ if line.starts_with("    ") && line.contains("  02:00:00:00:00:") => {
            let mut words: Vec<_> = line.split_whitespace().take(3).collect();
            if words[0] == "1" {
                words[0] = "2";
            }
            words.join(" ")
        }
        // The order of members and the recirculation ids vary.
        _ if line.starts_with("bond0\t") => {
            let words = line.split(['\t', ',', ' ']).enumerate();
            let words = words.filter(|(index, word)| *index != 2 && !word.is_empty());
            let mut words: Vec<_> = words.map(|(_, word)| word).collect();
            words.sort_unstable();
            words.join(" ")
        }
        _ => line.to_owned(),
    };
    output.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn bond_commands_reply_like_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 3)?;
    let [comporta, ovs] = pair.deploy()?;
    let (_daemon, _theirs) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    for deployment in [&comporta, &ovs] {
        let bond = "add-bond br0 bond0 p1 p2 \
                    -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2 \
                    -- set Interface p3 ofport_request=3";
        deployment.vsctl(&add_bridge("p3", bond))?;
        wait_for_appctl(deployment, "bond/show", "member p2: enabled")?;
        appctl(deployment, "bond/set-active-member bond0 p1")?;
    }
    for (words, commands) in COMMANDS {
        for deployment in [&comporta, &ovs] {
            if !words.is_empty() {
                deployment.vsctl(words)?;
                appctl(deployment, "bond/set-active-member bond0 p1")?;
            }
        }
        for command in commands {
            assert_eq!(
                stable_lines(&appctl(&comporta, command)?),
                stable_lines(&appctl(&ovs, command)?),
                "{words}: {command}"
            );
        }
    }
    // A member without carrier is not used, and cannot become active.
    for (deployment, network) in [(&comporta, &pair.comporta), (&ovs, &pair.ovs)] {
        network.host(2).namespace.set_down("eth0")?;
        wait_for_appctl(deployment, "bond/show", "member p2: disabled")?;
    }
    for command in ["bond/set-active-member bond0 p2", "bond/show"] {
        let output = stable_lines(&appctl(&comporta, command)?);
        assert_eq!(output, stable_lines(&appctl(&ovs, command)?), "{command}");
    }
    // The database contains the active member.
    let address = comporta.vsctl("get Interface p1 mac_in_use")?;
    comporta.wait_for_column("get Port bond0 bond_active_slave", &address)?;
    Ok(())
}

fn active_backup_bond_fails_over(context: &TestContext) -> TestResult {
    let pair = connected_pair(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let _daemons = start_bridges(
        &comporta,
        &ovs,
        ("add-bond br0 bond0 c1 c2", SEPARATE_PORTS),
    )?;
    let (one, two) = (pair.comporta.host(1), pair.ovs.host(2));
    one.ping_until_reply(two.address)?;
    wait_until_learned(&ovs, "c1")?;
    expect_delivery_once(one, two, imaginary_address)?;
    expect_delivery_once(two, one, imaginary_address)?;
    assert_eq!(
        received_frames(&ovs, "c2")?,
        0,
        "the backup member carries nothing"
    );
    // The host sends nothing, and is learned at the new member.
    pair.ovs.switch_namespace.set_down("c1")?;
    wait_until_learned(&ovs, "c2")?;
    // The flow cache of Open vSwitch may be older than its forwarding database.
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 10)?;
    two.ping(one.address, 10)?;
    expect_delivery_once(one, two, |_| one.mac)?;
    expect_delivery_once(two, one, |_| two.mac)?;
    let address = comporta.vsctl("get Interface c2 mac_in_use")?;
    comporta.wait_for_column("get Port bond0 bond_active_slave", &address)?;
    // The new active member stays active, unless a primary member returns.
    pair.ovs.switch_namespace.set_up("c1")?;
    wait_for_appctl(&comporta, "bond/show", "member c1: enabled\n  may_enable")?;
    comporta.vsctl("set Port bond0 other_config:bond-primary=c1")?;
    wait_for_appctl(
        &comporta,
        "bond/show",
        "member c1: enabled\n  active member",
    )?;
    wait_until_learned(&ovs, "c1")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 10)?;
    // From here on two ports, with an address learned at each.
    comporta.vsctl("del-port br0 bond0")?;
    assert_eq!(appctl(&comporta, "bond/show bond0")?, "no such bond\n");
    comporta.vsctl("add-port br0 c1")?;
    one.ping_until_reply(two.address)?;
    Ok(())
}

fn balance_slb_shares_sources_without_duplicates_or_reflections(
    context: &TestContext,
) -> TestResult {
    let pair = connected_pair(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let bond = "add-bond br0 bond0 c1 c2 bond_mode=balance-slb";
    let _daemons = start_bridges(&comporta, &ovs, (bond, SEPARATE_PORTS))?;
    let (one, two) = (pair.comporta.host(1), pair.ovs.host(2));
    one.ping_until_reply(two.address)?;
    two.ping_until_reply(one.address)?;
    let mut capture = one.capture_frames()?;
    expect_delivery_once(one, two, imaginary_address)?;
    // Open vSwitch floods broadcast frames by both ports: Comporta's own frames returned, and were
    // dropped.
    two.send_bytes(&numbered_frames([0xff; 6], |_| two.mac, 1))?;
    let mut copies = BTreeMap::new();
    count_copies(&mut capture, &mut copies, 1)?;
    assert_eq!(copies, BTreeMap::from([(0, 1)]));
    for cable in ["c1", "c2"] {
        assert!(
            received_frames(&ovs, cable)? > 10,
            "{cable} carries no frames"
        );
    }
    expect_delivery_once(two, one, |_| two.mac)?;
    one.ping(two.address, 20)?;
    two.ping(one.address, 20)?;
    let counters = appctl(&comporta, "comporta/counters")?;
    assert!(counters.contains("normal_bond"), "{counters}");
    // A source address is moved by command.
    let hash = appctl(&comporta, "bond/hash 02:00:00:00:00:01")?;
    for cable in ["c1", "c2"] {
        let moved = appctl(
            &comporta,
            &format!("bond/migrate bond0 {} {cable}", hash.trim()),
        )?;
        assert_eq!(moved, "migrated\n");
        // Open vSwitch may process earlier frames of the other cable only now.
        context.wait_until("the host to be learned at the new member", || {
            one.can_ping(two.address)?;
            is_learned(&ovs, cable)
        })?;
    }
    // A member without carrier is not used.
    pair.ovs.switch_namespace.set_down("c2")?;
    wait_for_appctl(&comporta, "bond/show", "member c2: disabled")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 10)?;
    wait_until_learned(&ovs, "c1")?;
    expect_delivery_once(one, two, |_| one.mac)?;
    Ok(())
}

/// Datagrams of many flows between the two hosts.
fn datagrams(from: &TestHost<'_>, to: &TestHost<'_>) -> Vec<String> {
    let address = |mac: [u8; 6]| {
        let parts = mac.map(|part| format!("{part:02x}"));
        parts.join(":")
    };
    let link = format!("eth(dst={},src={})", address(to.mac), address(from.mac));
    let datagram = |port: u16| {
        let (src, dst) = (from.address, to.address);
        format!("{link}/ipv4(src={src},dst={dst})/udp(src={port},dst=9)")
    };
    (1..=BURST).map(datagram).collect()
}

/// Asserts that both sides report each other's LACP state in equal lines.
fn expect_lacp_partners(
    comporta: &Deployment<'_, '_>,
    ovs: &Deployment<'_, '_>,
) -> Result<(), Failure> {
    let output = appctl(comporta, "lacp/show bond0")?;
    let system = appctl(ovs, "lacp/show bond0")?;
    let system = system.lines().find(|line| line.contains("  sys_id: "));
    let system = system.unwrap_or_default().trim();
    assert!(
        output.contains(&format!("  partner {system}\n")),
        "{output}"
    );
    let state = "activity timeout aggregation synchronized collecting distributing";
    assert!(
        output.contains(&format!("  actor state: {state}\n")),
        "{output}"
    );
    let names = |output: &str| {
        let names = output
            .lines()
            .map(|line| line.split(": ").next().unwrap_or_default());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    for command in ["lacp/show", "lacp/show-stats"] {
        assert_eq!(
            names(&appctl(comporta, command)?),
            names(&appctl(ovs, command)?)
        );
    }
    Ok(())
}

fn balance_tcp_with_lacp_shares_flows(context: &TestContext) -> TestResult {
    let pair = connected_pair(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let bond = |lacp: &str| {
        format!(
            "add-bond br0 bond0 c1 c2 bond_mode=balance-tcp lacp={lacp} other_config:lacp-time=fast"
        )
    };
    let words = (bond("active"), bond("passive"));
    let _daemons = start_bridges(&comporta, &ovs, (&words.0, &words.1))?;
    wait_for_appctl(&comporta, "lacp/show", "status: active negotiated")?;
    wait_for_appctl(&ovs, "lacp/show", "status: passive negotiated")?;
    let (one, two) = (pair.comporta.host(1), pair.ovs.host(2));
    one.ping_until_reply(two.address)?;
    for cable in ["c1", "c2"] {
        comporta.wait_for_column(&format!("get Interface {cable} lacp_current"), "true")?;
    }
    for (from, to, deployment) in [(one, two, &ovs), (two, one, &comporta)] {
        from.ping(to.address, 5)?;
        let before = ["c1", "c2"].map(|cable| received_frames(deployment, cable));
        let datagrams = datagrams(from, to);
        from.send(&datagrams.iter().map(String::as_str).collect::<Vec<_>>())?;
        for (cable, before) in ["c1", "c2"].into_iter().zip(before) {
            let before = before?;
            context.wait_until("flows on both members", || {
                Ok(received_frames(deployment, cable)? >= before + 10)
            })?;
        }
        expect_delivery_once(from, to, |_| from.mac)?;
    }
    expect_lacp_partners(&comporta, &ovs)?;
    // Both sides disable the member without carrier.
    pair.comporta.switch_namespace.set_down("c1")?;
    wait_for_appctl(&ovs, "bond/show", "member c1: disabled")?;
    wait_for_appctl(&comporta, "bond/show", "member c1: disabled")?;
    one.ping(two.address, 10)?;
    // Now Open vSwitch is the active side.
    comporta.vsctl("set Port bond0 lacp=passive")?;
    ovs.vsctl("set Port bond0 lacp=active")?;
    pair.comporta.switch_namespace.set_up("c1")?;
    for deployment in [&comporta, &ovs] {
        wait_for_appctl(deployment, "bond/show", "member c1: enabled")?;
        wait_for_appctl(deployment, "lacp/show", "negotiated")?;
    }
    one.ping(two.address, 10)?;
    expect_delivery_once(one, two, |_| one.mac)?;
    Ok(())
}

fn lacp_fallback_uses_one_member_without_a_partner(context: &TestContext) -> TestResult {
    let pair = connected_pair(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let bond = "add-bond br0 bond0 c1 c2 bond_mode=balance-tcp lacp=active \
                other_config:lacp-time=fast";
    let _daemons = start_bridges(&comporta, &ovs, (bond, SEPARATE_PORTS))?;
    let (one, two) = (pair.comporta.host(1), pair.ovs.host(2));
    wait_for_appctl(&comporta, "lacp/show", "member: c2: defaulted detached")?;
    assert!(!one.can_ping(two.address)?, "LACP has no partner");
    comporta.wait_for_column("get Port bond0 bond_active_slave", "[]")?;
    comporta.vsctl("set Port bond0 other_config:lacp-fallback-ab=true")?;
    wait_for_appctl(&comporta, "bond/show", "active member\n")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    expect_delivery_once(one, two, |_| one.mac)?;
    expect_delivery_once(two, one, |_| two.mac)?;
    let output = appctl(&comporta, "bond/show")?;
    assert!(output.contains("lacp_status: configured\n"), "{output}");
    comporta.wait_for_column("get Interface c1 lacp_current", "false")?;
    Ok(())
}

/// Frames from stations that no other round has.
fn frames_of_new_stations(round: u32) -> Vec<Vec<u8>> {
    let [_, high, middle, low] = round.to_be_bytes();
    let frame = |number: u16| {
        let [first, second] = number.to_be_bytes();
        let source = [2, high, middle, low, first, second];
        [&[0xff; 6][..], &source, &TEST_ETHER_TYPE, &[0; 46]].concat()
    };
    (0..4096).map(frame).collect()
}

fn bond_stays_up_under_a_flood_of_addresses_and_rules(context: &TestContext) -> TestResult {
    let pair = connected_pair(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let bond = "add-bond br0 bond0 c1 c2 bond_mode=balance-tcp lacp=active \
                other_config:lacp-time=fast";
    let _daemons = start_bridges(&comporta, &ovs, (bond, bond))?;
    for deployment in [&comporta, &ovs] {
        wait_for_appctl(deployment, "lacp/show", "status: active negotiated")?;
        for member in ["c1", "c2"] {
            let enabled = format!("member {member}: enabled");
            wait_for_appctl(deployment, "bond/show bond0", &enabled)?;
        }
    }
    let socket = comporta.rundir.join("br0.mgmt");
    let connect = || TestController::connect(context, &socket, Version::V13);
    let mut controllers = [connect()?, connect()?];
    let end = context.clock.now() + flood_time();
    let mut round = 0;
    while context.clock.now() < end {
        round += 1;
        let frames = frames_of_new_stations(round);
        pair.comporta.host(1).send_bytes(&frames)?;
        for (table, controller) in (1..).zip(&mut controllers) {
            for rule in 0..500 {
                let metadata = round % 8;
                controller.add_flow(&format!(
                    "table={table},udp,tp_dst={rule},metadata={metadata},actions=drop"
                ))?;
            }
            controller.barrier();
        }
        for deployment in [&comporta, &ovs] {
            let shown = appctl(deployment, "bond/show bond0")?;
            for member in ["c1", "c2"] {
                let enabled = format!("member {member}: enabled");
                assert!(shown.contains(&enabled), "round {round}: {shown}");
            }
        }
    }
    Ok(())
}

//! Tunnels between dummies, beside a real Open vSwitch: what leaves and what comes in is handed
//! over and written down, and the host's own addresses, routes and neighbours are said by hand.

use std::fs;

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};
use crate::support::pcap::pcap_frames;

pub(crate) const TESTS: &[SystemTest] = tests![tunnels_of_dummies_are_those_of_open_vswitch,];

/// A bridge that the host has an address at, and one with a tunnel.
const BRIDGES: &str = "add-br br0 -- set Bridge br0 datapath_type=dummy other_config:hwaddr=aa:55:00:00:00:01 \
    -- add-port br0 p0 -- set Interface p0 type=dummy ofport_request=1 \
    -- add-br br1 -- set Bridge br1 datapath_type=dummy fail_mode=secure other_config:hwaddr=aa:55:00:00:00:02 \
    -- add-port br1 p1 -- set Interface p1 type=dummy ofport_request=1 \
    -- add-port br1 t1 -- set Interface t1 type=vxlan options:remote_ip=1.1.2.92 options:key=123 ofport_request=2";

/// What is said by hand and asked about it.
const SAID: [&str; 14] = [
    "netdev-dummy/ip4addr br0 1.1.2.88/24",
    "netdev-dummy/ip4addr p9 1.1.2.88/24",
    "netdev-dummy/ip4addr br0 nonsense",
    "netdev-dummy/ip4addr br0",
    "netdev-dummy/ip6addr br0 2001:cafe::88/24",
    "netdev-dummy/ip6addr p9 2001:cafe::88/24",
    "ovs/route/add 1.1.2.92/24 br0",
    "ovs/route/add 1.1.3.0/24 br0 1.1.2.93",
    "ovs/route/show",
    "ovs/route/lookup 1.1.2.92",
    "ovs/route/lookup 1.1.3.9",
    "tnl/arp/set br0 1.1.2.92 f8:bc:12:44:34:b6",
    "tnl/neigh/show",
    "tnl/ports/show",
];

/// A frame of TCP, to be handed to the second bridge.
const FRAME: &str = "0200000000010200000000020800450000280000000040068a8e0a0000020a00000100090050000000000000000050020000000000000000";

/// Both bridges, with files of what leaves by their dummies, and rules from one port to the other.
fn set_up(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    deployment.vsctl(BRIDGES)?;
    for port in ["p0", "p1"] {
        let file = deployment.rundir.join(format!("{port}.pcap"));
        deployment.vsctl(&format!(
            "set Interface {port} options:tx_pcap={}",
            file.display()
        ))?;
    }
    deployment.run_tool("ovs-ofctl add-flow br1 in_port=1,actions=2")?;
    deployment.run_tool("ovs-ofctl add-flow br1 in_port=2,actions=1")?;
    Ok(())
}

/// What has left by a dummy of IPv4: others speak there, too, neighbour discovery say.
fn left(deployment: &Deployment<'_, '_>, port: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let file = deployment.rundir.join(format!("{port}.pcap"));
    let file = fs::read(file).map_err(Failure::to("read a capture"))?;
    let frames = pcap_frames(&file).into_iter();
    let is_ipv4 = |frame: &Vec<u8>| frame.get(12..14) == Some(&[8, 0][..]);
    Ok(frames.filter(is_ipv4).collect())
}

fn tunnels_of_dummies_are_those_of_open_vswitch(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 1)?, TestNetwork::new(context, 1)?);
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let dummy = "--enable-dummy";
    let (daemon, _daemon) = (
        ours.start_daemon_with(dummy)?,
        start_ovs_vswitchd(&other, dummy)?,
    );
    daemon.wait_for_log("INFO ready")?;
    for deployment in [&ours, &other] {
        set_up(deployment)?;
    }
    let answers = |deployment| {
        let answers = SAID.map(|question| Ok((question, appctl(deployment, question)?)));
        answers.into_iter().collect::<Result<Vec<_>, Failure>>()
    };
    let mut theirs = answers(&other)?;
    for (_, answer) in &mut theirs {
        // Theirs tells of ways that lead to no bridge, too.
        let lines = answer.lines().filter(|line| !line.contains(" dev lo "));
        *answer = lines.map(|line| format!("{line}\n")).collect();
    }
    assert_eq!(answers(&ours)?, theirs);
    for deployment in [&ours, &other] {
        appctl(deployment, &format!("netdev-dummy/receive p1 {FRAME}"))?;
    }
    context.wait_until("both to have sent it by the tunnel", || {
        Ok(left(&ours, "p0")?.len() == 1 && left(&other, "p0")?.len() == 1)
    })?;
    // The port that tells flows apart is a hash, and each has its own.
    let packet = |deployment| {
        let mut packet = left(deployment, "p0")?.swap_remove(0);
        packet[34..36].fill(0);
        Ok::<_, Failure>(packet)
    };
    let sent = packet(&ours)?;
    assert_eq!(sent, packet(&other)?);
    assert_eq!(sent.len(), FRAME.len() / 2 + 50);
    // The same comes back, from the other end to us.
    let mut back = sent;
    back[..12].rotate_left(6);
    back[26..34].rotate_left(4);
    back[34..36].copy_from_slice(&50_000_u16.to_be_bytes());
    let hex: String = back.iter().map(|byte| format!("{byte:02x}")).collect();
    for deployment in [&ours, &other] {
        appctl(deployment, &format!("netdev-dummy/receive p0 {hex}"))?;
    }
    context.wait_until("both to have taken it out of the tunnel", || {
        Ok(left(&ours, "p1")?.len() == 1 && left(&other, "p1")?.len() == 1)
    })?;
    assert_eq!(left(&ours, "p1")?, left(&other, "p1")?);
    // An address goes with its dummy.
    ours.vsctl("del-br br0")?;
    assert_eq!(
        appctl(&ours, "tnl/ports/show -v")?
            .matches("1.1.2.88")
            .count(),
        0
    );
    Ok(())
}

//! Tunnels between dummy ports compared with Open vSwitch: frames are injected by command and
//! recorded in files; addresses, routes and neighbours are added by command.

use std::fs;

use testbed::Failure;

use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};
use crate::support::pcap::pcap_frames;

pub(crate) const TESTS: &[SystemTest] = tests![tunnels_between_dummy_ports_match_open_vswitch,];

/// Arguments of `ovs-vsctl` for a bridge with the host's address, and one with a tunnel.
const BRIDGES: &str = "add-br br0 -- set Bridge br0 datapath_type=dummy other_config:hwaddr=aa:55:00:00:00:01 \
    -- add-port br0 p0 -- set Interface p0 type=dummy ofport_request=1 \
    -- add-br br1 -- set Bridge br1 datapath_type=dummy fail_mode=secure other_config:hwaddr=aa:55:00:00:00:02 \
    -- add-port br1 p1 -- set Interface p1 type=dummy ofport_request=1 \
    -- add-port br1 t1 -- set Interface t1 type=vxlan options:remote_ip=1.1.2.92 options:key=123 ofport_request=2";

/// Commands that add addresses, routes and neighbours, and that list them.
const COMMANDS: [&str; 14] = [
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

/// A TCP frame that is injected into the second bridge.
const INNER_FRAME: &str = "0200000000010200000000020800450000280000000040068a8e0a0000020a00000100090050000000000000000050020000000000000000";

/// Creates both bridges, with capture files of the frames that dummy ports send, and forwards
/// between the ports.
fn add_bridges(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
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

/// IPv4 frames that a dummy port sent; neighbour discovery is ignored.
fn sent_ipv4_frames(deployment: &Deployment<'_, '_>, port: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let file = deployment.rundir.join(format!("{port}.pcap"));
    let file = fs::read(file).map_err(Failure::to("read a capture"))?;
    let frames = pcap_frames(&file).into_iter();
    let is_ipv4 = |frame: &Vec<u8>| frame.get(12..14) == Some(&[8, 0][..]);
    Ok(frames.filter(is_ipv4).collect())
}

fn tunnels_between_dummy_ports_match_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 1)?;
    let [comporta, ovs] = pair.deploy()?;
    let dummy = "--enable-dummy";
    let (daemon, _daemon) = (
        comporta.start_daemon_with(dummy)?,
        start_ovs_vswitchd(&ovs, dummy)?,
    );
    daemon.wait_for_log("INFO ready")?;
    for deployment in [&comporta, &ovs] {
        add_bridges(deployment)?;
    }
    let run_commands = |deployment| {
        let replies = COMMANDS.map(|command| Ok((command, appctl(deployment, command)?)));
        replies.into_iter().collect::<Result<Vec<_>, Failure>>()
    };
    let [replies, ovs_replies] = [&comporta, &ovs].map(|deployment| {
        let mut replies = run_commands(deployment)?;
        for (_, reply) in &mut replies {
            // Addresses of the loopback interface depend on the host.
            let lines = reply.lines().filter(|line| !line.contains(" dev lo "));
            *reply = lines.map(|line| format!("{line}\n")).collect();
        }
        Ok::<_, Failure>(replies)
    });
    assert_eq!(replies?, ovs_replies?);
    for deployment in [&comporta, &ovs] {
        let receive = format!("netdev-dummy/receive p1 {INNER_FRAME}");
        appctl(deployment, &receive)?;
    }
    context.wait_until("an encapsulated packet of both switches", || {
        Ok(sent_ipv4_frames(&comporta, "p0")?.len() == 1
            && sent_ipv4_frames(&ovs, "p0")?.len() == 1)
    })?;
    // The UDP source port is a hash, which differs between the switches.
    let encapsulated = |deployment| {
        let mut encapsulated = sent_ipv4_frames(deployment, "p0")?.swap_remove(0);
        encapsulated[34..36].fill(0);
        Ok::<_, Failure>(encapsulated)
    };
    let packet = encapsulated(&comporta)?;
    assert_eq!(packet, encapsulated(&ovs)?);
    assert_eq!(packet.len(), INNER_FRAME.len() / 2 + 50);
    // The same packet in the opposite direction.
    let mut returned = packet;
    returned[..12].rotate_left(6);
    returned[26..34].rotate_left(4);
    returned[34..36].copy_from_slice(&50_000_u16.to_be_bytes());
    let hex: String = returned.iter().map(|byte| format!("{byte:02x}")).collect();
    for deployment in [&comporta, &ovs] {
        appctl(deployment, &format!("netdev-dummy/receive p0 {hex}"))?;
    }
    context.wait_until("the decapsulated frame of both switches", || {
        Ok(sent_ipv4_frames(&comporta, "p1")?.len() == 1
            && sent_ipv4_frames(&ovs, "p1")?.len() == 1)
    })?;
    assert_eq!(
        sent_ipv4_frames(&comporta, "p1")?,
        sent_ipv4_frames(&ovs, "p1")?
    );
    // An address is removed with its dummy port.
    comporta.vsctl("del-br br0")?;
    let tunnels = appctl(&comporta, "tnl/ports/show -v")?;
    assert!(!tunnels.contains("1.1.2.88"), "{tunnels}");
    Ok(())
}

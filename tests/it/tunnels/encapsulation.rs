//! Tunnels with the kernel's VXLAN and with Open vSwitch as the remote end, by IPv4 and IPv6.

use std::net::Ipv4Addr;

use testbed::{Clock, Failure, Namespace, OpenVswitch, Site};

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::host::{TestHost, pseudo_random_bytes};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    vxlan_interoperates_with_the_kernel_by_ipv4_and_ipv6,
    vxlan_geneve_and_gre_interoperate_with_open_vswitch_by_ipv4_and_ipv6,
    erspan_and_ip6gre_interoperate_with_open_vswitch,
    gtpu_interoperates_with_open_vswitch_without_ethernet_headers,
    rules_set_and_match_tunnel_fields,
    tunnels_of_the_database_change_and_report_errors,
    tunnel_routes_follow_the_kernel_and_commands,
    tunnels_use_an_interface_outside_of_bridges,
];

/// Adds an address to the bridge `br-phy`.
fn add_bridge_address(network: &TestNetwork<'_>, outer: &str) -> Result<(), Failure> {
    network
        .switch_namespace
        .set_sysctl("net/ipv6/conf/br-phy/disable_ipv6", "0")?;
    network
        .run(&format!("ip address add {outer} dev br-phy nodad"))?
        .expect_success()?;
    network.run("ip link set br-phy up")?.expect_success()?;
    Ok(())
}

/// Asserts that files cross in both directions; their segments need segmentation and checksums.
fn check_streams(one: &TestHost<'_>, two: &TestHost<'_>) -> Result<(), Failure> {
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    let bytes = pseudo_random_bytes(3_000_000);
    assert!(one.transfer(two, &bytes)? == bytes, "the file differs");
    assert!(two.transfer(one, &bytes)? == bytes, "the file differs");
    Ok(())
}

fn vxlan_interoperates_with_the_kernel_by_ipv4_and_ipv6(context: &TestContext) -> TestResult {
    for (switch_address, host_address, words, remote) in [
        (
            "172.16.0.1/24",
            "172.16.0.2/24",
            "remote 172.16.0.1",
            "172.16.0.2",
        ),
        ("fd00::1/64", "fd00::2/64", "remote fd00::1", "fd00::2"),
    ] {
        let network = TestNetwork::new(context, 2)?;
        let (one, two) = network.host_pair();
        two.move_into_vxlan(&format!("id 42 {words} dstport 4789 udpcsum"), host_address)?;
        one.run("ip link set eth0 mtu 1400")?.expect_success()?;
        let switch = network.start_switch(&format!(
            "--bridge br-phy --port p2 --bridge br0 --port p1 --port vxlan:v0,remote={remote},key=42"
        ))?;
        add_bridge_address(&network, switch_address)?;
        check_streams(one, two)?;
        let output = switch.appctl("tnl/ports/show")?;
        assert!(output.contains("vxlan_sys_4789 ("), "{output}");
        let output = switch.appctl("tnl/neigh/show")?;
        assert!(
            output.contains(remote) && output.contains("br-phy"),
            "{output}"
        );
        let output = switch.appctl(&format!("ovs/route/lookup {remote}"))?;
        assert!(output.contains("dev br-phy"), "{output}");
        // A packet with another key matches no tunnel.
        two.run("ip link del vx0")?.expect_success()?;
        two.move_into_vxlan(&format!("id 43 {words} dstport 4789 udpcsum"), host_address)?;
        assert!(!two.can_ping(Ipv4Addr::new(10, 1, 0, 1))?);
        context.wait_until("the counter of packets without a tunnel", || {
            two.can_ping(one.address)?;
            Ok(switch.counter("worker tunnel_no_port")? > 0)
        })?;
    }
    Ok(())
}

/// A host at `p1`, and a remote Open vSwitch with another host, connected by a cable between `w0`
/// and `w1`.
struct RemoteOpenVswitch<'g> {
    network: TestNetwork<'g>,
    /// Dropped before its namespace.
    ovs: OpenVswitch,
    two: TestHost<'g>,
    _namespace: Namespace,
}

impl<'g> RemoteOpenVswitch<'g> {
    fn new(context: &'g TestContext, name: &str) -> Result<Self, TestError> {
        if let Err(missing) = testbed::check(&OpenVswitch::requirements()) {
            return Err(TestError::Skip(missing.to_string()));
        }
        let network = TestNetwork::new(context, 1)?;
        let namespace = Namespace::new()?;
        namespace.join("w1", &network.switch_namespace, "w0")?;
        network.switch_namespace.set_up("w0")?;
        namespace.set_up("w1")?;
        let two = TestHost::attach(context, 2, &namespace)?;
        network
            .host(1)
            .run("ip link set eth0 mtu 1300")?
            .expect_success()?;
        two.run("ip link set eth0 mtu 1300")?.expect_success()?;
        // It needs complete checksums from its host.
        two.run("ethtool -K eth0 tx off")?.expect_success()?;
        let directory = context.directory().join(name);
        std::fs::create_dir_all(&directory)?;
        let site = Site {
            spawner: &context.spawner,
            inside: &namespace,
            directory: &directory,
            cores: &[],
        };
        let mut ovs = OpenVswitch::start(site, &Clock::start(), &[])?;
        ovs.vsctl("add-br br-phy -- set bridge br-phy datapath_type=netdev -- add-port br-phy w1")?;
        ovs.vsctl("add-br br0 -- set bridge br0 datapath_type=netdev -- add-port br0 p2")?;
        let run = |words: &str| {
            CommandOutput::run(context, program(words).inside(&namespace))?.expect_success()
        };
        namespace.set_sysctl("net/ipv6/conf/br-phy/disable_ipv6", "0")?;
        run("ip address add 172.16.0.2/24 dev br-phy")?;
        run("ip address add fd00::2/64 dev br-phy nodad")?;
        run("ip link set br-phy up")?;
        Ok(Self {
            network,
            ovs,
            two,
            _namespace: namespace,
        })
    }

    /// Starts the switch with this tunnel port.
    fn start_switch(&self, tunnel: &str) -> Result<SwitchProcess<'g>, Failure> {
        let switch = self.network.start_switch(&format!(
            "--bridge br-phy --port w0 --bridge br0 --port p1 --port {tunnel}"
        ))?;
        add_bridge_address(&self.network, "172.16.0.1/24")?;
        add_bridge_address(&self.network, "fd00::1/64")?;
        Ok(switch)
    }
}

fn vxlan_geneve_and_gre_interoperate_with_open_vswitch_by_ipv4_and_ipv6(
    context: &TestContext,
) -> TestResult {
    check_tunnels(
        context,
        &[
            (
                "vxlan:t0,remote=172.16.0.2,key=7,tos=inherit",
                "vxlan options:remote_ip=172.16.0.1 options:key=7",
            ),
            (
                "geneve:t0,remote=172.16.0.2,key=8,csum=true",
                "geneve options:remote_ip=172.16.0.1 options:key=8 options:csum=true",
            ),
            (
                "gre:t0,remote=172.16.0.2,key=9,csum=true",
                "gre options:remote_ip=172.16.0.1 options:key=9 options:csum=true",
            ),
            (
                "gre:t0,remote=172.16.0.2,seq=true",
                "gre options:remote_ip=172.16.0.1 options:seq=true",
            ),
            (
                "vxlan:t0,remote=fd00::2,key=10,port=4800",
                "vxlan options:remote_ip=fd00::1 options:key=10 options:dst_port=4800",
            ),
            (
                "geneve:t0,remote=fd00::2,key=11",
                "geneve options:remote_ip=fd00::1 options:key=11",
            ),
            (
                "gre:t0,remote=fd00::2,key=12",
                "gre options:remote_ip=fd00::1 options:key=12",
            ),
        ],
    )
}

/// Connects both switches by each tunnel in turn: words of our port, and those of the interface of
/// Open vSwitch. Frames cross in both directions.
fn check_tunnels(context: &TestContext, tunnels: &[(&str, &str)]) -> TestResult {
    for (index, (tunnel, ovs_interface)) in tunnels.iter().enumerate() {
        let mut remote_ovs = RemoteOpenVswitch::new(context, &format!("far{index}"))?;
        remote_ovs.ovs.vsctl(&format!(
            "add-port br0 t0 -- set interface t0 type={ovs_interface}"
        ))?;
        let switch = remote_ovs.start_switch(tunnel)?;
        check_streams(remote_ovs.network.host(1), &remote_ovs.two)?;
        assert!(switch.counter("br0 port 2 rx_packets")? > 100, "{tunnel}");
    }
    Ok(())
}

fn erspan_and_ip6gre_interoperate_with_open_vswitch(context: &TestContext) -> TestResult {
    check_tunnels(
        context,
        &[
            (
                "erspan:t0,remote=172.16.0.2,key=13,erspan_ver=1,erspan_idx=3",
                "erspan options:remote_ip=172.16.0.1 options:key=13 options:erspan_ver=1 \
                 options:erspan_idx=4",
            ),
            (
                "erspan:t0,remote=172.16.0.2,key=14,erspan_ver=2,erspan_dir=1,erspan_hwid=7",
                "erspan options:remote_ip=172.16.0.1 options:key=14 options:erspan_ver=2 \
                 options:erspan_dir=0 options:erspan_hwid=9",
            ),
            (
                "ip6erspan:t0,remote=fd00::2,key=15,erspan_ver=2",
                "ip6erspan options:remote_ip=fd00::1 options:key=15 options:erspan_ver=2",
            ),
            (
                "ip6gre:t0,remote=fd00::2,key=16",
                "ip6gre options:remote_ip=fd00::1 options:key=16",
            ),
        ],
    )
}

/// GTP-U carries IP packets only: rules at both ends set the destination of frames that leave it.
fn gtpu_interoperates_with_open_vswitch_without_ethernet_headers(
    context: &TestContext,
) -> TestResult {
    let mut remote_ovs = RemoteOpenVswitch::new(context, "far")?;
    remote_ovs.ovs.vsctl("add-port br0 t0 -- set interface t0 type=gtpu ofport_request=2 options:remote_ip=172.16.0.1 options:key=21 -- set interface p2 ofport_request=1")?;
    let switch = remote_ovs.start_switch("gtpu:t0,remote=172.16.0.2,key=21")?;
    let directory = context.directory().join("far");
    let run_on_ovs = |words: &str| {
        let program = program(words).env("OVS_RUNDIR", &directory);
        CommandOutput::run(context, program)?.expect_success()
    };
    let (one, two) = (remote_ovs.network.host(1), &remote_ovs.two);
    let mac = |host: &TestHost<'_>| {
        let octets = host.mac.map(|octet| format!("{octet:02x}"));
        octets.join(":")
    };
    for (host, peer) in [(one, two), (two, one)] {
        let words = format!(
            "ip neighbour replace {} lladdr {} dev eth0 nud permanent",
            peer.address,
            mac(peer)
        );
        host.run(&words)?.expect_success()?;
    }
    let rules = |host: &TestHost<'_>| {
        [
            "del-flows br0".to_owned(),
            "add-flow br0 in_port=1,ip,actions=2".to_owned(),
            format!(
                "add-flow br0 in_port=2,tun_id=21,tun_gtpu_msgtype=255,actions=set_field:{}->eth_dst,1",
                mac(host)
            ),
        ]
    };
    for rule in rules(one) {
        switch.ofctl(&rule)?;
    }
    for rule in rules(two) {
        run_on_ovs(&format!("ovs-ofctl {rule}"))?;
    }
    check_streams(one, two)?;
    // Frames with GTP-U fields match compiled rules.
    assert_eq!(switch.counter("worker slow_path_uncompiled_rules")?, 0);
    Ok(())
}

/// Rules on both ends: each end sets a key, a remote address and an option, and accepts only those
/// of the other.
fn rules_set_and_match_tunnel_fields(context: &TestContext) -> TestResult {
    let mut remote_ovs = RemoteOpenVswitch::new(context, "far")?;
    remote_ovs.ovs.vsctl("add-port br0 t0 -- set interface t0 type=geneve ofport_request=2 options:remote_ip=flow options:key=flow -- set interface p2 ofport_request=1")?;
    let directory = context.directory().join("far");
    let run_on_ovs = |words: &str| {
        let program = program(words).env("OVS_RUNDIR", &directory);
        CommandOutput::run(context, program)?.expect_success()
    };
    let switch = remote_ovs.start_switch("geneve:t0,remote=flow,key=flow")?;
    let map = "add-tlv-map br0 {class=0xffff,type=0x80,len=4}->tun_metadata0";
    let rules = |local: &str, remote: &str, key: u32, remote_key: u32| {
        [
            "del-flows br0".to_owned(),
            format!(
                "add-flow br0 in_port=1,actions=set_field:{remote}->tun_dst,set_field:{key}->tun_id,set_field:{key}->tun_metadata0,2"
            ),
            format!(
                "add-flow br0 in_port=2,tun_id={remote_key},tun_src={remote},tun_dst={local},tun_metadata0={remote_key},actions=1"
            ),
        ]
    };
    switch.ofctl(map)?;
    for rule in rules("172.16.0.1", "172.16.0.2", 5, 6) {
        switch.ofctl(&rule)?;
    }
    run_on_ovs(&format!("ovs-ofctl {map}"))?;
    for rule in rules("172.16.0.2", "172.16.0.1", 6, 5) {
        run_on_ovs(&format!("ovs-ofctl {rule}"))?;
    }
    let one = remote_ovs.network.host(1);
    check_streams(one, &remote_ovs.two)?;
    // With another key, frames match no rule.
    switch.ofctl("del-flows br0 in_port=2")?;
    switch.ofctl("add-flow br0 in_port=2,tun_id=7,actions=1")?;
    assert!(!one.can_ping(remote_ovs.two.address)?);
    switch.ofctl("add-flow br0 in_port=2,tun_metadata0=6,actions=1")?;
    one.ping_until_reply(remote_ovs.two.address)?;
    // A packet-out sets the tunnel fields.
    switch.ofctl("del-flows br0")?;
    let mut capture = remote_ovs.two.capture_frames()?;
    let frame = "ffffffffffff02000000000188b5aabbccdd00000000000000000000000000000000";
    switch.ofctl(&format!("packet-out br0 in_port=LOCAL,packet={frame},actions=set_field:172.16.0.2->tun_dst,set_field:5->tun_id,set_field:5->tun_metadata0,output:2"))?;
    let sent = |bytes: &[u8]| bytes[12..18] == [0x88, 0xb5, 0xaa, 0xbb, 0xcc, 0xdd];
    while !sent(capture.next_frame()?.bytes()) {}
    Ok(())
}

/// Tunnels that conflict with the existing one or are not supported, and the error.
const REFUSED_TUNNELS: [(&str, &str); 5] = [
    (
        "type=vxlan options:exts=gbp options:key=42 options:remote_ip=172.16.0.2",
        "with same config as port",
    ),
    (
        "type=vxlan options:remote_ip=172.16.0.2",
        "VXLAN-GBP, and non-VXLAN-GBP tunnels can't be configured on the same dst_port",
    ),
    (
        "type=geneve",
        "geneve type requires valid 'remote_ip' argument",
    ),
    (
        "type=stt options:remote_ip=172.16.0.2",
        "type stt: not supported",
    ),
    (
        "type=gtpu options:packet_type=legacy_l2 options:remote_ip=172.16.0.2",
        "legacy_l2 configured on gtpu tunnel that cannot carry L2 traffic",
    ),
];

/// With a group policy, by the kernel's VXLAN, which marks and drops by it.
fn tunnels_of_the_database_change_and_report_errors(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let (one, two) = network.host_pair();
    two.move_into_vxlan("id 42 gbp remote 172.16.0.1 dstport 4789", "172.16.0.2/24")?;
    one.run("ip link set eth0 mtu 1400")?.expect_success()?;
    deployment.vsctl("add-br br-phy -- add-port br-phy p2 -- add-br br0 -- add-port br0 p1")?;
    add_bridge_address(&network, "172.16.0.1/24")?;
    let tunnel = "add-port br0 a-vxlan-to-the-other-host -- set Interface a-vxlan-to-the-other-host type=vxlan options:remote_ip=172.16.0.2 options:exts=gbp";
    deployment.vsctl(&format!("{tunnel} options:key=41"))?;
    let error = "get Interface a-vxlan-to-the-other-host error";
    assert_eq!(deployment.vsctl(error)?, "[]");
    assert!(!one.can_ping(two.address)?, "the keys differ");
    // The tunnel's options change while the port remains.
    deployment.vsctl("set Interface a-vxlan-to-the-other-host options:key=42")?;
    check_streams(one, two)?;
    let output = deployment.run_tool("ovs-appctl ofproto/list-tunnels")?;
    assert!(
        output.contains("a-vxlan-to-the-other-host (vxlan: ::->172.16.0.2, key=0x2a, legacy_l2"),
        "{output}"
    );
    // One rule sets the group, another matches the group of packets that the kernel returns.
    let port = deployment.vsctl("get Interface a-vxlan-to-the-other-host ofport")?;
    deployment.run_tool("ovs-ofctl del-flows br0")?;
    for rule in [
        format!("in_port=p1,actions=set_field:0x77->tun_gbp_id,output:{port}"),
        format!("in_port={port},tun_gbp_id=0,tun_src=172.16.0.2,actions=output:p1"),
    ] {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {rule}"))?;
    }
    let mut capture = two.capture_frames()?;
    one.ping_until_reply(two.address)?;
    let is_marked = |bytes: &[u8]| {
        bytes
            .get(34..50)
            .is_some_and(|rest| rest[8..12] == [0x88, 0, 0, 0x77])
    };
    while !is_marked(capture.next_frame()?.bytes()) {}
    for (words, error) in REFUSED_TUNNELS {
        let output =
            deployment.vsctl_output(&format!("add-port br0 twin -- set Interface twin {words}"))?;
        assert!(output.stderr.contains(error), "{output:?}");
        deployment.vsctl("del-port twin")?;
    }
    deployment.vsctl("del-port a-vxlan-to-the-other-host")?;
    assert_eq!(deployment.run_tool("ovs-appctl ofproto/list-tunnels")?, "");
    assert!(!one.can_ping(two.address)?);
    Ok(())
}

fn tunnel_routes_follow_the_kernel_and_commands(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (one, two) = network.host_pair();
    two.move_into_vxlan("id 42 remote 172.16.0.1 dstport 4789", "172.16.0.2/24")?;
    one.run("ip link set eth0 mtu 1400")?.expect_success()?;
    let switch = network.start_switch(
        "--bridge br-phy --port p2 --bridge br0 --port p1 --port vxlan:v0,remote=172.16.0.2,key=42",
    )?;
    add_bridge_address(&network, "172.16.0.1/24")?;
    one.ping_until_reply(two.address)?;
    // A static route, and one that the kernel removes.
    switch.appctl("ovs/route/add 198.51.100.0/24 br-phy 172.16.0.2")?;
    let output = switch.appctl("ovs/route/lookup 198.51.100.7")?;
    assert_eq!(output, "src 172.16.0.1\ngateway 172.16.0.2\ndev br-phy\n");
    let output = switch.appctl("ovs/route/show")?;
    for line in [
        "User: 198.51.100.0/24 dev br-phy GW 172.16.0.2 SRC 172.16.0.1",
        "Cached: 172.16.0.0/24 dev br-phy SRC 172.16.0.1",
        "Cached: 172.16.0.1/32 dev br-phy SRC 172.16.0.1 local",
    ] {
        assert!(output.contains(line), "{output}");
    }
    network
        .run("ip address flush dev br-phy")?
        .expect_success()?;
    context.wait_until("the removal of the route", || {
        let output = switch.appctl("ovs/route/show")?;
        Ok(!output.contains("172.16.0.0/24"))
    })?;
    assert!(!one.can_ping(two.address)?);
    add_bridge_address(&network, "172.16.0.1/24")?;
    one.ping_until_reply(two.address)?;
    // No request is sent for a static neighbour.
    let mac = switch.appctl("tnl/neigh/show")?;
    assert!(mac.contains("172.16.0.2"), "{mac}");
    switch.appctl("tnl/neigh/set br-phy 172.16.0.2 02:00:00:00:00:77")?;
    assert!(!one.can_ping(two.address)?);
    switch.appctl("tnl/neigh/flush")?;
    one.ping_until_reply(two.address)?;
    switch.appctl("tnl/egress_port_range 40000 40009")?;
    let output = switch.appctl("tnl/egress_port_range")?;
    assert_eq!(output, "Tunnel UDP source port range: 40000-40009\n");
    one.ping(two.address, 3)?;
    Ok(())
}

/// The host's address is on an interface that belongs to no bridge.
fn tunnels_use_an_interface_outside_of_bridges(context: &TestContext) -> TestResult {
    for (switch_address, host_address, remote) in [
        ("172.16.0.1/24", "172.16.0.2/24", "172.16.0.2"),
        ("fd00::1/64", "fd00::2/64", "fd00::2"),
    ] {
        let network = TestNetwork::new(context, 2)?;
        let (one, two) = network.host_pair();
        let local = switch_address.split('/').next().unwrap_or_default();
        two.move_into_vxlan(&format!("id 42 remote {local} dstport 4789"), host_address)?;
        one.run("ip link set eth0 mtu 1400")?.expect_success()?;
        network
            .switch_namespace
            .set_sysctl("net/ipv6/conf/p2/disable_ipv6", "0")?;
        network
            .run(&format!("ip address add {switch_address} dev p2 nodad"))?
            .expect_success()?;
        let switch = network.start_switch(&format!(
            "--bridge br0 --port p1 --port vxlan:v0,remote={remote},key=42"
        ))?;
        check_streams(one, two)?;
        let output = switch.appctl(&format!("ovs/route/lookup {remote}"))?;
        assert!(output.contains("dev p2"), "{output}");
        // Packets for the host itself are not decapsulated.
        two.run(&format!("ping -n -q -c 3 {local}"))?
            .expect_success()?;
    }
    Ok(())
}

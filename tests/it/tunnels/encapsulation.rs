//! Tunnels: with the kernel's own VXLAN and with Open vSwitch at the other end, by IPv4 and IPv6.

use std::net::Ipv4Addr;

use testbed::{Clock, Failure, Namespace, OpenVswitch, Site as Place};

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::host::{TestHost, pseudo_random_bytes};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    vxlan_meets_the_kernels_own_by_ipv4_and_ipv6,
    vxlan_geneve_and_gre_meet_open_vswitch_by_ipv4_and_ipv6,
    rules_choose_where_tunnels_go_and_see_where_frames_came_from,
    tunnels_of_the_database_come_and_go_and_say_why_they_cannot,
    routes_are_the_kernels_and_those_said_by_hand,
    tunnels_go_by_an_interface_that_is_no_bridges_too,
];

/// The end of a tunnel that is the kernel's: host 2, whose other address is within.
fn kernels_vxlan(host: &TestHost<'_>, words: &str, outer: &str) -> Result<(), Failure> {
    host.namespace
        .set_sysctl("net/ipv6/conf/eth0/disable_ipv6", "0")?;
    for words in [
        "ip address flush dev eth0".to_owned(),
        format!("ip address add {outer} dev eth0 nodad"),
        format!("ip link add vx0 type vxlan dev eth0 {words}"),
        "ip link set vx0 mtu 1400 up".to_owned(),
        format!("ip address add {}/24 dev vx0", host.address),
    ] {
        host.run(&words)?.expect_success()?;
    }
    Ok(())
}

/// Gives the bridge `br-phy` an address.
fn address(network: &TestNetwork<'_>, outer: &str) -> Result<(), Failure> {
    network
        .switch_namespace
        .set_sysctl("net/ipv6/conf/br-phy/disable_ipv6", "0")?;
    network
        .run(&format!("ip address add {outer} dev br-phy nodad"))?
        .expect_success()?;
    network.run("ip link set br-phy up")?.expect_success()?;
    Ok(())
}

/// Streams both ways, whose segments are cut and summed on the way, and bytes that must be those
/// that were sent.
fn stream(one: &TestHost<'_>, two: &TestHost<'_>) -> Result<(), Failure> {
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    let bytes = pseudo_random_bytes(3_000_000);
    assert!(one.transfer(two, &bytes)? == bytes, "other bytes came");
    assert!(two.transfer(one, &bytes)? == bytes, "other bytes came");
    Ok(())
}

fn vxlan_meets_the_kernels_own_by_ipv4_and_ipv6(context: &TestContext) -> TestResult {
    for (ours, theirs, words, remote) in [
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
        kernels_vxlan(two, &format!("id 42 {words} dstport 4789 udpcsum"), theirs)?;
        one.run("ip link set eth0 mtu 1400")?.expect_success()?;
        let switch = network.start_switch(&format!(
            "--bridge br-phy --port p2 --bridge br0 --port p1 --port vxlan:v0,remote={remote},key=42"
        ))?;
        address(&network, ours)?;
        stream(one, two)?;
        let shown = switch.appctl("tnl/ports/show")?;
        assert!(shown.contains("vxlan_sys_4789 (4789) ref_cnt=1"), "{shown}");
        let shown = switch.appctl("tnl/neigh/show")?;
        assert!(
            shown.contains(remote) && shown.contains("br-phy"),
            "{shown}"
        );
        let shown = switch.appctl(&format!("ovs/route/lookup {remote}"))?;
        assert!(shown.contains("dev br-phy"), "{shown}");
        // Another key is another's.
        two.run("ip link del vx0")?.expect_success()?;
        kernels_vxlan(two, &format!("id 43 {words} dstport 4789 udpcsum"), theirs)?;
        assert!(!two.can_ping(Ipv4Addr::new(10, 1, 0, 1))?);
        context.wait_until("packets of no tunnel to be counted", || {
            two.can_ping(one.address)?;
            Ok(switch.counter("worker tunnel_no_port")? > 0)
        })?;
    }
    Ok(())
}

/// A host of ours at `p1`, and at the other end of a cable between `w0` and `w1` an Open vSwitch
/// with another.
struct Far<'g> {
    network: TestNetwork<'g>,
    /// Dropped before its namespace.
    theirs: OpenVswitch,
    two: TestHost<'g>,
    _far: Namespace,
}

impl<'g> Far<'g> {
    fn new(context: &'g TestContext, name: &str) -> Result<Self, TestError> {
        if let Err(missing) = testbed::check(&OpenVswitch::requirements()) {
            return Err(TestError::Skip(missing.to_string()));
        }
        let network = TestNetwork::new(context, 1)?;
        let far = Namespace::new()?;
        far.join("w1", &network.switch_namespace, "w0")?;
        network.switch_namespace.set_up("w0")?;
        far.set_up("w1")?;
        let two = TestHost::attach(context, 2, &far)?;
        network
            .host(1)
            .run("ip link set eth0 mtu 1300")?
            .expect_success()?;
        two.run("ip link set eth0 mtu 1300")?.expect_success()?;
        // What it takes from a host must be finished.
        two.run("ethtool -K eth0 tx off")?.expect_success()?;
        let directory = context.directory().join(name);
        std::fs::create_dir_all(&directory)?;
        let place = Place {
            spawner: &context.spawner,
            inside: &far,
            directory: &directory,
            cores: &[],
        };
        let mut theirs = OpenVswitch::start(place, &Clock::start(), &[])?;
        theirs.vsctl(
            "add-br br-phy -- set bridge br-phy datapath_type=netdev -- add-port br-phy w1",
        )?;
        theirs.vsctl("add-br br0 -- set bridge br0 datapath_type=netdev -- add-port br0 p2")?;
        let ran = |words: &str| {
            CommandOutput::run(context, program(words).inside(&far))?.expect_success()
        };
        far.set_sysctl("net/ipv6/conf/br-phy/disable_ipv6", "0")?;
        ran("ip address add 172.16.0.2/24 dev br-phy")?;
        ran("ip address add fd00::2/64 dev br-phy nodad")?;
        ran("ip link set br-phy up")?;
        Ok(Self {
            network,
            theirs,
            two,
            _far: far,
        })
    }

    /// Starts our switch, with these words for its tunnel.
    fn start_switch(&self, tunnel: &str) -> Result<SwitchProcess<'g>, Failure> {
        let switch = self.network.start_switch(&format!(
            "--bridge br-phy --port w0 --bridge br0 --port p1 --port {tunnel}"
        ))?;
        address(&self.network, "172.16.0.1/24")?;
        address(&self.network, "fd00::1/64")?;
        Ok(switch)
    }
}

fn vxlan_geneve_and_gre_meet_open_vswitch_by_ipv4_and_ipv6(context: &TestContext) -> TestResult {
    for (index, (ours, theirs)) in [
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
    ]
    .into_iter()
    .enumerate()
    {
        let mut far = Far::new(context, &format!("far{index}"))?;
        far.theirs.vsctl(&format!(
            "add-port br0 t0 -- set interface t0 type={theirs}"
        ))?;
        let switch = far.start_switch(ours)?;
        stream(far.network.host(1), &far.two)?;
        assert!(switch.counter("br0 port 2 rx_packets")? > 100, "{ours}");
    }
    Ok(())
}

/// Rules of both ends: frames go with a key, an end and an option that each end writes, and come
/// only if they have those of the other.
fn rules_choose_where_tunnels_go_and_see_where_frames_came_from(
    context: &TestContext,
) -> TestResult {
    let mut far = Far::new(context, "far")?;
    far.theirs.vsctl("add-port br0 t0 -- set interface t0 type=geneve ofport_request=2 options:remote_ip=flow options:key=flow -- set interface p2 ofport_request=1")?;
    let directory = context.directory().join("far");
    let theirs = |words: &str| {
        let program = program(words).env("OVS_RUNDIR", &directory);
        CommandOutput::run(context, program)?.expect_success()
    };
    let switch = far.start_switch("geneve:t0,remote=flow,key=flow")?;
    let map = "add-tlv-map br0 {class=0xffff,type=0x80,len=4}->tun_metadata0";
    let rules = |here: &str, there: &str, ours: u32, others: u32| {
        [
            "del-flows br0".to_owned(),
            format!(
                "add-flow br0 in_port=1,actions=set_field:{there}->tun_dst,set_field:{ours}->tun_id,set_field:{ours}->tun_metadata0,2"
            ),
            format!(
                "add-flow br0 in_port=2,tun_id={others},tun_src={there},tun_dst={here},tun_metadata0={others},actions=1"
            ),
        ]
    };
    switch.ofctl(map)?;
    for rule in rules("172.16.0.1", "172.16.0.2", 5, 6) {
        switch.ofctl(&rule)?;
    }
    theirs(&format!("ovs-ofctl {map}"))?;
    for rule in rules("172.16.0.2", "172.16.0.1", 6, 5) {
        theirs(&format!("ovs-ofctl {rule}"))?;
    }
    let one = far.network.host(1);
    stream(one, &far.two)?;
    // With another key, they come to no rule.
    switch.ofctl("del-flows br0 in_port=2")?;
    switch.ofctl("add-flow br0 in_port=2,tun_id=7,actions=1")?;
    assert!(!one.can_ping(far.two.address)?);
    switch.ofctl("add-flow br0 in_port=2,tun_metadata0=6,actions=1")?;
    one.ping_until_reply(far.two.address)?;
    // A controller's frame goes as it says.
    switch.ofctl("del-flows br0")?;
    let mut capture = far.two.capture_frames()?;
    let frame = "ffffffffffff02000000000188b5aabbccdd00000000000000000000000000000000";
    switch.ofctl(&format!("packet-out br0 in_port=LOCAL,packet={frame},actions=set_field:172.16.0.2->tun_dst,set_field:5->tun_id,set_field:5->tun_metadata0,output:2"))?;
    let sent = |bytes: &[u8]| bytes[12..18] == [0x88, 0xb5, 0xaa, 0xbb, 0xcc, 0xdd];
    while !sent(capture.next_frame()?.bytes()) {}
    Ok(())
}

/// Tunnels that cannot be beside that to the other host, and what is said of them.
const REFUSED: [(&str, &str); 5] = [
    (
        "type=vxlan options:exts=gbp options:key=42 options:remote_ip=172.16.0.2",
        "with same config as port",
    ),
    (
        "type=vxlan options:remote_ip=172.16.0.2",
        "has UDP port 4789",
    ),
    (
        "type=geneve",
        "geneve type requires valid 'remote_ip' argument",
    ),
    (
        "type=gtpu options:remote_ip=172.16.0.2",
        "type gtpu: not there",
    ),
    (
        "type=gre options:packet_type=ptap options:remote_ip=172.16.0.2",
        "ptap is not there",
    ),
];

/// With a group policy, by the kernel's own VXLAN, whose other end marks and drops by it.
fn tunnels_of_the_database_come_and_go_and_say_why_they_cannot(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let (one, two) = network.host_pair();
    kernels_vxlan(
        two,
        "id 42 gbp remote 172.16.0.1 dstport 4789",
        "172.16.0.2/24",
    )?;
    one.run("ip link set eth0 mtu 1400")?.expect_success()?;
    deployment.vsctl("add-br br-phy -- add-port br-phy p2 -- add-br br0 -- add-port br0 p1")?;
    address(&network, "172.16.0.1/24")?;
    let tunnel = "add-port br0 a-vxlan-to-the-other-host -- set Interface a-vxlan-to-the-other-host type=vxlan options:remote_ip=172.16.0.2 options:exts=gbp";
    deployment.vsctl(&format!("{tunnel} options:key=41"))?;
    let error = "get Interface a-vxlan-to-the-other-host error";
    assert_eq!(deployment.vsctl(error)?, "[]");
    assert!(!one.can_ping(two.address)?, "the key is another");
    // What it is changes while the port stays in its row.
    deployment.vsctl("set Interface a-vxlan-to-the-other-host options:key=42")?;
    stream(one, two)?;
    let listed = deployment.run_tool("ovs-appctl ofproto/list-tunnels")?;
    assert!(
        listed.contains("a-vxlan-to-the-other-host (vxlan: ::->172.16.0.2, key=0x2a, legacy_l2"),
        "{listed}"
    );
    // The group is written by a rule and read by another, of what the kernel sends back.
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
    for (words, why) in REFUSED {
        let said =
            deployment.vsctl_output(&format!("add-port br0 twin -- set Interface twin {words}"))?;
        assert!(said.stderr.contains(why), "{said:?}");
        deployment.vsctl("del-port twin")?;
    }
    deployment.vsctl("del-port a-vxlan-to-the-other-host")?;
    assert_eq!(deployment.run_tool("ovs-appctl ofproto/list-tunnels")?, "");
    assert!(!one.can_ping(two.address)?);
    Ok(())
}

fn routes_are_the_kernels_and_those_said_by_hand(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (one, two) = network.host_pair();
    kernels_vxlan(two, "id 42 remote 172.16.0.1 dstport 4789", "172.16.0.2/24")?;
    one.run("ip link set eth0 mtu 1400")?.expect_success()?;
    let switch = network.start_switch(
        "--bridge br-phy --port p2 --bridge br0 --port p1 --port vxlan:v0,remote=172.16.0.2,key=42",
    )?;
    address(&network, "172.16.0.1/24")?;
    one.ping_until_reply(two.address)?;
    // A route that was said by hand, and one that is not there any more.
    switch.appctl("ovs/route/add 198.51.100.0/24 br-phy 172.16.0.2")?;
    let told = switch.appctl("ovs/route/lookup 198.51.100.7")?;
    assert_eq!(told, "src 172.16.0.1\ngateway 172.16.0.2\ndev br-phy\n");
    let shown = switch.appctl("ovs/route/show")?;
    for line in [
        "User: 198.51.100.0/24 dev br-phy GW 172.16.0.2 SRC 172.16.0.1",
        "Cached: 172.16.0.0/24 dev br-phy SRC 172.16.0.1",
        "Cached: 172.16.0.1/32 dev br-phy SRC 172.16.0.1 local",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    network
        .run("ip address flush dev br-phy")?
        .expect_success()?;
    context.wait_until("the route to be gone", || {
        let shown = switch.appctl("ovs/route/show")?;
        Ok(!shown.contains("172.16.0.0/24"))
    })?;
    assert!(!one.can_ping(two.address)?);
    address(&network, "172.16.0.1/24")?;
    one.ping_until_reply(two.address)?;
    // Of a neighbour that was said by hand, nobody asks.
    let mac = switch.appctl("tnl/neigh/show")?;
    assert!(mac.contains("172.16.0.2"), "{mac}");
    switch.appctl("tnl/neigh/set br-phy 172.16.0.2 02:00:00:00:00:77")?;
    assert!(!one.can_ping(two.address)?);
    switch.appctl("tnl/neigh/flush")?;
    one.ping_until_reply(two.address)?;
    switch.appctl("tnl/egress_port_range 40000 40009")?;
    let told = switch.appctl("tnl/egress_port_range")?;
    assert_eq!(told, "Tunnel UDP source port range: 40000-40009\n");
    one.ping(two.address, 3)?;
    Ok(())
}

/// The host's address is at an ordinary interface, which no bridge has.
fn tunnels_go_by_an_interface_that_is_no_bridges_too(context: &TestContext) -> TestResult {
    for (ours, theirs, remote) in [
        ("172.16.0.1/24", "172.16.0.2/24", "172.16.0.2"),
        ("fd00::1/64", "fd00::2/64", "fd00::2"),
    ] {
        let network = TestNetwork::new(context, 2)?;
        let (one, two) = network.host_pair();
        let local = ours.split('/').next().unwrap_or_default();
        kernels_vxlan(two, &format!("id 42 remote {local} dstport 4789"), theirs)?;
        one.run("ip link set eth0 mtu 1400")?.expect_success()?;
        network
            .switch_namespace
            .set_sysctl("net/ipv6/conf/p2/disable_ipv6", "0")?;
        network
            .run(&format!("ip address add {ours} dev p2 nodad"))?
            .expect_success()?;
        let switch = network.start_switch(&format!(
            "--bridge br0 --port p1 --port vxlan:v0,remote={remote},key=42"
        ))?;
        stream(one, two)?;
        let told = switch.appctl(&format!("ovs/route/lookup {remote}"))?;
        assert!(told.contains("dev p2"), "{told}");
        // The host's own packets are its own.
        two.run(&format!("ping -n -q -c 3 {local}"))?
            .expect_success()?;
    }
    Ok(())
}

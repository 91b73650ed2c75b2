//! The rules that Neutron's Open vSwitch agent installed on one compute node
//! (`bench/recorded/neutron`), on the bridges that it creates, with the traffic of their security
//! groups.
//!
//! ```text
//!  host 1   host 2   host 3   host 4             host 5, a port on another node
//!    |p1      |p2      |p3      |p4                |vx0
//!  +-----------------------------------+           |
//!  | br-int: security groups           |         VXLAN
//!  +-----------------------------------+           |
//!                | patch ports                     |
//!  +-----------------------------------+  p5       |eth0
//!  | br-tun: forwarding by MAC address |--br-phy---+
//!  +-----------------------------------+
//! ```
//!
//! Hosts 1, 2 and 5 are in the groups `default`, which permits all traffic of its members, and
//! `web`; hosts 3 and 4 are in `web` and `db`. `web` permits TCP to the ports 80 and 443 from
//! everywhere, and to the ports 22 and 8000 to 8999 from prefixes to which no host belongs; `db`
//! permits port 5432 to members of `default`, and port 3306 to members of `web`.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use testbed::Failure;

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::host::{TestHost, copy_stream};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    neutron_agent_rules_filter_ports_of_one_node,
    neutron_agent_rules_filter_ports_across_tunnels,
];

/// Number, in the recorded network, of the port that host 5 has.
const REMOTE_PORT: u8 = 13;

/// Tunnel endpoint of host 5 in the recording, and the endpoint of the switch.
const REMOTE_ENDPOINT: &str = "192.0.2.6";
const LOCAL_ENDPOINT: &str = "192.0.2.254";

/// Segment of the first recorded network.
const SEGMENT: u32 = 100;

/// Number of the integration bridge's patch port: after the ports of the node and of the physical
/// bridge.
const PATCH_TO_TUNNELS: u32 = 42;

/// Time in which a permitted connection would be established.
const REFUSAL: Duration = Duration::from_millis(300);

/// Bridges with the recorded rules, and the hosts at their ports.
struct ComputeNode<'d, 'g> {
    deployment: &'d Deployment<'d, 'g>,
    _daemon: VswitchdProcess<'d, 'g>,
}

/// Creates hosts with the addresses of ports of the first recorded network.
fn hosts(context: &TestContext) -> Result<TestNetwork<'_>, Failure> {
    let mut network = TestNetwork::new(context, 5)?;
    for (host, number) in network.hosts.iter_mut().zip([1, 2, 3, 4, REMOTE_PORT]) {
        host.mac = [0x0a, 0, 0, 0, 0, number];
        host.namespace.set_mac(host.interface, host.mac)?;
        host.move_to([10, 0, 0, number + 2].into(), None)?;
    }
    Ok(network)
}

impl<'d, 'g> ComputeNode<'d, 'g> {
    /// Starts the daemon with the agent's bridges and the recorded rules. The agent numbers local
    /// networks and tunnel ports; the bridges have the numbers of the rules.
    fn start(deployment: &'d Deployment<'d, 'g>) -> Result<Self, Failure> {
        let context = deployment.network.context;
        let integration = recorded_rules(context, "br-int")?;
        let tunnels = recorded_rules(context, "br-tun")?;
        let daemon = deployment.start_daemon()?;
        let vlan = number_in_rule(&integration, "dl_dst=0a:00:00:00:00:01 ", "dl_vlan=");
        let remote = format!("dl_dst=0a:00:00:00:00:{REMOTE_PORT:02x} ");
        let vxlan = number_in_rule(&tunnels, &remote, "output:");
        for bridge in ["br-phy", "br-int", "br-tun"] {
            deployment.vsctl(&format!("add-br {bridge}"))?;
        }
        deployment.vsctl("add-port br-phy p5")?;
        for port in 1..=4 {
            deployment.vsctl(&format!(
                "add-port br-int p{port} tag={vlan} -- set interface p{port} ofport_request={port}"
            ))?;
        }
        for (bridge, port, peer, number) in [
            ("br-int", "patch-tun", "patch-int", PATCH_TO_TUNNELS),
            ("br-tun", "patch-int", "patch-tun", 1),
        ] {
            deployment.vsctl(&format!(
                "add-port {bridge} {port} -- set interface {port} ofport_request={number} \
                 type=patch options:peer={peer}"
            ))?;
        }
        deployment.vsctl(&format!(
            "add-port br-tun vxlan0 -- set interface vxlan0 ofport_request={vxlan} type=vxlan \
             options:remote_ip={REMOTE_ENDPOINT} options:in_key=flow options:out_key=flow"
        ))?;
        for (bridge, rules) in [("br-int", integration), ("br-tun", tunnels)] {
            let file = context.unique_path("flows.txt");
            fs::write(&file, rules).map_err(Failure::to("write rules"))?;
            let file = file.display();
            deployment.run_tool(&format!(
                "ovs-ofctl -O OpenFlow14 replace-flows {bridge} {file}"
            ))?;
        }
        Ok(Self {
            deployment,
            _daemon: daemon,
        })
    }

    /// The host with this number.
    fn host(&self, number: usize) -> &TestHost<'g> {
        self.deployment.network.host(number)
    }

    /// Asserts that a new connection to a TCP port is established, and carries bytes in both
    /// directions.
    fn assert_permitted(&self, from: usize, to: usize, port: u16) -> Result<(), Failure> {
        let (from, to) = (self.host(from), self.host(to));
        let listener = to.listen(port)?;
        let stream = from.connect(to.address, port)?;
        let (accepted, _) = listener
            .accept()
            .map_err(Failure::to("accept a TCP connection"))?;
        assert_eq!(copy_stream(b"request", &stream, &accepted)?, b"request");
        assert_eq!(copy_stream(b"reply", &accepted, &stream)?, b"reply");
        Ok(())
    }

    /// Asserts that the first packet of a new connection to a TCP port is dropped in the table of
    /// dropped traffic, and that no connection is tracked.
    fn assert_refused(&self, from: usize, to: usize, port: u16) -> Result<(), Failure> {
        let (from, to) = (self.host(from), self.host(to));
        let _listener = to.listen(port)?;
        let before = self.dropped_packets()?;
        let address = (to.address, port).into();
        let is_connected = from
            .namespace
            .run(|| TcpStream::connect_timeout(&address, REFUSAL).is_ok())?;
        assert!(!is_connected, "port {port} of {}", to.address);
        let context = self.deployment.network.context;
        context.wait_until("the drop of a packet", || {
            Ok(self.dropped_packets()? > before)
        })?;
        let connections = self
            .deployment
            .run_tool("ovs-appctl dpctl/dump-conntrack")?;
        assert!(
            !connections.contains(&format!("dport={port}")),
            "{connections}"
        );
        Ok(())
    }

    /// Number of packets that the rule of the table of dropped traffic has dropped.
    fn dropped_packets(&self) -> Result<u64, Failure> {
        let rules = self
            .deployment
            .run_tool("ovs-ofctl -O OpenFlow14 dump-flows br-int table=93")?;
        let (_, rest) = rules.split_once("n_packets=").expect("a rule with counts");
        let (count, _) = rest.split_once(',').expect("more counts");
        Ok(count.parse().expect("a count"))
    }

    /// Asserts that all packets were processed by compiled rules.
    fn assert_no_slow_path(&self) -> Result<(), Failure> {
        let counters = self.deployment.run_tool("ovs-appctl comporta/counters")?;
        assert!(!counters.contains("slow_path"), "{counters}");
        Ok(())
    }
}

/// The recorded rules of a bridge.
fn recorded_rules(context: &TestContext, bridge: &str) -> Result<String, Failure> {
    let file = format!(
        "{}/../bench/recorded/neutron/{bridge}/flows.txt.gz",
        env!("CARGO_MANIFEST_DIR")
    );
    let unpack = program("gzip --decompress --stdout").arg(file);
    CommandOutput::run(context, unpack)?.expect_success()
}

/// The number after `prefix` in the first rule that contains `words` and `prefix`.
fn number_in_rule(rules: &str, words: &str, prefix: &str) -> u32 {
    let mut rules = rules.lines().filter(|rule| rule.contains(words));
    let number = rules.find_map(|rule| {
        let (_, rest) = rule.split_once(prefix)?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    });
    number.unwrap_or_else(|| panic!("no rule with `{words}` and `{prefix}`"))
}

fn neutron_agent_rules_filter_ports_of_one_node(context: &TestContext) -> TestResult {
    let network = hosts(context)?;
    let deployment = Deployment::new(&network)?;
    let node = ComputeNode::start(&deployment)?;
    let (first, second) = network.host_pair();
    // Members of `default`: any protocol and port.
    first.ping_until_reply(second.address)?;
    second.ping(first.address, 5)?;
    node.assert_permitted(1, 2, 5001)?;
    node.assert_permitted(2, 1, 5002)?;
    // Everybody: the ports of `web`; members of `default` and `web`: those of `db`.
    node.assert_permitted(1, 3, 80)?;
    node.assert_permitted(3, 1, 443)?;
    node.assert_permitted(1, 3, 5432)?;
    node.assert_permitted(4, 3, 3306)?;
    // No member of `default`, no rule, and another prefix than the one that may use the port.
    node.assert_refused(4, 3, 5433)?;
    node.assert_refused(3, 1, 5003)?;
    node.assert_refused(4, 1, 5004)?;
    node.assert_refused(1, 3, 8000)?;
    node.assert_refused(4, 3, 22)?;
    // The address of another port does not leave a port.
    let before = node.dropped_packets()?;
    network
        .host(4)
        .send(&["eth(src=0a:00:00:00:00:04,dst=0a:00:00:00:00:03) / \
         ipv4(src=10.0.0.3,dst=10.0.0.5) / tcp(dst=80,flags=S)"])?;
    context.wait_until("the drop of a packet", || {
        Ok(node.dropped_packets()? > before)
    })?;
    first.exchange_files(second, 3_000_000)?;
    node.assert_no_slow_path()?;
    Ok(())
}

fn neutron_agent_rules_filter_ports_across_tunnels(context: &TestContext) -> TestResult {
    let network = hosts(context)?;
    let deployment = Deployment::new(&network)?;
    let node = ComputeNode::start(&deployment)?;
    let (first, remote) = (network.host(1), network.host(5));
    remote.move_into_vxlan(
        &format!("id {SEGMENT} remote {LOCAL_ENDPOINT} dstport 4789"),
        &format!("{REMOTE_ENDPOINT}/24"),
    )?;
    remote.namespace.set_mac("vx0", remote.mac)?;
    let underlay = LOCAL_ENDPOINT.parse().expect("an address");
    network
        .switch_namespace
        .add_address("br-phy", underlay, 24)?;
    network.switch_namespace.set_up("br-phy")?;
    for host in 1..=4 {
        network.host(host).namespace.set_mtu("eth0", 1400)?;
    }
    // The tunnel bridge answers requests for the address of a remote port.
    first.ping_until_reply(remote.address)?;
    remote.ping(first.address, 5)?;
    node.assert_permitted(1, 5, 5001)?;
    node.assert_permitted(5, 1, 5002)?;
    node.assert_permitted(5, 3, 5432)?;
    node.assert_permitted(3, 5, 80)?;
    node.assert_refused(5, 3, 5433)?;
    node.assert_refused(5, 3, 8000)?;
    first.exchange_files(remote, 3_000_000)?;
    node.assert_no_slow_path()?;
    Ok(())
}

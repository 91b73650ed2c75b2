//! Three answers agree on the hosts that receive a packet: `ovn-trace`, which knows only the logical
//! network; `ofproto/trace`, which knows only the rules of the switch; and the packet itself.

mod answers;
mod flows;
mod packets;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::net::Ipv4Addr;

use testbed::Failure;

use crate::support::command::CommandOutput;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::frames::FrameCapture;
use crate::support::ovn::{OvnCloud, OvnNetwork};
use answers::{Answer, zones_before_controller};
use flows::{
    ConnectionState, FlowGenerator, FlowKind, HOSTS, SECURED, TestFlow, VIRTUAL, VIRTUAL_PORT,
    address, mac,
};
use packets::{Content, FlowKey, Packet, flow_of};

pub(crate) const TESTS: &[SystemTest] = tests![ovn_trace_agrees_with_the_switch_and_with_packets,];

/// Number of flows.
const FLOWS: usize = 200;

/// Seed of the flows, unless a variable gives another.
const SEED: u64 = 23_03;
const SEED_VARIABLE: &str = "COMPORTA_SEED";

/// Commands of `ovn-nbctl`: port groups with access lists, and a load balancer.
const POLICIES: [&str; 9] = [
    "pg-add servers p2 p5",
    "pg-add clients p1 p4",
    "acl-add servers to-lport 1002 'outport == @servers && tcp.dst == 80' allow-related",
    "acl-add servers to-lport 1001 'outport == @servers && tcp.dst == 81' reject",
    "acl-add servers to-lport 1000 'outport == @servers && tcp' drop",
    "acl-add clients from-lport 1000 'inport == @clients && udp.dst == 53' drop",
    "acl-add sw0 from-lport 1000 'inport == \"p3\" && icmp4' drop",
    "acl-add sw1 to-lport 1000 'outport == \"p4\" && udp.dst == 5000' drop",
    "acl-add sw1 to-lport 999 'outport == \"p6\" && udp' allow-related",
];

/// The host of the port group `servers` in the switch with the load balancer.
const BALANCED_SERVER: u8 = 2;

/// Ports of the router.
const ROUTER_PORTS: [(&str, &str, u8); 2] =
    [("sw0", "10.1.0.254/24", 1), ("sw1", "10.2.0.254/24", 2)];

/// Number of connection states that a trace may need.
const STATES: usize = 4;

/// The answer of `ovn-trace` for a packet whose connection has this state in all zones, and its
/// text. Its daemon is not used: that has options of connection states for one packet only.
fn ovn_trace(
    cloud: &OvnCloud<'_, '_>,
    packet: (u8, &Packet),
    state: ConnectionState,
) -> Result<(Answer, String), Failure> {
    let summary = ovn_summary(cloud, packet, &[state; STATES])?;
    let Some(zones) = zones_before_controller(&summary) else {
        return Ok((Answer::of_ovn_trace(&summary), summary));
    };
    // The switch tracks what the controller answers as a reply of the connection. `ovn-trace` takes
    // the next state from its options, so that these must say it.
    let mut states = vec![state; zones];
    states.extend([ConnectionState::Reply; STATES]);
    let summary = ovn_summary(cloud, packet, &states)?;
    Ok((Answer::of_ovn_trace(&summary), summary))
}

fn ovn_summary(
    cloud: &OvnCloud<'_, '_>,
    (from, packet): (u8, &Packet),
    states: &[ConnectionState],
) -> Result<String, Failure> {
    let south = cloud.remote("sb");
    let states = states.iter().map(|state| format!("--ct={}", state.flags()));
    let program = cloud.program(&format!("ovn-trace --db={south} --summary"));
    let program = program
        .args(states)
        .arg(packet.microflow(&format!("p{from}")));
    CommandOutput::run(cloud.context, program)?.expect_success()
}

/// The answer of `ofproto/trace`, and its text.
fn switch_trace(
    cloud: &OvnCloud<'_, '_>,
    (from, packet): (u8, &Packet),
    state: ConnectionState,
) -> Result<(Answer, String), Failure> {
    let states = format!(" --ct-next {}", state.flags()).repeat(STATES);
    let bytes = packet.frame();
    let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = cloud.chassis(1).deployment.run_tool(&format!(
        "ovs-appctl ofproto/trace br-int in_port=p{from} {bytes} --names{states}"
    ))?;
    Ok((Answer::of_switch_trace(&trace), trace))
}

/// Adds the logical network, its policies, and its hosts without addresses of their own, so that
/// only the network answers.
fn configure(cloud: &OvnCloud<'_, '_>, network: &OvnNetwork<'_>) -> Result<(), Failure> {
    for (switch, hosts) in [("sw0", &HOSTS[..3]), ("sw1", &HOSTS[3..])] {
        cloud.add_switch(switch)?;
        cloud.add_hosts(switch, hosts)?;
    }
    cloud.add_router("r0", &ROUTER_PORTS)?;
    for host in SECURED {
        let (mac, address) = (mac(host), address(host));
        cloud.nbctl(&format!(
            "lsp-set-port-security p{host} '{mac} {address}' \
             -- lsp-set-addresses p{host} '{mac} {address}'"
        ))?;
    }
    cloud.nbctl("lsp-set-addresses p6 unknown")?;
    for policy in POLICIES {
        cloud.nbctl(policy)?;
    }
    let backend = address(4);
    cloud.nbctl(&format!(
        "lb-add lb0 {VIRTUAL}:{VIRTUAL_PORT} {backend}:80 tcp -- ls-lb-add sw0 lb0"
    ))?;
    for host in HOSTS {
        let host = network.host(host);
        for command in ["address flush dev eth0", "link set dev eth0 arp off"] {
            host.run(&format!("ip {command}"))?.expect_success()?;
        }
    }
    cloud.sync()?;
    // Agents of Kubernetes wait for this before they start a pod.
    for host in HOSTS {
        let column = format!("get Interface p{host} external_ids:ovn-installed");
        let installed = "\"true\"";
        cloud
            .chassis(1)
            .deployment
            .wait_for_column(&column, installed)?;
    }
    Ok(())
}

/// The flows. The packet of a connection that the network refuses is the first one.
fn random_flows(cloud: &OvnCloud<'_, '_>, seed: u64) -> Result<Vec<TestFlow>, Failure> {
    let mut generator = FlowGenerator::new(seed);
    let mut flows = Vec::new();
    for index in 0..FLOWS {
        let mut flow = generator.flow(index);
        if let Some((packets, receiver)) = flow.opening() {
            let (from, packet) = &packets[0];
            let (answer, _) = ovn_trace(cloud, (*from, packet), ConnectionState::New)?;
            if answer.all_hosts() != [receiver] {
                flow.become_first();
            }
        }
        flows.push(flow);
    }
    Ok(flows)
}

/// Packet sockets of all hosts.
struct Receivers<'n, 'g> {
    network: &'n OvnNetwork<'g>,
    captures: Vec<(u8, FrameCapture<'g>)>,
    flushes: usize,
}

impl<'n, 'g> Receivers<'n, 'g> {
    fn open(network: &'n OvnNetwork<'g>) -> Result<Self, Failure> {
        let captures = HOSTS
            .into_iter()
            .map(|host| Ok((host, network.host(host).capture_frames()?)));
        Ok(Self {
            network,
            captures: captures.collect::<Result<_, Failure>>()?,
            flushes: 0,
        })
    }

    /// Sends packets, and returns the frames that hosts receive until all effects of the packets
    /// have ended, those of the controller included.
    fn round(&mut self, packets: &[(u8, Vec<u8>)]) -> Result<Vec<(u8, Vec<u8>)>, Failure> {
        for host in HOSTS {
            let frames = packets.iter().filter(|(from, _)| *from == host);
            let frames: Vec<_> = frames.map(|(_, frame)| frame.as_slice()).collect();
            self.network.host(host).send_bytes(&frames)?;
        }
        // The switch has processed all packets, then the controller too: it answers in order.
        let mut received = self.flush()?;
        let probe = flows::controller_probe();
        self.network.host(1).send_bytes(&[probe.frame()])?;
        let (_, capture) = &mut self.captures[0];
        loop {
            let frame = capture.next_frame()?.bytes().to_vec();
            if flow_of(&frame) == Some(FlowKey::Index(flows::PROBE)) {
                break;
            }
            received.push((1, frame));
        }
        received.extend(self.flush()?);
        Ok(received)
    }

    /// Sends an ARP request for an unknown address from each host to its neighbours, and returns the
    /// frames that hosts receive before.
    fn flush(&mut self) -> Result<Vec<(u8, Vec<u8>)>, Failure> {
        let index = flows::FIRST_MARK + self.flushes;
        self.flushes += 1;
        for host in HOSTS {
            let mark = flows::mark(host, index).frame();
            self.network.host(host).send_bytes(&[mark])?;
        }
        let mut received = Vec::new();
        for (host, capture) in &mut self.captures {
            let mut neighbours = HOSTS.len() / 2 - 1;
            while neighbours > 0 {
                let frame = capture.next_frame()?.bytes().to_vec();
                match flow_of(&frame) == Some(FlowKey::Index(index)) {
                    true => neighbours -= 1,
                    false => received.push((*host, frame)),
                }
            }
        }
        Ok(received)
    }
}

/// Has the logical router and the logical switch learn the addresses of the hosts: what they know
/// must not change between the traces and the packets.
fn teach_addresses(
    cloud: &OvnCloud<'_, '_>,
    receivers: &mut Receivers<'_, '_>,
) -> Result<(), Failure> {
    receivers.flush()?;
    cloud
        .context
        .wait_until("the addresses to be learned", || {
            let count = |table: &str| {
                let rows = cloud.sbctl(&format!("--bare --columns=_uuid list {table}"))?;
                Ok::<_, Failure>(rows.split_whitespace().count())
            };
            Ok(count("MAC_Binding")? == HOSTS.len() && count("FDB")? == 1)
        })?;
    cloud.sync()
}

/// Sends the packets of all flows, and returns the hosts that receive each.
fn deliver(receivers: &mut Receivers<'_, '_>, flows: &[TestFlow]) -> Result<Vec<Vec<u8>>, Failure> {
    // The packets that begin connections, the first ones of all connections first.
    let openings: Vec<_> = flows.iter().filter_map(TestFlow::opening).collect();
    for turn in 0..2 {
        let packets = openings.iter().filter_map(|(packets, _)| packets.get(turn));
        let packets: Vec<_> = packets
            .map(|(from, packet)| (*from, packet.frame()))
            .collect();
        receivers.round(&packets)?;
    }
    let packets: Vec<_> = flows
        .iter()
        .map(|flow| (flow.from, flow.packet.frame()))
        .collect();
    let targets: BTreeMap<Ipv4Addr, usize> = flows
        .iter()
        .enumerate()
        .filter_map(|(index, flow)| match flow.packet.content {
            Content::Ip { dst, .. } if flow.kind == FlowKind::UnknownAddress => Some((dst, index)),
            _ => None,
        })
        .collect();
    let mut delivered = vec![Vec::new(); flows.len()];
    for (host, frame) in receivers.round(&packets)? {
        let index = match flow_of(&frame) {
            Some(FlowKey::Index(index)) => Some(index),
            Some(FlowKey::Request(target)) => targets.get(&target).copied(),
            None => None,
        };
        if let Some(hosts) = index.and_then(|index| delivered.get_mut(index)) {
            hosts.push(host);
        }
    }
    for hosts in &mut delivered {
        hosts.sort_unstable();
    }
    Ok(delivered)
}

/// The only disagreement of `ovn-trace` with packets: the controller resets a TCP connection of a
/// port that has access lists, in a switch with a load balancer. There `ovn-trace` adds the flags
/// of its options to those of the packet before, so that the reset is new and a reply at once, and
/// the access list drops it. The switch tracks it as a reply, and the host receives it.
fn is_reset_of_balanced_switch(flow: &TestFlow, logical: &Answer) -> bool {
    let without_receiver = Answer {
        controller: 1,
        ..Answer::default()
    };
    flow.from == BALANCED_SERVER && flow.packet.is_tcp() && *logical == without_receiver
}

/// Asserts that the flows are not all of one kind, state or result.
fn check_variety(flows: &[TestFlow], answers: &[Answer]) {
    let kinds: BTreeSet<_> = flows.iter().map(|flow| flow.kind).collect();
    assert_eq!(kinds.len(), FlowKind::COUNT, "{kinds:?}");
    let count = |holds: &dyn Fn(&TestFlow, &Answer) -> bool| {
        let pairs = flows.iter().zip(answers);
        pairs.filter(|(flow, answer)| holds(flow, answer)).count()
    };
    for state in [
        ConnectionState::Established,
        ConnectionState::Reply,
        ConnectionState::Invalid,
    ] {
        let count = count(&|flow, _| flow.state == state);
        assert!(count >= 5, "{count} flows are {state:?}");
    }
    let dropped = count(&|_, answer| *answer == Answer::default());
    let delivered = count(&|_, answer| answer.hosts.len() == 1);
    let flooded = count(&|_, answer| answer.hosts.len() > 1);
    let answered = count(&|_, answer| !answer.from_controller.is_empty());
    for (count, what) in [
        (dropped, "dropped"),
        (delivered, "delivered to one host"),
        (flooded, "flooded"),
        (answered, "answered by the controller"),
    ] {
        assert!(count >= 5, "{count} flows are {what}");
    }
}

fn ovn_trace_agrees_with_the_switch_and_with_packets(context: &TestContext) -> TestResult {
    let mut network = OvnNetwork::new(context, &[&HOSTS])?;
    for host in HOSTS {
        network.move_host(host, address(host).octets())?;
    }
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    configure(&cloud, &network)?;
    let mut receivers = Receivers::open(&network)?;
    teach_addresses(&cloud, &mut receivers)?;
    let seed = env::var(SEED_VARIABLE).ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let flows = random_flows(&cloud, seed)?;
    let traces = flows.iter().map(|flow| {
        let packet = (flow.from, &flow.packet);
        let logical = ovn_trace(&cloud, packet, flow.state)?;
        Ok((logical, switch_trace(&cloud, packet, flow.state)?))
    });
    let traces: Vec<_> = traces.collect::<Result<_, Failure>>()?;
    let delivered = deliver(&mut receivers, &flows)?;
    let mut disagreements = Vec::new();
    for ((flow, traces), hosts) in flows.iter().zip(&traces).zip(delivered) {
        let ((logical, summary), (switch, trace)) = traces;
        let arrives = hosts == logical.all_hosts()
            || is_reset_of_balanced_switch(flow, logical) && hosts == [flow.from];
        let agrees =
            arrives && switch.hosts == logical.hosts && switch.controller == logical.controller;
        if !agrees {
            disagreements.push(format!(
                "{flow:?}\novn-trace: {logical:?}\nofproto/trace: {switch:?}\npacket: {hosts:?}\n\
                 {summary}\n{trace}"
            ));
        }
    }
    let count = disagreements.len();
    assert_eq!(
        count,
        0,
        "seed {seed}: {count} disagreements\n{}",
        disagreements.join("\n")
    );
    let answers: Vec<_> = traces
        .into_iter()
        .map(|((logical, _), _)| logical)
        .collect();
    check_variety(&flows, &answers);
    cloud.expect_clean_run();
    Ok(())
}

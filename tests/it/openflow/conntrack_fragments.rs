//! Connection tracking of fragments that hosts send: large pings and UDP datagrams.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::host::{TestHost, pseudo_random_bytes};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    fragments_pass_a_stateful_firewall,
    fragments_are_translated_with_their_packet,
    fragments_are_not_held_if_reassembly_is_disabled,
];

const PORTS: &str = "--bridge br0 --fail-mode secure --port p1 --port p2";

/// The firewall permits connections from port 1 only.
const FIREWALL: [&str; 4] = [
    "table=0,ip,actions=ct(table=1)",
    "table=1,ip,in_port=1,ct_state=+trk+new,actions=ct(commit),output:2",
    "table=1,ip,in_port=1,ct_state=+trk+est,actions=output:2",
    "table=1,ip,in_port=2,ct_state=+trk+est,actions=output:1",
];

/// The address that the server sees instead of the client's.
const VIRTUAL: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 100);

const SERVICE: u16 = 8080;

/// Bytes of a datagram: six fragments.
const DATAGRAM: usize = 8_000;

fn add_flows(switch: &SwitchProcess<'_>, flows: &[&str]) -> Result<(), Failure> {
    for flow in flows {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    Ok(())
}

/// Opens a UDP socket of a host.
fn open_udp(host: &TestHost<'_>, port: u16) -> Result<UdpSocket, Failure> {
    let failure = || Failure::to("open a UDP socket");
    let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    let socket = host.namespace.run(|| UdpSocket::bind(address))?;
    let socket = socket.map_err(failure())?;
    let limit = Some(WAIT_LIMIT);
    socket.set_read_timeout(limit).map_err(failure())?;
    Ok(socket)
}

/// Sends a datagram to `address`. Returns it as it was received, and its sender.
fn send_datagram(
    bytes: &[u8],
    from: &UdpSocket,
    address: SocketAddr,
    to: &UdpSocket,
) -> Result<(Vec<u8>, SocketAddr), Failure> {
    let sent = from.send_to(bytes, address);
    sent.map_err(Failure::to("send a datagram"))?;
    let mut received = vec![0; bytes.len() + 1];
    let result = to.recv_from(&mut received);
    let (len, peer) = result.map_err(Failure::to("receive a datagram"))?;
    received.truncate(len);
    Ok((received, peer))
}

/// Returns a number of `dpctl/ipf-get-status`.
fn fragments(switch: &SwitchProcess<'_>, name: &str) -> Result<u64, Failure> {
    let status = switch.appctl("dpctl/ipf-get-status")?;
    let line = status.lines().find_map(|line| {
        let (key, value) = line.trim().split_once(": ")?;
        (key == name).then(|| value.parse())
    });
    Ok(line.and_then(Result::ok).expect("the status has the line"))
}

fn fragments_pass_a_stateful_firewall(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (inside, outside) = network.host_pair();
    network.add_static_neighbours(1, 2)?;
    let switch = network.start_switch(PORTS)?;
    add_flows(&switch, &FIREWALL)?;
    let words = format!("fping -q -b 4000 -c 5 -p 20 -t 5000 {}", outside.address);
    let summary = inside.run(&words)?.stderr;
    assert!(summary.contains(" = 5/5/0%,"), "{summary}");
    let words = format!("fping -q -b 4000 -c 1 -t 300 {}", inside.address);
    let summary = outside.run(&words)?.stderr;
    assert!(summary.contains(" = 1/0/100%"), "{summary}");
    let server = open_udp(outside, SERVICE)?;
    let client = open_udp(inside, 0)?;
    let to = SocketAddr::from((outside.address, SERVICE));
    for seed in 0..10 {
        let mut bytes = pseudo_random_bytes(DATAGRAM);
        bytes[0] = seed;
        let (received, peer) = send_datagram(&bytes, &client, to, &server)?;
        assert!(received == bytes, "the datagram differs");
        let (received, _) = send_datagram(&bytes, &server, peer, &client)?;
        assert!(received == bytes, "the reply differs");
    }
    // 33 of pings, 120 of datagrams, and 9 that `commit` holds once more.
    let accepted = fragments(&switch, "v4 frags accepted")?;
    assert_eq!(accepted, 162);
    assert_eq!(fragments(&switch, "v4 frags completed")?, accepted);
    assert_eq!(fragments(&switch, "num frag")?, 0);
    Ok(())
}

/// The receiver's kernel verifies the checksum of the whole datagram.
fn fragments_are_translated_with_their_packet(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (inside, outside) = network.host_pair();
    network.add_static_neighbours(1, 2)?;
    outside
        .namespace
        .add_neighbour(outside.interface, VIRTUAL, inside.mac)?;
    let switch = network.start_switch(PORTS)?;
    add_flows(
        &switch,
        &[
            "ip,in_port=1,actions=ct(commit,zone=1,nat(src=10.1.0.100:5000)),output:2",
            "ip,in_port=2,actions=ct(zone=1,nat,table=1)",
            "table=1,ip,ct_state=+trk+est,actions=output:1",
        ],
    )?;
    let server = open_udp(outside, SERVICE)?;
    let client = open_udp(inside, 0)?;
    let bytes = pseudo_random_bytes(DATAGRAM);
    let to = SocketAddr::from((outside.address, SERVICE));
    let (received, peer) = send_datagram(&bytes, &client, to, &server)?;
    assert!(received == bytes, "the datagram differs");
    assert_eq!((peer.ip(), peer.port()), (IpAddr::V4(VIRTUAL), 5000));
    let (received, peer) = send_datagram(&bytes, &server, peer, &client)?;
    assert!(received == bytes, "the reply differs");
    assert_eq!(peer, to);
    Ok(())
}

fn fragments_are_not_held_if_reassembly_is_disabled(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (inside, outside) = network.host_pair();
    network.add_static_neighbours(1, 2)?;
    let switch = network.start_switch(PORTS)?;
    add_flows(&switch, &FIREWALL)?;
    switch.appctl("dpctl/ipf-set-disabled v4")?;
    let words = format!("fping -q -b 4000 -c 1 -t 300 {}", outside.address);
    let summary = inside.run(&words)?.stderr;
    assert!(summary.contains(" = 1/0/100%"), "{summary}");
    assert_eq!(fragments(&switch, "v4 frags accepted")?, 0);
    inside.ping(outside.address, 2)?;
    switch.appctl("dpctl/ipf-set-enabled v4")?;
    let words = format!("fping -q -b 4000 -c 1 -t 5000 {}", outside.address);
    let summary = inside.run(&words)?.stderr;
    assert!(summary.contains(" = 1/1/0%"), "{summary}");
    Ok(())
}

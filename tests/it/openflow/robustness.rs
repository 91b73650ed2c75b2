//! Malformed or hostile input from peers and hosts: the switch reports an error or closes the
//! connection, and continues.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use flow::FlowStatsRequest;
use openflow::{FlowFormat, Message, MultipartRequest, Version};
use testbed::Failure;

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::controller::{ControllerListener, TestController};
use crate::support::frames::encode_frames;
use crate::support::host::pseudo_random_bytes;
use crate::support::network::TestNetwork;
use crate::support::switch::{SECURE_2, STANDALONE_2, SwitchProcess};

pub(crate) const TESTS: &[SystemTest] = tests![
    garbage_on_the_openflow_port_closes_the_connection,
    garbage_on_the_control_socket_closes_the_connection,
    hello_of_maximal_length_is_accepted,
    partial_message_times_out,
    switch_serves_a_thousand_connections,
    memory_stays_bounded_with_a_peer_that_reads_no_replies,
    memory_stays_bounded_with_a_controller_that_reads_no_packet_ins,
    malformed_messages_cause_their_error,
    malformed_frames_are_dropped_and_counted_by_reason,
    malformed_headers_beyond_the_parse_depth_are_forwarded,
];

const LISTEN: &str = "--listen ptcp:6654:127.0.0.1";

/// Allowed growth in bytes of the switch's memory while a peer sends too many requests.
const GROWTH_MAX: u64 = 16 << 20;

/// Hello and echo request of OpenFlow 1.0.
const HELLO_10: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];
const ECHO_10: [u8; 12] = [1, 2, 0, 12, 0, 0, 0, 9, b'h', b'e', b'y', b'!'];

fn garbage_on_the_openflow_port_closes_the_connection(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(&format!("{STANDALONE_2} {LISTEN}"))?;
    let mut streams = Vec::new();
    for garbage in [
        pseudo_random_bytes(100_000),
        b"GET / HTTP/1.1\r\nHost: switch\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"
            .to_vec(),
        vec![0; 5000],
        vec![0xff; 70_000],
        // A header with a length below the size of a header.
        vec![4, 0, 0, 7, 0, 0, 0, 1],
        // A features request without a hello.
        vec![4, 5, 0, 8, 0, 0, 0, 1],
        // A hello, then garbage.
        [&HELLO_10[..], &pseudo_random_bytes(100_000)].concat(),
    ] {
        let mut stream = connect(&network)?;
        // The switch may close the connection before it read all bytes.
        let _ = stream.write_all(&garbage);
        streams.push(stream);
    }
    for stream in &mut streams {
        read_until_close(stream)?;
    }
    expect_service(&network, &switch)
}

fn garbage_on_the_control_socket_closes_the_connection(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    for garbage in [
        pseudo_random_bytes(100_000),
        b"{\"id\":0,\"method\":7}".to_vec(),
        [
            &b"{\"id\":0,\"method\":\""[..],
            vec![b'x'; 2_000_000].as_slice(),
        ]
        .concat(),
    ] {
        let mut stream = UnixStream::connect(switch.file("br0.ctl"))?;
        stream.set_read_timeout(Some(WAIT_LIMIT))?;
        let _ = stream.write_all(&garbage);
        read_until_close(&mut stream)?;
    }
    let appctl = program("ovs-appctl -t").arg(switch.file("br0.ctl"));
    let refused = CommandOutput::run(context, appctl.arg("nonsense"))?.expect_failure()?;
    assert!(
        refused.contains("\"nonsense\" is not a valid command"),
        "{refused}"
    );
    expect_service(&network, &switch)
}

/// Unknown hello elements are ignored (OF 1.3.5, 7.5.1).
fn hello_of_maximal_length_is_accepted(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch(&format!("--bridge br0 {LISTEN}"))?;
    let mut hello = vec![1, 0, 0xff, 0xff, 0, 0, 0, 1];
    // Elements of type 7 with 16 bytes each, up to the maximal length.
    while hello.len() + 16 <= 65535 {
        hello.extend([0, 7, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
    hello.resize(65535, 0);
    let mut stream = connect(&network)?;
    stream.write_all(&hello)?;
    stream.write_all(&ECHO_10)?;
    expect_echo_reply(&mut stream)?;
    drop(stream);
    switch.ofctl("show br0")?;
    Ok(())
}

fn partial_message_times_out(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(&format!("{STANDALONE_2} {LISTEN}"))?;
    let mut in_hello = connect(&network)?;
    in_hello.write_all(&HELLO_10[..5])?;
    let mut in_header = connect(&network)?;
    in_header.write_all(&[&HELLO_10[..], &[1, 14, 0]].concat())?;
    let mut in_body = connect(&network)?;
    in_body.write_all(&[&HELLO_10[..], &[1, 14, 0, 72, 0, 0, 0, 5, 0, 0]].concat())?;
    // After the partial message the switch waits 5 s for its rest, then 5 s for an echo reply.
    for stream in [&mut in_hello, &mut in_header, &mut in_body] {
        stream.set_read_timeout(Some(2 * WAIT_LIMIT))?;
        read_until_close(stream)?;
    }
    expect_service(&network, &switch)
}

fn switch_serves_a_thousand_connections(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(&format!("{STANDALONE_2} {LISTEN}"))?;
    let before = switch.process.usage()?.resident_bytes;
    let streams: Result<Vec<_>, _> = (0..1000).map(|_| connect(&network)).collect();
    let mut streams = streams?;
    for stream in &mut streams {
        stream.write_all(&HELLO_10)?;
        stream.write_all(&ECHO_10)?;
    }
    for stream in &mut streams {
        expect_echo_reply(stream)?;
    }
    // Other peers are served while all connections are open.
    expect_service(&network, &switch)?;
    let growth = switch
        .process
        .usage()?
        .resident_bytes
        .saturating_sub(before);
    assert!(growth < 64 << 20, "{growth} bytes of growth");
    drop(streams);
    expect_service(&network, &switch)
}

fn memory_stays_bounded_with_a_peer_that_reads_no_replies(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V13)?;
    for number in 0..2000 {
        controller.add_flow(&format!("priority=1,udp,tp_dst={number},actions=drop"))?;
    }
    controller.barrier();
    let before = switch.process.usage()?.resident_bytes;
    let mut greedy_stream = UnixStream::connect(switch.file("br0.mgmt"))?;
    greedy_stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1])?;
    let mut request = Vec::new();
    let all = MultipartRequest::Flow(FlowFormat::Standard, FlowStatsRequest::all());
    Message::MultipartRequest(all).encode(base::Xid(1), Version::V13, &mut request)?;
    let requests = request.repeat(1000);
    greedy_stream.set_nonblocking(true)?;
    let mut sent = 0;
    let end = context.clock.now() + Duration::from_secs(2);
    context.wait_until("the end of the requests", || {
        for _ in 0..100 {
            match greedy_stream.write(&requests) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(Failure::to("request flows")(error)),
            }
        }
        Ok(context.clock.now() >= end)
    })?;
    let growth = switch
        .process
        .usage()?
        .resident_bytes
        .saturating_sub(before);
    assert!(
        growth < GROWTH_MAX,
        "{growth} bytes of growth after {sent} bytes of requests"
    );
    // A peer that reads receives its replies.
    assert_eq!(switch.flows("-O OpenFlow13 dump-flows br0")?.len(), 2001);
    expect_service(&network, &switch)
}

fn memory_stays_bounded_with_a_controller_that_reads_no_packet_ins(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let listener = ControllerListener::bind(context)?;
    let switch = network.start_switch(&format!("{SECURE_2} --controller {}", listener.target()))?;
    let mut idle_stream = listener.accept_stream()?;
    idle_stream.write_all(&HELLO_10)?;
    let before = switch.process.usage()?.resident_bytes;
    let burst = encode_frames(&["eth / ipv4 / udp / data(1400)"; 64]);
    let mut sent = 0;
    context.wait_until("the switch to drop packet-ins", || {
        for _ in 0..20 {
            network.host(1).send_bytes(&burst)?;
            sent += burst.len();
        }
        Ok(switch.counter("control async_dropped")? > 1000)
    })?;
    let growth = switch
        .process
        .usage()?
        .resident_bytes
        .saturating_sub(before);
    assert!(
        growth < GROWTH_MAX,
        "{growth} bytes of growth after {sent} frames"
    );
    switch.ofctl("add-flow br0 actions=NORMAL")?;
    expect_service(&network, &switch)
}

/// Messages after an OpenFlow 1.3 hello, and type and code of the error that each causes.
#[rustfmt::skip]
const MALFORMED_13: [(&str, &[u8], u16, u16); 14] = [
    ("another version than the hello's",   &[1, 5, 0, 8, 0, 0, 0, 7], 1, 0),
    ("an unknown message type",         &[4, 99, 0, 8, 0, 0, 0, 7], 1, 1),
    ("a message of switches only",      &[4, 6, 0, 32, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1, 1),
    ("an unknown multipart type",       &[4, 18, 0, 16, 0, 0, 0, 7, 0, 77, 0, 0, 0, 0, 0, 0], 1, 2),
    ("an unknown experimenter",        &[4, 4, 0, 16, 0, 0, 0, 7, 0, 1, 2, 3, 0, 0, 0, 0], 1, 3),
    ("bytes after the end",             &[4, 5, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0], 1, 6),
    ("a truncated flow-mod",            &[4, 14, 0, 16, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0], 1, 6),
    ("a packet-out of an unknown buffer",  &[4, 13, 0, 24, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 1, 8),
    ("a packet-out without in_port",    &[4, 13, 0, 24, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x77, 0, 0, 0, 0, 0, 0, 0, 0], 1, 11),
    ("a flow-mod of a hidden table",   &flow_mod_13(254, 0, &[0, 1, 0, 4, 0, 0, 0, 0]), 1, 5),
    ("an unknown flow-mod command",     &flow_mod_13(0, 9, &[0, 1, 0, 4, 0, 0, 0, 0]), 5, 6),
    ("a match that is no OXM",         &flow_mod_13(0, 0, &[0, 0, 0, 4, 0, 0, 0, 0]), 4, 0),
    ("a match longer than its message", &flow_mod_13(0, 0, &[0, 1, 0, 40, 0, 0, 0, 0]), 4, 1),
    ("an unknown role",                 &[4, 24, 0, 24, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 11, 2),
];

/// The same for OpenFlow 1.0.
#[rustfmt::skip]
const MALFORMED_10: [(&str, &[u8], u16, u16); 6] = [
    ("another version than the hello's",   &[4, 5, 0, 8, 0, 0, 0, 7], 1, 0),
    ("a type of later versions",       &[1, 24, 0, 8, 0, 0, 0, 7], 1, 1),
    ("an unknown multipart type",       &[1, 16, 0, 12, 0, 0, 0, 7, 0, 77, 0, 0], 1, 2),
    ("an unknown vendor",              &[1, 4, 0, 12, 0, 0, 0, 7, 0, 1, 2, 3], 1, 3),
    ("bytes after the end",             &[1, 5, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0], 1, 6),
    ("an action of length zero",        &[1, 13, 0, 24, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0], 2, 1),
];

/// Flow-mod of OpenFlow 1.3 with this table, command and match.
const fn flow_mod_13(table: u8, command: u8, matching: &[u8; 8]) -> [u8; 56] {
    let mut message = [0; 56];
    (message[0], message[1], message[3], message[7]) = (4, 14, 56, 7);
    (message[24], message[25]) = (table, command);
    let mut index = 32;
    // No buffer, any port, any group.
    while index < 44 {
        message[index] = 0xff;
        index += 1;
    }
    index = 0;
    while index < 8 {
        message[48 + index] = matching[index];
        index += 1;
    }
    message
}

fn malformed_messages_cause_their_error(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    let mut error_count = 0;
    for (version, cases) in [(4, &MALFORMED_13[..]), (1, &MALFORMED_10[..])] {
        let mut stream = UnixStream::connect(switch.file("br0.mgmt"))?;
        stream.set_read_timeout(Some(WAIT_LIMIT))?;
        stream.write_all(&[version, 0, 0, 8, 0, 0, 0, 1])?;
        assert_eq!(next_message(&mut stream)?[1], 0);
        for (case, message, kind, code) in cases {
            stream.write_all(message)?;
            let reply = next_message(&mut stream)?;
            let [kind_high, kind_low] = kind.to_be_bytes();
            let [code_high, code_low] = code.to_be_bytes();
            let expected = [kind_high, kind_low, code_high, code_low];
            // An error has the version of its request.
            assert_eq!(reply[..2], [message[0], 1], "{case}: {reply:02x?}");
            assert_eq!(
                reply[4..12],
                [&[0, 0, 0, 7][..], &expected].concat(),
                "{case}"
            );
            assert_eq!(reply[12..], message[..message.len().min(64)], "{case}");
            error_count += 1;
        }
    }
    assert_eq!(error_count, MALFORMED_13.len() + MALFORMED_10.len());
    expect_service(&network, &switch)
}

/// Frames, and the counter of their drop reason. A veth pair carries no runts.
#[rustfmt::skip]
const MALFORMED_FRAMES: [(&str, &str); 15] = [
    ("eth / vlan(type=0x8100) / raw(0001)",                         "vlan_truncated"),
    ("eth(type=0x0800) / raw(45000014)",                            "ipv4_truncated"),
    ("eth(type=0x0800) / raw(6500001c00000000400600000a0000010a00000203e8005000000000)", "ipv4_version"),
    ("eth / ipv4(ihl=4) / tcp",                                     "ipv4_header_length"),
    ("eth / ipv4(ihl=15) / udp",                                    "ipv4_header_length"),
    ("eth / ipv4(length=1000) / tcp",                               "ipv4_total_length"),
    ("eth / ipv4(length=19) / tcp",                                 "ipv4_total_length"),
    ("eth / ipv4(proto=6) / raw(03e80050)",                         "tcp_truncated"),
    ("eth / ipv4 / tcp(offset=4)",                                  "tcp_data_offset"),
    ("eth / ipv4 / tcp(offset=15)",                                 "tcp_data_offset"),
    ("eth / ipv4(proto=17) / raw(03e8)",                            "udp_truncated"),
    ("eth(type=0x0806) / raw(00010800)",                            "arp_truncated"),
    ("eth(type=0x86dd) / raw(60000000)",                            "ipv6_truncated"),
    ("eth / ipv6(length=1000) / udp",                               "ipv6_payload_length"),
    ("eth / ipv6(next=0) / raw(3aff)",                              "ipv6_extension"),
];

fn malformed_frames_are_dropped_and_counted_by_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    // Rules that match fields of all protocols.
    for flow in [
        "priority=9,tcp,tp_dst=81,actions=drop",
        "priority=9,udp,tp_dst=81,actions=drop",
        "priority=9,arp,arp_tpa=192.0.2.1,actions=drop",
        "priority=9,icmp6,icmpv6_type=135,nd_target=fd00::99,actions=drop",
        "priority=9,vlan_tci=0x1063/0x1fff,actions=drop",
        "priority=1,actions=output:2",
    ] {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    let mut two = network.host(2).capture_frames()?;
    let mut counts = std::collections::BTreeMap::new();
    let good = "eth / ipv4 / tcp / data(6)";
    for (bad, reason) in MALFORMED_FRAMES {
        network.host(1).send(&[bad, good])?;
        two.expect_frame(good);
        let count: &mut u64 = counts.entry(reason).or_default();
        *count += 1;
        let counted = switch.counter(&format!("worker {reason}"))?;
        assert_eq!(counted, *count, "{bad}");
    }
    expect_service_after_rules(&network, &switch)
}

fn malformed_headers_beyond_the_parse_depth_are_forwarded(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let _switch = network.start_switch(STANDALONE_2)?;
    let mut two = network.host(2).capture_frames()?;
    for (bad, _) in &MALFORMED_FRAMES[1..] {
        network.host(1).send(&[bad])?;
        two.expect_frame(bad);
    }
    Ok(())
}

/// Asserts that the switch still replies to requests and forwards frames.
fn expect_service(network: &TestNetwork<'_>, switch: &SwitchProcess<'_>) -> TestResult {
    let shown = switch.ofctl("show br0")?;
    assert!(shown.contains(" 2(p2)"), "{shown}");
    network.host(1).ping(network.host(2).address, 3)?;
    Ok(())
}

/// Replaces all rules by NORMAL, then checks as [`expect_service`].
fn expect_service_after_rules(network: &TestNetwork<'_>, switch: &SwitchProcess<'_>) -> TestResult {
    switch.ofctl("del-flows br0")?;
    switch.ofctl("add-flow br0 actions=NORMAL")?;
    expect_service(network, switch)
}

/// Connects to the switch's OpenFlow port.
fn connect(network: &TestNetwork<'_>) -> Result<TcpStream, Failure> {
    let failure = || Failure::to("connect to the switch");
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6654).into();
    let stream = network
        .switch_namespace
        .run(|| TcpStream::connect_timeout(&address, WAIT_LIMIT))?
        .map_err(failure())?;
    stream
        .set_read_timeout(Some(WAIT_LIMIT))
        .map_err(failure())?;
    stream
        .set_write_timeout(Some(WAIT_LIMIT))
        .map_err(failure())?;
    Ok(stream)
}

/// Reads until the switch closes the connection.
fn read_until_close(stream: &mut impl Read) -> Result<(), Failure> {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => {
                return Err(Failure::to("wait for the switch to close the connection")(
                    error,
                ));
            }
        }
    }
}

/// Reads the switch's hello and its reply to [`ECHO_10`].
fn expect_echo_reply(stream: &mut TcpStream) -> Result<(), Failure> {
    let hello = next_message(stream)?;
    assert_eq!(hello[1], 0, "{hello:02x?}");
    let reply = next_message(stream)?;
    assert_eq!(reply, [&[1, 3][..], &ECHO_10[2..]].concat());
    let _ = stream.shutdown(Shutdown::Write);
    Ok(())
}

/// Reads the next message.
fn next_message(stream: &mut impl Read) -> Result<Vec<u8>, Failure> {
    let mut message = vec![0; 8];
    let read = stream.read_exact(&mut message).and_then(|()| {
        let length = u16::from_be_bytes([message[2], message[3]]);
        message.resize(usize::from(length).max(8), 0);
        stream.read_exact(&mut message[8..])
    });
    read.map_err(Failure::to("read from the switch"))?;
    Ok(message)
}

//! Peers and hosts that behave badly: the switch says what is wrong, or hangs up,
//! and goes on.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use flow::FlowStatsRequest;
use openflow::{FlowFormat, Message, MultipartRequest, Version};
use testbed::Failure;

use crate::ground::{Ground, Outcome, PATIENCE, Rule, rules};
use crate::host::noise;
use crate::peer::{Desk, Peer};
use crate::rig::{Rig, Switch};

pub(crate) const RULES: &[Rule] = rules![
    garbage_on_the_controller_port_is_hung_up_on,
    garbage_on_the_control_socket_is_hung_up_on,
    a_long_hello_is_a_hello,
    half_a_message_and_silence_is_hung_up_on,
    a_thousand_connections_are_answered,
    a_peer_that_never_reads_answers_costs_little,
    a_controller_that_never_reads_frames_costs_little,
    malformed_messages_get_their_error,
    malformed_frames_are_dropped_by_reason,
    what_no_rule_looks_at_is_not_judged,
];

const TWO: &str = "--bridge br0 --port p1 --port p2";
const SECURE: &str = "--bridge br0 --fail-mode secure --port p1 --port p2";
const LISTEN: &str = "--listen ptcp:6654:127.0.0.1";

/// How much the memory of the switch may grow under a peer that wants too much.
const GROWTH_MAX: u64 = 16 << 20;

/// Features request of OpenFlow 1.0, and the beginning of its answer.
const HELLO_10: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];
const ECHO_10: [u8; 12] = [1, 2, 0, 12, 0, 0, 0, 9, b'h', b'e', b'y', b'!'];

fn garbage_on_the_controller_port_is_hung_up_on(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(&format!("{TWO} {LISTEN}"))?;
    let mut streams = Vec::new();
    for garbage in [
        noise(100_000),
        b"GET / HTTP/1.1\r\nHost: switch\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"
            .to_vec(),
        vec![0; 5000],
        vec![0xff; 70_000],
        // A header that claims to be shorter than a header.
        vec![4, 0, 0, 7, 0, 0, 0, 1],
        // No hello, but a features request.
        vec![4, 5, 0, 8, 0, 0, 0, 1],
        // A hello and then garbage.
        [&HELLO_10[..], &noise(100_000)].concat(),
    ] {
        let mut stream = dial(&rig)?;
        // The switch may hang up before it has all.
        let _ = stream.write_all(&garbage);
        streams.push(stream);
    }
    for stream in &mut streams {
        hung_up(stream)?;
    }
    goes_on(&rig, &switch)
}

fn garbage_on_the_control_socket_is_hung_up_on(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(TWO)?;
    for garbage in [
        noise(100_000),
        b"{\"id\":0,\"method\":7}".to_vec(),
        [&b"{\"id\":0,\"method\":\""[..], &[b'x'; 200_000]].concat(),
    ] {
        let mut stream = UnixStream::connect(switch.file("br0.ctl"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let _ = stream.write_all(&garbage);
        hung_up(&mut stream)?;
    }
    let program = crate::rig::program("ovs-appctl -t").arg(switch.file("br0.ctl"));
    let refused = crate::rig::Ran::of(ground, program.arg("nonsense"))?.bad()?;
    assert!(
        refused.contains("\"nonsense\" is not a valid command"),
        "{refused}"
    );
    goes_on(&rig, &switch)
}

/// Elements that nobody knows are passed over (OF 1.3.5, 7.5.1).
fn a_long_hello_is_a_hello(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start(&format!("--bridge br0 {LISTEN}"))?;
    let mut hello = vec![1, 0, 0xff, 0xff, 0, 0, 0, 1];
    // Elements of type 7 with 16 bytes each, until there is no room.
    while hello.len() + 16 <= 65535 {
        hello.extend([0, 7, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
    hello.resize(65535, 0);
    let mut stream = dial(&rig)?;
    stream.write_all(&hello)?;
    stream.write_all(&ECHO_10)?;
    answered(&mut stream)?;
    drop(stream);
    switch.ofctl("show br0")?;
    Ok(())
}

fn half_a_message_and_silence_is_hung_up_on(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(&format!("{TWO} {LISTEN}"))?;
    let mut in_hello = dial(&rig)?;
    in_hello.write_all(&HELLO_10[..5])?;
    let mut in_header = dial(&rig)?;
    in_header.write_all(&[&HELLO_10[..], &[1, 14, 0]].concat())?;
    let mut in_body = dial(&rig)?;
    in_body.write_all(&[&HELLO_10[..], &[1, 14, 0, 72, 0, 0, 0, 5, 0, 0]].concat())?;
    // A flow-mod is awaited, an echo request unanswered: twice five seconds.
    for stream in [&mut in_hello, &mut in_header, &mut in_body] {
        stream.set_read_timeout(Some(2 * PATIENCE))?;
        hung_up(stream)?;
    }
    goes_on(&rig, &switch)
}

fn a_thousand_connections_are_answered(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(&format!("{TWO} {LISTEN}"))?;
    let before = switch.process.usage()?.resident_bytes;
    let streams: Result<Vec<_>, _> = (0..1000).map(|_| dial(&rig)).collect();
    let mut streams = streams?;
    for stream in &mut streams {
        stream.write_all(&HELLO_10)?;
        stream.write_all(&ECHO_10)?;
    }
    for stream in &mut streams {
        answered(stream)?;
    }
    // With all of them there, others are served as ever.
    goes_on(&rig, &switch)?;
    let grown = switch
        .process
        .usage()?
        .resident_bytes
        .saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    drop(streams);
    goes_on(&rig, &switch)
}

fn a_peer_that_never_reads_answers_costs_little(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(TWO)?;
    let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), Version::V13)?;
    for number in 0..2000 {
        peer.add(&format!("priority=1,udp,tp_dst={number},actions=drop"))?;
    }
    peer.barrier();
    let before = switch.process.usage()?.resident_bytes;
    let mut greedy = UnixStream::connect(switch.file("br0.mgmt"))?;
    greedy.write_all(&[4, 0, 0, 8, 0, 0, 0, 1])?;
    let mut request = Vec::new();
    let all = MultipartRequest::Flow(FlowFormat::Standard, FlowStatsRequest::all());
    Message::MultipartRequest(all).encode(base::Xid(1), Version::V13, &mut request)?;
    let requests = request.repeat(1000);
    greedy.set_nonblocking(true)?;
    let mut sent = 0;
    let until = ground.clock.now() + Duration::from_secs(2);
    ground.wait_until("the switch to have had enough", || {
        for _ in 0..100 {
            match greedy.write(&requests) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(Failure::to("ask for flows")(error)),
            }
        }
        Ok(ground.clock.now() >= until)
    })?;
    let grown = switch
        .process
        .usage()?
        .resident_bytes
        .saturating_sub(before);
    assert!(
        grown < GROWTH_MAX,
        "{grown} bytes more for {sent} bytes of requests"
    );
    // Whoever reads is answered.
    assert_eq!(switch.flows("-O OpenFlow13 dump-flows br0")?.len(), 2001);
    goes_on(&rig, &switch)
}

fn a_controller_that_never_reads_frames_costs_little(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let desk = Desk::open(ground)?;
    let switch = rig.start(&format!("{SECURE} --controller {}", desk.target()))?;
    let mut lazy = desk.accept()?;
    lazy.write_all(&HELLO_10)?;
    let before = switch.process.usage()?.resident_bytes;
    let burst = crate::eye::frames(&["eth / ipv4 / udp / data(1400)"; 64]);
    let mut sent = 0;
    ground.wait_until("the switch to drop what is told", || {
        for _ in 0..20 {
            rig.host(1).send_bytes(&burst)?;
            sent += burst.len();
        }
        Ok(switch.counter("control unasked_dropped")? > 1000)
    })?;
    let grown = switch
        .process
        .usage()?
        .resident_bytes
        .saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes more for {sent} frames");
    switch.ofctl("add-flow br0 actions=NORMAL")?;
    goes_on(&rig, &switch)
}

/// Messages behind an OpenFlow 1.3 hello, and type and code of the error that each gets.
#[rustfmt::skip]
const MALFORMED_13: [(&str, &[u8], u16, u16); 14] = [
    ("the version of another hello",   &[1, 5, 0, 8, 0, 0, 0, 7], 1, 0),
    ("a type that nobody knows",       &[4, 99, 0, 8, 0, 0, 0, 7], 1, 1),
    ("what only a switch sends",       &[4, 6, 0, 32, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1, 1),
    ("an unknown question",            &[4, 18, 0, 16, 0, 0, 0, 7, 0, 77, 0, 0, 0, 0, 0, 0], 1, 2),
    ("an unknown experimenter",        &[4, 4, 0, 16, 0, 0, 0, 7, 0, 1, 2, 3, 0, 0, 0, 0], 1, 3),
    ("bytes behind the end",           &[4, 5, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0], 1, 6),
    ("a flow-mod without an end",      &[4, 14, 0, 16, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0], 1, 6),
    ("a packet-out of a lost buffer",  &[4, 13, 0, 24, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 1, 8),
    ("a packet-out from nowhere",      &[4, 13, 0, 24, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x77, 0, 0, 0, 0, 0, 0, 0, 0], 1, 11),
    ("a flow-mod of table 254",        &flow_mod_13(254, 0, &[0, 1, 0, 4, 0, 0, 0, 0]), 5, 2),
    ("a command that nobody knows",    &flow_mod_13(0, 9, &[0, 1, 0, 4, 0, 0, 0, 0]), 5, 6),
    ("a match that is no OXM",         &flow_mod_13(0, 0, &[0, 0, 0, 4, 0, 0, 0, 0]), 4, 0),
    ("a match longer than its message", &flow_mod_13(0, 0, &[0, 1, 0, 40, 0, 0, 0, 0]), 4, 1),
    ("a role that nobody knows",       &[4, 24, 0, 24, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 11, 2),
];

/// The same for OpenFlow 1.0.
#[rustfmt::skip]
const MALFORMED_10: [(&str, &[u8], u16, u16); 6] = [
    ("the version of another hello",   &[4, 5, 0, 8, 0, 0, 0, 7], 1, 0),
    ("a type of later versions",       &[1, 24, 0, 8, 0, 0, 0, 7], 1, 1),
    ("an unknown question",            &[1, 16, 0, 12, 0, 0, 0, 7, 0, 77, 0, 0], 1, 2),
    ("an unknown vendor",              &[1, 4, 0, 12, 0, 0, 0, 7, 0, 1, 2, 3], 1, 3),
    ("bytes behind the end",           &[1, 5, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0], 1, 6),
    ("an action without length",       &[1, 13, 0, 24, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0], 2, 1),
];

/// A flow-mod of OpenFlow 1.3 with this table, command and match.
const fn flow_mod_13(table: u8, command: u8, matching: &[u8; 8]) -> [u8; 56] {
    let mut message = [0; 56];
    (message[0], message[1], message[3], message[7]) = (4, 14, 56, 7);
    (message[24], message[25]) = (table, command);
    let mut at = 32;
    // No buffer, any port, any group.
    while at < 44 {
        message[at] = 0xff;
        at += 1;
    }
    at = 0;
    while at < 8 {
        message[48 + at] = matching[at];
        at += 1;
    }
    message
}

fn malformed_messages_get_their_error(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(TWO)?;
    let mut told = 0;
    for (version, cases) in [(4, &MALFORMED_13[..]), (1, &MALFORMED_10[..])] {
        let mut stream = UnixStream::connect(switch.file("br0.mgmt"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&[version, 0, 0, 8, 0, 0, 0, 1])?;
        assert_eq!(next_message(&mut stream)?[1], 0);
        for (what, message, kind, code) in cases {
            stream.write_all(message)?;
            let answer = next_message(&mut stream)?;
            let [kind_high, kind_low] = kind.to_be_bytes();
            let [code_high, code_low] = code.to_be_bytes();
            let wanted = [kind_high, kind_low, code_high, code_low];
            assert_eq!(answer[..2], [version, 1], "{what}: {answer:02x?}");
            assert_eq!(
                answer[4..12],
                [&[0, 0, 0, 7][..], &wanted].concat(),
                "{what}"
            );
            assert_eq!(answer[12..], message[..message.len().min(64)], "{what}");
            told += 1;
        }
    }
    assert_eq!(told, MALFORMED_13.len() + MALFORMED_10.len());
    goes_on(&rig, &switch)
}

/// Frames, and the reason that counts them. Of runts, a cable takes none.
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

fn malformed_frames_are_dropped_by_reason(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    // Rules that look at everything.
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
    let mut two = rig.host(2).eye()?;
    let mut counts = std::collections::BTreeMap::new();
    let good = "eth / ipv4 / tcp / data(6)";
    for (bad, reason) in MALFORMED_FRAMES {
        rig.host(1).send(&[bad, good])?;
        two.sees(good);
        let count: &mut u64 = counts.entry(reason).or_default();
        *count += 1;
        let counted = switch.counter(&format!("worker {reason}"))?;
        assert_eq!(counted, *count, "{bad}");
    }
    goes_on_after(&rig, &switch)
}

fn what_no_rule_looks_at_is_not_judged(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let _switch = rig.start(TWO)?;
    let mut two = rig.host(2).eye()?;
    for (bad, _) in &MALFORMED_FRAMES[1..] {
        rig.host(1).send(&[bad])?;
        two.sees(bad);
    }
    Ok(())
}

/// Checks that the switch still answers and forwards.
fn goes_on(rig: &Rig<'_>, switch: &Switch<'_>) -> Outcome {
    let shown = switch.ofctl("show br0")?;
    assert!(shown.contains(" 2(p2)"), "{shown}");
    rig.host(1).ping(rig.host(2).address, 3)?;
    Ok(())
}

/// As [`goes_on`], for a switch whose rules are the test's.
fn goes_on_after(rig: &Rig<'_>, switch: &Switch<'_>) -> Outcome {
    switch.ofctl("del-flows br0")?;
    switch.ofctl("add-flow br0 actions=NORMAL")?;
    goes_on(rig, switch)
}

/// Goes to the switch's socket for tools and controllers.
fn dial(rig: &Rig<'_>) -> Result<TcpStream, Failure> {
    let failure = || Failure::to("dial the switch");
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6654).into();
    let stream = rig
        .home
        .run(|| TcpStream::connect_timeout(&address, PATIENCE))?
        .map_err(failure())?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failure())?;
    stream
        .set_write_timeout(Some(PATIENCE))
        .map_err(failure())?;
    Ok(stream)
}

/// Reads until the switch has hung up.
fn hung_up(stream: &mut impl Read) -> Result<(), Failure> {
    let mut room = [0; 4096];
    loop {
        match stream.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(Failure::to("wait for the switch to hang up")(error)),
        }
    }
}

/// Reads the switch's hello and its answer to [`ECHO_10`].
fn answered(stream: &mut TcpStream) -> Result<(), Failure> {
    let hello = next_message(stream)?;
    assert_eq!(hello[1], 0, "{hello:02x?}");
    let reply = next_message(stream)?;
    assert_eq!(reply, [&[1, 3][..], &ECHO_10[2..]].concat());
    let _ = stream.shutdown(Shutdown::Write);
    Ok(())
}

/// The next message, whole.
fn next_message(stream: &mut impl Read) -> Result<Vec<u8>, Failure> {
    let mut message = vec![0; 8];
    let read = stream.read_exact(&mut message).and_then(|()| {
        let length = u16::from_be_bytes([message[2], message[3]]);
        message.resize(usize::from(length).max(8), 0);
        stream.read_exact(&mut message[8..])
    });
    read.map_err(Failure::to("hear the switch"))?;
    Ok(message)
}

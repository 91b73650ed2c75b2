//! OpenFlow controllers: real ones, and one that the test drives.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use base::PortNo;
use flow::{
    FragmentHandling, PacketIn, PacketInReason, PortReason, Role, RoleRequest, ShortId,
    SwitchConfig,
};
use openflow::{
    ControlChannelStatus, ControllerReason, ControllerStatus, Message, MultipartReply,
    MultipartRequest, RoleReply, Version,
};
use testbed::{Failure, Process};

use crate::support::command::program;
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};
use crate::support::controller::{ControllerListener, TestController};
use crate::support::frames::encode_frames;
use crate::support::host::pseudo_random_bytes;
use crate::support::network::TestNetwork;
use crate::support::switch::{STANDALONE_3, SwitchProcess};

pub(crate) const TESTS: &[SystemTest] = tests![
    hosts_communicate_through_ovs_testcontroller,
    hosts_communicate_through_os_ken_with_openflow_10,
    hosts_communicate_through_os_ken_with_openflow_13,
    controller_may_connect_to_a_listening_switch,
    secure_switch_keeps_its_rules_without_its_controller,
    standalone_switch_forwards_without_its_controller,
    reconnect_backoff_doubles,
    connection_without_hello_is_closed,
    connection_without_echo_replies_is_closed,
    asynchronous_messages_reach_all_controllers,
    slaves_are_read_only_and_a_new_master_replaces_the_old,
    controller_status_messages_announce_other_controllers,
    auxiliary_connections_carry_packet_ins_and_close_with_the_main_connection,
    hosts_communicate_through_ovs_testcontroller_with_auxiliary_connections,
    table_miss_packet_in_holds_the_whole_frame_and_its_port,
];

/// Target that real controllers listen on.
const TARGET: &str = "--controller tcp:127.0.0.1:6653";

fn hosts_communicate_through_ovs_testcontroller(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    for (words, versions) in [
        ("", "OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13"),
        ("", "OpenFlow10"),
        ("--noflow", "OpenFlow13"),
    ] {
        let words = format!("{words} -O {versions}");
        let _controller = testcontroller(&network, &format!("ptcp:6653:127.0.0.1 {words}"))?;
        let switch =
            network.start_switch(&format!("{STANDALONE_3} --fail-mode secure {TARGET}"))?;
        let learns = !words.contains("--noflow");
        expect_connectivity(&network, &switch, "idle_timeout=60,", learns)?;
    }
    Ok(())
}

fn hosts_communicate_through_os_ken_with_openflow_10(context: &TestContext) -> TestResult {
    check_os_ken_application(context, "1.0", "cookie=0x10,")
}

fn hosts_communicate_through_os_ken_with_openflow_13(context: &TestContext) -> TestResult {
    check_os_ken_application(context, "1.3", "cookie=0x13,")
}

fn check_os_ken_application(context: &TestContext, version: &str, cookie: &str) -> TestResult {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = root.join("target/venv/bin/python");
    if !python.exists() {
        let reason =
            "the Python environment target/venv is missing: create it with cargo xtask setup";
        return Err(TestError::Skip(reason.to_owned()));
    }
    let network = TestNetwork::new(context, 3)?;
    let application = testbed::Program::new(python)
        .arg(root.join("tests/apps/learning.py"))
        .args([version, "6653"])
        .inside(&network.switch_namespace)
        .log(context.unique_path("learning.log"));
    let application = context.spawner.start(application)?;
    context.wait_until("the application to be ready", || {
        Ok(application.written()?.contains("ready"))
    })?;
    let switch = network.start_switch(&format!("{STANDALONE_3} --fail-mode secure {TARGET}"))?;
    expect_connectivity(&network, &switch, cookie, true)?;
    let received = application.written()?;
    assert_eq!(received, "ready\n");
    Ok(())
}

/// Asserts that hosts ping each other and transfer a file by TCP, by rules of the controller if it
/// `learns`.
fn expect_connectivity(
    network: &TestNetwork<'_>,
    switch: &SwitchProcess<'_>,
    cookie: &str,
    learns: bool,
) -> Result<(), Failure> {
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        let (from, to) = (network.host(from), network.host(to));
        from.ping_until_reply(to.address)?;
        from.ping(to.address, 5)?;
    }
    let file = pseudo_random_bytes(1 << 20);
    let received = network.host(1).transfer(network.host(2), &file)?;
    assert!(received == file, "the file differs");
    let flows = switch.flows("dump-flows br0")?;
    let learned = flows
        .iter()
        .filter(|flow| flow.contains(cookie) && flow.contains("dl_src="));
    assert_eq!(learned.count() >= 6, learns, "{flows:#?}");
    Ok(())
}

/// The switch listens. It sends no packet-in before the controller sets the miss length.
fn controller_may_connect_to_a_listening_switch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let words = format!("{STANDALONE_3} --fail-mode secure --listen ptcp:6654:127.0.0.1");
    let switch = network.start_switch(&words)?;
    let _controller = testcontroller(&network, "tcp:127.0.0.1:6654 -O OpenFlow10")?;
    expect_connectivity(&network, &switch, "idle_timeout=60,", true)?;
    Ok(())
}

fn secure_switch_keeps_its_rules_without_its_controller(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let mut controller = testcontroller(&network, "ptcp:6653:127.0.0.1")?;
    let switch = network.start_switch(&format!("{STANDALONE_3} --fail-mode secure {TARGET}"))?;
    let (one, two, three) = (network.host(1), network.host(2), network.host(3));
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 3)?;
    controller.kill()?;
    wait_for_log(context, &switch, "controller lost")?;
    // The rule for ARP would miss a new source, so neighbour entries are static.
    network.add_static_neighbours(1, 2)?;
    network.add_static_neighbours(1, 3)?;
    one.ping(two.address, 10)?;
    assert!(!one.can_ping(three.address)?);
    let _controller = testcontroller(&network, "ptcp:6653:127.0.0.1")?;
    one.ping_until_reply(three.address)?;
    one.ping(two.address, 3)?;
    Ok(())
}

fn standalone_switch_forwards_without_its_controller(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    // No controller listens yet.
    let switch = network.start_switch(&format!("{STANDALONE_3} {TARGET}"))?;
    let (one, two, three) = (network.host(1), network.host(2), network.host(3));
    one.ping(two.address, 10)?;
    assert!(switch.flows("dump-flows br0")?.is_empty());
    let mut controller = testcontroller(&network, "ptcp:6653:127.0.0.1")?;
    context.wait_until("rules for two hosts", || {
        one.can_ping(two.address)?;
        Ok(switch.flows("dump-flows br0")?.len() >= 3)
    })?;
    controller.kill()?;
    wait_for_log(context, &switch, "controller lost")?;
    let rule_count = switch.flows("dump-flows br0")?.len();
    one.ping(three.address, 10)?;
    assert_eq!(switch.flows("dump-flows br0")?.len(), rule_count);
    // Addresses that the bridge learned meanwhile do not affect the new controller.
    let _controller = testcontroller(&network, "ptcp:6653:127.0.0.1")?;
    context.wait_until("rules for three hosts", || {
        one.can_ping(three.address)?;
        let flows = switch.flows("dump-flows br0")?;
        Ok(flows
            .iter()
            .any(|flow| flow.contains("dl_dst=02:00:00:00:00:03")))
    })?;
    one.ping(three.address, 3)?;
    Ok(())
}

/// The delays are 0.5 s, 1 s and 2 s.
fn reconnect_backoff_doubles(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let listener = ControllerListener::bind(context)?;
    let _switch =
        network.start_switch(&format!("--bridge br0 --controller {}", listener.target()))?;
    let mut last = None;
    for pause_ms in [0, 500, 1000, 2000] {
        drop(listener.accept_stream()?);
        let now = context.clock.now();
        if let Some(last) = last {
            let pause = now - last;
            let pause = pause.as_millis();
            assert!(
                (pause_ms..pause_ms + 400).contains(&pause),
                "{pause} ms instead of {pause_ms} ms"
            );
        }
        last = Some(now);
    }
    // After a complete handshake the next attempt is immediate.
    drop(listener.accept(Version::V13)?);
    let closed_at = context.clock.now();
    drop(listener.accept_stream()?);
    let pause = context.clock.now() - closed_at;
    assert!(pause < Duration::from_millis(900), "{pause:?}");
    Ok(())
}

fn connection_without_hello_is_closed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let listener = ControllerListener::bind(context)?;
    let switch = network.start_switch(&format!(
        "--bridge br0 --port p1 --port p2 --controller {}",
        listener.target()
    ))?;
    let mut stream = listener.accept_stream()?;
    stream.set_read_timeout(Some(WAIT_LIMIT))?;
    let start = context.clock.now();
    // A connection without a hello is no controller: the switch forwards meanwhile.
    network.host(1).ping(network.host(2).address, 3)?;
    let mut received = Vec::new();
    stream.read_to_end(&mut received)?;
    let elapsed = context.clock.now() - start;
    assert!((4500..6500).contains(&elapsed.as_millis()), "{elapsed:?}");
    assert_eq!(
        received.len(),
        16,
        "only a hello with a bitmap: {received:02x?}"
    );
    wait_for_log(context, &switch, "no hello within the timeout")?;
    let mut controller = listener.accept(Version::V10)?;
    controller.barrier();
    Ok(())
}

fn connection_without_echo_replies_is_closed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let listener = ControllerListener::bind(context)?;
    let switch =
        network.start_switch(&format!("--bridge br0 --controller {}", listener.target()))?;
    let mut stream = listener.accept_stream()?;
    stream.set_read_timeout(Some(WAIT_LIMIT))?;
    // A hello of OpenFlow 1.3, and no further message.
    stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1])?;
    let mut received = Vec::new();
    stream.read_to_end(&mut received)?;
    let [.., version, kind, 0, 8, _, _, _, _] = received[..] else {
        return Err(format!("the last message is no echo request: {received:02x?}").into());
    };
    assert_eq!((version, kind), (4, 2));
    wait_for_log(context, &switch, "the peer does not answer echo requests")?;
    Ok(())
}

/// Starts a secure switch with a controller target for each listener.
fn start_with_controllers<'g>(
    network: &TestNetwork<'g>,
    listeners: &[ControllerListener<'_>],
) -> Result<SwitchProcess<'g>, Failure> {
    let words = listeners
        .iter()
        .map(|listener| format!("--controller {} ", listener.target()));
    let words: String = words.collect();
    network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2 {words}"
    ))
}

fn asynchronous_messages_reach_all_controllers(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let listeners = [
        ControllerListener::bind(context)?,
        ControllerListener::bind(context)?,
    ];
    let switch = start_with_controllers(&network, &listeners)?;
    let mut old = listeners[0].accept(Version::V10)?;
    let mut new = listeners[1].accept(Version::V13)?;
    old.barrier();
    new.add_flow("priority=0,actions=CONTROLLER:65535")?;
    new.barrier();
    network.host(1).send(&["eth / arp"])?;
    // OpenFlow 1.0 has no table-miss rule.
    assert_eq!(
        old.wait_for_message("a packet-in", packet_in)?.reason,
        PacketInReason::Action
    );
    assert_eq!(
        new.wait_for_message("a packet-in", packet_in)?.reason,
        PacketInReason::NoMatch
    );
    old.add_flow("in_port=1,send_flow_rem,actions=output:2")?;
    old.barrier();
    let mut two = network.host(2).capture_frames()?;
    network.host(1).send(&["eth / arp"])?;
    two.expect_frame("eth / arp");
    switch.ofctl("del-flows br0 in_port=1")?;
    for controller in [&mut old, &mut new] {
        let packets =
            controller.wait_for_message("a flow-removed message", |message| match message {
                Message::FlowRemoved(removed) => Some(removed.packets),
                _ => None,
            })?;
        assert_eq!(packets, 1);
    }
    // The loss of one controller does not affect the other.
    drop(old);
    wait_for_log(context, &switch, "controller lost")?;
    new.barrier();
    let mut old = listeners[0].accept(Version::V10)?;
    old.barrier();
    Ok(())
}

fn slaves_are_read_only_and_a_new_master_replaces_the_old(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let listeners = [
        ControllerListener::bind(context)?,
        ControllerListener::bind(context)?,
    ];
    let switch = start_with_controllers(&network, &listeners)?;
    let mut first = listeners[0].accept(Version::V13)?;
    let mut second = listeners[1].accept(Version::V13)?;
    assert_eq!(role(&mut first, None, None)?, (Role::Equal, None));
    assert_eq!(
        role(&mut first, Some(Role::Master), Some(1))?,
        (Role::Master, Some(1))
    );
    assert_eq!(
        role(&mut second, Some(Role::Slave), Some(1))?,
        (Role::Slave, Some(1))
    );
    first.add_flow("in_port=1,actions=CONTROLLER:65535")?;
    first.barrier();
    // A slave may not modify the switch (error: is slave), may send requests, and receives only
    // port status messages.
    let flow_mod = flow::text::parse_flow(flow::FlowModCommand::Delete, "")?;
    second.expect_error(&Message::FlowMod(flow_mod), 1, 10);
    second.request(&Message::FeaturesRequest)?;
    network.host(1).send(&["eth / arp"])?;
    first.wait_for_message("a packet-in", packet_in)?;
    network.switch_namespace.set_down("p2")?;
    for controller in [&mut first, &mut second] {
        controller.wait_for_message("a port status message", |message| match message {
            Message::PortStatus(status) => (status.port.number == PortNo(2)
                && status.reason == PortReason::Modify)
                .then_some(()),
            _ => None,
        })?;
    }
    assert!(
        second
            .take_messages()
            .iter()
            .all(|message| packet_in(message).is_none())
    );
    // A new master makes the old one a slave; an older generation is stale.
    assert_eq!(
        role(&mut second, Some(Role::Master), Some(2))?,
        (Role::Master, Some(2))
    );
    assert_eq!(role(&mut first, None, None)?, (Role::Slave, Some(2)));
    let stale = RoleRequest {
        role: Some(Role::Master),
        generation: Some(1),
        ..RoleRequest::default()
    };
    first.expect_error(&Message::RoleRequest(stale), 11, 0);
    assert_eq!(switch.flows("dump-flows br0")?.len(), 1);
    Ok(())
}

fn controller_status_messages_announce_other_controllers(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let listeners = [
        ControllerListener::bind(context)?,
        ControllerListener::bind(context)?,
    ];
    let _switch = start_with_controllers(&network, &listeners)?;
    let mut first = listeners[0].accept(Version::V15)?;
    first.barrier();
    let mut second = listeners[1].accept(Version::V15)?;
    let status = |message: &Message| match message {
        Message::ControllerStatus(status) => Some(status.clone()),
        _ => None,
    };
    let status_message = first.wait_for_message("the status of a new controller", status)?;
    let expected = ControllerStatus {
        short_id: None,
        role: Role::Equal,
        reason: ControllerReason::ChannelStatus,
        channel: ControlChannelStatus::Up,
        uri: Some(listeners[1].target()),
    };
    assert_eq!(status_message, expected);
    let request = Message::RoleRequest(RoleRequest {
        role: Some(Role::Master),
        generation: Some(1),
        short_id: ShortId::new(5),
    });
    second.request(&request)?;
    let status_message = first.wait_for_message("the status of a new master", status)?;
    let expected = ControllerStatus {
        short_id: ShortId::new(5),
        role: Role::Master,
        reason: ControllerReason::Role,
        ..expected
    };
    assert_eq!(status_message, expected);
    first.expect_error(&request, 11, 4);
    drop(second);
    let down = |message: &Message| {
        status(message).filter(|status| status.reason == ControllerReason::ChannelStatus)
    };
    let status_message = first.wait_for_message("the status of a lost controller", down)?;
    assert_eq!(status_message.role, Role::Master);
    assert_eq!(status_message.channel, ControlChannelStatus::Down);
    assert_eq!(status_message.uri, Some(listeners[1].target()));
    let request = Message::MultipartRequest(MultipartRequest::ControllerStatus);
    let Message::MultipartReply {
        reply: MultipartReply::ControllerStatus(all),
        ..
    } = first.request(&request)?
    else {
        panic!("the reply has no controller statuses");
    };
    let up = all
        .iter()
        .filter(|one| one.channel == ControlChannelStatus::Up);
    let up: Vec<_> = up.map(|one| one.uri.clone()).collect();
    assert_eq!((all.len(), up), (2, vec![Some(listeners[0].target())]));
    Ok(())
}

fn auxiliary_connections_carry_packet_ins_and_close_with_the_main_connection(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let listener = ControllerListener::bind(context)?;
    let target = listener.target();
    let _switch = network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2 --controller {target} --auxiliary 2"
    ))?;
    let mut connections = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut controller = listener.accept(Version::V13)?;
        ids.push(match controller.request(&Message::FeaturesRequest)? {
            Message::FeaturesReply(reply) => reply.features.auxiliary_id,
            other => panic!("no features reply: {other:?}"),
        });
        connections.push(controller);
    }
    assert_eq!(ids[0], 0, "the main connection is the first");
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
    // A rule that an auxiliary connection adds is the controller's, and so are its packet-ins.
    connections[1].add_flow("actions=CONTROLLER:65535")?;
    connections[1].barrier();
    let stacks: Vec<_> = (1..=32)
        .map(|port| format!("eth / ipv4 / udp(src={port})"))
        .collect();
    let stacks: Vec<_> = stacks.iter().map(String::as_str).collect();
    network.host(1).send(&stacks)?;
    let mut counts = [0; 3];
    context.wait_until("packet-ins of all frames", || {
        for (count, controller) in counts.iter_mut().zip(&mut connections) {
            *count += controller
                .take_messages()
                .iter()
                .filter_map(packet_in)
                .count();
        }
        Ok(counts.iter().sum::<usize>() == stacks.len())
    })?;
    assert!(
        counts[0] == 0 && counts[1] > 0 && counts[2] > 0,
        "{counts:?}"
    );
    // An auxiliary connection may close alone: the switch connects again.
    let lost = connections.pop();
    drop(lost);
    connections.push(listener.accept(Version::V13)?);
    // When the main connection closes, all auxiliary connections close.
    connections.remove(0);
    for controller in connections {
        controller.wait_for_close()?;
    }
    let mut main = listener.accept(Version::V13)?;
    let reply = main.request(&Message::FeaturesRequest)?;
    assert!(matches!(reply, Message::FeaturesReply(reply) if reply.features.auxiliary_id == 0));
    Ok(())
}

/// Debian's controller takes each connection for a switch, and replies on the connection of the
/// request.
fn hosts_communicate_through_ovs_testcontroller_with_auxiliary_connections(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let _controller = testcontroller(&network, "ptcp:6653:127.0.0.1 -O OpenFlow13")?;
    let switch = network.start_switch(&format!(
        "{STANDALONE_3} --fail-mode secure {TARGET} --auxiliary 3"
    ))?;
    expect_connectivity(&network, &switch, "idle_timeout=60,", true)?;
    let connections = network.run("ss -Htn state established dport = :6653")?;
    let connections: Vec<_> = connections.stdout.lines().collect();
    assert_eq!(connections.len(), 4, "{connections:#?}");
    Ok(())
}

/// A controller of OpenFlow 1.0 receives frames that match no rule. The switch buffers no frames,
/// so the packet-in holds the whole frame, whatever the miss length.
fn table_miss_packet_in_holds_the_whole_frame_and_its_port(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let listener = ControllerListener::bind(context)?;
    let target = listener.target();
    let _switch = network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2=9 --controller {target}"
    ))?;
    let mut controller = listener.accept(Version::V10)?;
    for miss_send_len in [128, 65535] {
        controller.send(&Message::SetConfig(SwitchConfig {
            fragments: FragmentHandling::Normal,
            miss_send_len,
            invalid_ttl: false,
        }))?;
        controller.barrier();
        network.host(2).send(&["eth / ipv4 / udp / data(1400)"])?;
        let packet_in = controller.wait_for_message("a packet-in", packet_in)?;
        assert_eq!(
            (packet_in.reason, packet_in.registers.in_port),
            (PacketInReason::NoMatch, PortNo(9))
        );
        assert_eq!((packet_in.total_len, packet_in.data.len()), (1442, 1442));
        assert_eq!(
            packet_in.data,
            encode_frames(&["eth / ipv4 / udp / data(1400)"])[0]
        );
    }
    Ok(())
}

/// Starts Debian's controller in the switch's namespace.
fn testcontroller(network: &TestNetwork<'_>, words: &str) -> Result<Process, Failure> {
    let context = network.context;
    let socket = context.unique_path("testcontroller.ctl");
    let program = program("ovs-testcontroller")
        .args(words.split_whitespace())
        .arg(format!("--unixctl={}", socket.display()))
        .inside(&network.switch_namespace)
        .log(context.unique_path("testcontroller.log"));
    let controller = context.spawner.start(program)?;
    context.wait_until("the controller to start", || Ok(socket.exists()))?;
    Ok(controller)
}

/// Waits until the switch's log contains `text`.
fn wait_for_log(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    text: &str,
) -> Result<(), Failure> {
    context.wait_until(text, || Ok(switch.log()?.contains(text)))
}

pub(crate) fn packet_in(message: &Message) -> Option<PacketIn> {
    match message {
        Message::PacketIn(packet_in) => Some(packet_in.clone()),
        _ => None,
    }
}

/// Requests a role, or the current role if `role` is `None`.
fn role(
    controller: &mut TestController<'_>,
    role: Option<Role>,
    generation: Option<u64>,
) -> Result<(Role, Option<u64>), Failure> {
    let request = Message::RoleRequest(RoleRequest {
        role,
        generation,
        ..RoleRequest::default()
    });
    match controller.request(&request)? {
        Message::RoleReply(RoleReply {
            role, generation, ..
        }) => Ok((role, generation)),
        other => panic!("no role reply: {other:?}"),
    }
}

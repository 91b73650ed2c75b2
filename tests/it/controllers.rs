//! Under controllers: real ones, and one in the test's own hands.

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

use crate::ground::{Ground, Outcome, PATIENCE, Rule, Stop, rules};
use crate::host::noise;
use crate::peer::{Desk, Peer};
use crate::rig::{Rig, Switch, program};

pub(crate) const RULES: &[Rule] = rules![
    under_debians_testcontroller_hosts_talk,
    under_an_os_ken_application_of_openflow_10_hosts_talk,
    under_an_os_ken_application_of_openflow_13_hosts_talk,
    a_controller_that_comes_by_itself_is_served,
    without_its_controller_a_secure_switch_keeps_its_rules,
    without_its_controller_a_standalone_switch_forwards,
    a_controller_is_sought_with_growing_pauses,
    a_controller_that_says_no_hello_is_left,
    a_controller_that_falls_silent_is_left,
    every_controller_is_told,
    one_master_and_its_slaves,
    controllers_of_openflow_15_hear_of_each_other,
    auxiliary_connections_carry_frames_and_fall_with_the_main_one,
    under_debians_testcontroller_hosts_talk_by_auxiliary_connections,
    a_missed_frame_comes_whole_with_its_port,
];

/// The target of real controllers, and where they listen.
const TARGET: &str = "--controller tcp:127.0.0.1:6653";
const THREE: &str = "--bridge br0 --port p1 --port p2 --port p3";

fn under_debians_testcontroller_hosts_talk(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    for (words, versions) in [
        ("", "OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13"),
        ("", "OpenFlow10"),
        ("--noflow", "OpenFlow13"),
    ] {
        let words = format!("{words} -O {versions}");
        let _controller = testcontroller(&rig, &format!("ptcp:6653:127.0.0.1 {words}"))?;
        let switch = rig.start(&format!("{THREE} --fail-mode secure {TARGET}"))?;
        let learns = !words.contains("--noflow");
        hosts_talk(&rig, &switch, "idle_timeout=60,", learns)?;
    }
    Ok(())
}

fn under_an_os_ken_application_of_openflow_10_hosts_talk(ground: &Ground) -> Outcome {
    under_os_ken(ground, "1.0", "cookie=0x10,")
}

fn under_an_os_ken_application_of_openflow_13_hosts_talk(ground: &Ground) -> Outcome {
    under_os_ken(ground, "1.3", "cookie=0x13,")
}

fn under_os_ken(ground: &Ground, version: &str, mark: &str) -> Outcome {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = root.join("target/venv/bin/python");
    if !python.exists() {
        let reason = "there is no Python environment target/venv: make it with cargo xtask setup";
        return Err(Stop::Skip(reason.to_owned()));
    }
    let rig = Rig::new(ground, 3)?;
    let application = testbed::Program::new(python)
        .arg(root.join("tests/apps/learning.py"))
        .args([version, "6653"])
        .inside(&rig.home)
        .log(ground.file("learning.log"));
    let application = ground.spawner.start(application)?;
    ground.wait_until("the application to be ready", || {
        Ok(application.written()?.contains("ready"))
    })?;
    let switch = rig.start(&format!("{THREE} --fail-mode secure {TARGET}"))?;
    hosts_talk(&rig, &switch, mark, true)?;
    let said = application.written()?;
    assert_eq!(said, "ready\n");
    Ok(())
}

/// Hosts ping each other and transfer a file by TCP, by rules of the controller if it `learns`.
fn hosts_talk(rig: &Rig<'_>, switch: &Switch<'_>, mark: &str, learns: bool) -> Result<(), Failure> {
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        let (from, to) = (rig.host(from), rig.host(to));
        from.reach(to.address)?;
        from.ping(to.address, 5)?;
    }
    let file = noise(1 << 20);
    let there = rig.host(1).transfer(rig.host(2), &file)?;
    assert!(there == file, "harmed");
    let flows = switch.flows("dump-flows br0")?;
    let learned = flows
        .iter()
        .filter(|flow| flow.contains(mark) && flow.contains("dl_src="));
    assert_eq!(learned.count() >= 6, learns, "{flows:#?}");
    Ok(())
}

/// The switch waits; nothing is told unasked before the controller sets what it
/// wants of a missed frame.
fn a_controller_that_comes_by_itself_is_served(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let words = format!("{THREE} --fail-mode secure --listen ptcp:6654:127.0.0.1");
    let switch = rig.start(&words)?;
    let _controller = testcontroller(&rig, "tcp:127.0.0.1:6654 -O OpenFlow10")?;
    hosts_talk(&rig, &switch, "idle_timeout=60,", true)?;
    Ok(())
}

fn without_its_controller_a_secure_switch_keeps_its_rules(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let mut controller = testcontroller(&rig, "ptcp:6653:127.0.0.1")?;
    let switch = rig.start(&format!("{THREE} --fail-mode secure {TARGET}"))?;
    let (one, two, three) = (rig.host(1), rig.host(2), rig.host(3));
    one.reach(two.address)?;
    one.ping(two.address, 3)?;
    controller.kill()?;
    says(ground, &switch, "controller lost")?;
    // The rule for ARP would miss a new source, so nobody has to ask.
    rig.introduce(1, 2)?;
    rig.introduce(1, 3)?;
    one.ping(two.address, 10)?;
    assert!(!one.answers(three.address)?);
    let _controller = testcontroller(&rig, "ptcp:6653:127.0.0.1")?;
    one.reach(three.address)?;
    one.ping(two.address, 3)?;
    Ok(())
}

fn without_its_controller_a_standalone_switch_forwards(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    // There is none yet.
    let switch = rig.start(&format!("{THREE} {TARGET}"))?;
    let (one, two, three) = (rig.host(1), rig.host(2), rig.host(3));
    one.ping(two.address, 10)?;
    assert!(switch.flows("dump-flows br0")?.is_empty());
    let mut controller = testcontroller(&rig, "ptcp:6653:127.0.0.1")?;
    ground.wait_until("rules for two hosts", || {
        one.answers(two.address)?;
        Ok(switch.flows("dump-flows br0")?.len() >= 3)
    })?;
    controller.kill()?;
    says(ground, &switch, "controller lost")?;
    let kept = switch.flows("dump-flows br0")?.len();
    one.ping(three.address, 10)?;
    assert_eq!(switch.flows("dump-flows br0")?.len(), kept);
    // What the bridge has learned meanwhile does not stand in the new one's way.
    let _controller = testcontroller(&rig, "ptcp:6653:127.0.0.1")?;
    ground.wait_until("rules for three hosts", || {
        one.answers(three.address)?;
        let flows = switch.flows("dump-flows br0")?;
        Ok(flows
            .iter()
            .any(|flow| flow.contains("dl_dst=02:00:00:00:00:03")))
    })?;
    one.ping(three.address, 3)?;
    Ok(())
}

/// Half a second, one, two.
fn a_controller_is_sought_with_growing_pauses(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let desk = Desk::open(ground)?;
    let _switch = rig.start(&format!("--bridge br0 --controller {}", desk.target()))?;
    let mut last = None;
    for pause_ms in [0, 500, 1000, 2000] {
        drop(desk.accept()?);
        let now = ground.clock.now();
        if let Some(last) = last {
            let pause = now - last;
            let pause = pause.as_millis();
            assert!(
                (pause_ms..pause_ms + 400).contains(&pause),
                "{pause} ms, not {pause_ms}"
            );
        }
        last = Some(now);
    }
    // One that says hello and goes is sought at once again.
    drop(desk.meet(Version::V13)?);
    let gone = ground.clock.now();
    drop(desk.accept()?);
    let pause = ground.clock.now() - gone;
    assert!(pause < Duration::from_millis(900), "{pause:?}");
    Ok(())
}

fn a_controller_that_says_no_hello_is_left(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let desk = Desk::open(ground)?;
    let switch = rig.start(&format!(
        "--bridge br0 --port p1 --port p2 --controller {}",
        desk.target()
    ))?;
    let mut stream = desk.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let start = ground.clock.now();
    // Somebody who is not there yet is no controller: the switch forwards meanwhile.
    rig.host(1).ping(rig.host(2).address, 3)?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said)?;
    let taken = ground.clock.now() - start;
    assert!((4500..6500).contains(&taken.as_millis()), "{taken:?}");
    assert_eq!(
        said.len(),
        16,
        "nothing but a hello with a bitmap: {said:02x?}"
    );
    says(ground, &switch, "no hello came in time")?;
    let mut peer = desk.meet(Version::V10)?;
    peer.barrier();
    Ok(())
}

fn a_controller_that_falls_silent_is_left(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let desk = Desk::open(ground)?;
    let switch = rig.start(&format!("--bridge br0 --controller {}", desk.target()))?;
    let mut stream = desk.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // A hello of OpenFlow 1.3, and not another word.
    stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1])?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said)?;
    let [.., version, kind, 0, 8, _, _, _, _] = said[..] else {
        return Err(format!("no echo request at the end: {said:02x?}").into());
    };
    assert_eq!((version, kind), (4, 2));
    says(ground, &switch, "the peer does not answer echo requests")?;
    Ok(())
}

/// A secure switch that seeks a controller at each desk.
fn start_under<'g>(rig: &Rig<'g>, desks: &[Desk<'_>]) -> Result<Switch<'g>, Failure> {
    let words = desks
        .iter()
        .map(|desk| format!("--controller {} ", desk.target()));
    let words: String = words.collect();
    rig.start(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2 {words}"
    ))
}

fn every_controller_is_told(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let desks = [Desk::open(ground)?, Desk::open(ground)?];
    let switch = start_under(&rig, &desks)?;
    let mut old = desks[0].meet(Version::V10)?;
    let mut new = desks[1].meet(Version::V13)?;
    old.barrier();
    new.add("priority=0,actions=CONTROLLER:65535")?;
    new.barrier();
    rig.host(1).send(&["eth / arp"])?;
    // OpenFlow 1.0 knows no table-miss rule.
    assert_eq!(
        old.hear("a frame", packet_in)?.reason,
        PacketInReason::Action
    );
    assert_eq!(
        new.hear("a frame", packet_in)?.reason,
        PacketInReason::NoMatch
    );
    old.add("in_port=1,send_flow_rem,actions=output:2")?;
    old.barrier();
    let mut two = rig.host(2).eye()?;
    rig.host(1).send(&["eth / arp"])?;
    two.sees("eth / arp");
    switch.ofctl("del-flows br0 in_port=1")?;
    for peer in [&mut old, &mut new] {
        let packets = peer.hear("the end of a rule", |message| match message {
            Message::FlowRemoved(removed) => Some(removed.packets),
            _ => None,
        })?;
        assert_eq!(packets, 1);
    }
    // One may go without the other's noticing.
    drop(old);
    says(ground, &switch, "controller lost")?;
    new.barrier();
    let mut old = desks[0].meet(Version::V10)?;
    old.barrier();
    Ok(())
}

fn one_master_and_its_slaves(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let desks = [Desk::open(ground)?, Desk::open(ground)?];
    let switch = start_under(&rig, &desks)?;
    let mut first = desks[0].meet(Version::V13)?;
    let mut second = desks[1].meet(Version::V13)?;
    assert_eq!(role(&mut first, None, None)?, (Role::Equal, None));
    assert_eq!(
        role(&mut first, Some(Role::Master), Some(1))?,
        (Role::Master, Some(1))
    );
    assert_eq!(
        role(&mut second, Some(Role::Slave), Some(1))?,
        (Role::Slave, Some(1))
    );
    first.add("in_port=1,actions=CONTROLLER:65535")?;
    first.barrier();
    // A slave changes nothing (bad request: is slave), but may ask, and hears of ports only.
    let flow_mod = flow::text::parse_flow(flow::FlowModCommand::Delete, "")?;
    second.refused(&Message::FlowMod(flow_mod), 1, 10);
    second.ask(&Message::FeaturesRequest)?;
    rig.host(1).send(&["eth / arp"])?;
    first.hear("a frame", packet_in)?;
    rig.home.set_down("p2")?;
    for peer in [&mut first, &mut second] {
        peer.hear("news of the port", |message| match message {
            Message::PortStatus(status) => (status.port.number == PortNo(2)
                && status.reason == PortReason::Modify)
                .then_some(()),
            _ => None,
        })?;
    }
    assert!(
        second
            .heard()
            .iter()
            .all(|message| packet_in(message).is_none())
    );
    // A new master makes the old one a slave; an older election is stale.
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
    first.refused(&Message::RoleRequest(stale), 11, 0);
    assert_eq!(switch.flows("dump-flows br0")?.len(), 1);
    Ok(())
}

fn controllers_of_openflow_15_hear_of_each_other(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let desks = [Desk::open(ground)?, Desk::open(ground)?];
    let _switch = start_under(&rig, &desks)?;
    let mut first = desks[0].meet(Version::V15)?;
    first.barrier();
    let mut second = desks[1].meet(Version::V15)?;
    let status = |message: &Message| match message {
        Message::ControllerStatus(status) => Some(status.clone()),
        _ => None,
    };
    let news = first.hear("that the other came", status)?;
    let wanted = ControllerStatus {
        short_id: None,
        role: Role::Equal,
        reason: ControllerReason::ChannelStatus,
        channel: ControlChannelStatus::Up,
        uri: Some(desks[1].target()),
    };
    assert_eq!(news, wanted);
    let request = Message::RoleRequest(RoleRequest {
        role: Some(Role::Master),
        generation: Some(1),
        short_id: ShortId::new(5),
    });
    second.ask(&request)?;
    let news = first.hear("that the other is master", status)?;
    let wanted = ControllerStatus {
        short_id: ShortId::new(5),
        role: Role::Master,
        reason: ControllerReason::Role,
        ..wanted
    };
    assert_eq!(news, wanted);
    first.refused(&request, 11, 4);
    drop(second);
    let down = |message: &Message| {
        status(message).filter(|status| status.reason == ControllerReason::ChannelStatus)
    };
    let news = first.hear("that the other is gone", down)?;
    assert_eq!(
        (news.role, news.channel, news.uri),
        (
            Role::Master,
            ControlChannelStatus::Down,
            Some(desks[1].target())
        )
    );
    let question = Message::MultipartRequest(MultipartRequest::ControllerStatus);
    let Message::MultipartReply {
        reply: MultipartReply::ControllerStatus(all),
        ..
    } = first.ask(&question)?
    else {
        panic!("no statuses");
    };
    let here = all
        .iter()
        .filter(|one| one.channel == ControlChannelStatus::Up);
    let here: Vec<_> = here.map(|one| one.uri.clone()).collect();
    assert_eq!((all.len(), here), (2, vec![Some(desks[0].target())]));
    Ok(())
}

fn auxiliary_connections_carry_frames_and_fall_with_the_main_one(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let desk = Desk::open(ground)?;
    let target = desk.target();
    let _switch = rig.start(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2 --controller {target} --auxiliary 2"
    ))?;
    let mut peers = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut peer = desk.meet(Version::V13)?;
        ids.push(match peer.ask(&Message::FeaturesRequest)? {
            Message::FeaturesReply(reply) => reply.features.auxiliary_id,
            other => panic!("no features: {other:?}"),
        });
        peers.push(peer);
    }
    assert_eq!(ids[0], 0, "the main one is first");
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
    // A rule that came by an auxiliary one is the controller's, and so are its frames.
    peers[1].add("actions=CONTROLLER:65535")?;
    peers[1].barrier();
    let stacks: Vec<_> = (1..=32)
        .map(|port| format!("eth / ipv4 / udp(src={port})"))
        .collect();
    let stacks: Vec<_> = stacks.iter().map(String::as_str).collect();
    rig.host(1).send(&stacks)?;
    let mut told = [0; 3];
    ground.wait_until("all frames to come", || {
        for (count, peer) in told.iter_mut().zip(&mut peers) {
            *count += peer.heard().iter().filter_map(packet_in).count();
        }
        Ok(told.iter().sum::<usize>() == stacks.len())
    })?;
    assert!(told[0] == 0 && told[1] > 0 && told[2] > 0, "{told:?}");
    // One of them may go alone: it is sought again.
    let lost = peers.pop();
    drop(lost);
    peers.push(desk.meet(Version::V13)?);
    // With the main one all go.
    peers.remove(0);
    for peer in peers {
        peer.await_end()?;
    }
    let mut main = desk.meet(Version::V13)?;
    let reply = main.ask(&Message::FeaturesRequest)?;
    assert!(matches!(reply, Message::FeaturesReply(reply) if reply.features.auxiliary_id == 0));
    Ok(())
}

/// To Debian's controller each connection is a switch, and it answers where it was asked.
fn under_debians_testcontroller_hosts_talk_by_auxiliary_connections(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let _controller = testcontroller(&rig, "ptcp:6653:127.0.0.1 -O OpenFlow13")?;
    let switch = rig.start(&format!(
        "{THREE} --fail-mode secure {TARGET} --auxiliary 3"
    ))?;
    hosts_talk(&rig, &switch, "idle_timeout=60,", true)?;
    let connections = rig.ran("ss -Htn state established dport = :6653")?;
    let connections: Vec<_> = connections.output.lines().collect();
    assert_eq!(connections.len(), 4, "{connections:#?}");
    Ok(())
}

/// A controller of 1.0 is told of what matches nothing. The switch keeps no
/// frames, so all of it comes, whatever was set.
fn a_missed_frame_comes_whole_with_its_port(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let desk = Desk::open(ground)?;
    let target = desk.target();
    let _switch = rig.start(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2=9 --controller {target}"
    ))?;
    let mut peer = desk.meet(Version::V10)?;
    for miss_send_len in [128, 65535] {
        peer.send(&Message::SetConfig(SwitchConfig {
            fragments: FragmentHandling::Normal,
            miss_send_len,
        }))?;
        peer.barrier();
        rig.host(2).send(&["eth / ipv4 / udp / data(1400)"])?;
        let told = peer.hear("a frame", packet_in)?;
        assert_eq!(
            (told.reason, told.registers.in_port),
            (PacketInReason::NoMatch, PortNo(9))
        );
        assert_eq!((told.total_len, told.data.len()), (1442, 1442));
        assert_eq!(
            told.data,
            crate::eye::frames(&["eth / ipv4 / udp / data(1400)"])[0]
        );
    }
    Ok(())
}

/// Starts Debian's controller in the switch's namespace.
fn testcontroller(rig: &Rig<'_>, words: &str) -> Result<Process, Failure> {
    let ground = rig.ground;
    let socket = ground.file("testcontroller.ctl");
    let program = program("ovs-testcontroller")
        .args(words.split_whitespace())
        .arg(format!("--unixctl={}", socket.display()))
        .inside(&rig.home)
        .log(ground.file("testcontroller.log"));
    let controller = ground.spawner.start(program)?;
    ground.wait_until("the controller to be there", || Ok(socket.exists()))?;
    Ok(controller)
}

/// Waits until the switch has said something.
fn says(ground: &Ground, switch: &Switch<'_>, what: &str) -> Result<(), Failure> {
    ground.wait_until(what, || Ok(switch.log()?.contains(what)))
}

pub(crate) fn packet_in(message: &Message) -> Option<PacketIn> {
    match message {
        Message::PacketIn(told) => Some(told.clone()),
        _ => None,
    }
}

/// Asks for a role, or which one it is.
fn role(
    peer: &mut Peer<'_>,
    role: Option<Role>,
    generation: Option<u64>,
) -> Result<(Role, Option<u64>), Failure> {
    let request = Message::RoleRequest(RoleRequest {
        role,
        generation,
        ..RoleRequest::default()
    });
    match peer.ask(&request)? {
        Message::RoleReply(RoleReply {
            role, generation, ..
        }) => Ok((role, generation)),
        other => panic!("no role: {other:?}"),
    }
}

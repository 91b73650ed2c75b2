//! Tests of a bridge with two connections; the test takes the part of the workers.

use ::ports::Status;
use base::{Cookie, GroupId, MeterId, QueueId};
use flow::{
    FlowFlags, FlowRemovedReason, FlowStatsRequest, MaxLen, PacketInReason, PacketOut,
    PipelineFields, PortConfig, PortMod, PortReason, Role, RoleRequest, SwitchConfig, text,
};
use openflow::{
    BundleAdd, BundleControl, BundleFlags, BundleId, BundleStep, FlowFormat, MultipartReply,
    MultipartRequest, QueueStatsRequest, ReceivedMessage, RoleReason, RoleStatus, Version,
};
use packet::MacAddr;
use pipeline::{Cause, PacketInMeta, Pipeline};

use super::*;
use crate::connection::ConnectionKind;
use config::PacketRate;
use dataplane::program::Generation;
use l2::fdb::FdbKey;

mod bonds;
mod compaction;
mod controllers;
mod groups;
mod mirroring;
mod monitoring;
mod monitors;
mod port_counters;
mod spanning;
mod tables;

const OLD: ConnectionId = ConnectionId(10);
const NEW: ConnectionId = ConnectionId(13);

/// The wall-clock time at the start.
const STARTED: std::time::Duration = std::time::Duration::from_secs(1_000_000);

struct Rig {
    bridge: Bridge,
    now: Instant,
    generation: u64,
}

impl Rig {
    fn new(fail_mode: FailMode, has_controllers: bool) -> Self {
        let identity = Identity {
            name: "br0".to_owned(),
            datapath_id: DatapathId(1),
            fail_mode,
            started: WallTime(STARTED),
        };
        let mut rig = Self {
            bridge: Bridge::new(identity, has_controllers, 2, Instant::START),
            now: Instant::START,
            generation: 0,
        };
        for number in 1..=3 {
            rig.add_port(number);
        }
        rig
    }

    /// Returns a bridge in secure mode under an OpenFlow 1.0 and an OpenFlow 1.3 controller.
    fn controlled() -> Self {
        let mut rig = Self::new(FailMode::Secure, true);
        for (id, version) in [(OLD, Version::V10), (NEW, Version::V13)] {
            rig.bridge
                .handle_up(id, Connection::new(ConnectionKind::Primary, version));
        }
        rig
    }

    fn add_port(&mut self, number: u32) -> Vec<Effect> {
        let status = Status {
            name: format!("eth{number}"),
            address: MacAddr::from_u64(number.into()),
            up: true,
            carrier: true,
            ..Status::default()
        };
        self.effects(|bridge, now, effects| {
            bridge.handle_port_added(PortNo(number), &status, Vec::new(), now, effects);
        })
    }

    fn effects(&mut self, act: impl FnOnce(&mut Bridge, Instant, &mut Vec<Effect>)) -> Vec<Effect> {
        let mut effects = Vec::new();
        act(&mut self.bridge, self.now, &mut effects);
        effects
    }

    fn send(&mut self, id: ConnectionId, message: Message) -> Vec<Effect> {
        let mut received = ReceivedMessage {
            xid: Xid(7),
            message,
            excerpt: Excerpt::of(&[0; 8]),
        };
        self.effects(|bridge, now, effects| bridge.handle_message(id, &mut received, now, effects))
    }

    /// Publishes, and reports that the workers have passed the generation.
    fn pass(&mut self) -> Vec<Effect> {
        self.generation += 1;
        let generation = Generation(self.generation);
        self.bridge.handle_published(generation);
        self.effects(|bridge, _, effects| bridge.handle_passed(generation, effects))
    }

    fn rules(&self) -> Vec<String> {
        let request = FlowStatsRequest::all();
        let stats = self.bridge.tables.pipeline.flow_stats(&request, self.now);
        let stats = stats.expect("all tables exist");
        stats
            .map(|rule| text::FlowWithoutStats(&rule).to_string().trim().to_owned())
            .collect()
    }
}

/// Formats effects, one word each.
fn summary(effects: &[Effect]) -> Vec<String> {
    let name = |message: &Message| {
        let text = format!("{message:?}");
        text.split(['(', ' ', '{'])
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let one = |effect: &Effect| match effect {
        Effect::Reply(id, _, message) => Some(format!("{} {}", id.0, name(message))),
        Effect::Refuse(id, _, refusal, _) => Some(format!("{} refused: {refusal:?}", id.0)),
        Effect::Dump(id, ..) => Some(format!("{} dump", id.0)),
        Effect::Update(id, _) => Some(format!("{} update", id.0)),
        Effect::Pause(id, message) => Some(format!("{} {}", id.0, name(message))),
        Effect::Notify(id, message) => Some(format!("{} told {}", id.0, name(message))),
        Effect::Disconnect(id) => Some(format!("{} left", id.0)),
        Effect::Transmit(port, frame, _) => Some(format!("out of {port}: {} bytes", frame.len())),
        // Deallocation is invisible to peers.
        Effect::Free(_) => None,
        Effect::Export(to, datagram) => Some(format!("{to:?}: {} bytes", datagram.len())),
        Effect::SetPortUp(port, up) => Some(format!("port {port} up: {up}")),
    };
    effects.iter().filter_map(one).collect()
}

fn rule(command: FlowModCommand, flags: FlowFlags) -> Message {
    let instructions = Instructions::apply(vec![Action::output(PortNo(2))]);
    let matching = Match::any().with(flow::Field::InPort, 1).expect("legal");
    Message::FlowMod(FlowMod {
        flags,
        ..FlowMod::new(command, 5, matching, instructions)
    })
}

fn miss(cause: Cause) -> PacketInMeta {
    PacketInMeta {
        cause,
        table: TableId::FIRST,
        cookie: Cookie::NONE,
        registers: PipelineFields::new(PortNo(1)),
        controller: 0,
        userdata: Vec::new(),
        continuation: None,
        max_len: Some(MaxLen::WHOLE),
    }
}

#[test]
fn barrier_reply_and_final_counters_wait_for_the_workers() {
    let mut rig = Rig::controlled();
    rig.send(NEW, rule(FlowModCommand::Add, FlowFlags::SEND_FLOW_REMOVED));
    rig.pass();
    assert_eq!(
        summary(&rig.send(NEW, rule(FlowModCommand::Delete, FlowFlags(0)))),
        [""; 0]
    );
    assert_eq!(summary(&rig.send(NEW, Message::BarrierRequest)), [""; 0]);
    assert!(rig.bridge.is_at_barrier(NEW) && !rig.bridge.is_at_barrier(OLD));
    let after = [
        "10 told FlowRemoved",
        "13 told FlowRemoved",
        "13 BarrierReply",
    ];
    assert_eq!(summary(&rig.pass()), after);
    assert!(!rig.bridge.is_at_barrier(NEW));
}

#[test]
fn barrier_without_changes_waits_for_the_last_publication() {
    let mut rig = Rig::controlled();
    rig.bridge.handle_published(Generation(1));
    rig.send(NEW, Message::BarrierRequest);
    let mut effects = Vec::new();
    rig.bridge.handle_passed(Generation(0), &mut effects);
    assert!(effects.is_empty());
    rig.bridge.handle_passed(Generation(1), &mut effects);
    assert_eq!(summary(&effects), ["13 BarrierReply"]);
}

#[test]
fn barrier_reply_is_immediate_after_all_workers_have_passed() {
    let mut rig = Rig::controlled();
    rig.pass();
    assert_eq!(
        summary(&rig.send(NEW, Message::BarrierRequest)),
        ["13 BarrierReply"]
    );
}

#[test]
fn slave_reads_and_cannot_modify() {
    let mut rig = Rig::controlled();
    let slave = RoleRequest {
        role: Some(Role::Slave),
        generation: Some(1),
        ..RoleRequest::default()
    };
    assert_eq!(
        summary(&rig.send(NEW, Message::RoleRequest(slave))),
        ["13 RoleReply"]
    );
    let refused = ["13 refused: RequestIsSlave"];
    assert_eq!(
        summary(&rig.send(NEW, rule(FlowModCommand::Add, FlowFlags(0)))),
        refused
    );
    let request = MultipartRequest::Flow(FlowFormat::Standard, FlowStatsRequest::all());
    assert_eq!(
        summary(&rig.send(NEW, Message::MultipartRequest(request))),
        ["13 dump"]
    );
    assert_eq!(
        summary(&rig.add_port(4)),
        [
            "10 told PortStatus",
            "13 told PortStatus",
            "13 told PortStatus"
        ],
        "1.0 does not show that a port becomes live"
    );
}

#[test]
fn packet_ins_to_a_controller_respect_the_rate_limit() {
    let mut rig = Rig::controlled();
    let send = |rig: &mut Rig, count: usize| {
        let send = |_| {
            rig.effects(|bridge, now, effects| {
                bridge.handle_packet_in(miss(Cause::MissRule), vec![0; 60], now, effects);
            })
        };
        (0..count)
            .map(send)
            .map(|effects| effects.len())
            .sum::<usize>()
    };
    let all = send(&mut rig, 10);
    rig.bridge.limit_packet_ins(PacketRate::new(1000, Some(4)));
    let some = send(&mut rig, 10);
    assert_eq!(
        (all * 4, some * 10),
        (some * 10, all * 4),
        "of {all} {some}"
    );
    let limited = u64::try_from(all - some).expect("some");
    assert_eq!(rig.bridge.packet_ins_limited(), limited);
    rig.bridge.limit_packet_ins(None);
    assert_eq!(send(&mut rig, 10), all);
}

#[test]
fn missed_frame_reaches_openflow_1_0_only() {
    let mut rig = Rig::controlled();
    let send = |rig: &mut Rig, cause| {
        let effects = rig.effects(|bridge, now, effects| {
            bridge.handle_packet_in(miss(cause), vec![0; 60], now, effects);
        });
        let reason = |effect: &Effect| match effect {
            Effect::Notify(id, message) => match &**message {
                Message::PacketIn(message) => (id.0, message.reason, message.data.len()),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        effects.iter().map(reason).collect::<Vec<_>>()
    };
    assert_eq!(
        send(&mut rig, Cause::Miss),
        [(10, PacketInReason::NoMatch, 60)]
    );
    let by_rule = [
        (13, PacketInReason::NoMatch, 60),
        (10, PacketInReason::Action, 60),
    ];
    assert_eq!(send(&mut rig, Cause::MissRule), by_rule);
    // The packet-in of a rule's action has the rule's reason, if the version defines it.
    let by_action = [
        (10, PacketInReason::NoMatch, 60),
        (13, PacketInReason::NoMatch, 60),
    ];
    assert_eq!(
        send(&mut rig, Cause::Explicit(PacketInReason::NoMatch)),
        by_action
    );
}

#[test]
fn standalone_bridge_forwards_by_a_rule_and_controlled_bridge_does_not() {
    let rig = Rig::new(FailMode::Standalone, false);
    assert_eq!(rig.rules(), ["priority=0 actions=NORMAL"]);
    assert!(!rig.bridge.tables.pipeline.is_standalone());
    assert!(Rig::new(FailMode::Secure, false).rules().is_empty());
    assert!(Rig::new(FailMode::Standalone, true).rules().is_empty());
}

#[test]
fn standalone_mode_ends_and_begins_with_the_controller_connection() {
    let mut rig = Rig::new(FailMode::Standalone, true);
    assert!(rig.bridge.tables.pipeline.is_standalone());
    let tool = Connection::new(ConnectionKind::Service, Version::V13);
    rig.bridge.handle_up(OLD, tool);
    assert!(
        rig.bridge.tables.pipeline.is_standalone(),
        "a tool does not control"
    );
    rig.bridge
        .handle_up(NEW, Connection::new(ConnectionKind::Primary, Version::V13));
    assert!(!rig.bridge.tables.pipeline.is_standalone());
    rig.send(NEW, rule(FlowModCommand::Add, FlowFlags(0)));
    rig.bridge.handle_down(NEW, rig.now);
    assert!(rig.bridge.tables.pipeline.is_standalone());
    assert_eq!(rig.rules().len(), 1, "rules outlive the connection");
    let group = text::parse_group_line("group_id=1,type=all,bucket=output:1").expect("legal");
    rig.send(OLD, Message::GroupMod(group));
    let meter = text::parse_meter_line("meter=1,kbps,band=type=drop,rate=1").expect("legal");
    rig.send(OLD, Message::MeterMod(meter));
    let pipeline = |rig: &Rig| rig.bridge.rules();
    let objects = |pipeline: Pipeline| (pipeline.group_ids().count(), pipeline.meter_ids().count());
    assert_eq!(objects(pipeline(&rig)), (1, 1));
    rig.bridge.handle_controllers(false, rig.now);
    assert_eq!(rig.rules(), ["priority=0 actions=NORMAL"]);
    assert_eq!(objects(pipeline(&rig)), (0, 0), "groups and meters go too");
    assert!(!rig.bridge.tables.pipeline.is_standalone());
}

#[test]
fn port_removal_flushes_its_addresses() {
    let mut rig = Rig::controlled();
    let address = FdbKey {
        vid: 0,
        mac: MacAddr::from_u64(0xaa),
    };
    rig.bridge.handle_address(address, PortNo(1), rig.now);
    rig.bridge.handle_address(address, PortNo(9), rig.now);
    assert_eq!(rig.bridge.fdb().len(), 1);
    rig.effects(|bridge, _, effects| bridge.handle_port_removed(PortNo(1), effects));
    assert!(rig.bridge.fdb().is_empty() && rig.bridge.ports().count() == 2);
}

#[test]
fn port_status_has_the_reason_of_the_change() {
    let mut rig = Rig::controlled();
    let news = |effects: Vec<Effect>| -> Vec<_> {
        let status = effects.into_iter().filter_map(|effect| match effect {
            Effect::Notify(NEW, message) => Some(message),
            _ => None,
        });
        let one = |message: Arc<Message>| match &*message {
            Message::PortStatus(status) => Some((status.reason, status.port.number)),
            _ => None,
        };
        status.filter_map(one).collect()
    };
    // The port is live only after its addition.
    let added = [
        (PortReason::Add, PortNo(4)),
        (PortReason::Modify, PortNo(4)),
    ];
    assert_eq!(news(rig.add_port(4)), added);
    let down = Message::PortMod(PortMod {
        port: PortNo(4),
        hw_addr: MacAddr::from_u64(4),
        config: PortConfig::DOWN,
        mask: PortConfig::DOWN,
        advertise: 0,
    });
    assert_eq!(news(rig.send(OLD, down)), [(PortReason::Modify, PortNo(4))]);
    let gone = rig.effects(|bridge, _, effects| bridge.handle_port_removed(PortNo(4), effects));
    assert_eq!(news(gone), [(PortReason::Delete, PortNo(4))]);
}

#[test]
fn port_mod_requires_the_port_and_its_address() {
    let mut rig = Rig::controlled();
    let command = |port, address: u64| {
        Message::PortMod(PortMod {
            port: PortNo(port),
            hw_addr: MacAddr::from_u64(address),
            config: PortConfig(PortConfig::DOWN.0 | PortConfig::NO_FLOOD.0),
            mask: PortConfig(PortConfig::DOWN.0 | PortConfig::NO_FLOOD.0),
            advertise: 0,
        })
    };
    assert_eq!(
        summary(&rig.send(NEW, command(9, 9))),
        ["13 refused: PortModBadPort"]
    );
    assert_eq!(
        summary(&rig.send(NEW, command(1, 9))),
        ["13 refused: PortModBadHwAddr"]
    );
    let done = [
        "10 told PortStatus",
        "13 told PortStatus",
        "port 1 up: false",
    ];
    assert_eq!(summary(&rig.send(NEW, command(1, 1))), done);
    assert_eq!(
        summary(&rig.send(NEW, command(1, 1))),
        [""; 0],
        "nothing changes twice"
    );
}

#[test]
fn packet_out_floods_and_learns_like_a_received_frame() {
    let mut rig = Rig::controlled();
    let mut data = vec![0; 60];
    data[..12].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1]);
    let message = |port| {
        Message::PacketOut(PacketOut {
            buffer: None,
            registers: PipelineFields::new(PortNo(1)),
            actions: vec![Action::output(port)],
            data: data.clone(),
        })
    };
    let flooded = ["out of 2: 60 bytes", "out of 3: 60 bytes"];
    assert_eq!(summary(&rig.send(NEW, message(PortNo::FLOOD))), flooded);
    assert!(rig.bridge.fdb().is_empty());
    assert_eq!(summary(&rig.send(NEW, message(PortNo::NORMAL))), flooded);
    assert_eq!(rig.bridge.fdb().len(), 1);
    assert_eq!(
        summary(&rig.send(NEW, message(PortNo::IN_PORT))),
        ["out of 1: 60 bytes"]
    );
}

#[test]
fn packet_out_copies_are_limited_and_counted() {
    let mut rig = Rig::controlled();
    let message = |actions, len| {
        Message::PacketOut(PacketOut {
            buffer: None,
            registers: PipelineFields::new(PortNo(1)),
            actions,
            data: vec![0; len],
        })
    };
    let all = |count| vec![Action::output(PortNo::ALL); count];
    let short = rig.send(NEW, message(all(1024), 60));
    assert_eq!((short.len(), rig.bridge.packet_outs_limited()), (2048, 0));
    let effects = rig.send(NEW, message(all(1024), 56_000));
    let bytes = |effect: &Effect| match effect {
        Effect::Transmit(_, frame, _) => frame.len(),
        other => panic!("{other:?}"),
    };
    let sent: usize = effects.iter().map(bytes).sum();
    assert!((7 << 20..=8 << 20).contains(&sent), "{sent} bytes");
    assert_eq!(rig.bridge.packet_outs_limited(), 1);
    // The memory of short copies counts, too.
    let many = rig.send(NEW, message(all(8000), 60)).len();
    assert!((14_000..16_000).contains(&many), "{many}");
    assert_eq!(rig.bridge.packet_outs_limited(), 2);
    // More outputs than a packet may have: nothing is sent.
    for number in 4..=100 {
        rig.add_port(number);
    }
    assert_eq!(summary(&rig.send(NEW, message(all(1024), 60))), [""; 0]);
    assert_eq!(rig.bridge.packet_outs_limited(), 3);
}

#[test]
fn rules_expire_and_send_flow_removed() {
    let mut rig = Rig::controlled();
    let Message::FlowMod(command) = rule(FlowModCommand::Add, FlowFlags::SEND_FLOW_REMOVED) else {
        panic!("a flow-mod")
    };
    rig.send(
        NEW,
        Message::FlowMod(FlowMod {
            hard_timeout_s: 5,
            ..command
        }),
    );
    rig.pass();
    assert_eq!(rig.bridge.next_timeout(), Some(Instant::from_secs(5)));
    rig.now = Instant::from_secs(5);
    rig.bridge.handle_timeout(rig.now);
    let effects = rig.pass();
    let Effect::Notify(OLD, message) = &effects[0] else {
        panic!("{effects:?}")
    };
    let Message::FlowRemoved(removed) = &**message else {
        panic!("{message:?}")
    };
    assert_eq!(removed.reason, FlowRemovedReason::HardTimeout);
    assert_eq!(removed.duration.as_secs(), 5);
    // The flow-mods are logged then.
    assert_eq!(rig.bridge.next_timeout(), Some(Instant::from_secs(60)));
}

#[test]
fn dump_sends_each_rule_once_in_parts() {
    let mut rig = Rig::controlled();
    for port in 0..600_u32 {
        let matching = Match::any().with(flow::Field::InPort, (port + 1).into());
        let command = FlowMod {
            table: TableId(u8::try_from(port % 3).expect("small")),
            ..FlowMod::new(
                FlowModCommand::Add,
                1,
                matching.expect("legal"),
                Instructions::default(),
            )
        };
        assert_eq!(summary(&rig.send(NEW, Message::FlowMod(command))), [""; 0]);
    }
    let dump = |rig: &mut Rig, request: FlowStatsRequest| {
        let request =
            Message::MultipartRequest(MultipartRequest::Flow(FlowFormat::Standard, request));
        let mut effects = rig.send(NEW, request);
        let Some(Effect::Dump(NEW, _, mut dump)) = effects.pop() else {
            panic!("{effects:?}")
        };
        let (mut parts, mut summary) = (Vec::new(), Vec::new());
        while let Some(Message::MultipartReply { reply, more }) = dump.next_part(Instant::START) {
            let MultipartReply::Flow(FlowFormat::Standard, rules) = reply else {
                panic!("{reply:?}")
            };
            parts.push((rules.len(), more));
            summary.extend(rules.iter().map(|rule| (rule.table, rule.matching.clone())));
        }
        let all = summary.len();
        summary.sort();
        summary.dedup();
        assert_eq!(summary.len(), all);
        parts
    };
    let all = dump(&mut rig, FlowStatsRequest::all());
    assert_eq!(all, [(256, true), (256, true), (88, false)]);
    let second = FlowStatsRequest {
        table: TableId(1),
        ..FlowStatsRequest::all()
    };
    assert_eq!(dump(&mut rig, second), [(200, false)]);
    let none = FlowStatsRequest {
        out_group: GroupId(1),
        ..FlowStatsRequest::all()
    };
    assert_eq!(dump(&mut rig, none), [(0, false)]);
}

#[test]
fn requests_for_missing_objects_are_refused_or_empty() {
    let mut rig = Rig::controlled();
    let mut ask = |request| summary(&rig.send(NEW, Message::MultipartRequest(request)));
    assert_eq!(
        ask(MultipartRequest::Port(PortNo(9))),
        ["13 refused: RequestBadPort"]
    );
    let nowhere = FlowStatsRequest {
        table: TableId(254),
        ..FlowStatsRequest::all()
    };
    let refused = ["13 refused: RequestBadTable"];
    assert_eq!(
        ask(MultipartRequest::Flow(FlowFormat::Standard, nowhere)),
        refused
    );
    let queue = |port, queue| {
        MultipartRequest::Queue(QueueStatsRequest {
            port: PortNo(port),
            queue: QueueId(queue),
        })
    };
    assert_eq!(ask(queue(9, 0)), ["13 refused: QueueBadPort"]);
    assert_eq!(ask(queue(1, 0)), ["13 refused: QueueBadQueue"]);
    for request in [
        MultipartRequest::GroupDesc(GroupId::ALL),
        MultipartRequest::MeterFeatures,
        MultipartRequest::TableFeatures(Vec::new()),
        MultipartRequest::Description,
    ] {
        assert_eq!(ask(request), ["13 MultipartReply"]);
    }
    let queues = Message::QueueConfigRequest(PortNo(9));
    assert_eq!(
        summary(&rig.send(NEW, queues)),
        ["13 refused: QueueBadPort"]
    );
    let reply = Message::BarrierReply;
    assert_eq!(
        summary(&rig.send(NEW, reply)),
        ["13 refused: RequestBadType"]
    );
}

#[test]
fn replaced_master_receives_role_status_from_1_3_on() {
    let wish = |generation| {
        Message::RoleRequest(RoleRequest {
            role: Some(Role::Master),
            generation: Some(generation),
            ..RoleRequest::default()
        })
    };
    let silence = vec!["13 RoleReply"];
    let news = vec!["10 told RoleStatus", "13 RoleReply"];
    for (version, told_of) in [
        (Version::V12, &silence),
        (Version::V13, &news),
        (Version::V14, &news),
        (Version::V15, &news),
    ] {
        let mut rig = Rig::new(FailMode::Secure, true);
        for id in [OLD, NEW] {
            let peer = Connection::new(ConnectionKind::Primary, version);
            rig.bridge.handle_up(id, peer);
        }
        assert_eq!(summary(&rig.send(OLD, wish(1))), ["10 RoleReply"]);
        // A repeated request changes nothing.
        assert_eq!(summary(&rig.send(OLD, wish(2))), ["10 RoleReply"]);
        let effects = rig.send(NEW, wish(3));
        assert_eq!(&summary(&effects), told_of, "{version}");
        for effect in &effects {
            if let Effect::Notify(_, message) = effect {
                let lost = Message::RoleStatus(RoleStatus {
                    role: Role::Slave,
                    reason: RoleReason::MasterRequest,
                    generation: Some(3),
                });
                assert_eq!(**message, lost);
            }
        }
    }
}

fn bundle(step: BundleStep) -> Message {
    Message::BundleControl(BundleControl {
        bundle: BundleId(1),
        step,
        flags: BundleFlags::ATOMIC,
        time: None,
    })
}

fn bundled(message: Message) -> Message {
    Message::BundleAdd(BundleAdd {
        bundle: BundleId(1),
        flags: BundleFlags::ATOMIC,
        message: Box::new(message),
        excerpt: Excerpt::of(&[]),
        length: 8,
    })
}

fn no_flood(rig: &Rig) -> Message {
    Message::PortMod(PortMod {
        port: PortNo(1),
        hw_addr: rig.bridge.ports[&PortNo(1)].desc.hw_addr,
        config: PortConfig::NO_FLOOD,
        mask: PortConfig::NO_FLOOD,
        advertise: 0,
    })
}

#[test]
fn bundle_executes_at_commit_and_replies_after_the_workers() {
    let mut rig = Rig::controlled();
    let opened = rig.send(NEW, bundle(BundleStep::OpenRequest));
    assert_eq!(summary(&opened), ["13 BundleControl"]);
    let add = bundled(rule(FlowModCommand::Add, FlowFlags(0)));
    assert_eq!(summary(&rig.send(NEW, add)), [""; 0]);
    rig.pass();
    assert_eq!(rig.rules(), [""; 0]);
    assert_eq!(
        summary(&rig.send(NEW, bundle(BundleStep::CommitRequest))),
        [""; 0]
    );
    assert_eq!(rig.rules().len(), 1);
    assert_eq!(summary(&rig.pass()), ["13 BundleControl"]);
    let again = rig.send(NEW, bundle(BundleStep::CommitRequest));
    assert_eq!(summary(&again), ["13 refused: BundleBadId"]);
}

#[test]
fn failed_bundle_has_no_effects() {
    let mut rig = Rig::controlled();
    rig.send(NEW, rule(FlowModCommand::Add, FlowFlags::SEND_FLOW_REMOVED));
    rig.pass();
    let before = rig.rules();
    let config = rig.bridge.ports[&PortNo(1)].desc.config;
    let no_flood = no_flood(&rig);
    for message in [
        rule(FlowModCommand::Delete, FlowFlags(0)),
        no_flood,
        Message::FlowMod(FlowMod {
            table: TableId::ALL,
            ..FlowMod::new(
                FlowModCommand::Add,
                5,
                Match::any(),
                Instructions::default(),
            )
        }),
    ] {
        assert_eq!(summary(&rig.send(NEW, bundled(message))), [""; 0]);
    }
    let refused = [
        "13 refused: FlowModBadTable",
        "13 refused: BundleMessageFailed",
    ];
    assert_eq!(
        summary(&rig.send(NEW, bundle(BundleStep::CommitRequest))),
        refused
    );
    assert_eq!(summary(&rig.pass()), [""; 0]);
    assert_eq!(rig.rules(), before);
    assert_eq!(rig.bridge.ports[&PortNo(1)].desc.config, config);
}

#[test]
fn bundle_ends_with_its_connection_and_refuses_slaves() {
    let mut rig = Rig::controlled();
    rig.send(NEW, bundled(rule(FlowModCommand::Add, FlowFlags(0))));
    rig.bridge.handle_down(NEW, rig.now);
    rig.bridge
        .handle_up(NEW, Connection::new(ConnectionKind::Primary, Version::V13));
    let unknown = rig.send(NEW, bundle(BundleStep::CommitRequest));
    assert_eq!(summary(&unknown), ["13 refused: BundleBadId"]);
    let slave = RoleRequest {
        role: Some(Role::Slave),
        generation: Some(1),
        ..RoleRequest::default()
    };
    rig.send(NEW, Message::RoleRequest(slave));
    let denied = rig.send(NEW, bundle(BundleStep::OpenRequest));
    assert_eq!(summary(&denied), ["13 refused: RequestIsSlave"]);
}

#[test]
fn set_config_of_old_versions_enables_packet_ins_of_invalid_ttl() {
    let mut rig = Rig::controlled();
    let configure = |rig: &mut Rig, id, invalid_ttl| {
        let config = SwitchConfig {
            invalid_ttl,
            ..SwitchConfig::default()
        };
        assert_eq!(summary(&rig.send(id, Message::SetConfig(config))), [""; 0]);
        let reply = rig.send(id, Message::GetConfigRequest);
        let Some(Effect::Reply(_, _, reply)) = reply.first() else {
            panic!("{reply:?}");
        };
        let Message::GetConfigReply(config) = &**reply else {
            panic!("{reply:?}");
        };
        config.invalid_ttl
    };
    let expired = |rig: &mut Rig| {
        let effects = rig.effects(|bridge, now, effects| {
            bridge.handle_packet_in(miss(Cause::InvalidTtl), vec![0; 60], now, effects);
        });
        summary(&effects)
    };
    assert_eq!(expired(&mut rig), [""; 0]);
    assert!(configure(&mut rig, OLD, true));
    assert_eq!(expired(&mut rig), ["10 told PacketIn"]);
    assert!(!configure(&mut rig, OLD, false));
    // From 1.3 on the asynchronous configuration decides.
    assert!(!configure(&mut rig, NEW, true));
    assert_eq!(expired(&mut rig), [""; 0]);
}

#[test]
fn requests_to_flush_connections_are_accepted() {
    let mut rig = Rig::controlled();
    let flush = openflow::ConntrackFlush {
        zone: Some(5),
        ..Default::default()
    };
    for message in [Message::FlushZone(5), Message::FlushConnections(flush)] {
        assert_eq!(summary(&rig.send(NEW, message)), [""; 0]);
    }
}

#[test]
fn requests_to_flush_connections_remove_those_of_the_zone() {
    use conntrack::{Conntrack, CtCommit, CtPacket, CtRequest, CtZone, HashSeed};

    let tracker = Arc::new(Conntrack::new(HashSeed([1, 2]), 10));
    let packet = CtPacket {
        facts: Some(conntrack::PacketFacts {
            tuple: conntrack::PacketTuple::default(),
            transport: conntrack::TransportFacts::Other,
        }),
        payload: &[],
        metadata: conntrack::CtMetadata::default(),
    };
    for zone in 4..=6 {
        let request = CtRequest {
            zone: CtZone(zone),
            commit: CtCommit::Commit,
            ..CtRequest::default()
        };
        tracker.track(&packet, &request, Instant::START);
    }
    let mut rig = Rig::controlled();
    rig.bridge.set_tracker(Arc::clone(&tracker));
    assert_eq!(tracker.len(), 3);
    assert_eq!(summary(&rig.send(NEW, Message::FlushZone(5))), [""; 0]);
    assert_eq!((tracker.len(), tracker.zone_len(CtZone(5))), (2, 0));
    let all = Message::FlushConnections(openflow::ConntrackFlush::default());
    assert_eq!(summary(&rig.send(NEW, all)), [""; 0]);
    assert!(tracker.is_empty());
}

#[test]
fn refused_rules_are_counted() {
    let mut rig = Rig::controlled();
    let line = "table=0,in_port=1,actions=set_field:0x1->ct_mark";
    let rule = text::parse_flow(FlowModCommand::Add, line).expect(line);
    let refused = ["13 refused: ActionBadSetArgument"];
    assert_eq!(summary(&rig.send(NEW, Message::FlowMod(rule))), refused);
    assert_eq!(rig.bridge.rules_refused(), 1);
}

//! Tests of vacancy events, request forwarding, and bundles of 1.5.

use std::time::Duration;

use flow::{GroupMod, GroupModCommand, TableFlags, TableMod, VacancyLimits, text};
use openflow::{
    AsyncChange, BundleFeaturesRequest, MaskChange, TableFeatures, TableFeaturesCommand,
};

use pipeline::TableMiss;

use super::*;
use config::TableConfig;

const V14: ConnectionId = ConnectionId(14);
const V15: ConnectionId = ConnectionId(15);

/// Returns a bridge under controllers of 1.0, 1.3, 1.4 and 1.5.
fn rig() -> Rig {
    let mut rig = Rig::controlled();
    for (id, version) in [(V14, Version::V14), (V15, Version::V15)] {
        let connection = Connection::new(ConnectionKind::Primary, version);
        rig.bridge.handle_up(id, connection);
    }
    rig.pass();
    rig
}

fn flow(line: &str) -> Message {
    Message::FlowMod(text::parse_flow_line(line).expect(line))
}

fn table_mod(config: TableFlags) -> Message {
    Message::TableMod(TableMod {
        vacancy: Some(VacancyLimits { down: 30, up: 60 }),
        ..TableMod::new(TableId(1), config)
    })
}

#[test]
fn table_status_and_evictions_reach_subscribed_controllers() {
    let mut rig = rig();
    rig.bridge.limit_flows(TableId(1), 4);
    let config = TableFlags::EVICTION.with(TableFlags::VACANCY_EVENTS);
    assert_eq!(summary(&rig.send(V14, table_mod(config))), [""; 0]);
    let rule = |priority: u32| {
        let line = "table=1,hard_timeout=9,send_flow_rem,actions=drop";
        flow(&format!("priority={priority},{line}"))
    };
    for priority in 1..=2 {
        assert_eq!(summary(&rig.send(V15, rule(priority))), [""; 0]);
    }
    let full = ["14 told TableStatus", "15 told TableStatus"];
    assert_eq!(summary(&rig.send(V15, rule(3))), full);
    rig.send(V15, rule(4));
    assert_eq!(summary(&rig.send(V15, rule(5))), [""; 0]);
    let gone = rig.pass();
    assert_eq!(
        summary(&gone).len(),
        4,
        "every controller is notified: {gone:?}"
    );
    let Effect::Notify(_, message) = &gone[3] else {
        panic!("{gone:?}")
    };
    let Message::FlowRemoved(removed) = &**message else {
        panic!("{message:?}")
    };
    assert_eq!(removed.reason, FlowRemovedReason::Eviction);
    let empty = rig.send(V15, flow("delete table=1"));
    assert_eq!(summary(&empty), full);
}

#[test]
fn group_requests_are_forwarded_to_subscribed_controllers() {
    let mut rig = rig();
    let group = Message::GroupMod(GroupMod {
        command: GroupModCommand::Add,
        kind: flow::GroupKind::All,
        group: GroupId(1),
        selection: None,
        command_bucket: base::BucketId::ALL,
        buckets: Vec::new(),
    });
    let wish = Message::SetAsync(AsyncChange {
        active: MaskChange {
            request_forward: Some(1),
            ..MaskChange::default()
        },
        ..AsyncChange::default()
    });
    for id in [OLD, V14, V15] {
        rig.send(id, wish.clone());
    }
    let told_others = ["10 told RequestForward", "15 told RequestForward"];
    assert_eq!(summary(&rig.send(V14, group.clone())), told_others);
    let refused = ["14 refused: GroupModExists"];
    assert_eq!(
        summary(&rig.send(V14, group)),
        refused,
        "only executed requests are forwarded"
    );
}

fn features(table: u8, name: &str) -> TableFeatures {
    TableFeatures {
        table: TableId(table),
        name: name.to_owned(),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        capabilities: TableFlags::default(),
        flows_max: 1_000_000,
        command: TableFeaturesCommand::Modify,
        next: Vec::new(),
    }
}

fn set(tables: Vec<TableFeatures>) -> Message {
    Message::MultipartRequest(MultipartRequest::TableFeatures(tables))
}

#[test]
fn table_features_accept_a_name_and_refuse_other_changes() {
    let mut rig = rig();
    let replied = ["15 MultipartReply"];
    assert_eq!(
        summary(&rig.send(V15, set(vec![features(3, "edge")]))),
        replied
    );
    assert_eq!(rig.bridge.tables.pipeline.table_name(TableId(3)), "edge");
    for (wrong, refusal) in [
        (features(254, "x"), "TableFeaturesBadTable"),
        (
            TableFeatures {
                flows_max: 7,
                ..features(1, "x")
            },
            "TableFeaturesBadSize",
        ),
        (
            TableFeatures {
                capabilities: TableFlags(0x10),
                ..features(1, "x")
            },
            "TableFeaturesBadCapabilities",
        ),
        (
            TableFeatures {
                command: TableFeaturesCommand::Disable,
                ..features(1, "x")
            },
            "TableFeaturesBadCommand",
        ),
    ] {
        let refused = [format!("15 refused: {refusal}")];
        let tables = set(vec![features(2, "two"), wrong]);
        assert_eq!(summary(&rig.send(V15, tables)), refused);
    }
    let too_many = set((0..=254).map(|_| features(1, "x")).collect());
    let refused = ["15 refused: TableFeaturesTooMany"];
    assert_eq!(summary(&rig.send(V15, too_many)), refused);
    assert_eq!(rig.bridge.tables.pipeline.table_name(TableId(2)), "");
    let slave = RoleRequest {
        role: Some(Role::Slave),
        generation: Some(1),
        ..RoleRequest::default()
    };
    rig.send(V15, Message::RoleRequest(slave));
    let denied = ["15 refused: RequestIsSlave"];
    assert_eq!(
        summary(&rig.send(V15, set(vec![features(2, "two")]))),
        denied
    );
    assert_eq!(
        summary(&rig.send(V15, set(Vec::new()))),
        replied,
        "a slave may read"
    );
}

#[test]
fn multipart_requests_are_joined_and_limited() {
    let mut rig = rig();
    let part = |table, name: &str| {
        Message::MultipartFragment(MultipartRequest::TableFeatures(vec![features(table, name)]))
    };
    assert_eq!(summary(&rig.send(V15, part(1, "one"))), [""; 0]);
    assert_eq!(summary(&rig.send(V15, part(2, "two"))), [""; 0]);
    assert_eq!(rig.bridge.tables.pipeline.table_name(TableId(1)), "");
    rig.send(V15, set(vec![features(3, "three")]));
    let name = |rig: &Rig, table| rig.bridge.tables.pipeline.table_name(TableId(table));
    assert_eq!(
        (name(&rig, 1), name(&rig, 3)),
        ("one".to_owned(), "three".to_owned())
    );
    let overflow = ["15 refused: RequestMultipartOverflow"];
    let many = vec![features(1, "x"); 1024];
    let many = Message::MultipartFragment(MultipartRequest::TableFeatures(many));
    assert_eq!(summary(&rig.send(V15, many)), [""; 0]);
    assert_eq!(summary(&rig.send(V15, part(1, "x"))), overflow);
    for xid in 1..=5_u32 {
        let mut received = ReceivedMessage {
            xid: Xid(xid),
            message: part(1, "x"),
            excerpt: Excerpt::of(&[0; 8]),
        };
        let effects = rig.effects(|bridge, now, effects| {
            bridge.handle_message(V15, &mut received, now, effects);
        });
        let expected = if xid <= 4 { &[][..] } else { &overflow };
        assert_eq!(summary(&effects), expected);
    }
}

fn add(message: Message, flags: BundleFlags) -> Message {
    Message::BundleAdd(BundleAdd {
        bundle: BundleId(1),
        flags,
        message: Box::new(message),
        excerpt: Excerpt::of(&[0; 8]),
        length: 100,
    })
}

fn step(step: BundleStep, flags: BundleFlags, time: Option<Duration>) -> Message {
    Message::BundleControl(BundleControl {
        bundle: BundleId(1),
        step,
        flags,
        time: time.map(WallTime),
    })
}

fn packet_out(port: u32) -> Message {
    Message::PacketOut(PacketOut {
        buffer: None,
        registers: PipelineFields::new(PortNo::CONTROLLER),
        actions: vec![Action::output(PortNo(port))],
        data: vec![0; 60],
    })
}

#[test]
fn bundle_packet_outs_run_at_their_place_or_not_at_all() {
    let mut rig = rig();
    let flags = BundleFlags::ATOMIC;
    let commit = || step(BundleStep::CommitRequest, flags, None);
    rig.send(V14, add(flow("actions=output:2"), flags));
    rig.send(V14, add(packet_out(PortNo::TABLE.0), flags));
    rig.send(V14, add(flow("delete"), flags));
    assert_eq!(summary(&rig.send(V14, commit())), ["out of 2: 60 bytes"]);
    assert_eq!(summary(&rig.pass()), ["14 BundleControl"]);
    rig.send(V14, add(packet_out(1), flags));
    rig.send(V14, add(flow("table=9,actions=goto_table:9"), flags));
    let failed = [
        "14 refused: InstructionBadTable",
        "14 refused: BundleMessageFailed",
    ];
    assert_eq!(summary(&rig.send(V14, commit())), failed);
}

#[test]
fn scheduled_bundle_waits_for_its_execution_time() {
    let mut rig = rig();
    let flags = BundleFlags::TIME;
    let second = Duration::from_secs(1);
    rig.send(V15, add(flow("actions=output:2"), flags));
    let commit = |after| step(BundleStep::CommitRequest, flags, Some(STARTED + after));
    assert_eq!(summary(&rig.send(V15, commit(second))), [""; 0]);
    assert_eq!(rig.bridge.next_timeout(), Some(Instant::START + second));
    rig.now = Instant::START + second;
    assert!(rig.rules().is_empty(), "before the execution time");
    let now = rig.now;
    rig.bridge.handle_timeout(now);
    assert_eq!(rig.rules().len(), 1);
    assert_eq!(summary(&rig.pass()), ["15 BundleControl"]);
    // A bundle that fails at its execution time is refused at that time.
    rig.send(V15, add(flow("table=9,actions=goto_table:9"), flags));
    rig.send(V15, commit(second * 2));
    rig.bridge.handle_timeout(now + second);
    let failed = [
        "15 refused: InstructionBadTable",
        "15 refused: BundleMessageFailed",
    ];
    assert_eq!(summary(&rig.pass()), failed);
}

#[test]
fn scheduled_bundle_refuses_bad_times_and_can_be_discarded() {
    let mut rig = rig();
    let second = Duration::from_secs(1);
    rig.now = Instant::START + second * 10;
    let commit = |flags, time| step(BundleStep::CommitRequest, flags, time);
    let time = |rig: &mut Rig, flags, time| {
        rig.send(V15, add(flow("actions=output:2"), flags));
        let answer = summary(&rig.send(V15, commit(flags, time)));
        rig.send(V15, step(BundleStep::DiscardRequest, flags, None));
        answer
    };
    let (plain, timed) = (BundleFlags::default(), BundleFlags::TIME);
    let present = STARTED + second * 10;
    let refused = |refusal: &str| [format!("15 refused: {refusal}")];
    let bad_flags = refused("BundleBadFlags");
    assert_eq!(time(&mut rig, timed, None), bad_flags);
    assert_eq!(time(&mut rig, plain, Some(present)), bad_flags);
    let far = Some(present + second * 3601);
    assert_eq!(time(&mut rig, timed, far), refused("BundleScheduleFuture"));
    let deferred_effects = Some(present.saturating_sub(second));
    assert_eq!(
        time(&mut rig, timed, deferred_effects),
        refused("BundleSchedulePast")
    );
    assert_eq!(time(&mut rig, timed, Some(present + second)), [""; 0]);
    let end = rig.now + second * 5;
    rig.bridge.handle_timeout(end);
    assert!(rig.rules().is_empty(), "it was discarded");
    let unknown = rig.send(V14, add(flow("actions=drop"), timed));
    assert_eq!(
        summary(&unknown),
        ["14 refused: BundleBadFlags"],
        "1.4 has no times"
    );
    // The end of a connection discards its scheduled bundles.
    rig.send(V15, add(flow("actions=output:2"), timed));
    rig.send(V15, commit(timed, Some(present + second)));
    rig.bridge.handle_down(V15, rig.now);
    rig.bridge.handle_timeout(end);
    assert!(rig.rules().is_empty());
}

#[test]
fn scheduled_bundles_are_limited_and_report_features() {
    let mut rig = rig();
    let flags = BundleFlags::TIME;
    let commit = || {
        let time = STARTED + Duration::from_secs(5);
        step(BundleStep::CommitRequest, flags, Some(time))
    };
    for _ in 0..64 {
        rig.send(V15, add(flow("actions=output:2"), flags));
        assert_eq!(summary(&rig.send(V15, commit())), [""; 0]);
    }
    rig.send(V15, add(flow("actions=output:2"), flags));
    let full = ["15 refused: BundleOutOfBundles"];
    assert_eq!(summary(&rig.send(V15, commit())), full);
    let ask = |flags| {
        let asked = BundleFeaturesRequest { flags, times: None };
        Message::MultipartRequest(MultipartRequest::BundleFeatures(asked))
    };
    let effects = rig.send(V15, ask(BundleFeaturesRequest::TIMESTAMP));
    let Effect::Reply(_, _, reply) = &effects[0] else {
        panic!("{effects:?}")
    };
    let Message::MultipartReply {
        reply: MultipartReply::BundleFeatures(features),
        ..
    } = &**reply
    else {
        panic!("{reply:?}")
    };
    assert_eq!(features.capabilities, BundleFlags(7));
    assert_eq!(
        features.times.expect("they are kept").now,
        WallTime(STARTED)
    );
    let refused = ["15 refused: BundleScheduleUnsupported"];
    let set = rig.send(V15, ask(BundleFeaturesRequest::SET_SCHEDULE));
    assert_eq!(summary(&set), refused);
}

#[test]
fn refused_learn_requests_are_counted() {
    let mut rig = rig();
    rig.bridge.limit_flows(TableId(1), 1);
    let learn = "actions=learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[])";
    rig.send(V15, flow(learn));
    let mut learn = |source: u8| {
        let mut data = vec![0; 60];
        data[11] = source;
        let message = Message::PacketOut(PacketOut {
            buffer: None,
            registers: PipelineFields::new(PortNo(1)),
            actions: text::parse_actions("output:table").expect("legal"),
            data,
        });
        rig.send(V15, message);
        (rig.rules().len(), rig.bridge.learn_refused())
    };
    assert_eq!(learn(1), (2, 0));
    assert_eq!(learn(2), (2, 1), "the table is full");
    assert_eq!(learn(1), (2, 1), "an existing rule needs no room");
}

#[test]
fn table_mod_of_openflow_11_sets_the_treatment_of_misses() {
    let mut rig = rig();
    let id = ConnectionId(11);
    let connection = Connection::new(ConnectionKind::Primary, Version::V11);
    rig.bridge.handle_up(id, connection);
    let set = |rig: &mut Rig, config| {
        let command = TableMod::new(TableId::ALL, TableFlags(config));
        let refused = summary(&rig.send(id, Message::TableMod(command)));
        (refused, rig.bridge.tables.pipeline.table_miss(TableId(7)))
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(set(&mut rig, 1), (none.clone(), TableMiss::Continue));
    assert_eq!(set(&mut rig, 2), (none.clone(), TableMiss::Drop));
    let refused = vec!["11 refused: TableModBadConfig".to_owned()];
    assert_eq!(set(&mut rig, 3), (refused, TableMiss::Drop));
    assert_eq!(set(&mut rig, 0), (none, TableMiss::Controller));
    // In later versions the bits have no meaning.
    let later = TableMod::new(TableId::ALL, TableFlags(1));
    assert_eq!(summary(&rig.send(V14, Message::TableMod(later))), [""; 0]);
    let miss = rig.bridge.tables.pipeline.table_miss(TableId(7));
    assert_eq!(miss, TableMiss::Controller);
}

#[test]
fn idle_bundle_expires_with_an_error_for_its_opening() {
    let mut rig = rig();
    let flags = BundleFlags::ORDERED;
    let second = Duration::from_secs(1);
    let opened = rig.send(V14, step(BundleStep::OpenRequest, flags, None));
    let Effect::Reply(_, _, reply) = &opened[0] else {
        panic!("{opened:?}")
    };
    let Message::BundleControl(reply) = &**reply else {
        panic!("{reply:?}")
    };
    assert_eq!(
        (reply.step, reply.flags),
        (BundleStep::OpenReply, BundleFlags::default()),
        "replies have no flags"
    );
    assert_eq!(rig.bridge.next_timeout(), Some(rig.now + second * 10));
    rig.now += second * 8;
    rig.send(V14, add(flow("actions=output:2"), flags));
    // The addition has kept the bundle alive.
    rig.now += second * 8;
    rig.bridge.handle_timeout(rig.now);
    assert_eq!(summary(&rig.pass()), [""; 0]);
    rig.now += second * 2;
    rig.bridge.handle_timeout(rig.now);
    let effects = rig.pass();
    let [Effect::Refuse(V14, Xid(7), Refusal::BundleTimeout, excerpt)] = &effects[..] else {
        panic!("{effects:?}")
    };
    let mut open = Vec::new();
    let encoded =
        step(BundleStep::OpenRequest, flags, None).encode(Xid(7), Version::V14, &mut open);
    assert!(encoded.is_ok() && excerpt.as_bytes() == open);
    let commit = step(BundleStep::CommitRequest, flags, None);
    let unknown = ["14 refused: BundleBadId"];
    assert_eq!(summary(&rig.send(V14, commit)), unknown);
    // The operator can set the time.
    rig.bridge.set_bundle_timeout(Some(second * 2));
    rig.send(V14, step(BundleStep::OpenRequest, flags, None));
    rig.bridge.handle_timeout(rig.now + second * 2);
    assert_eq!(summary(&rig.pass()), ["14 refused: BundleTimeout"]);
}

#[test]
fn bundle_refuses_rules_of_the_internal_table_at_once() {
    let mut rig = rig();
    let flags = BundleFlags::ORDERED;
    let refused = ["14 refused: RequestPermission"];
    let internal = || flow("table=254,actions=drop");
    assert_eq!(summary(&rig.send(V14, add(internal(), flags))), refused);
    assert_eq!(summary(&rig.send(V14, internal())), refused);
}

#[test]
fn table_configuration_of_the_operator_is_kept_from_controllers() {
    let mut rig = rig();
    let config = TableConfig {
        name: "one".to_owned(),
        limit: Some(1),
        eviction: true,
        ..TableConfig::default()
    };
    rig.bridge.configure_table(TableId(1), &config, rig.now);
    let refused = ["15 refused: TableFeaturesPermission"];
    let rename = set(vec![features(1, "two")]);
    assert_eq!(summary(&rig.send(V15, rename)), refused);
    // An OpenFlow table-mod does not disable the operator's eviction.
    rig.send(V14, table_mod(TableFlags::default()));
    rig.send(V15, flow("table=1,hard_timeout=1,actions=drop"));
    let evicting = flow("table=1,priority=1,hard_timeout=1,actions=drop");
    assert_eq!(summary(&rig.send(V15, evicting)), [""; 0]);
    rig.bridge
        .configure_table(TableId(1), &TableConfig::default(), rig.now);
    let rename = set(vec![features(1, "two")]);
    rig.send(V15, rename);
    assert_eq!(rig.bridge.tables.pipeline.table_name(TableId(1)), "two");
}

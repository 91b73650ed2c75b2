//! Tests of controller status messages.

use flow::ShortId;
use openflow::{AsyncChange, ControlChannelStatus, ControllerReason, ControllerStatus, MaskChange};

use super::*;
use crate::connection::Auxiliary;

const FIRST: ConnectionId = ConnectionId(21);
const SECOND: ConnectionId = ConnectionId(22);
const TOOL: ConnectionId = ConnectionId(23);

const A: &str = "tcp:192.0.2.1:6653";
const B: &str = "tcp:192.0.2.2:6653";

/// Returns a bridge with two configured controllers, of which the first is connected, and a
/// connected tool that receives asynchronous messages.
fn rig() -> Rig {
    let mut rig = Rig::new(FailMode::Secure, true);
    rig.bridge.handle_controller_added(A);
    rig.bridge.handle_controller_added(B);
    connect(&mut rig, FIRST, A);
    let mut tool = Connection::new(ConnectionKind::Service, Version::V15);
    tool.miss_send_len = 128;
    rig.bridge.handle_up(TOOL, tool);
    assert_eq!(statuses(&rig.pass()), [""; 0], "no controller is connected");
    rig
}

fn connect(rig: &mut Rig, id: ConnectionId, uri: &str) {
    let connection = Connection {
        uri: Some(uri.into()),
        ..Connection::new(ConnectionKind::Primary, Version::V15)
    };
    rig.bridge.handle_up(id, connection);
}

/// Formats controller status messages with their recipients.
fn statuses(effects: &[Effect]) -> Vec<String> {
    let one = |effect: &Effect| match effect {
        Effect::Notify(id, message) => match &**message {
            Message::ControllerStatus(status) => Some(format!("{} {}", id.0, words(status))),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(one).collect()
}

fn words(status: &ControllerStatus) -> String {
    let ControllerStatus {
        short_id,
        role,
        reason,
        channel,
        uri,
    } = status;
    let id = short_id.map_or(0, ShortId::number);
    let uri = uri.as_deref().expect("always present");
    format!("{uri} {id} {role:?} {channel:?} {reason:?}")
}

fn role(role: Option<Role>, generation: u64, short_id: u16) -> Message {
    Message::RoleRequest(RoleRequest {
        role,
        generation: Some(generation),
        short_id: ShortId::new(short_id),
    })
}

fn list(rig: &mut Rig) -> Vec<String> {
    let question = Message::MultipartRequest(MultipartRequest::ControllerStatus);
    let effects = rig.send(TOOL, question);
    let Effect::Reply(_, _, reply) = &effects[0] else {
        panic!("{effects:?}")
    };
    let Message::MultipartReply { reply, .. } = &**reply else {
        panic!("{reply:?}")
    };
    let MultipartReply::ControllerStatus(statuses) = reply else {
        panic!("{reply:?}")
    };
    statuses.iter().map(words).collect()
}

#[test]
fn controller_status_reports_connections_and_configuration() {
    let mut rig = rig();
    connect(&mut rig, SECOND, B);
    let up = format!("{B} 0 Equal Up ChannelStatus");
    assert_eq!(
        statuses(&rig.pass()),
        [format!("21 {up}"), format!("23 {up}")]
    );

    rig.send(SECOND, role(Some(Role::Slave), 1, 0));
    rig.bridge.handle_down(SECOND, rig.now);
    let down = format!("{B} 0 Slave Down ChannelStatus");
    let summary = statuses(&rig.pass());
    assert_eq!(summary, [format!("21 {down}"), format!("23 {down}")]);

    rig.bridge.handle_controller_removed(B);
    rig.bridge.handle_controller_added("unix:c");
    let removed = format!("{B} 0 Equal Down Removed");
    let added = "unix:c 0 Equal Down Added";
    let summary = statuses(&rig.pass());
    let wanted = [
        format!("21 {removed}"),
        format!("23 {removed}"),
        format!("21 {added}"),
        format!("23 {added}"),
    ];
    assert_eq!(summary, wanted);

    // A controller that is no longer configured is not reported, nor is a tool.
    rig.bridge.handle_controller_removed(A);
    rig.pass();
    rig.bridge.handle_down(FIRST, rig.now);
    rig.bridge.handle_down(TOOL, rig.now);
    assert_eq!(statuses(&rig.pass()), [""; 0]);
}

#[test]
fn controller_status_reports_roles_and_unique_short_ids() {
    let mut rig = rig();
    connect(&mut rig, SECOND, B);
    rig.pass();
    let summary = statuses(&rig.send(FIRST, role(Some(Role::Master), 1, 7)));
    let wanted = [
        format!("22 {A} 7 Master Up Role"),
        format!("23 {A} 7 Master Up Role"),
        format!("22 {A} 7 Master Up ShortId"),
        format!("23 {A} 7 Master Up ShortId"),
    ];
    assert_eq!(summary, wanted);

    let refused = rig.send(SECOND, role(Some(Role::Master), 2, 7));
    assert_eq!(super::summary(&refused), ["22 refused: RoleIdInUse"]);
    assert_eq!(
        list(&mut rig),
        [
            format!("{A} 7 Master Up Request"),
            format!("{B} 0 Equal Up Request")
        ],
        "nothing of it was done"
    );

    // A new master changes two roles; each is reported to all but the connection itself.
    let summary = statuses(&rig.send(SECOND, role(Some(Role::Master), 2, 8)));
    let wanted = [
        format!("22 {A} 7 Slave Up Role"),
        format!("23 {A} 7 Slave Up Role"),
        format!("21 {B} 8 Master Up Role"),
        format!("23 {B} 8 Master Up Role"),
        format!("21 {B} 8 Master Up ShortId"),
        format!("23 {B} 8 Master Up ShortId"),
    ];
    assert_eq!(summary, wanted);

    // A request without a short id keeps the present one; a closed connection frees it.
    rig.send(SECOND, role(None, 2, 0));
    rig.bridge.handle_down(FIRST, rig.now);
    rig.pass();
    assert_eq!(
        list(&mut rig),
        [
            format!("{A} 0 Equal Down Request"),
            format!("{B} 8 Master Up Request")
        ]
    );
    let taken = rig.send(SECOND, role(None, 2, 7));
    assert_eq!(statuses(&taken), [format!("23 {B} 7 Master Up ShortId")]);
}

#[test]
fn controller_status_respects_the_async_configuration() {
    let mut rig = rig();
    let change = AsyncChange {
        active: MaskChange {
            controller_status: Some(1 << 2),
            ..MaskChange::default()
        },
        ..AsyncChange::default()
    };
    rig.send(TOOL, Message::SetAsync(change));
    connect(&mut rig, SECOND, B);
    assert_eq!(statuses(&rig.pass()).len(), 1, "the first controller alone");
    let summary = statuses(&rig.send(SECOND, role(Some(Role::Slave), 1, 9)));
    let roles = summary.iter().filter(|line| line.starts_with("23"));
    assert_eq!(roles.count(), 1, "its role but not its id: {summary:?}");
    let status = ControllerStatus {
        short_id: None,
        role: Role::Equal,
        reason: ControllerReason::Request,
        channel: ControlChannelStatus::Up,
        uri: None,
    };
    let sent = rig.send(TOOL, Message::ControllerStatus(status));
    assert_eq!(super::summary(&sent), ["23 refused: RequestBadType"]);
}

/// Returns a bridge under a controller with two auxiliary connections.
fn rig_with_auxiliaries() -> (Rig, [ConnectionId; 2]) {
    let mut rig = Rig::new(FailMode::Secure, true);
    rig.bridge.handle_up(
        FIRST,
        Connection::new(ConnectionKind::Primary, Version::V13),
    );
    let auxiliaries = [1, 2].map(|number| {
        let kind = ConnectionKind::Auxiliary(Auxiliary {
            main: FIRST,
            number,
        });
        let id = ConnectionId(FIRST.0 + 100 + u64::from(number));
        rig.bridge
            .handle_up(id, Connection::new(kind, Version::V13));
        id
    });
    rig.pass();
    (rig, auxiliaries)
}

/// Returns the connections that carry frames with these UDP ports.
fn carriers(rig: &mut Rig, ports: std::ops::Range<u16>) -> Vec<u64> {
    let summary = ports.map(|port| {
        let text = format!("eth / ipv4 / udp(src={port})");
        let stack: packet::build::Stack = text.parse().expect("legal");
        let frame = stack.build().bytes().to_vec();
        let effects = rig.effects(|bridge, now, effects| {
            bridge.handle_packet_in(miss(Cause::MissRule), frame, now, effects);
        });
        match &effects[..] {
            [Effect::Notify(id, _)] => id.0,
            other => panic!("not exactly one packet-in: {other:?}"),
        }
    });
    summary.collect()
}

#[test]
fn packet_ins_of_a_flow_use_one_auxiliary_connection() {
    let (mut rig, [one, two]) = rig_with_auxiliaries();
    let first = carriers(&mut rig, 1..64);
    assert!(first.contains(&one.0) && first.contains(&two.0));
    assert!(!first.contains(&FIRST.0), "the main one is for the rest");
    assert_eq!(
        carriers(&mut rig, 1..64),
        first,
        "a flow keeps its connection"
    );
    rig.bridge.handle_down(one, rig.now);
    assert!(carriers(&mut rig, 1..64).iter().all(|id| *id == two.0));
    rig.bridge.handle_down(two, rig.now);
    assert!(carriers(&mut rig, 1..64).iter().all(|id| *id == FIRST.0));
}

#[test]
fn auxiliary_connections_share_role_and_settings() {
    let (mut rig, [one, two]) = rig_with_auxiliaries();
    let port = rig.add_port(4);
    assert_eq!(summary(&port), ["21 told PortStatus"; 2]);
    let effects = rig.send(two, Message::FeaturesRequest);
    let Effect::Reply(to, _, reply) = &effects[0] else {
        panic!("{effects:?}")
    };
    let Message::FeaturesReply(reply) = &**reply else {
        panic!("{reply:?}")
    };
    assert_eq!((*to, reply.features.auxiliary_id), (two, 2));
    let asked = rig.send(one, role(Some(Role::Slave), 1, 0));
    assert_eq!(summary(&asked), ["122 RoleReply"]);
    for id in [FIRST, one, two] {
        let refused = rig.send(id, rule(FlowModCommand::Add, FlowFlags(0)));
        let wanted = format!("{} refused: RequestIsSlave", id.0);
        assert_eq!(summary(&refused), [wanted]);
    }
    // An auxiliary connection without its main connection has no effect.
    rig.bridge.handle_down(FIRST, rig.now);
    let refused = rig.send(one, rule(FlowModCommand::Add, FlowFlags(0)));
    assert_eq!(summary(&refused), ["122 refused: RequestPermission"]);
}

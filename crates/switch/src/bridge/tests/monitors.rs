//! Tests of flow monitors; the test takes the part of the socket.

use flow::{
    FlowEvent, FlowRemovedReason, FlowUpdate, Monitor, MonitorFlags, MonitorId, MonitorRequest,
    text,
};

use super::*;
use crate::monitors::{MONITORS_MAX, PAUSED_MAX, WAITING_MAX};

const THIRD: ConnectionId = ConnectionId(15);

/// All events, as `ovs-ofctl` requests them.
const ALL: MonitorFlags = MonitorFlags(0x1f | MonitorFlags::NO_ABBREV.0);

fn monitor(id: u32, flags: MonitorFlags, selection: &str) -> Monitor {
    let flow = text::parse_flow(FlowModCommand::Delete, selection).expect(selection);
    Monitor {
        id: MonitorId(id),
        flags,
        request: FlowStatsRequest {
            table: flow.table,
            out_port: flow.out_port,
            matching: flow.matching,
            ..FlowStatsRequest::all()
        },
    }
}

fn request(requests: Vec<MonitorRequest>) -> Message {
    Message::MultipartRequest(MultipartRequest::FlowMonitor(requests))
}

impl Rig {
    fn add_monitor(&mut self, id: ConnectionId, monitor: Monitor) -> Vec<String> {
        let effects = self.send(id, request(vec![MonitorRequest::Add(monitor)]));
        self.updates(id, effects)
    }

    /// Returns the updates to one peer about a flow-mod of another.
    fn updates_about(&mut self, by: ConnectionId, line: &str, to: ConnectionId) -> Vec<String> {
        let command = text::parse_flow_line(line).expect(line);
        let effects = self.send(by, Message::FlowMod(command));
        self.updates(to, effects)
    }

    /// Returns the updates to a peer that reads everything.
    fn updates(&self, to: ConnectionId, effects: Vec<Effect>) -> Vec<String> {
        let now = self.now;
        let mut updates = Vec::new();
        for effect in effects {
            match effect {
                Effect::Dump(id, _, mut dump) | Effect::Update(id, mut dump) if id == to => {
                    while let Some(part) = dump.next_part(now) {
                        updates.extend(words(&part));
                    }
                }
                Effect::Reply(id, _, message) | Effect::Pause(id, message) if id == to => {
                    updates.extend(words(&message));
                }
                Effect::Refuse(id, _, refusal, _) if id == to => {
                    updates.push(format!("{refusal:?}"));
                }
                _ => {}
            }
        }
        updates
    }
}

/// Formats a message with one word for each update.
fn words(message: &Message) -> Vec<String> {
    let Message::MultipartReply {
        reply: MultipartReply::FlowMonitor(updates),
        ..
    } = message
    else {
        return vec![format!("{message:?}")];
    };
    let word = |update: &FlowUpdate| match update {
        FlowUpdate::Full(change) => {
            let event = match change.event {
                FlowEvent::Removed(FlowRemovedReason::Delete) => "Removed".to_owned(),
                event => format!("{event:?}"),
            };
            let does = change.instructions.apply.len();
            format!("{event} {} does {does}", change.priority)
        }
        FlowUpdate::Abbrev(xid) => format!("Abbrev {}", xid.0),
        FlowUpdate::Paused | FlowUpdate::Resumed => format!("{update:?}"),
    };
    updates.iter().map(word).collect()
}

#[test]
fn monitor_reports_initial_rules_and_changes() {
    let mut rig = Rig::controlled();
    rig.updates_about(OLD, "priority=1,actions=output:1", NEW);
    assert_eq!(
        rig.add_monitor(NEW, monitor(1, ALL, "")),
        ["Initial 1 does 1"]
    );
    let add = "priority=2,in_port=1,actions=output:2";
    assert_eq!(rig.updates_about(OLD, add, NEW), ["Added 2 does 1"]);
    assert_eq!(
        rig.updates_about(NEW, "modify actions=drop", NEW),
        ["Modified 2 does 0", "Modified 1 does 0"]
    );
    assert_eq!(
        rig.updates_about(OLD, "delete in_port=1", NEW),
        ["Removed 2 does 0"]
    );
    assert_eq!(
        rig.updates_about(OLD, "delete", OLD),
        [""; 0],
        "it has no monitors"
    );
}

#[test]
fn monitor_reports_only_selected_events() {
    let mut rig = Rig::controlled();
    let flags = MonitorFlags::ADD.with(MonitorFlags::REMOVED);
    assert_eq!(
        rig.add_monitor(NEW, monitor(1, flags, "table=1,out_port=2,tcp")),
        [""; 0]
    );
    for (line, updates) in [
        ("table=0,tcp,actions=output:2", &[][..]),
        ("table=1,udp,actions=output:2", &[]),
        ("table=1,tcp,actions=output:1", &[]),
        (
            "table=1,priority=9,tcp,actions=output:2",
            &["Added 9 does 0"],
        ),
        // The rule sent to the port until now.
        (
            "table=1,priority=9,tcp,actions=output:1",
            &["Added 9 does 0"],
        ),
        ("modify table=1,tcp,actions=output:2", &[]),
        (
            "delete table=1",
            &["Removed 32768 does 0", "Removed 9 does 0"],
        ),
    ] {
        assert_eq!(rig.updates_about(OLD, line, NEW), updates, "{line}");
    }
}

#[test]
fn monitor_abbreviates_own_changes_once_per_message() {
    let mut rig = Rig::controlled();
    let flags = MonitorFlags::ADD.with(MonitorFlags::REMOVED);
    rig.add_monitor(NEW, monitor(1, flags, ""));
    rig.updates_about(OLD, "priority=1,actions=drop", NEW);
    let two = "priority=2,actions=drop";
    assert_eq!(rig.updates_about(NEW, two, NEW), ["Abbrev 7"]);
    assert_eq!(
        rig.updates_about(NEW, "delete", NEW),
        ["Abbrev 7"],
        "two rules were removed"
    );
    let only = flags.with(MonitorFlags::ONLY_OWN);
    let modify = |flags| MonitorRequest::Modify(monitor(1, flags, ""));
    // Open vSwitch and its tools encode "in full" in this way.
    rig.send(NEW, request(vec![modify(only)]));
    assert_eq!(rig.updates_about(OLD, two, NEW), ["Added 2 does 0"]);
    assert_eq!(rig.updates_about(NEW, two, NEW), ["Added 2 does 0"]);
    rig.send(
        NEW,
        request(vec![modify(only.with(MonitorFlags::NO_ABBREV))]),
    );
    assert_eq!(rig.updates_about(OLD, two, NEW), [""; 0]);
    assert_eq!(rig.updates_about(NEW, two, NEW), ["Added 2 does 0"]);
}

#[test]
fn monitor_requests_are_atomic_and_limited() {
    let mut rig = Rig::controlled();
    let quiet = |id| monitor(id, MonitorFlags::ADD, "");
    let ask = |rig: &mut Rig, requests| {
        let effects = rig.send(NEW, request(requests));
        rig.updates(NEW, effects)
    };
    use MonitorRequest::{Add, Delete, Modify};
    let twice = vec![Add(quiet(1)), Add(quiet(1))];
    assert_eq!(ask(&mut rig, twice), ["MonitorExists"]);
    let unknown = ["MonitorUnknownMonitor"];
    assert_eq!(
        ask(&mut rig, vec![Delete(MonitorId(1))]),
        unknown,
        "none was set up"
    );
    assert_eq!(ask(&mut rig, vec![Modify(quiet(1))]), unknown);
    let mut nowhere = quiet(1);
    nowhere.request.table = TableId(254);
    assert_eq!(ask(&mut rig, vec![Add(nowhere)]), ["MonitorBadTable"]);
    let mut nothing = quiet(1);
    nothing.request.out_port = PortNo(0);
    assert_eq!(ask(&mut rig, vec![Add(nothing)]), ["MonitorBadOut"]);
    for id in 0..64 {
        assert_eq!(ask(&mut rig, vec![Add(quiet(id))]), [""; 0]);
    }
    assert_eq!(MONITORS_MAX, 64);
    assert_eq!(ask(&mut rig, vec![Add(quiet(64))]), ["MonitorUnknown"]);
    assert_eq!(
        summary(&rig.send(NEW, Message::MonitorCancel(MonitorId(3)))),
        [""; 0]
    );
    assert_eq!(ask(&mut rig, vec![Add(quiet(64))]), [""; 0]);
}

#[test]
fn monitor_updates_precede_the_barrier_reply_and_omit_failed_bundles() {
    let mut rig = Rig::controlled();
    rig.add_monitor(NEW, monitor(1, ALL, ""));
    rig.pass();
    let rule = text::parse_flow_line("actions=drop").expect("a flow");
    let mut effects = rig.send(OLD, Message::FlowMod(rule.clone()));
    effects.extend(rig.send(NEW, Message::BarrierRequest));
    effects.extend(rig.pass());
    assert_eq!(summary(&effects), ["13 update", "13 BarrierReply"]);
    let bad = FlowMod {
        table: TableId(255),
        ..rule.clone()
    };
    for command in [rule, bad] {
        let add = BundleAdd {
            bundle: BundleId(1),
            flags: BundleFlags::default(),
            message: Box::new(Message::FlowMod(command)),
            excerpt: Excerpt::of(&[0; 8]),
            length: 100,
        };
        rig.send(NEW, Message::BundleAdd(add));
    }
    let commit = BundleControl {
        bundle: BundleId(1),
        step: BundleStep::CommitRequest,
        flags: BundleFlags::default(),
        time: None,
    };
    let effects = rig.send(NEW, Message::BundleControl(commit));
    let failed = ["FlowModBadTable", "BundleMessageFailed"];
    assert_eq!(rig.updates(NEW, effects), failed);
    let effects = rig.pass();
    assert_eq!(rig.updates(NEW, effects), [""; 0]);
}

#[test]
fn monitor_reports_the_reason_of_a_removal() {
    let mut rig = Rig::controlled();
    rig.add_monitor(NEW, monitor(1, ALL, ""));
    rig.updates_about(OLD, "priority=1,hard_timeout=1,actions=drop", NEW);
    rig.now += std::time::Duration::from_secs(2);
    let now = rig.now;
    rig.bridge.handle_timeout(now);
    let effects = rig.pass();
    assert_eq!(rig.updates(NEW, effects), ["Removed(HardTimeout) 1 does 0"]);
}

#[test]
fn slow_reader_receives_the_difference_after_it_has_read() {
    let mut rig = Rig::controlled();
    let later = Connection::new(ConnectionKind::Primary, Version::V14);
    rig.bridge.handle_up(THIRD, later);
    for id in [NEW, THIRD] {
        rig.updates_about(OLD, "priority=1,actions=drop", NEW);
        rig.updates_about(OLD, "priority=2,in_port=1,actions=drop", NEW);
        rig.add_monitor(id, monitor(1, ALL, ""));
        let effects = rig.effects(|bridge, _, effects| bridge.handle_slow(id, effects));
        let paused = rig.updates(id, effects);
        let again = rig.effects(|bridge, _, effects| bridge.handle_slow(id, effects));
        assert!(again.is_empty(), "it is paused already");
        for line in [
            "priority=3,in_port=2,actions=drop",
            "delete in_port=2",
            "delete in_port=1",
            "priority=4,in_port=3,actions=output:1",
            "modify_strict priority=1,actions=output:1",
        ] {
            assert_eq!(rig.updates_about(OLD, line, id), [""; 0], "{line}");
        }
        let effects = rig.effects(|bridge, _, effects| bridge.handle_drained(id, effects));
        let resumed = rig.updates(id, effects);
        let changes = ["Added 4 does 1", "Removed 2 does 0", "Modified 1 does 1"];
        assert_eq!(resumed[..3], changes);
        let words = match id {
            THIRD => ("Paused", "Resumed"),
            _ => ("MonitorPaused", "MonitorResumed"),
        };
        assert_eq!((paused[0].as_str(), resumed[3].as_str()), words);
        assert_eq!(
            rig.updates_about(OLD, "delete", id).len(),
            2,
            "all updates are sent again"
        );
        rig.bridge.handle_down(id, rig.now);
    }
    assert_eq!(WAITING_MAX, 4096);
}

#[test]
fn slow_reader_is_disconnected_if_too_many_are_paused() {
    let mut rig = Rig::controlled();
    let ids: Vec<_> = (100..).take(PAUSED_MAX + 1).map(ConnectionId).collect();
    for id in &ids {
        let connection = Connection::new(ConnectionKind::Primary, Version::V14);
        rig.bridge.handle_up(*id, connection);
        rig.add_monitor(*id, monitor(1, ALL, ""));
    }
    let mut slow = |id: ConnectionId| {
        let effects = rig.effects(|bridge, _, effects| bridge.handle_slow(id, effects));
        summary(&effects)
    };
    for id in &ids[..PAUSED_MAX] {
        assert_eq!(slow(*id), [format!("{} MultipartReply", id.0)]);
    }
    let last = ids[PAUSED_MAX];
    assert_eq!(slow(last), [format!("{} left", last.0)]);
    assert_eq!(slow(ids[0]), [""; 0], "it is paused already");
    // A peer that has read makes room for another pause.
    rig.effects(|bridge, _, effects| bridge.handle_drained(ids[0], effects));
    let effects = rig.effects(|bridge, _, effects| bridge.handle_slow(last, effects));
    assert_eq!(summary(&effects), [format!("{} MultipartReply", last.0)]);
}

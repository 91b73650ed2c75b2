//! Tests of groups and meters with two connections.

use flow::FlowRemoved;
use flow::text::{parse_actions, parse_flow_line, parse_group_line, parse_meter_line};

use super::*;

fn group(line: &str) -> Message {
    Message::GroupMod(parse_group_line(line).expect(line))
}

fn meter(line: &str) -> Message {
    Message::MeterMod(parse_meter_line(line).expect(line))
}

fn flow(line: &str) -> Message {
    Message::FlowMod(parse_flow_line(line).expect(line))
}

/// Returns the reasons of flow-removed messages to `peer`.
fn reasons(effects: &[Effect], peer: ConnectionId) -> Vec<FlowRemovedReason> {
    let reason = |effect: &Effect| match effect {
        Effect::Notify(id, message) if *id == peer => match &**message {
            Message::FlowRemoved(FlowRemoved { reason, .. }) => Some(*reason),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(reason).collect()
}

#[test]
fn barrier_after_group_mod_or_meter_mod_waits_for_the_workers() {
    let mut rig = Rig::controlled();
    for change in [
        group("group_id=1,type=all,bucket=output:2"),
        meter("meter=1,pktps,bands=type=drop,rate=10"),
    ] {
        rig.pass();
        assert!(rig.send(NEW, change).is_empty());
        assert!(rig.send(NEW, Message::BarrierRequest).is_empty());
        assert_eq!(summary(&rig.pass()), ["13 BarrierReply"]);
    }
}

#[test]
fn rules_of_a_deleted_group_or_meter_report_final_counters() {
    let mut rig = Rig::controlled();
    rig.send(NEW, group("group_id=1,type=all,bucket=output:2"));
    rig.send(NEW, meter("meter=1,pktps,bands=type=drop,rate=10"));
    rig.send(NEW, flow("in_port=1,send_flow_rem,actions=group:1"));
    rig.send(
        NEW,
        flow("in_port=2,send_flow_rem,actions=meter:1,output:1"),
    );
    rig.send(NEW, flow("in_port=3,send_flow_rem,actions=output:1"));
    rig.pass();
    assert!(rig.send(NEW, group("delete group_id=1")).is_empty());
    let effects = rig.pass();
    for peer in [OLD, NEW] {
        assert_eq!(reasons(&effects, peer), [FlowRemovedReason::GroupDelete]);
    }
    assert!(rig.send(NEW, meter("delete meter=1")).is_empty());
    let effects = rig.pass();
    assert_eq!(reasons(&effects, NEW), [FlowRemovedReason::MeterDelete]);
    assert_eq!(rig.rules(), ["send_flow_rem in_port=3 actions=output:1"]);
}

#[test]
fn slave_cannot_modify_groups_and_meters() {
    let mut rig = Rig::controlled();
    let slave = RoleRequest {
        role: Some(Role::Slave),
        generation: Some(1),
        ..RoleRequest::default()
    };
    rig.send(NEW, Message::RoleRequest(slave));
    for change in [
        group("group_id=1,type=all"),
        meter("meter=1,pktps,bands=type=drop,rate=10"),
    ] {
        assert_eq!(
            summary(&rig.send(NEW, change)),
            ["13 refused: RequestIsSlave"]
        );
    }
    assert_eq!(
        rig.bridge.tables.pipeline.group_descs(GroupId::ALL).count(),
        0
    );
}

#[test]
fn packet_out_passes_a_group_and_its_packet_in_a_meter() {
    let mut rig = Rig::controlled();
    rig.send(
        NEW,
        group("group_id=1,type=all,bucket=output:2,bucket=controller"),
    );
    let line = "meter=controller,pktps,burst,bands=type=drop,rate=1,burst_size=1";
    rig.send(NEW, meter(line));
    let message = || {
        Message::PacketOut(PacketOut {
            buffer: None,
            registers: PipelineFields::new(PortNo::CONTROLLER),
            actions: parse_actions("group:1").expect("legal"),
            data: vec![0; 60],
        })
    };
    let effects = summary(&rig.send(NEW, message()));
    let reports = ["10 told PacketIn", "13 told PacketIn"];
    assert_eq!(effects, ["out of 2: 60 bytes", reports[0], reports[1]]);
    assert_eq!(summary(&rig.send(NEW, message())), ["out of 2: 60 bytes"]);
}

#[test]
fn group_and_meter_requests_have_replies() {
    let mut rig = Rig::controlled();
    rig.send(NEW, group("group_id=1,type=all,bucket=output:2"));
    rig.send(NEW, meter("meter=1,pktps,bands=type=drop,rate=10"));
    let mut ask = |request| rig.send(NEW, Message::MultipartRequest(request));
    let count = |effects: Vec<Effect>| match &effects[..] {
        [Effect::Reply(_, _, message)] => match &**message {
            Message::MultipartReply { reply, .. } => match reply {
                MultipartReply::Group(summary) => summary.len(),
                MultipartReply::GroupDesc(summary) => summary.len(),
                MultipartReply::Meter(summary) => summary.len(),
                MultipartReply::MeterConfig(summary) => summary.len(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    for (group, there) in [(GroupId::ALL, 1), (GroupId(1), 1), (GroupId(2), 0)] {
        assert_eq!(count(ask(MultipartRequest::Group(group))), there);
        assert_eq!(count(ask(MultipartRequest::GroupDesc(group))), there);
    }
    for meter in [MeterId::ALL, MeterId(1)] {
        assert_eq!(count(ask(MultipartRequest::Meter(meter))), 1);
        assert_eq!(count(ask(MultipartRequest::MeterConfig(meter))), 1);
    }
    for request in [
        MultipartRequest::Meter(MeterId(2)),
        MultipartRequest::MeterConfig(MeterId(2)),
    ] {
        let refused = ["13 refused: MeterModUnknownMeter"];
        assert_eq!(summary(&ask(request)), refused);
    }
}

#[test]
fn group_and_meter_dumps_send_each_object_once_in_parts() {
    let mut rig = Rig::controlled();
    for number in 1..=300 {
        let line = format!("group_id={number},type=all,bucket=output:1,bucket=output:2");
        rig.send(NEW, group(&line));
        let line = format!("meter={number},pktps,bands=type=drop,rate=10");
        rig.send(NEW, meter(&line));
    }
    let mut ask = |request| {
        let mut effects = rig.send(NEW, Message::MultipartRequest(request));
        let Some(Effect::Dump(NEW, _, mut dump)) = effects.pop() else {
            panic!("{effects:?}")
        };
        let (mut ids, mut ends) = (Vec::new(), Vec::new());
        while let Some(Message::MultipartReply { reply, more }) = dump.next_part(Instant::START) {
            ends.push(more);
            let summary: Vec<u32> = match reply {
                MultipartReply::Group(summary) => summary.iter().map(|one| one.group.0).collect(),
                MultipartReply::GroupDesc(summary) => {
                    summary.iter().map(|one| one.group.0).collect()
                }
                MultipartReply::Meter(summary) => summary.iter().map(|one| one.meter.0).collect(),
                MultipartReply::MeterConfig(summary) => {
                    summary.iter().map(|one| one.meter.0).collect()
                }
                other => panic!("{other:?}"),
            };
            ids.extend(summary);
        }
        assert!(ids.iter().copied().eq(1..=300), "{ids:?}");
        ends
    };
    // A group with its buckets counts three, and a meter with its band two.
    for request in [
        MultipartRequest::Group(GroupId::ALL),
        MultipartRequest::GroupDesc(GroupId::ALL),
    ] {
        assert_eq!(ask(request), [true, true, true, false]);
    }
    for request in [
        MultipartRequest::Meter(MeterId::ALL),
        MultipartRequest::MeterConfig(MeterId::ALL),
    ] {
        assert_eq!(ask(request), [true, true, false]);
    }
}

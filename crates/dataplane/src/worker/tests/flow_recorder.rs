//! Tests of the counts by flow for the list of active flows.

use super::*;
use crate::messages::FlowRecord;

/// Sets the use of received frames.
fn set_crossing(rig: &mut WorkerRig, crossing: CrossingMode) {
    rig.crossing = crossing;
    rig.publish();
    rig.worker.turn(Instant::START);
}

fn packet(text: &str) -> Vec<u8> {
    let stack: packet::build::Stack = text.parse().expect("a stack");
    stack.build().bytes().to_vec()
}

/// Takes the worker's records.
fn take_records(rig: &mut WorkerRig) -> Vec<FlowRecord> {
    let (back, records) = channel();
    let command = WorkerCommand::ReportFlows(back);
    assert!(rig.commands.push(command).is_ok(), "the ring has room");
    rig.worker.turn(Instant::from_secs(2));
    records.try_recv().expect("the worker answers in a turn")
}

#[test]
fn worker_counts_frames_by_flow_while_the_list_is_requested() {
    const DNS: &str = "eth / ipv4(dst=10.0.0.1) / udp(dst=53)";
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    assert_eq!(rig.pass_frame(1, &packet(DNS)), [2]);
    assert!(take_records(&mut rig).is_empty(), "nothing is requested");
    set_crossing(&mut rig, CrossingMode::Count);
    for text in [
        DNS,
        DNS,
        "eth / ipv4(dst=10.0.0.1) / udp(dst=80)",
        "eth / vlan(vid=5) / vlan(vid=6) / ipv4 / udp",
        "eth / vlan(vid=5) / vlan(vid=7) / ipv4 / udp",
    ] {
        assert_eq!(rig.pass_frame(1, &packet(text)), [2]);
    }
    let records = take_records(&mut rig);
    let mut counts: Vec<_> = records.iter().map(|record| record.packets).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 1, 2]);
    let dns = records.iter().find(|record| record.packets == 2);
    let dns = dns.expect("a flow with two frames");
    assert_eq!(&*dns.frame, packet(DNS));
    assert_eq!(dns.bytes, 2 * packet(DNS).len() as u64);
    assert_eq!((dns.from, dns.used), (key(1), Instant::from_secs(1)));
    assert!(take_records(&mut rig).is_empty(), "records are taken once");
    rig.pass_frame(1, &packet(DNS));
    set_crossing(&mut rig, CrossingMode::Off);
    assert!(take_records(&mut rig).is_empty());
    assert!(rig.worker.forwarder.flow_recorder.is_none());
}

#[test]
fn worker_bounds_its_flow_records_and_counts_the_frames_beyond() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    set_crossing(&mut rig, CrossingMode::Count);
    for number in 0..4100_u32 {
        let (src, dst) = (1 + number % 1000, 1 + number / 1000);
        rig.pass_frame(
            1,
            &packet(&format!("eth / ipv4 / udp(src={src},dst={dst})")),
        );
    }
    assert_eq!(rig.drops(), [("flow_unrecorded", 4)]);
    assert_eq!(take_records(&mut rig).len(), 4096);
}

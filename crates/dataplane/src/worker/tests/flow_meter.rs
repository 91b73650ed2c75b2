//! Tests of NetFlow counts.

use std::net::Ipv4Addr;
use std::num::NonZeroU32;

use super::*;
use flow_export::flows::{FLOWS_MAX, FlowOutput, Ipv4Flow};

/// Counts all frames by flow, and samples one of `sampled`.
fn count(rig: &mut WorkerRig, sampled: u32) {
    rig.sampling = Some(Arc::new(SamplingView {
        sflow: NonZeroU32::new(sampled),
        ipfix: [None, None],
        snap: 20,
        flows: true,
        sets: Vec::new(),
    }));
    rig.publish();
}

fn packet(src: u32, port: u16) -> Vec<u8> {
    let src = Ipv4Addr::from(src);
    let stack = format!("eth / ipv4(src={src},dst=10.0.0.9) / udp(src={port},dst=53)");
    let stack: packet::build::Stack = stack.parse().expect("a stack");
    stack.build().bytes().to_vec()
}

/// Returns the flows that the worker reports after a second, without samples.
fn reported_flows(rig: &mut WorkerRig) -> Vec<Ipv4Flow> {
    while rig.events.pop().is_ok() {}
    rig.worker.turn(Instant::from_secs(3));
    match rig.events.pop() {
        Ok(WorkerEvent::Flows(BRIDGE, flows)) => flows,
        Err(_) => Vec::new(),
        Ok(_) => panic!("nothing else happens"),
    }
}

#[test]
fn flow_counts_have_the_output() {
    let one = [Action::output(PortNo(2))];
    let several = [1, 3].map(|port| Action::output(PortNo(port)));
    let flood = [Action::output(PortNo::NORMAL)];
    let mut rig = WorkerRig::new(&[(1, &one), (2, &several), (3, &flood)]);
    count(&mut rig, 0);
    let sent = [(1, 1), (1, 1), (2, 2), (3, 3)];
    for (from, number) in sent {
        rig.pass_frame(from, &packet(number, 7));
    }
    assert_eq!(rig.pass(1, 9), [2], "frames without a flow are forwarded");
    let flows = reported_flows(&mut rig);
    let reported_flows: Vec<_> = flows
        .iter()
        .map(|(key, counts)| (key.input.0, key.output, counts.packets))
        .collect();
    let wanted = [
        (1, FlowOutput::Port(PortNo(2)), 2),
        (2, FlowOutput::Several, 1),
        (3, FlowOutput::Flood, 1),
    ];
    assert_eq!(reported_flows, wanted);
    assert_eq!(flows[0].1.bytes, 2 * packet(1, 7).len() as u64);
    assert_eq!(flows[0].0.ports, [7, 53]);
    assert_eq!(self::reported_flows(&mut rig), [], "it is reported once");
}

#[test]
fn flow_meter_counts_each_frame_once_with_and_without_samples() {
    for sampled in [0, 1, 3] {
        let tagged = [Action::PushVlan(0x8100), Action::output(PortNo(1))];
        let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))]), (2, &tagged)]);
        count(&mut rig, sampled);
        for from in [1, 2, 3] {
            let (mut out, mut pool) = (Batch::new(), Pool::new(64));
            for number in 0..30_u32 {
                let mut frame = pool.take().expect("a buffer");
                frame.copy_from(&packet(number % 7, 1)).expect("room");
                out.push(frame).expect("room");
            }
            rig.hosts[from - 1]
                .send(&mut out, &mut pool)
                .expect("a wire");
            rig.worker.turn(Instant::from_secs(1));
        }
        let flows = reported_flows(&mut rig);
        assert_eq!(flows.len(), 3 * 7, "{sampled}");
        for (port, output) in [
            (1, FlowOutput::Port(PortNo(2))),
            (2, FlowOutput::Port(PortNo(1))),
            (3, FlowOutput::Nowhere),
        ] {
            let of_port = flows.iter().filter(|(key, _)| key.input == PortNo(port));
            let of_port = of_port.filter(|(key, _)| key.output == output);
            let count: u64 = of_port.map(|(_, counts)| counts.packets).sum();
            assert_eq!(count, 30, "{sampled} {port}");
        }
    }
}

#[test]
fn flow_counts_are_reported_before_port_or_exporter_removal() {
    let mut rig = WorkerRig::new(&[]);
    count(&mut rig, 0);
    assert_eq!(rig.pass_frame(1, &packet(1, 1)), [0; 0]);
    rig.sampling = None;
    rig.publish();
    rig.worker.turn(Instant::from_secs(1));
    assert!(matches!(rig.events.pop(), Ok(WorkerEvent::Flows(_, flows)) if flows.len() == 1));
    assert_eq!(rig.pass_frame(1, &packet(1, 1)), [0; 0]);
    assert_eq!(reported_flows(&mut rig), []);
    count(&mut rig, 0);
    assert_eq!(rig.pass_frame(1, &packet(1, 1)), [0; 0]);
    rig.remove_queue(1);
    rig.worker.turn(Instant::from_secs(1));
    assert!(matches!(rig.events.pop(), Ok(WorkerEvent::Flows(_, flows)) if flows.len() == 1));
}

#[test]
fn flow_counts_stay_while_the_ring_is_full_and_losses_are_counted() {
    let mut rig = WorkerRig::new(&[]);
    count(&mut rig, 0);
    // Each second has a new flow to report, until the ring is full.
    for second in 1..=5_u64 {
        assert_eq!(rig.pass_frame(1, &packet(0, 1)), [0; 0]);
        rig.worker.turn(Instant::from_secs(10 * second));
    }
    assert_eq!(rig.events.slots(), 2, "there is no room for more");
    for number in 1..=FLOWS_MAX {
        let number = u32::try_from(number).expect("few");
        assert_eq!(rig.pass_frame(1, &packet(number, 1)), [0; 0]);
    }
    let lost = rig
        .worker
        .forwarder
        .reporter
        .links
        .counters
        .dropped(WorkerDrop::FlowsLost);
    assert_eq!(lost, 1);
    while rig.events.pop().is_ok() {}
    rig.worker.turn(Instant::from_secs(100));
    let reported_flows = rig.events.pop();
    let Ok(WorkerEvent::Flows(_, flows)) = reported_flows else {
        panic!("flows are reported when there is room again");
    };
    assert_eq!((flows.len(), flows[0].1.packets), (FLOWS_MAX, 3));
}

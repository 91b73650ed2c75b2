//! Tests of sampled frames and their outputs.

use std::num::NonZeroU32;

use super::*;
use crate::sampling::FrameSample;

fn sampling(rig: &mut WorkerRig, rate: u32) {
    rig.sampling = Some(Arc::new(SamplingView {
        sflow: NonZeroU32::new(rate),
        ipfix: [None, None],
        snap: 20,
        flows: false,
        sets: Vec::new(),
    }));
    rig.publish();
}

fn sample(rig: &mut WorkerRig) -> FrameSample {
    match rig.events.pop() {
        Ok(WorkerEvent::Sampled(sampled)) => *sampled,
        _ => panic!("a sample"),
    }
}

fn exits(sampled: &FrameSample) -> Vec<u32> {
    let exits = sampled.outputs.iter();
    exits.map(|departure| departure.port.0).collect()
}

#[test]
fn sample_records_ingress_and_outputs() {
    let tagged = [
        Action::PushVlan(0x8100),
        Action::set(flow::Field::VlanVid, 0x1000 | 10),
        Action::output(PortNo(1)),
    ];
    let all = [1, 2].map(|port| Action::output(PortNo(port)));
    let mut rig = WorkerRig::new(&[(1, &all[1..]), (2, &tagged), (3, &all)]);
    sampling(&mut rig, 1);
    assert_eq!(rig.pass(1, 9), [2]);
    let sampled = sample(&mut rig);
    assert_eq!(sampled.from, key(1));
    assert_eq!(sampled.chosen.sflow, Some(1));
    assert_eq!(sampled.ingress.bytes[..], frame_to(9, 1)[..20]);
    assert_eq!(sampled.ingress.length, 60);
    assert_eq!((exits(&sampled), sampled.ingress.tag()), (vec![2], None));
    assert_eq!(rig.pass(2, 9), [1]);
    let sampled = sample(&mut rig);
    let left = sampled.outputs[0].frame.tag().expect("one was pushed");
    assert_eq!((exits(&sampled), left.vid), (vec![1], 10));
    assert_eq!(rig.pass(3, 9), [1, 2]);
    assert_eq!(exits(&sample(&mut rig)), [1, 2]);
}

#[test]
fn frames_stay_in_order_with_samples() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    sampling(&mut rig, 3);
    let (mut out, mut pool) = (Batch::new(), Pool::new(64));
    for number in 0..32_u8 {
        let mut frame = pool.take().expect("a buffer");
        let mut bytes = frame_to(9, 1);
        bytes[20] = number;
        frame.copy_from(&bytes).expect("room");
        out.push(frame).expect("room");
    }
    rig.hosts[0].send(&mut out, &mut pool).expect("a wire");
    rig.worker.turn(Instant::from_secs(1));
    let mut received = Batch::new();
    rig.hosts[1]
        .receive(&mut pool, &mut received)
        .expect("a wire");
    let numbers: Vec<u8> = received.iter().map(|frame| frame.bytes()[20]).collect();
    assert_eq!(numbers, (0..32).collect::<Vec<u8>>());
    assert!(matches!(rig.events.pop(), Ok(WorkerEvent::Sampled(_))));
    // The ring has room for two.
    let drops = rig.drops();
    assert!(matches!(drops[..], [("sample_queue_full", _)]), "{drops:?}");
}

#[test]
fn dropped_frame_is_sampled_too() {
    let mut rig = WorkerRig::new(&[]);
    sampling(&mut rig, 1);
    assert_eq!(rig.pass(1, 9), [0; 0]);
    let sampled = sample(&mut rig);
    assert_eq!((exits(&sampled), sampled.from), (Vec::new(), key(1)));
    rig.sampling = None;
    rig.publish();
    assert_eq!(rig.pass(1, 9), [0; 0]);
    assert!(rig.events.pop().is_err());
    assert!(rig.worker.forwarder.sampling.samplers.is_empty());
}

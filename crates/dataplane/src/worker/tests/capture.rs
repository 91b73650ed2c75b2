//! Tests of captured frames.

use flow::Field;
use packet::Frame;
use pipeline::DropReason;

use super::*;
use crate::capture::{Capture, CaptureId, CaptureRecord};

impl WorkerRig {
    /// Captures frames to this address, with this snapshot length.
    fn watch(&mut self, dst: u128, snaplen: usize) -> Arc<Capture> {
        let filter = Match::any().with(Field::EthDst, dst).expect("legal");
        let capture = Arc::new(Capture::new(CaptureId(5), filter, snaplen));
        self.captures = Captures::of([Arc::clone(&capture)]);
        self.publish();
        capture
    }

    /// Returns the next capture record.
    fn captured(&mut self) -> Option<CaptureRecord> {
        match self.events.pop() {
            Ok(WorkerEvent::Captured(record)) => Some(*record),
            _ => None,
        }
    }
}

#[test]
fn captured_frame_is_recorded_on_ingress_and_each_egress() {
    let actions = [
        Action::output(PortNo(2)),
        Action::SetField {
            field: Field::EthSrc,
            value: 7,
            mask: Field::EthSrc.full_mask(),
        },
        Action::output(PortNo(3)),
    ];
    let mut rig = WorkerRig::new(&[(1, &actions)]);
    rig.watch(9, 64);
    assert_eq!(rig.pass(1, 9), [2, 3]);
    assert_eq!(rig.pass(1, 8), [2, 3]);
    let record = rig.captured().expect("it is watched");
    assert_eq!((record.from, record.at), (key(1), Instant::from_secs(1)));
    assert_eq!(record.ingress.bytes, frame_to(9, 1));
    let rule = record.lookups[0].rule.as_ref().expect("a rule took it");
    assert_eq!(
        (rule.priority, rule.matching.to_string().as_str()),
        (1, "in_port=1")
    );
    let outputs: Vec<_> = record.outputs.iter().collect();
    let [second, third] = outputs[..] else {
        panic!("it left twice: {outputs:?}")
    };
    assert_eq!((second.port, second.lookups), (PortNo(2), 1));
    assert_eq!(second.frame.bytes, frame_to(9, 1));
    assert_eq!(third.port, PortNo(3));
    assert_eq!(third.frame.bytes, frame_to(9, 7));
    assert!(rig.captured().is_none(), "no capture selects the other");
    assert_eq!(rig.drops(), [("slow_path_capture", 1)]);
}

#[test]
fn captured_frame_is_counted_and_records_drop_reasons() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    rig.watch(9, 20);
    assert_eq!(rig.pass(3, 9), [0; 0]);
    let record = rig.captured().expect("it is watched");
    assert_eq!(record.drops, [DropReason::NoMatch]);
    assert!(record.outputs.is_empty() && record.lookups[0].rule.is_none());
    assert_eq!(
        (record.ingress.bytes.len(), record.ingress.length),
        (20, 60)
    );
    assert_eq!(rig.pass(1, 9), [2]);
    let sent: Vec<_> = rig.pipeline.table_stats().take(1).collect();
    assert_eq!((sent[0].lookups, sent[0].matched), (2, 1));
    assert_eq!(rig.drops(), [("no_match", 1), ("slow_path_capture", 2)]);
}

#[test]
fn captured_flood_is_recorded_for_each_port() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo::NORMAL)])]);
    rig.watch(9, 64);
    assert_eq!(rig.pass(1, 9), [2, 3]);
    assert!(matches!(rig.events.pop(), Ok(WorkerEvent::Learn(..))));
    let record = rig.captured().expect("it is watched");
    let ports: Vec<_> = record.outputs.iter().map(|left| left.port.0).collect();
    assert_eq!(ports, [2, 3]);
}

#[test]
fn capture_counts_lost_records_and_frames_continue() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    let capture = rig.watch(9, 64);
    for _ in 0..5 {
        assert_eq!(rig.pass(1, 9), [2]);
    }
    // The ring has room for two.
    assert_eq!(capture.missed(), 3);
    let drops = rig.drops();
    assert!(drops.contains(&("capture_queue_full", 3)), "{drops:?}");
    assert!(rig.captured().is_some() && rig.captured().is_some());
}

#[test]
fn frames_stay_in_order_with_captures() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    rig.watch(9, 64);
    let mut batch = Batch::new();
    let dsts = [1, 9, 2, 3, 9, 4, 5, 6];
    for dst in dsts {
        batch
            .push(Frame::from_bytes(&frame_to(dst, 1)))
            .expect("room");
    }
    let mut pool = Pool::new(64);
    rig.hosts[0]
        .send(&mut batch, &mut pool)
        .expect("the wire is there");
    rig.worker.turn(Instant::START);
    let mut received = Batch::new();
    rig.hosts[1]
        .receive(&mut pool, &mut received)
        .expect("the wire is there");
    let order: Vec<_> = received
        .iter()
        .map(|frame| u64::from(frame.bytes()[5]))
        .collect();
    assert_eq!(order, dsts);
}

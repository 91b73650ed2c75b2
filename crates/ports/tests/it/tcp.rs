//! A real TCP connection between two hosts that leave checksums and segmentation to
//! whoever comes after them.

use packet::{Checksum, Frame};
use ports::{Counter, Port, Queue};

use crate::net::{Host, forward, ip, open, run, scene, tcp};

const BYTES: usize = 8_000_000;

fn queue(name: &str) -> Box<dyn Queue> {
    open(name).take_queues().remove(0)
}

/// Watches whether frames owe what they are expected to.
#[derive(Default)]
struct Watch {
    cut: u32,
    unfinished: u32,
}

impl Watch {
    fn see(&mut self, frame: &Frame) {
        self.cut += u32::from(frame.offload.segmentation.is_some());
        let unfinished = matches!(frame.offload.checksum, Checksum::Partial { .. });
        self.unfinished += u32::from(unfinished);
    }
}

#[test]
fn segments_and_checksums_cross_unfinished() {
    scene(|| {
        let hosts = [Host::behind("p1", 1), Host::behind("p2", 2)];
        let mut queues = ["p1", "p2"].map(queue);
        let mut watch = Watch::default();
        tcp(&hosts[0], &hosts[1], BYTES, |over| {
            forward(&mut queues, over, |from, frame| {
                watch.see(frame);
                1 - from
            });
        });
        assert!(watch.cut > 20, "only {} frames came uncut", watch.cut);
        assert!(watch.unfinished > watch.cut);
        let [first, second] = queues.map(|queue| queue.counters().read());
        assert_eq!(first[Counter::RxPackets], second[Counter::TxPackets]);
        assert_eq!(first[Counter::RxBytes], second[Counter::TxBytes]);
        assert_eq!(second[Counter::RxPackets], first[Counter::TxPackets]);
        assert_eq!(first.rx_dropped() + first.tx_dropped(), 0);
        assert_eq!(second.rx_dropped() + second.tx_dropped(), 0);
        // What counts is what the wire would have carried.
        let segments = BYTES as u64 / 1500;
        assert!((segments..2 * segments).contains(&first[Counter::RxPackets]));
    });
}

#[test]
fn the_kernel_segments_where_the_driver_cannot() {
    scene(|| {
        let hosts = [Host::behind("p1", 1), Host::behind("p2", 2)];
        for port in ["p1", "p2"] {
            run(
                "ethtool",
                &format!("-K {port} tx off sg off tso off gso off"),
            );
        }
        let mut queues = ["p1", "p2"].map(queue);
        let mut watch = Watch::default();
        tcp(&hosts[0], &hosts[1], BYTES, |over| {
            forward(&mut queues, over, |from, frame| {
                watch.see(frame);
                1 - from
            });
        });
        assert!(watch.cut > 20, "only {} frames came uncut", watch.cut);
        let counts = queues.map(|queue| queue.counters().read());
        assert_eq!(counts.map(|counts| counts.tx_dropped()), [0, 0]);
    });
}

/// Two switches with a tagged link between them: one tags, the other takes the tag off.
#[test]
fn tags_are_put_on_and_taken_off_on_the_way() {
    const TAG: [u8; 4] = [0x81, 0, 0, 100];
    scene(|| {
        let hosts = [Host::behind("p1", 1), Host::behind("p2", 2)];
        ip("link add x1 type veth peer name x2");
        ip("link set x1 up");
        ip("link set x2 up");
        let mut queues = ["p1", "x1", "x2", "p2"].map(queue);
        let mut watch = Watch::default();
        tcp(&hosts[0], &hosts[1], BYTES, |over| {
            forward(&mut queues, over, |from, frame| {
                if from == 0 || from == 3 {
                    watch.see(frame);
                    frame.insert_zeros(12, 4).unwrap();
                    frame.bytes_mut()[12..16].copy_from_slice(&TAG);
                } else {
                    assert_eq!(frame.bytes()[12..16], TAG);
                    frame.remove(12, 4);
                }
                [1, 0, 3, 2][from]
            });
        });
        assert!(watch.cut > 20, "only {} frames came uncut", watch.cut);
        let counts = queues.map(|queue| queue.counters().read());
        assert_eq!(counts.map(|counts| counts.tx_dropped()), [0; 4]);
    });
}

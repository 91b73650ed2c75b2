//! TCP connections between two hosts that leave checksums and segmentation to the next hop.

use packet::{Checksum, Frame};
use ports::{Counter, Port, Queue};

use crate::net::{TestHost, forward, in_namespace, ip, open, run, tcp};

const BYTES: usize = 8_000_000;

fn queue(name: &str) -> Box<dyn Queue> {
    open(name).take_queues().remove(0)
}

/// Counts frames with pending offloads.
#[derive(Default)]
struct OffloadCounts {
    segmented: u32,
    partial_checksum: u32,
}

impl OffloadCounts {
    fn count(&mut self, frame: &Frame) {
        self.segmented += u32::from(frame.offload.segmentation.is_some());
        let partial_checksum = matches!(frame.offload.checksum, Checksum::Partial { .. });
        self.partial_checksum += u32::from(partial_checksum);
    }
}

#[test]
fn tcp_crosses_with_offloads_pending() {
    in_namespace(|| {
        let hosts = [TestHost::behind("p1", 1), TestHost::behind("p2", 2)];
        let mut queues = ["p1", "p2"].map(queue);
        let mut offloads = OffloadCounts::default();
        tcp(&hosts[0], &hosts[1], BYTES, |done| {
            forward(&mut queues, done, |from, frame| {
                offloads.count(frame);
                1 - from
            });
        });
        assert!(
            offloads.segmented > 20,
            "only {} frames were unsegmented",
            offloads.segmented
        );
        assert!(offloads.partial_checksum > offloads.segmented);
        let [first, second] = queues.map(|queue| queue.counters().read());
        assert_eq!(first[Counter::RxPackets], second[Counter::TxPackets]);
        assert_eq!(first[Counter::RxBytes], second[Counter::TxBytes]);
        assert_eq!(second[Counter::RxPackets], first[Counter::TxPackets]);
        assert_eq!(first.rx_dropped() + first.tx_dropped(), 0);
        assert_eq!(second.rx_dropped() + second.tx_dropped(), 0);
        // The counters count what the wire would carry.
        let segments = BYTES as u64 / 1500;
        assert!((segments..2 * segments).contains(&first[Counter::RxPackets]));
    });
}

#[test]
fn kernel_segments_for_driver_without_tso() {
    in_namespace(|| {
        let hosts = [TestHost::behind("p1", 1), TestHost::behind("p2", 2)];
        for port in ["p1", "p2"] {
            run(
                "ethtool",
                &format!("-K {port} tx off sg off tso off gso off"),
            );
        }
        let mut queues = ["p1", "p2"].map(queue);
        let mut offloads = OffloadCounts::default();
        tcp(&hosts[0], &hosts[1], BYTES, |done| {
            forward(&mut queues, done, |from, frame| {
                offloads.count(frame);
                1 - from
            });
        });
        assert!(
            offloads.segmented > 20,
            "only {} frames were unsegmented",
            offloads.segmented
        );
        let counts = queues.map(|queue| queue.counters().read());
        assert_eq!(counts.map(|counts| counts.tx_dropped()), [0, 0]);
    });
}

/// Two switches with a tagged link between them: one inserts the tag, the other removes it.
#[test]
fn vlan_tags_are_inserted_and_removed_in_transit() {
    const TAG: [u8; 4] = [0x81, 0, 0, 100];
    in_namespace(|| {
        let hosts = [TestHost::behind("p1", 1), TestHost::behind("p2", 2)];
        ip("link add x1 type veth peer name x2");
        ip("link set x1 up");
        ip("link set x2 up");
        let mut queues = ["p1", "x1", "x2", "p2"].map(queue);
        let mut offloads = OffloadCounts::default();
        tcp(&hosts[0], &hosts[1], BYTES, |done| {
            forward(&mut queues, done, |from, frame| {
                if from == 0 || from == 3 {
                    offloads.count(frame);
                    frame.insert_zeros(12, 4).unwrap();
                    frame.bytes_mut()[12..16].copy_from_slice(&TAG);
                } else {
                    assert_eq!(frame.bytes()[12..16], TAG);
                    frame.remove(12, 4);
                }
                [1, 0, 3, 2][from]
            });
        });
        assert!(
            offloads.segmented > 20,
            "only {} frames were unsegmented",
            offloads.segmented
        );
        let counts = queues.map(|queue| queue.counters().read());
        assert_eq!(counts.map(|counts| counts.tx_dropped()), [0; 4]);
    });
}

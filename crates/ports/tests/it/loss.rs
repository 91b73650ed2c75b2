//! Counters of lost and refused frames, exact to the frame.

use packet::{Checksum, Frame, Offload, Segmentation, SegmentationKind};
use ports::{Batch, Counter, QueueCounts};
use rustix::io::write;
use sys::tun::{Attach, TapQueue};

use crate::net::{frame, in_namespace, ip, link_pair, name, open_queue, tagged};

#[test]
fn full_ring_counts_lost_frames() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        let frames: Vec<_> = (0..=255)
            .cycle()
            .take(5000)
            .map(|seed| frame(60, seed))
            .collect();
        a.send(&frames);
        let received = b.receive_now();
        assert_eq!(received[..], frames[..received.len()], "the first ones");
        b.queue.maintain().unwrap();
        let (lost, counts) = (5000 - received.len() as u64, b.counts());
        assert!(lost > 0);
        assert_eq!(
            counts[Counter::RxPackets] + counts[Counter::RxOverrun],
            5000
        );
        assert_eq!(counts.rx_dropped(), lost);
        assert_eq!(a.counts()[Counter::TxPackets], 5000);
        // A full ring is not a jammed ring.
        a.send(&frames[..10]);
        assert_eq!(b.receive(10), frames[..10]);
        assert_eq!(b.counts()[Counter::RxRingReset], 0);
    });
}

#[test]
fn losses_under_load_are_counted_without_maintenance() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        let frames: Vec<_> = (0..3000).map(|_| frame(60, 1)).collect();
        a.send(&frames);
        b.receive_now();
        // The kernel marks the first frame after a loss; no other call is required.
        a.send(&frames[..1]);
        b.receive_now();
        let counts = b.counts();
        assert_eq!(
            counts[Counter::RxPackets] + counts[Counter::RxOverrun],
            3001
        );
    });
}

#[test]
fn truncated_frames_are_dropped_and_counted() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        let frames: Vec<_> = (0..2000).map(|_| frame(9000, 5)).collect();
        a.send(&frames);
        let received = b.receive_now();
        b.queue.maintain().unwrap();
        let counts = b.counts();
        assert!(counts[Counter::RxTruncated] > 0, "{counts:?}");
        assert_eq!(received.len() as u64 + counts.rx_dropped(), 2000);
        assert!(received.iter().all(|received| *received == frames[0]));
        a.send(&frames[..10]);
        assert_eq!(b.receive(10), frames[..10]);
    });
}

#[test]
fn frame_longer_than_buffer_is_counted() {
    in_namespace(|| {
        link_pair();
        ip("link set left gso_max_size 100000"); // TCP done IPv6 with jumbograms.
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        let long = |len| {
            let mut frame = frame(len, 1);
            frame.bytes_mut()[12..14].copy_from_slice(&[0x86, 0xdd]);
            frame.bytes_mut()[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, 6, 64]);
            frame.bytes_mut()[66] = 5 << 4;
            frame.offload = Offload {
                checksum: Checksum::Partial {
                    start: 54,
                    offset: 16,
                },
                segmentation: Some(Segmentation {
                    kind: SegmentationKind::Tcp6,
                    size: 1448,
                    header_len: 74,
                }),
            };
            frame
        };
        a.send(&[long(Frame::LEN_MAX + 1), long(Frame::LEN_MAX)]);
        assert_eq!(b.receive(1)[0].len(), Frame::LEN_MAX);
        assert_eq!(b.counts()[Counter::RxTooLong], 1);
        assert_eq!(b.pool.outstanding(), 0);
    });
}

#[test]
fn frames_beyond_mtu_are_counted_and_others_sent() {
    in_namespace(|| {
        link_pair();
        ip("link set left mtu 1500");
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        let good = [
            frame(1514, 1),
            tagged(&[(0x8100, 5)], 1518, 1),
            frame(60, 3),
        ];
        let [first, second, third] = good.clone();
        let long = || frame(1515, 9);
        a.send(&[long(), first, long(), second, long(), third, long()]);
        assert_eq!(b.receive(3), good);
        assert_eq!(
            a.counts(),
            QueueCounts::from_iter([
                (Counter::TxPackets, 3),
                (Counter::TxBytes, 1514 + 1518 + 60),
                (Counter::TxTooLong, 4),
            ])
        );
    });
}

#[test]
fn frames_refused_by_kernel_are_counted_and_others_sent() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        let runt = Frame::from_bytes(&[2; 13]);
        a.send(&[runt, frame(60, 1)]);
        assert_eq!(b.receive(1), [frame(60, 1)]);
        assert_eq!(a.counts()[Counter::TxErrors], 1);
        assert_eq!(a.pool.outstanding(), 0);
    });
}

#[test]
fn empty_pool_leaves_frames_in_ring() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        b.pool = packet::Pool::new(2);
        let frames = [1, 2, 3].map(|seed| frame(60, seed));
        a.send(&frames);
        b.queue.receive(&mut b.pool, &mut b.batch).unwrap();
        assert_eq!(b.batch[..], frames[..2]);
        assert_eq!(b.counts()[Counter::RxNoBuffer], 1);
        b.batch.release(2, &mut b.pool);
        b.queue.receive(&mut b.pool, &mut b.batch).unwrap();
        assert_eq!(b.batch[..], frames[2..]);
    });
}

#[test]
fn full_batch_leaves_frames_in_ring() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        let frames: Vec<_> = (0..100).map(|seed| frame(60, seed)).collect();
        a.send(&frames);
        b.queue.receive(&mut b.pool, &mut b.batch).unwrap();
        assert_eq!(b.batch.len(), Batch::FRAMES_MAX);
        b.queue.receive(&mut b.pool, &mut b.batch).unwrap();
        assert_eq!(b.batch[..], frames[..Batch::FRAMES_MAX]);
    });
}

/// A TAP device passes the kernel a frame with a segmentation type that the kernel can handle but
/// not report: UDP fragmentation.
#[test]
fn jammed_ring_loses_one_frame() {
    in_namespace(|| {
        let device = TapQueue::open().unwrap();
        device.attach(&name("tap0"), Attach::New).unwrap();
        ip("link set tap0 up");
        let mut port = open_queue("tap0");
        let send_bytes = |header: [u8; 10], frame: &Frame| {
            write(&device, &[&header[..], frame.bytes()].concat()).unwrap();
        };
        let plain = |seed| frame(100, seed);
        let udp = {
            let mut frame = frame(4000, 0);
            let bytes = frame.bytes_mut();
            bytes[12..14].copy_from_slice(&[8, 0]);
            bytes[14..24].copy_from_slice(&[0x45, 0, 15, 146, 0, 0, 0, 0, 64, 17]);
            bytes[38..40].copy_from_slice(&[15, 126]);
            frame
        };
        let [low, high] = 1400u16.to_ne_bytes();
        let unsupported_header = [1, 3, 42, 0, low, high, 34, 0, 6, 0];

        send_bytes([0; 10], &plain(1));
        assert_eq!(port.receive(1), [plain(1)]);
        port.queue.maintain().unwrap();
        send_bytes(unsupported_header, &udp);
        // A worker maintains its queues about every second.
        port.queue.maintain().unwrap();
        send_bytes([0; 10], &plain(2));
        port.receive_now();
        port.queue.maintain().unwrap();
        send_bytes([0; 10], &plain(3));
        assert_eq!(port.receive_now().last(), Some(&plain(3)));
        let counts = port.counts();
        assert!(counts[Counter::RxRingReset] <= 1);
        assert_eq!(counts[Counter::RxPackets] + counts[Counter::RxOverrun], 4);
    });
}

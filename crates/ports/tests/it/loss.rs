//! Whatever does not arrive is counted, to the frame.

use packet::{Checksum, Frame, Offload, Segmentation, SegmentationKind};
use ports::{Batch, Counter, Counts};
use rustix::io::write;
use sys::tun::{Attach, TapQueue};

use crate::net::{cable, frame, hand, ip, name, scene, tagged};

#[test]
fn a_full_ring_loses_what_it_counts() {
    scene(|| {
        cable();
        let (mut a, mut b) = (hand("left"), hand("right"));
        let frames: Vec<_> = (0..=255)
            .cycle()
            .take(5000)
            .map(|seed| frame(60, seed))
            .collect();
        a.send(&frames);
        let received = b.receive_now();
        assert_eq!(received[..], frames[..received.len()], "the first ones");
        b.queue.tend().unwrap();
        let (lost, counts) = (5000 - received.len() as u64, b.counts());
        assert!(lost > 0);
        assert_eq!(
            counts[Counter::RxPackets] + counts[Counter::RxOverrun],
            5000
        );
        assert_eq!(counts.rx_dropped(), lost);
        assert_eq!(a.counts()[Counter::TxPackets], 5000);
        // An overrun ring is no jammed ring.
        a.send(&frames[..10]);
        assert_eq!(b.receive(10), frames[..10]);
        assert_eq!(b.counts()[Counter::RxMended], 0);
    });
}

#[test]
fn losses_are_counted_under_load_too() {
    scene(|| {
        cable();
        let (mut a, mut b) = (hand("left"), hand("right"));
        let frames: Vec<_> = (0..3000).map(|_| frame(60, 1)).collect();
        a.send(&frames);
        b.receive_now();
        // The kernel marks what it writes after a loss; no other call is needed.
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
fn a_frame_cut_for_want_of_room_is_never_handed_over() {
    scene(|| {
        cable();
        let (mut a, mut b) = (hand("left"), hand("right"));
        let frames: Vec<_> = (0..2000).map(|_| frame(9000, 5)).collect();
        a.send(&frames);
        let received = b.receive_now();
        b.queue.tend().unwrap();
        let counts = b.counts();
        assert!(counts[Counter::RxTruncated] > 0, "{counts:?}");
        assert_eq!(received.len() as u64 + counts.rx_dropped(), 2000);
        assert!(received.iter().all(|received| *received == frames[0]));
        a.send(&frames[..10]);
        assert_eq!(b.receive(10), frames[..10]);
    });
}

#[test]
fn a_frame_longer_than_any_buffer_is_counted() {
    scene(|| {
        cable();
        ip("link set left gso_max_size 100000"); // TCP over IPv6 with jumbograms.
        let (mut a, mut b) = (hand("left"), hand("right"));
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
fn frames_longer_than_the_mtu_are_counted_and_the_others_go() {
    scene(|| {
        cable();
        ip("link set left mtu 1500");
        let (mut a, mut b) = (hand("left"), hand("right"));
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
            Counts::from_iter([
                (Counter::TxPackets, 3),
                (Counter::TxBytes, 1514 + 1518 + 60),
                (Counter::TxTooLong, 4),
            ])
        );
    });
}

#[test]
fn frames_that_the_kernel_refuses_are_counted_and_the_others_go() {
    scene(|| {
        cable();
        let (mut a, mut b) = (hand("left"), hand("right"));
        let runt = Frame::from_bytes(&[2; 13]);
        a.send(&[runt, frame(60, 1)]);
        assert_eq!(b.receive(1), [frame(60, 1)]);
        assert_eq!(a.counts()[Counter::TxErrors], 1);
        assert_eq!(a.pool.outstanding(), 0);
    });
}

#[test]
fn an_empty_pool_leaves_frames_in_the_ring() {
    scene(|| {
        cable();
        let (mut a, mut b) = (hand("left"), hand("right"));
        b.pool = packet::Pool::new(2);
        let frames = [1, 2, 3].map(|seed| frame(60, seed));
        a.send(&frames);
        b.queue.receive(&mut b.pool, &mut b.batch).unwrap();
        assert_eq!(b.batch[..], frames[..2]);
        assert_eq!(b.counts()[Counter::RxStarved], 1);
        b.batch.release(2, &mut b.pool);
        b.queue.receive(&mut b.pool, &mut b.batch).unwrap();
        assert_eq!(b.batch[..], frames[2..]);
    });
}

#[test]
fn a_full_batch_leaves_frames_in_the_ring() {
    scene(|| {
        cable();
        let (mut a, mut b) = (hand("left"), hand("right"));
        let frames: Vec<_> = (0..100).map(|seed| frame(60, seed)).collect();
        a.send(&frames);
        b.queue.receive(&mut b.pool, &mut b.batch).unwrap();
        assert_eq!(b.batch.len(), Batch::FRAMES_MAX);
        b.queue.receive(&mut b.pool, &mut b.batch).unwrap();
        assert_eq!(b.batch[..], frames[..Batch::FRAMES_MAX]);
    });
}

/// A TAP device is the way to hand the kernel a frame with segments of a kind that it
/// can hold but not tell us of: UDP to be cut into IP fragments.
#[test]
fn a_frame_that_jams_the_ring_costs_itself_only() {
    scene(|| {
        let device = TapQueue::open().unwrap();
        device.attach(&name("tap0"), Attach::New).unwrap();
        ip("link set tap0 up");
        let mut port = hand("tap0");
        let say = |header: [u8; 10], frame: &Frame| {
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
        let unspeakable = [1, 3, 42, 0, low, high, 34, 0, 6, 0];

        say([0; 10], &plain(1));
        assert_eq!(port.receive(1), [plain(1)]);
        port.queue.tend().unwrap();
        say(unspeakable, &udp);
        // A worker that looks after its queues comes by here every second or so.
        port.queue.tend().unwrap();
        say([0; 10], &plain(2));
        port.receive_now();
        port.queue.tend().unwrap();
        say([0; 10], &plain(3));
        assert_eq!(port.receive_now().last(), Some(&plain(3)));
        let counts = port.counts();
        assert!(counts[Counter::RxMended] <= 1);
        assert_eq!(counts[Counter::RxPackets] + counts[Counter::RxOverrun], 4);
    });
}

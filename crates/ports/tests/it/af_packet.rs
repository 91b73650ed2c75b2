//! Packet sockets: frames between two interfaces.

use std::time::Duration;

use packet::{Checksum, Frame, Offload, Segmentation, SegmentationKind};
use ports::af_packet::AfPacket;
use ports::{Counter, OpenError, Port, QueueCounts};

use crate::net::{
    TestHost, TestQueue, frame, in_namespace, ip, link_pair, name, open, open_queue, output_of,
    run, tagged, wait, wait_up,
};

/// Lengths around all limits: minimum frame, ring slot, jumbo frames.
fn lengths() -> Vec<usize> {
    let mut lengths: Vec<_> = (14..=1518).collect();
    lengths.extend(1800..=2100);
    lengths.extend([4095, 4096, 8192, 9000, 9014]);
    lengths
}

/// Sends the frames from `left` to `right`; they must arrive unmodified and be counted.
fn assert_frames_cross(frames: &[Frame]) {
    let (mut a, mut b) = (open_queue("left"), open_queue("right"));
    let mut received = Vec::new();
    for some in frames.chunks(100) {
        a.send(some);
        received.extend(b.receive(some.len()));
    }
    for (sent, received) in frames.iter().zip(&received) {
        assert_eq!(sent, received, "{} bytes", sent.len());
    }
    let packets = frames.iter().map(Frame::wire_frames).sum();
    let bytes = frames.iter().map(Frame::wire_bytes).sum();
    let sent = [(Counter::TxPackets, packets), (Counter::TxBytes, bytes)];
    let received = [(Counter::RxPackets, packets), (Counter::RxBytes, bytes)];
    assert_eq!(a.counts(), QueueCounts::from_iter(sent));
    assert_eq!(b.counts(), QueueCounts::from_iter(received));
    assert_eq!((a.pool.outstanding(), b.pool.outstanding()), (0, 0));
}

#[test]
fn frames_of_all_lengths_arrive_unmodified() {
    in_namespace(|| {
        link_pair();
        let frames = lengths().into_iter().zip((0..=255).cycle());
        assert_frames_cross(
            &frames
                .map(|(len, seed)| frame(len, seed))
                .collect::<Vec<_>>(),
        );
    });
}

#[test]
fn vlan_tags_stripped_by_kernel_are_restored() {
    const STACKS: [&[(u16, u16)]; 6] = [
        &[(0x8100, 5)],
        &[(0x8100, 0xe000)], // Priority only.
        &[(0x8100, 0x1fff)],
        &[(0x88a8, 100), (0x8100, 200)],
        &[(0x8100, 1), (0x8100, 2)],
        &[(0x88a8, 1), (0x88a8, 2), (0x8100, 3)],
    ];
    in_namespace(|| {
        link_pair();
        let stacks = STACKS.into_iter().cycle();
        let frames = stacks.zip((40..1518).chain(1800..2100).chain(8900..=9014));
        assert_frames_cross(
            &frames
                .map(|(tags, len)| tagged(tags, len, 1))
                .collect::<Vec<_>>(),
        );
    });
}

/// An IPv4 frame of `len` bytes with these tags and a partial checksum, whose transport header is
/// where `partial` says: the kernel validates both.
fn partial_checksum(tags: &[(u16, u16)], len: usize, protocol: u8) -> Frame {
    let mut frame = tagged(tags, len, 3);
    let start = 14 + 4 * tags.len();
    let total = u16::try_from((len - start).min(0xffff)).unwrap();
    let [high, low] = total.to_be_bytes();
    let header = [
        0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    let bytes = frame.bytes_mut();
    bytes[start - 2..start].copy_from_slice(&[8, 0]);
    bytes[start..start + 20].copy_from_slice(&header);
    let udp = protocol == 17;
    if udp {
        let [high, low] = (total - 20).to_be_bytes();
        bytes[start + 24..start + 26].copy_from_slice(&[high, low]);
    } else {
        bytes[start + 32] = 5 << 4; // A TCP header of twenty bytes.
    }
    frame.offload.checksum = Checksum::Partial {
        start: u16::try_from(start + 20).unwrap(),
        offset: if udp { 6 } else { 16 },
    };
    frame
}

/// The same with segmentation pending.
fn segmented(tags: &[(u16, u16)], len: usize, protocol: u8, kind: SegmentationKind) -> Frame {
    let mut frame = partial_checksum(tags, len, protocol);
    let headers = 14 + 4 * tags.len() + if protocol == 17 { 28 } else { 40 };
    frame.offload.segmentation = Some(Segmentation {
        kind,
        size: 1400,
        header_len: u16::try_from(headers).unwrap(),
    });
    frame
}

#[test]
fn partial_checksums_cross_with_and_without_tags() {
    in_namespace(|| {
        link_pair();
        let tags: [&[(u16, u16)]; 3] = [&[], &[(0x8100, 7)], &[(0x88a8, 7), (0x8100, 8)]];
        let lengths = [100, 1500, 4000];
        let frames = tags
            .iter()
            .flat_map(|tags| lengths.map(|len| partial_checksum(tags, len, 17)));
        assert_frames_cross(&frames.collect::<Vec<_>>());
    });
}

#[test]
fn gso_frames_cross_unsegmented_with_and_without_tags() {
    in_namespace(|| {
        link_pair();
        let kinds = [
            (6, SegmentationKind::Tcp4),
            (6, SegmentationKind::Tcp4Ecn),
            (17, SegmentationKind::Udp),
        ];
        let tags: [&[(u16, u16)]; 3] = [&[], &[(0x8100, 7)], &[(0x88a8, 7), (0x8100, 8)]];
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        for (protocol, kind) in kinds {
            for tags in tags {
                for len in [1600, 9000, 60_000] {
                    let sent = segmented(tags, len, protocol, kind);
                    a.send(std::slice::from_ref(&sent));
                    let [received] = <[Frame; 1]>::try_from(b.receive(1)).unwrap();
                    assert_eq!(sent.bytes(), received.bytes());
                    // The header length is only a hint: the kernel reports its linear part.
                    let seen = |frame: &Frame| match frame.offload {
                        Offload {
                            checksum,
                            segmentation: Some(how),
                        } => (checksum, how.kind, how.size),
                        offload => panic!("{offload:?}"),
                    };
                    assert_eq!(seen(&sent), seen(&received), "{tags:?} {len}");
                }
            }
        }
        assert_eq!(a.counts()[Counter::TxBytes], b.counts()[Counter::RxBytes]);
        assert_eq!(a.counts().tx_dropped() + b.counts().rx_dropped(), 0);
    });
}

#[test]
fn fanout_queues_share_frames_by_flow() {
    in_namespace(|| {
        link_pair();
        let mut a = open_queue("left");
        let mut b = AfPacket::open(&name("right"), 2.try_into().unwrap()).unwrap();
        let queues = b.take_queues();
        assert!(b.take_queues().is_empty());
        let mut queues: Vec<_> = queues.into_iter().map(TestQueue::new).collect();
        // Sixty-four flows, four frames each.
        let flows = (0..64u8).cycle().take(256).map(|flow| {
            let mut frame = partial_checksum(&[], 100, 17);
            frame.bytes_mut()[34..36].copy_from_slice(&[4, flow]);
            frame
        });
        let flows: Vec<_> = flows.collect();
        a.send(&flows);
        assert!(queues[0].wait(Duration::from_secs(10)));
        let received: Vec<Vec<u8>> = queues
            .iter_mut()
            .map(|open_queue| {
                open_queue
                    .receive_now()
                    .iter()
                    .map(|frame| frame.bytes()[35])
                    .collect()
            })
            .collect();
        assert_eq!(received[0].len() + received[1].len(), 256);
        assert!(!received[0].is_empty() && !received[1].is_empty());
        assert!(received[0].iter().all(|flow| !received[1].contains(flow)));
    });
}

#[test]
fn sent_frames_are_not_received_on_same_interface() {
    in_namespace(|| {
        link_pair();
        for queues in [1, 2] {
            let mut port = AfPacket::open(&name("left"), queues.try_into().unwrap()).unwrap();
            let mut queues: Vec<_> = port.take_queues().into_iter().map(TestQueue::new).collect();
            let mut peer = open_queue("right");
            // Both pass the kernel's taps, which the queues are.
            let segmented = segmented(&[], 3000, 6, SegmentationKind::Tcp4);
            queues[0].send(&[frame(60, 1), segmented]);
            peer.receive(2);
            let sent = queues[0].counts();
            assert_eq!(queues[0].counts(), sent);
            assert!(
                queues
                    .iter_mut()
                    .all(|open_queue| open_queue.receive_now().is_empty())
            );
        }
    });
}

#[test]
fn fanout_on_interface_that_was_down_works_or_is_refused() {
    in_namespace(|| {
        link_pair();
        ip("link set right down");
        let opened = AfPacket::open(&name("right"), 2.try_into().unwrap());
        let mut port = match opened {
            Err(OpenError::DownAndShared { .. }) => return, // A kernel before 6.13.
            opened => opened.unwrap(),
        };
        let mut queues: Vec<_> = port.take_queues().into_iter().map(TestQueue::new).collect();
        port.set_up(true).unwrap();
        wait_up(&["left", "right"]);
        open_queue("left").send(&[frame(60, 1)]);
        let received = queues.iter_mut().flat_map(TestQueue::receive_now);
        assert_eq!(received.collect::<Vec<_>>(), [frame(60, 1)]);
    });
}

#[test]
fn interface_down_drops_frames_until_it_is_up() {
    in_namespace(|| {
        link_pair();
        let mut port = open("left");
        let mut a = TestQueue::new(port.take_queues().remove(0));
        let mut b = open_queue("right");
        let frames = [1, 2, 3].map(|seed| frame(100, seed));

        port.set_up(false).unwrap();
        assert_eq!((port.status().up, port.status().carrier), (false, false));
        a.send(&frames);
        b.send(&frames); // Up, but with nobody at the other end.
        // The pending error does not wake a worker.
        assert!(!a.wait(Duration::ZERO));
        assert!(a.receive_now().is_empty());
        assert_eq!(a.counts(), QueueCounts::from_iter([(Counter::TxDown, 3)]));
        // The kernel drops the frames silently or, while it stops the queue, with ENOBUFS. Each is
        // counted once in either case.
        let seen = b.counts();
        assert_eq!(seen[Counter::TxPackets] + seen[Counter::TxFull], 3);

        port.set_up(true).unwrap();
        wait_up(&["left", "right"]);
        assert_eq!((port.status().up, port.status().carrier), (true, true));
        a.send(&frames);
        b.send(&frames);
        assert_eq!(a.receive(3), frames);
        assert_eq!(b.receive(3), frames);
    });
}

#[test]
fn long_frames_queued_before_interface_down_stay_in_order() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        let frames = [(9000, 1), (60, 2), (9000, 3), (9000, 4)].map(|(len, seed)| frame(len, seed));
        a.send(&frames);
        ip("link set right down");
        assert_eq!(b.receive_now(), frames);
        ip("link set right up");
        wait_up(&["left", "right"]);
        a.send(&frames);
        assert_eq!(b.receive(4), frames);
    });
}

#[test]
fn interface_that_is_down_can_be_opened() {
    in_namespace(|| {
        ip("link add left type veth peer name right");
        let (mut a, mut b) = (open_queue("left"), open_queue("right"));
        ip("link set left up");
        ip("link set right up");
        assert!(!a.wait(Duration::ZERO));
        wait_up(&["left"]);
        a.send(&[frame(60, 1)]);
        assert_eq!(b.receive(1), [frame(60, 1)]);
    });
}

#[test]
fn removed_interface_is_an_error_of_every_operation() {
    in_namespace(|| {
        link_pair();
        let mut port = open("left");
        let mut sender = TestQueue::new(port.take_queues().remove(0));
        let mut idle = open_queue("right");
        assert!(port.status().index.is_some());
        ip("link delete left");
        // A sleeping worker is woken, and detects the removal by maintaining the queue.
        assert!(wait(
            std::slice::from_ref(&idle.queue),
            Duration::from_secs(10)
        ));
        let error = idle.queue.maintain().unwrap_err();
        assert_eq!(error.to_string(), "interface right was removed");
        sender.batch.push(frame(60, 1)).unwrap();
        let error = sender.queue.send(&mut sender.batch, &mut sender.pool);
        assert_eq!(error.unwrap_err().to_string(), "interface left was removed");
        assert_eq!(sender.batch.len(), 1);
        assert_eq!(port.status().index, None);
        port.set_up(true).unwrap_err();
    });
}

#[test]
fn interface_moved_to_another_namespace_is_removed() {
    in_namespace(|| {
        link_pair();
        let mut a = open_queue("left");
        let other_host = TestHost::new(1);
        ip(&format!("link set left netns {}", other_host.netns_path()));
        a.queue.maintain().unwrap_err();
    });
}

#[test]
fn status_follows_interface_changes() {
    in_namespace(|| {
        ip("link add left address 02:00:00:00:00:07 type veth peer name right");
        let port = open("left");
        let before = port.status();
        assert_eq!(
            (before.up, before.carrier, before.mtu),
            (false, false, 1500)
        );
        assert_eq!(before.address, "02:00:00:00:00:07".parse().unwrap());
        assert_eq!(before.driver.as_deref(), Some("veth"));
        assert_eq!(before.speed_mbps, Some(10_000));
        ip("link set left mtu 2000 name renamed");
        let after = port.status();
        assert_eq!((after.name.as_str(), after.mtu), ("renamed", 2000));
        assert_eq!(after.index, before.index);
    });
}

#[test]
fn closed_port_leaves_promiscuous_mode() {
    in_namespace(|| {
        link_pair();
        let promiscuous = || {
            let shown = output_of("ip", "-d -o link show left");
            shown.contains("promiscuity 1")
        };
        let mut port = open("left");
        let queues = port.take_queues();
        assert!(promiscuous());
        drop(port);
        assert!(promiscuous());
        drop(queues);
        assert!(!promiscuous());
    });
}

#[test]
fn sent_frames_pass_queueing_discipline() {
    in_namespace(|| {
        link_pair();
        run("tc", "qdisc add dev left root pfifo");
        let plain = frame(60, 1);
        let segmented = segmented(&[], 4000, 6, SegmentationKind::Tcp4);
        let mut left = open_queue("left");
        left.send(&[plain.clone(), plain, segmented]);
        let seen = output_of("tc", "-s qdisc show dev left");
        // Two short frames, and three segments with their headers.
        assert!(seen.contains(" 4228 bytes "), "{seen}");
    });
}

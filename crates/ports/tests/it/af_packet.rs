//! Frames through packet sockets, one interface to the other.

use std::time::Duration;

use packet::{Checksum, Frame, Offload, Segmentation, SegmentationKind};
use ports::af_packet::AfPacket;
use ports::{Counter, Counts, OpenError, Port};

use crate::net::{
    Hand, Host, ask, cable, frame, hand, ip, name, open, run, scene, settle, tagged, wait,
};

/// Lengths around all borders: the shortest, a slot of the ring, jumbo frames.
fn lengths() -> Vec<usize> {
    let mut lengths: Vec<_> = (14..=1518).collect();
    lengths.extend(1800..=2100);
    lengths.extend([4095, 4096, 8192, 9000, 9014]);
    lengths
}

/// Sends the frames from `left` to `right`; they must arrive as they are, and be counted.
fn crosses(frames: &[Frame]) {
    let (mut a, mut b) = (hand("left"), hand("right"));
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
    assert_eq!(a.counts(), Counts::from_iter(sent));
    assert_eq!(b.counts(), Counts::from_iter(received));
    assert_eq!((a.pool.outstanding(), b.pool.outstanding()), (0, 0));
}

#[test]
fn frames_of_all_lengths_arrive_as_they_are() {
    scene(|| {
        cable();
        let frames = lengths().into_iter().zip((0..=255).cycle());
        crosses(
            &frames
                .map(|(len, seed)| frame(len, seed))
                .collect::<Vec<_>>(),
        );
    });
}

#[test]
fn tags_survive_though_the_kernel_takes_the_outermost_out() {
    const STACKS: [&[(u16, u16)]; 6] = [
        &[(0x8100, 5)],
        &[(0x8100, 0xe000)], // Priority only.
        &[(0x8100, 0x1fff)],
        &[(0x88a8, 100), (0x8100, 200)],
        &[(0x8100, 1), (0x8100, 2)],
        &[(0x88a8, 1), (0x88a8, 2), (0x8100, 3)],
    ];
    scene(|| {
        cable();
        let stacks = STACKS.into_iter().cycle();
        let frames = stacks.zip((40..1518).chain(1800..2100).chain(8900..=9014));
        crosses(
            &frames
                .map(|(tags, len)| tagged(tags, len, 1))
                .collect::<Vec<_>>(),
        );
    });
}

/// An IPv4 frame of `len` bytes with these tags, whose transport header starts where
/// `partial` says: the kernel looks at both before it takes an unfinished one.
fn unfinished(tags: &[(u16, u16)], len: usize, protocol: u8) -> Frame {
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

/// The same, to be cut into segments.
fn segmented(tags: &[(u16, u16)], len: usize, protocol: u8, kind: SegmentationKind) -> Frame {
    let mut frame = unfinished(tags, len, protocol);
    let headers = 14 + 4 * tags.len() + if protocol == 17 { 28 } else { 40 };
    frame.offload.segmentation = Some(Segmentation {
        kind,
        size: 1400,
        header_len: u16::try_from(headers).unwrap(),
    });
    frame
}

#[test]
fn unfinished_checksums_arrive_unfinished_tagged_or_not() {
    scene(|| {
        cable();
        let tags: [&[(u16, u16)]; 3] = [&[], &[(0x8100, 7)], &[(0x88a8, 7), (0x8100, 8)]];
        let lengths = [100, 1500, 4000];
        let frames = tags
            .iter()
            .flat_map(|tags| lengths.map(|len| unfinished(tags, len, 17)));
        crosses(&frames.collect::<Vec<_>>());
    });
}

#[test]
fn segmented_frames_arrive_whole_tagged_or_not() {
    scene(|| {
        cable();
        let kinds = [
            (6, SegmentationKind::Tcp4),
            (6, SegmentationKind::Tcp4Ecn),
            (17, SegmentationKind::Udp),
        ];
        let tags: [&[(u16, u16)]; 3] = [&[], &[(0x8100, 7)], &[(0x88a8, 7), (0x8100, 8)]];
        let (mut a, mut b) = (hand("left"), hand("right"));
        for (protocol, kind) in kinds {
            for tags in tags {
                for len in [1600, 9000, 60_000] {
                    let sent = segmented(tags, len, protocol, kind);
                    a.send(std::slice::from_ref(&sent));
                    let [received] = <[Frame; 1]>::try_from(b.receive(1)).unwrap();
                    assert_eq!(sent.bytes(), received.bytes());
                    // How much of it the kernel holds in one piece is only a hint.
                    let told = |frame: &Frame| match frame.offload {
                        Offload {
                            checksum,
                            segmentation: Some(how),
                        } => (checksum, how.kind, how.size),
                        offload => panic!("{offload:?}"),
                    };
                    assert_eq!(told(&sent), told(&received), "{tags:?} {len}");
                }
            }
        }
        assert_eq!(a.counts()[Counter::TxBytes], b.counts()[Counter::RxBytes]);
        assert_eq!(a.counts().tx_dropped() + b.counts().rx_dropped(), 0);
    });
}

#[test]
fn two_queues_share_the_frames_by_flow_and_hear_none_twice() {
    scene(|| {
        cable();
        let mut a = hand("left");
        let mut b = AfPacket::open(&name("right"), 2.try_into().unwrap()).unwrap();
        let queues = b.take_queues();
        assert!(b.take_queues().is_empty());
        let mut hands: Vec<_> = queues.into_iter().map(Hand::new).collect();
        // Sixty-four flows, four frames of each.
        let flows = (0..64u8).cycle().take(256).map(|flow| {
            let mut frame = unfinished(&[], 100, 17);
            frame.bytes_mut()[34..36].copy_from_slice(&[4, flow]);
            frame
        });
        let flows: Vec<_> = flows.collect();
        a.send(&flows);
        assert!(hands[0].wait(Duration::from_secs(10)));
        let heard: Vec<Vec<u8>> = hands
            .iter_mut()
            .map(|hand| {
                hand.receive_now()
                    .iter()
                    .map(|frame| frame.bytes()[35])
                    .collect()
            })
            .collect();
        assert_eq!(heard[0].len() + heard[1].len(), 256);
        assert!(!heard[0].is_empty() && !heard[1].is_empty());
        assert!(heard[0].iter().all(|flow| !heard[1].contains(flow)));
    });
}

#[test]
fn what_leaves_by_an_interface_is_not_heard_there() {
    scene(|| {
        cable();
        for queues in [1, 2] {
            let mut port = AfPacket::open(&name("left"), queues.try_into().unwrap()).unwrap();
            let mut hands: Vec<_> = port.take_queues().into_iter().map(Hand::new).collect();
            let mut far = hand("right");
            // Both pass the kernel's taps, which the queues are.
            let cut = segmented(&[], 3000, 6, SegmentationKind::Tcp4);
            hands[0].send(&[frame(60, 1), cut]);
            far.receive(2);
            let sent = hands[0].counts();
            assert_eq!(hands[0].counts(), sent);
            assert!(hands.iter_mut().all(|hand| hand.receive_now().is_empty()));
        }
    });
}

#[test]
fn queues_share_an_interface_that_was_down_or_say_why_not() {
    scene(|| {
        cable();
        ip("link set right down");
        let opened = AfPacket::open(&name("right"), 2.try_into().unwrap());
        let mut port = match opened {
            Err(OpenError::DownAndShared { .. }) => return, // A kernel before 6.13.
            opened => opened.unwrap(),
        };
        let mut hands: Vec<_> = port.take_queues().into_iter().map(Hand::new).collect();
        port.set_up(true).unwrap();
        settle(&["left", "right"]);
        hand("left").send(&[frame(60, 1)]);
        let heard = hands.iter_mut().flat_map(Hand::receive_now);
        assert_eq!(heard.collect::<Vec<_>>(), [frame(60, 1)]);
    });
}

#[test]
fn an_interface_goes_down_and_comes_back() {
    scene(|| {
        cable();
        let mut port = open("left");
        let mut a = Hand::new(port.take_queues().remove(0));
        let mut b = hand("right");
        let frames = [1, 2, 3].map(|seed| frame(100, seed));

        port.set_up(false).unwrap();
        assert_eq!((port.status().up, port.status().carrier), (false, false));
        a.send(&frames);
        b.send(&frames); // Up, but with nobody at the other end.
        // The error that waits on the socket does not keep a worker awake.
        assert!(!a.wait(Duration::ZERO));
        assert!(a.receive_now().is_empty());
        assert_eq!(a.counts(), Counts::from_iter([(Counter::TxDown, 3)]));
        // The kernel lets them fall: without a word, or, while it is taking the queue down, by
        // saying that there is no room. Each is counted once either way.
        let told = b.counts();
        assert_eq!(told[Counter::TxPackets] + told[Counter::TxNoRoom], 3);

        port.set_up(true).unwrap();
        settle(&["left", "right"]);
        assert_eq!((port.status().up, port.status().carrier), (true, true));
        a.send(&frames);
        b.send(&frames);
        assert_eq!(a.receive(3), frames);
        assert_eq!(b.receive(3), frames);
    });
}

#[test]
fn long_frames_that_wait_when_it_goes_down_are_not_mixed_up() {
    scene(|| {
        cable();
        let (mut a, mut b) = (hand("left"), hand("right"));
        let frames = [(9000, 1), (60, 2), (9000, 3), (9000, 4)].map(|(len, seed)| frame(len, seed));
        a.send(&frames);
        ip("link set right down");
        assert_eq!(b.receive_now(), frames);
        ip("link set right up");
        settle(&["left", "right"]);
        a.send(&frames);
        assert_eq!(b.receive(4), frames);
    });
}

#[test]
fn an_interface_may_be_down_when_it_is_opened() {
    scene(|| {
        ip("link add left type veth peer name right");
        let (mut a, mut b) = (hand("left"), hand("right"));
        ip("link set left up");
        ip("link set right up");
        assert!(!a.wait(Duration::ZERO));
        settle(&["left"]);
        a.send(&[frame(60, 1)]);
        assert_eq!(b.receive(1), [frame(60, 1)]);
    });
}

#[test]
fn a_removed_interface_is_an_error_whatever_is_asked_of_it() {
    scene(|| {
        cable();
        let mut port = open("left");
        let mut sender = Hand::new(port.take_queues().remove(0));
        let mut idler = hand("right");
        assert!(port.status().index.is_some());
        ip("link delete left");
        // A sleeping worker is woken, and finds out by looking after the queue.
        assert!(wait(
            std::slice::from_ref(&idler.queue),
            Duration::from_secs(10)
        ));
        let error = idler.queue.tend().unwrap_err();
        assert_eq!(error.to_string(), "interface right is gone");
        sender.batch.push(frame(60, 1)).unwrap();
        let error = sender.queue.send(&mut sender.batch, &mut sender.pool);
        assert_eq!(error.unwrap_err().to_string(), "interface left is gone");
        assert_eq!(sender.batch.len(), 1);
        assert_eq!(port.status().index, None);
        port.set_up(true).unwrap_err();
    });
}

#[test]
fn an_interface_moved_away_is_gone() {
    scene(|| {
        cable();
        let mut a = hand("left");
        let elsewhere = Host::new(1);
        ip(&format!("link set left netns {}", elsewhere.place()));
        a.queue.tend().unwrap_err();
    });
}

#[test]
fn a_status_follows_the_interface() {
    scene(|| {
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
fn a_closed_port_leaves_nothing_behind() {
    scene(|| {
        cable();
        let promiscuous = || {
            let shown = ask("ip", "-d -o link show left");
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
fn what_leaves_goes_by_the_queueing_discipline_whatever_it_is() {
    scene(|| {
        cable();
        run("tc", "qdisc add dev left root pfifo");
        let plain = frame(60, 1);
        let cut = segmented(&[], 4000, 6, SegmentationKind::Tcp4);
        let mut left = hand("left");
        left.send(&[plain.clone(), plain, cut]);
        let told = ask("tc", "-s qdisc show dev left");
        // Two short frames, and three segments with their headers.
        assert!(told.contains(" 4228 bytes "), "{told}");
    });
}

//! Frames through AF_XDP sockets, by the driver's hook and by the generic one.

use packet::{Checksum, Frame, Segmentation, SegmentationKind};
use ports::xdp::{HookChoice, Memories, Options, TransferChoice, Xdp};
use ports::{Counter, OpenError, Port};

use rustix::thread::CapabilitySet;

use crate::net::{Hand, Host, ask, forward, frame, hand, ip, name, run, scene, tcp};
use crate::opening::renounce;

const NATIVE: Options = Options {
    hook: HookChoice::Native,
    transfer: TransferChoice::Best,
    busy_poll: false,
};
const GENERIC: Options = Options {
    hook: HookChoice::Generic,
    ..NATIVE
};
const MODES: [Options; 3] = [
    NATIVE,
    GENERIC,
    Options {
        busy_poll: true,
        ..NATIVE
    },
];

fn open(text: &str, options: Options) -> Xdp {
    try_open(text, options).unwrap()
}

fn try_open(text: &str, options: Options) -> Result<Xdp, OpenError> {
    Xdp::open(&name(text), &[0], options, &mut Memories::default())
}

fn xdp(text: &str, options: Options) -> Hand {
    Hand::new(open(text, options).take_queues().remove(0))
}

fn refusal(opened: Result<Xdp, OpenError>) -> String {
    match opened {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

/// Two joined interfaces, `left` and `right`, up.
fn cable() {
    ip("link add left type veth peer name right");
    ip("link set left up");
    ip("link set right up");
}

/// An IPv4 frame of TCP from port 1 to port 2 with an unfinished checksum.
fn unfinished(len: usize) -> Frame {
    let mut frame = frame(len, 3);
    let total = u16::try_from(len - 14).unwrap();
    let [high, low] = total.to_be_bytes();
    let header = [
        8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2,
    ];
    frame.bytes_mut()[12..38].copy_from_slice(&header);
    frame.bytes_mut()[46..48].copy_from_slice(&[5 << 4, 0x10]);
    let sum = u32::from(total - 20) + 6 + 0x0a00 + 1 + 0x0a00 + 2;
    let sum = u16::try_from(sum).unwrap().to_be_bytes();
    frame.bytes_mut()[50..52].copy_from_slice(&sum);
    frame.offload.checksum = Checksum::Partial {
        start: 34,
        offset: 16,
    };
    frame
}

/// The sum of the TCP segment and its pseudo-header, which is all ones if the checksum is right.
fn tcp_sum(frame: &Frame) -> u32 {
    let bytes = frame.bytes();
    let words = bytes[26..].chunks(2);
    let words = words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum = words.sum::<u32>() + 6 + u32::try_from(bytes.len() - 34).unwrap();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

#[test]
fn frames_of_all_lengths_cross_both_ways_in_every_mode() {
    for mode in MODES {
        scene(|| {
            cable();
            let (mut a, mut b) = (xdp("left", mode), hand("right"));
            let frames: Vec<_> = (14..=1514)
                .zip((0..=255).cycle())
                .map(|(len, seed)| frame(len, seed))
                .collect();
            for some in frames.chunks(100) {
                a.send(some);
                assert_eq!(b.receive(some.len()), some);
                b.send(some);
                assert_eq!(a.receive(some.len()), some);
            }
            let count = frames.len() as u64;
            let counts = a.counts();
            assert_eq!(counts[Counter::TxPackets], count);
            assert_eq!(counts[Counter::RxPackets], count);
            assert_eq!(counts.rx_dropped() + counts.tx_dropped(), 0);
            assert_eq!((a.pool.outstanding(), b.pool.outstanding()), (0, 0));
        });
    }
}

#[test]
fn a_connection_crosses_though_the_hosts_leave_checksums_unfinished() {
    for mode in MODES {
        scene(|| {
            let hosts = [Host::behind("p1", 1), Host::behind("p2", 2)];
            if mode.hook == HookChoice::Generic {
                // The generic hook does not keep the other end from leaving segmentation to us.
                for host in &hosts {
                    host.run(|| run("ethtool", "-K eth0 tso off gso off"));
                }
            }
            let mut queues = ["p1", "p2"].map(|port| open(port, mode).take_queues().remove(0));
            tcp(&hosts[0], &hosts[1], 8_000_000, |over| {
                forward(&mut queues, over, |from, _| 1 - from);
            });
            let counts = queues.map(|queue| queue.counters().read());
            for counts in counts {
                assert!(counts[Counter::TxFinished] > 100, "{counts:?}");
                assert_eq!(counts.tx_dropped(), 0, "{counts:?}");
            }
        });
    }
}

#[test]
fn what_the_device_cannot_do_is_done_here_and_counted() {
    scene(|| {
        cable();
        let (mut a, mut b) = (xdp("left", NATIVE), hand("right"));
        let mut long = unfinished(54 + 10_000);
        long.offload.segmentation = Some(Segmentation {
            kind: SegmentationKind::Tcp4,
            size: 1400,
            header_len: 54,
        });
        a.send(&[unfinished(100), long]);
        let frames = b.receive(1 + 8);
        assert!(frames.iter().all(|frame| tcp_sum(frame) == 0xffff));
        assert_eq!(frames[8].len(), 54 + 10_000 - 7 * 1400);
        let counts = a.counts();
        assert_eq!(counts[Counter::TxFinished], 1);
        assert_eq!(counts[Counter::TxSegmented], 1);
        assert_eq!(counts[Counter::TxPackets], 9);
        assert_eq!(a.pool.outstanding(), 0);
    });
}

#[test]
fn what_is_unfinished_on_the_way_in_is_recognised_and_what_is_wrong_stays_wrong() {
    scene(|| {
        cable();
        let (mut a, mut b) = (xdp("left", NATIVE), hand("right"));
        let mut wrong = unfinished(100);
        wrong.offload.checksum = Checksum::Complete;
        wrong.bytes_mut()[50] ^= 1;
        b.send(&[unfinished(100), wrong.clone()]);
        let frames = a.receive(2);
        assert_eq!(frames[0], unfinished(100));
        assert_eq!(frames[1], wrong);
    });
}

#[test]
fn what_is_too_long_is_counted_and_what_is_short_enough_goes_on() {
    scene(|| {
        cable();
        let (mut a, mut b) = (xdp("left", NATIVE), hand("right"));
        a.send(&[frame(1519, 1), frame(9000, 1), frame(1518, 2)]);
        assert_eq!(b.receive(1), [frame(1518, 2)]);
        assert_eq!(a.counts()[Counter::TxTooLong], 2);
        assert_eq!(a.counts()[Counter::TxPackets], 1);
    });
}

#[test]
fn frames_beyond_the_memory_are_counted_and_the_rest_arrives() {
    scene(|| {
        cable();
        let (mut a, mut b) = (xdp("left", GENERIC), hand("right"));
        let seeds = (0..251).cycle().take(3000);
        let frames: Vec<_> = seeds.map(|seed| frame(60, seed)).collect();
        b.send(&frames);
        let arrived = a.receive(2048);
        assert_eq!(arrived, frames[..2048]);
        a.queue.tend().unwrap();
        assert_eq!(a.counts()[Counter::RxOverrun], 3000 - 2048);
        // And the memory is whole again.
        b.send(&frames[..2048]);
        assert_eq!(a.receive(2048), frames[..2048]);
        assert_eq!(a.pool.outstanding(), 0);
    });
}

#[test]
fn a_device_that_is_down_drops_and_counts_and_one_that_is_gone_is_an_error() {
    scene(|| {
        cable();
        let (mut a, mut b) = (xdp("left", NATIVE), hand("right"));
        ip("link set left down");
        a.send(&[frame(60, 1)]);
        a.send(&[frame(60, 2), frame(60, 3)]);
        assert_eq!(a.counts()[Counter::TxDown], 2);
        ip("link set left up");
        a.queue.tend().unwrap();
        a.send(&[frame(60, 4)]);
        // The first was on its way when the device was found to be down.
        assert_eq!(b.receive(2), [frame(60, 1), frame(60, 4)]);
        ip("link delete left");
        let error = a.queue.tend().unwrap_err();
        assert_eq!(error.to_string(), "interface left is gone");
        a.batch.push(a.pool.take().unwrap()).unwrap();
        let sent = a.queue.send(&mut a.batch, &mut a.pool);
        a.batch.release(a.batch.len(), &mut a.pool);
        assert!(sent.is_err() || a.counts().tx_dropped() > 2);
        assert_eq!(a.pool.outstanding(), 0);
    });
}

#[test]
fn a_device_that_is_down_can_be_opened() {
    scene(|| {
        ip("link add left type veth peer name right");
        let mut a = xdp("left", NATIVE);
        ip("link set left up");
        ip("link set right up");
        let mut b = hand("right");
        b.send(&[frame(60, 1)]);
        assert_eq!(a.receive(1), [frame(60, 1)]);
    });
}

#[test]
fn the_interface_is_as_it_was_afterwards() {
    scene(|| {
        cable();
        let before = ask("ip", "-d link show left");
        for mode in MODES {
            let mut port = open("left", mode);
            let queues = port.take_queues();
            let shown = ask("ip", "-d link show left");
            let wanted = if mode == GENERIC {
                "xdpgeneric"
            } else {
                "prog/xdp"
            };
            assert!(
                shown.contains(wanted) && shown.contains("promiscuity 1"),
                "{shown}"
            );
            drop(port);
            assert!(ask("ip", "-d link show left").contains("prog/xdp"));
            drop(queues);
            // A program that another test starts has copies of all descriptors for a moment.
            let mut shown = (0..100).map(|_| ask("ip", "-d link show left"));
            assert!(shown.any(|shown| shown == before));
        }
    });
}

#[test]
fn the_status_tells_which_way_frames_take() {
    scene(|| {
        cable();
        let way = |options| open("left", options).status().way.unwrap();
        assert_eq!(way(Options::default()), "AF_XDP, native, copied");
        assert_eq!(way(GENERIC), "AF_XDP, generic, copied");
        assert_eq!(way(MODES[2]), "AF_XDP, native, copied, polled");
        // The driver takes no program with frames that long before it.
        ip("link set right mtu 9000");
        assert_eq!(way(Options::default()), "AF_XDP, generic, copied");
        let refused = refusal(try_open("left", NATIVE));
        assert!(
            refused.starts_with("left: its driver takes no XDP program"),
            "{refused}"
        );
    });
}

#[test]
fn zero_copy_that_the_driver_lacks_is_refused_by_name_and_else_done_without() {
    scene(|| {
        cable();
        for hook in [HookChoice::Best, HookChoice::Native, HookChoice::Generic] {
            let options = Options {
                hook,
                transfer: TransferChoice::ZeroCopy,
                busy_poll: false,
            };
            let refused = refusal(try_open("left", options));
            let words = "left: its driver does not read and write frames in our memory (";
            assert!(refused.starts_with(words), "{refused}");
            assert!(refused.contains("leave `zero-copy` away"), "{refused}");
            assert!(!ask("ip", "-d link show left").contains("prog/xdp"));
        }
        let copy = Options {
            transfer: TransferChoice::Copy,
            ..NATIVE
        };
        for options in [NATIVE, copy] {
            let way = open("left", options).status().way;
            assert_eq!(way.as_deref(), Some("AF_XDP, native, copied"));
        }
    });
}

#[test]
fn what_cannot_be_opened_says_what_to_do() {
    scene(|| {
        cable();
        let open = |text| try_open(text, Options::default());
        assert_eq!(
            refusal(open("eth7")),
            "there is no interface eth7 here: `ip link` lists those there are"
        );
        assert!(refusal(open("lo")).contains("is not an Ethernet interface"));
        let first = open("left").unwrap();
        assert!(refusal(open("left")).starts_with("left is in use by another XDP program"));
        drop(first);
        ip("link set left mtu 3819");
        assert_eq!(
            refusal(open("left")),
            "left has an MTU of 3819, and AF_XDP takes 3818 at most: `ip link set left mtu \
             3818`, or leave `xdp:` away"
        );
    });
}

#[test]
fn several_queues_of_a_device_are_served_by_one_hand_and_one_queue_by_several() {
    const FRAMES: usize = 64;
    scene(|| {
        ip(
            "link add left numrxqueues 2 numtxqueues 2 type veth peer name right numrxqueues 2 numtxqueues 2",
        );
        run("ethtool", "-L left rx 2 tx 2");
        run("ethtool", "-L right rx 2 tx 2");
        ip("link set left up");
        ip("link set right up");
        let mut b = hand("right");
        let frames: Vec<_> = (0..FRAMES).map(|i| unfinished(100 + i)).collect();
        let mut a = xdp("left", NATIVE);
        b.send(&frames);
        assert_eq!(a.receive(FRAMES).len(), FRAMES);
        drop(a);
        let mut memories = Memories::default();
        let left = Xdp::open(&name("left"), &[0, 1, 2], NATIVE, &mut memories);
        let queues = left.unwrap().take_queues();
        let mut hands: Vec<_> = queues.into_iter().map(Hand::new).collect();
        assert_eq!(hands.len(), 3);
        for (seed, hand) in (1..).zip(&mut hands) {
            hand.send(&[frame(60, seed)]);
            assert_eq!(b.receive(1), [frame(60, seed)]);
        }
    });
}

#[test]
fn a_missing_privilege_is_named() {
    scene(|| {
        cable();
        renounce(CapabilitySet::NET_RAW);
        let refused = refusal(try_open("left", Options::default()));
        assert!(
            refused.contains("cap_net_admin,cap_net_raw,cap_bpf"),
            "{refused}"
        );
    });
}

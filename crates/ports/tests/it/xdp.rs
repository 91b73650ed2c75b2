//! AF_XDP sockets in native and generic mode.

use packet::{Checksum, Frame, Segmentation, SegmentationKind};
use ports::xdp::{TransferChoice, UmemPools, Xdp, XdpModeChoice, XdpOptions};
use ports::{Counter, OpenError, Port};

use rustix::thread::CapabilitySet;

use crate::net::{
    TestHost, TestQueue, forward, frame, in_namespace, ip, name, open_queue, output_of, run, tcp,
};
use crate::open::retain_capabilities;

const NATIVE: XdpOptions = XdpOptions {
    mode: XdpModeChoice::Native,
    transfer: TransferChoice::Best,
    busy_poll: false,
};
const GENERIC: XdpOptions = XdpOptions {
    mode: XdpModeChoice::Generic,
    ..NATIVE
};
const MODES: [XdpOptions; 3] = [
    NATIVE,
    GENERIC,
    XdpOptions {
        busy_poll: true,
        ..NATIVE
    },
];

fn open(text: &str, options: XdpOptions) -> Xdp {
    try_open(text, options).unwrap()
}

fn try_open(text: &str, options: XdpOptions) -> Result<Xdp, OpenError> {
    Xdp::open(&name(text), &[0], options, &mut UmemPools::default())
}

fn xdp(text: &str, options: XdpOptions) -> TestQueue {
    TestQueue::new(open(text, options).take_queues().remove(0))
}

fn error_text(opened: Result<Xdp, OpenError>) -> String {
    match opened {
        Ok(_) => panic!("the port was opened"),
        Err(error) => error.to_string(),
    }
}

/// Creates two connected interfaces, `left` and `right`, up.
fn link_pair() {
    ip("link add left type veth peer name right");
    ip("link set left up");
    ip("link set right up");
}

/// An IPv4 frame of TCP from port 1 to port 2 with a partial checksum.
fn partial_checksum(len: usize) -> Frame {
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

/// Sum of the TCP segment and its pseudo-header: all ones if the checksum is correct.
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
fn xdp_frames_of_all_lengths_cross_in_every_mode() {
    for mode in MODES {
        in_namespace(|| {
            link_pair();
            let (mut a, mut b) = (xdp("left", mode), open_queue("right"));
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
fn tcp_crosses_xdp_with_partial_checksums() {
    for mode in MODES {
        in_namespace(|| {
            let hosts = [TestHost::behind("p1", 1), TestHost::behind("p2", 2)];
            if mode.mode == XdpModeChoice::Generic {
                // Generic mode does not disable segmentation offload at the other end.
                for host in &hosts {
                    host.run(|| run("ethtool", "-K eth0 tso off gso off"));
                }
            }
            let mut queues = ["p1", "p2"].map(|port| open(port, mode).take_queues().remove(0));
            tcp(&hosts[0], &hosts[1], 8_000_000, |done| {
                forward(&mut queues, done, |from, _| 1 - from);
            });
            let counts = queues.map(|queue| queue.counters().read());
            for counts in counts {
                assert!(counts[Counter::TxChecksummed] > 100, "{counts:?}");
                assert_eq!(counts.tx_dropped(), 0, "{counts:?}");
            }
        });
    }
}

#[test]
fn checksums_and_segments_are_completed_in_software() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (xdp("left", NATIVE), open_queue("right"));
        let mut long = partial_checksum(54 + 10_000);
        long.offload.segmentation = Some(Segmentation {
            kind: SegmentationKind::Tcp4,
            size: 1400,
            header_len: 54,
        });
        a.send(&[partial_checksum(100), long]);
        let frames = b.receive(1 + 8);
        assert!(frames.iter().all(|frame| tcp_sum(frame) == 0xffff));
        assert_eq!(frames[8].len(), 54 + 10_000 - 7 * 1400);
        let counts = a.counts();
        assert_eq!(counts[Counter::TxChecksummed], 1);
        assert_eq!(counts[Counter::TxSegmented], 1);
        assert_eq!(counts[Counter::TxPackets], 9);
        assert_eq!(a.pool.outstanding(), 0);
    });
}

#[test]
fn partial_checksum_is_detected_and_wrong_one_is_kept() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (xdp("left", NATIVE), open_queue("right"));
        let mut wrong = partial_checksum(100);
        wrong.offload.checksum = Checksum::Complete;
        wrong.bytes_mut()[50] ^= 1;
        b.send(&[partial_checksum(100), wrong.clone()]);
        let frames = a.receive(2);
        assert_eq!(frames[0], partial_checksum(100));
        assert_eq!(frames[1], wrong);
    });
}

#[test]
fn overlong_xdp_frames_are_counted_and_others_sent() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (xdp("left", NATIVE), open_queue("right"));
        a.send(&[frame(1519, 1), frame(9000, 1), frame(1518, 2)]);
        assert_eq!(b.receive(1), [frame(1518, 2)]);
        assert_eq!(a.counts()[Counter::TxTooLong], 2);
        assert_eq!(a.counts()[Counter::TxPackets], 1);
    });
}

#[test]
fn frames_beyond_rx_chunks_are_counted() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (xdp("left", GENERIC), open_queue("right"));
        let seeds = (0..251).cycle().take(3000);
        let frames: Vec<_> = seeds.map(|seed| frame(60, seed)).collect();
        b.send(&frames);
        let arrived = a.receive(2048);
        assert_eq!(arrived, frames[..2048]);
        a.queue.maintain().unwrap();
        assert_eq!(a.counts()[Counter::RxOverrun], 3000 - 2048);
        // All chunks are available again.
        b.send(&frames[..2048]);
        assert_eq!(a.receive(2048), frames[..2048]);
        assert_eq!(a.pool.outstanding(), 0);
    });
}

#[test]
fn xdp_device_down_counts_drops_and_removed_is_an_error() {
    in_namespace(|| {
        link_pair();
        let (mut a, mut b) = (xdp("left", NATIVE), open_queue("right"));
        ip("link set left down");
        a.send(&[frame(60, 1)]);
        a.send(&[frame(60, 2), frame(60, 3)]);
        assert_eq!(a.counts()[Counter::TxDown], 2);
        ip("link set left up");
        a.queue.maintain().unwrap();
        a.send(&[frame(60, 4)]);
        // The first frame was enqueued before the interface was found to be down.
        assert_eq!(b.receive(2), [frame(60, 1), frame(60, 4)]);
        ip("link delete left");
        let error = a.queue.maintain().unwrap_err();
        assert_eq!(error.to_string(), "interface left was removed");
        a.batch.push(a.pool.take().unwrap()).unwrap();
        let sent = a.queue.send(&mut a.batch, &mut a.pool);
        a.batch.release(a.batch.len(), &mut a.pool);
        assert!(sent.is_err() || a.counts().tx_dropped() > 2);
        assert_eq!(a.pool.outstanding(), 0);
    });
}

#[test]
fn xdp_device_that_is_down_can_be_opened() {
    in_namespace(|| {
        ip("link add left type veth peer name right");
        let mut a = xdp("left", NATIVE);
        ip("link set left up");
        ip("link set right up");
        let mut b = open_queue("right");
        b.send(&[frame(60, 1)]);
        assert_eq!(a.receive(1), [frame(60, 1)]);
    });
}

#[test]
fn closed_xdp_port_restores_interface() {
    in_namespace(|| {
        link_pair();
        let before = output_of("ip", "-d link show left");
        for mode in MODES {
            let mut port = open("left", mode);
            let queues = port.take_queues();
            let shown = output_of("ip", "-d link show left");
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
            assert!(output_of("ip", "-d link show left").contains("prog/xdp"));
            drop(queues);
            // A program that another test starts has copies of all descriptors for a moment.
            let mut shown = (0..100).map(|_| output_of("ip", "-d link show left"));
            assert!(shown.any(|shown| shown == before));
        }
    });
}

#[test]
fn status_reports_xdp_mode() {
    in_namespace(|| {
        link_pair();
        let way = |options| open("left", options).status().io_mode.unwrap();
        assert_eq!(way(XdpOptions::default()), "AF_XDP, native, copied");
        assert_eq!(way(GENERIC), "AF_XDP, generic, copied");
        assert_eq!(way(MODES[2]), "AF_XDP, native, copied, polled");
        // The driver does not accept an XDP program with frames of that length.
        ip("link set right mtu 9000");
        assert_eq!(way(XdpOptions::default()), "AF_XDP, generic, copied");
        let error = error_text(try_open("left", NATIVE));
        assert!(
            error.starts_with("left: its driver does not support native XDP"),
            "{error}"
        );
    });
}

#[test]
fn unsupported_zero_copy_is_refused_if_required() {
    in_namespace(|| {
        link_pair();
        for mode in [
            XdpModeChoice::Best,
            XdpModeChoice::Native,
            XdpModeChoice::Generic,
        ] {
            let options = XdpOptions {
                mode,
                transfer: TransferChoice::ZeroCopy,
                busy_poll: false,
            };
            let error = error_text(try_open("left", options));
            let words = "left: its driver does not support AF_XDP zero copy (";
            assert!(error.starts_with(words), "{error}");
            assert!(error.contains("omit `zero-copy`"), "{error}");
            assert!(!output_of("ip", "-d link show left").contains("prog/xdp"));
        }
        let copy = XdpOptions {
            transfer: TransferChoice::Copy,
            ..NATIVE
        };
        for options in [NATIVE, copy] {
            let way = open("left", options).status().io_mode;
            assert_eq!(way.as_deref(), Some("AF_XDP, native, copied"));
        }
    });
}

#[test]
fn xdp_open_errors_name_a_remedy() {
    in_namespace(|| {
        link_pair();
        let open = |text| try_open(text, XdpOptions::default());
        assert_eq!(
            error_text(open("eth7")),
            "interface eth7 does not exist: `ip link` lists the existing ones"
        );
        assert!(error_text(open("lo")).contains("is not an Ethernet interface"));
        let first = open("left").unwrap();
        assert!(error_text(open("left")).starts_with("left is in use by another XDP program"));
        drop(first);
        ip("link set left mtu 3819");
        assert_eq!(
            error_text(open("left")),
            "left has an MTU of 3819, and the maximum for AF_XDP is 3818: `ip link set left mtu \
             3818`, or omit `xdp:`"
        );
    });
}

#[test]
fn device_queues_are_distributed_over_workers() {
    const FRAMES: usize = 64;
    in_namespace(|| {
        ip(
            "link add left numrxqueues 2 numtxqueues 2 type veth peer name right numrxqueues 2 numtxqueues 2",
        );
        run("ethtool", "-L left rx 2 tx 2");
        run("ethtool", "-L right rx 2 tx 2");
        ip("link set left up");
        ip("link set right up");
        let mut b = open_queue("right");
        let frames: Vec<_> = (0..FRAMES).map(|i| partial_checksum(100 + i)).collect();
        let mut a = xdp("left", NATIVE);
        b.send(&frames);
        assert_eq!(a.receive(FRAMES).len(), FRAMES);
        drop(a);
        let mut pools = UmemPools::default();
        let left = Xdp::open(&name("left"), &[0, 1, 2], NATIVE, &mut pools);
        let queues = left.unwrap().take_queues();
        let mut queues: Vec<_> = queues.into_iter().map(TestQueue::new).collect();
        assert_eq!(queues.len(), 3);
        for (seed, open_queue) in (1..).zip(&mut queues) {
            open_queue.send(&[frame(60, seed)]);
            assert_eq!(b.receive(1), [frame(60, seed)]);
        }
    });
}

#[test]
fn missing_xdp_privileges_are_named() {
    in_namespace(|| {
        link_pair();
        retain_capabilities(CapabilitySet::NET_RAW);
        let error = error_text(try_open("left", XdpOptions::default()));
        assert!(
            error.contains("cap_net_admin,cap_net_raw,cap_bpf"),
            "{error}"
        );
    });
}

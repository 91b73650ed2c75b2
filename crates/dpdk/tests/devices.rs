//! DPDK devices as ports, without a switch: forwarded frames, counters, and the errors of devices
//! that cannot be opened.
#![cfg(feature = "dpdk")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use capture_file::pcap::PcapHeader;
use packet::{Checksum, Frame, Pool, Segmentation, SegmentationKind};
use ports::{Batch, Counter, Port, Queue, QueueCounts};

const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn open(text: &str) -> Box<dyn Port> {
    dpdk::open(&text.parse().unwrap(), ONE).unwrap()
}

fn refusal(text: &str) -> String {
    match dpdk::open(&text.parse().unwrap(), ONE) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

/// A user of a queue.
struct QueueUser {
    queue: Box<dyn Queue>,
    pool: Pool,
}

impl QueueUser {
    fn open(text: &str) -> Self {
        Self::with_pool(text, 256)
    }

    fn with_pool(text: &str, buffers: usize) -> Self {
        Self {
            queue: open(text).take_queues().remove(0),
            pool: Pool::new(buffers),
        }
    }

    /// Sends all of `frames`.
    fn send(&mut self, frames: &[Frame]) {
        for some in frames.chunks(Batch::FRAMES_MAX) {
            let mut batch = Batch::new();
            for frame in some {
                let copy = self.pool.duplicate(frame).unwrap();
                batch.push(copy).unwrap();
            }
            self.queue.send(&mut batch, &mut self.pool).unwrap();
            assert!(batch.is_empty(), "there was room for all");
        }
    }

    /// Returns the frames of one receive call.
    fn receive(&mut self) -> Vec<Frame> {
        let mut batch = Batch::new();
        self.queue.receive(&mut self.pool, &mut batch).unwrap();
        let frames = batch.to_vec();
        batch.release(batch.len(), &mut self.pool);
        frames
    }

    /// Returns the counters. The queue reads the device's own counters only at intervals.
    fn counts(&mut self) -> QueueCounts {
        for _ in 0..100 {
            self.queue.maintain().unwrap();
        }
        self.queue.counters().read()
    }
}

fn frame(len: usize, seed: u8) -> Frame {
    let bytes: Vec<u8> = (0..len).map(|at| at.to_le_bytes()[0] ^ seed).collect();
    Frame::from_bytes(&bytes)
}

/// A TCP segment over IPv4 with `payload` bytes and a partial checksum.
fn partial_checksum_frame(payload: usize) -> Frame {
    let mut bytes = vec![2; 54];
    let total = u16::try_from(payload + 40).unwrap();
    let [high, low] = total.to_be_bytes();
    bytes[12..34].copy_from_slice(&[
        8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    bytes[46..50].copy_from_slice(&[5 << 4, 0x10, 1, 0]);
    let sum = u32::from(total - 20) + 6 + 0x0a00 + 1 + 0x0a00 + 2;
    bytes[50..52].copy_from_slice(&u16::try_from(sum).unwrap().to_be_bytes());
    bytes[52..54].copy_from_slice(&[0, 0]);
    bytes.extend((0..payload).map(|at| at.to_le_bytes()[0]));
    let mut frame = Frame::from_bytes(&bytes);
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

/// Writes frames to a pcap file; each test has its own.
fn capture(name: &str, frames: &[Frame]) -> PathBuf {
    let mut bytes = PcapHeader::ETHERNET.encode();
    for frame in frames {
        PcapHeader::ETHERNET.append_packet(&mut bytes, frame.bytes());
    }
    let file = file(name);
    fs::write(&file, bytes).unwrap();
    file
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

#[test]
fn frames_of_all_lengths_cross_unchanged() {
    let mut user = QueueUser::open("net_ring1");
    let frames: Vec<_> = (14..=1518)
        .zip((0..=255).cycle())
        .map(|(len, seed)| frame(len, seed))
        .collect();
    for some in frames.chunks(Batch::FRAMES_MAX) {
        user.send(some);
        assert_eq!(user.receive(), some);
    }
    let counts = user.counts();
    let count = frames.len() as u64;
    assert_eq!(counts[Counter::TxPackets], count);
    assert_eq!(counts[Counter::RxPackets], count);
    assert_eq!(counts[Counter::RxBytes], counts[Counter::TxBytes]);
    assert_eq!(counts.rx_dropped() + counts.tx_dropped(), 0, "{counts:?}");
    assert_eq!(user.pool.outstanding(), 0);
}

#[test]
fn dpdk_frames_beyond_mtu_are_counted_and_others_sent() {
    let mut user = QueueUser::open("net_ring2");
    let frames = [frame(60, 1), frame(1519, 2), frame(61, 3), frame(2000, 4)];
    user.send(&frames);
    assert_eq!(user.receive(), [frames[0].clone(), frames[2].clone()]);
    let counts = user.counts();
    assert_eq!(counts[Counter::TxTooLong], 2);
    assert_eq!(counts[Counter::TxPackets], 2);
    let mut user = QueueUser::open("net_ring3,mtu=9000");
    let long = [frame(9018, 1), frame(9019, 2)];
    user.send(&long);
    assert_eq!(user.receive(), long[..1]);
}

#[test]
fn dpdk_checksums_and_segmentation_are_done_in_software() {
    let mut user = QueueUser::open("net_ring4");
    user.send(&[partial_checksum_frame(100)]);
    let received = user.receive();
    assert_eq!((received.len(), tcp_sum(&received[0])), (1, 0xffff));
    let mut long = partial_checksum_frame(30_000);
    long.offload.segmentation = Some(Segmentation {
        kind: SegmentationKind::Tcp4,
        size: 1000,
        header_len: 54,
    });
    user.send(&[frame(60, 1), long, frame(60, 2)]);
    let received = user.receive();
    assert_eq!(received.len(), 32);
    assert_eq!(
        (&received[0], &received[31]),
        (&frame(60, 1), &frame(60, 2))
    );
    for segment in &received[1..31] {
        assert_eq!((segment.len(), tcp_sum(segment)), (1054, 0xffff));
    }
    let counts = user.counts();
    assert_eq!(counts[Counter::TxChecksummed], 1);
    assert_eq!(counts[Counter::TxSegmented], 1);
    assert_eq!(counts[Counter::TxPackets], 33);
    assert_eq!(user.pool.outstanding(), 0);
}

#[test]
fn frame_with_too_many_segments_is_dropped_and_counted() {
    let mut user = QueueUser::open("net_ring14");
    let mut long = partial_checksum_frame(2000);
    long.offload.segmentation = Some(Segmentation {
        kind: SegmentationKind::Tcp4,
        size: 1,
        header_len: 54,
    });
    user.send(&[long, frame(60, 1)]);
    assert_eq!(user.receive(), [frame(60, 1)]);
    assert_eq!(user.counts()[Counter::TxErrors], 1);
    assert_eq!(user.pool.outstanding(), 0);
}

#[test]
fn multi_segment_mbuf_is_received_as_one_frame() {
    let frames = [frame(60, 1), frame(5000, 2), frame(9000, 3), frame(61, 4)];
    let file = capture("pieces.pcap", &frames);
    let mut user = QueueUser::open(&format!("net_pcap5,rx_pcap={}", file.display()));
    assert_eq!(user.receive(), frames);
}

#[test]
fn sent_frames_are_in_pcap_file_after_close() {
    let to = file("sent.pcap");
    let from = capture("nothing.pcap", &[]);
    let text = format!(
        "net_pcap6,rx_pcap={},tx_pcap={}",
        from.display(),
        to.display()
    );
    let frames = [frame(60, 1), frame(1514, 2)];
    let mut user = QueueUser::open(&text);
    user.send(&frames);
    drop(user);
    let written = fs::read(&to).unwrap();
    assert_eq!(written.len(), 24 + 2 * 16 + 60 + 1514);
    assert_eq!(written[40..100], *frames[0].bytes());
}

#[test]
fn frames_wait_while_the_pool_is_empty() {
    // Frames of several segments, so that each needs a buffer.
    let frames: Vec<_> = (0..5).map(|seed| frame(5000, seed)).collect();
    let file = capture("long.pcap", &frames);
    let mut user = QueueUser::with_pool(&format!("net_pcap7,rx_pcap={}", file.display()), 2);
    let received: Vec<_> = (0..3).flat_map(|_| user.receive()).collect();
    assert_eq!(received, frames);
    assert_eq!(user.counts()[Counter::RxNoBuffer], 2);
}

#[test]
fn single_segment_mbuf_is_forwarded_without_copy() {
    let mut from = QueueUser::with_pool("net_null15,size=100", 0);
    let mut to = QueueUser::with_pool("net_ring15", 64);
    let mut batch = Batch::new();
    from.queue.receive(&mut from.pool, &mut batch).unwrap();
    assert_eq!(batch.len(), Batch::FRAMES_MAX);
    batch[0].bytes_mut()[0] = 7;
    batch[1].insert_zeros(12, 4).unwrap();
    batch[2].remove(12, 4);
    let sent = batch.to_vec();
    to.queue.send(&mut batch, &mut from.pool).unwrap();
    assert!(batch.is_empty());
    // The buffers belong to another device's memory, so the frames are copied.
    let received = to.receive();
    assert_eq!(received, sent);
    assert_eq!(
        [received[0].len(), received[1].len(), received[2].len()],
        [100, 104, 96]
    );
}

#[test]
fn lent_frames_outlive_their_device() {
    let mut user = QueueUser::open("net_null16,size=100");
    let mut batch = Batch::new();
    user.queue.receive(&mut user.pool, &mut batch).unwrap();
    batch[0].bytes_mut().fill(9);
    let original = batch.to_vec();
    drop(user.queue);
    // The next device is opened while that memory is still in use.
    let mut other = QueueUser::open("net_ring16");
    assert_eq!(batch.to_vec(), original);
    other.queue.send(&mut batch, &mut other.pool).unwrap();
    assert_eq!(other.receive(), original);
    drop(other);
    drop(open("net_null16"));
}

#[test]
fn full_device_leaves_unsent_frames_in_batch() {
    // A ring of about a thousand frames without a reader.
    let mut user = QueueUser::with_pool("net_ring8", 4096);
    let mut unsent = 0;
    for seed in 0..40 {
        let mut batch = Batch::new();
        for _ in 0..Batch::FRAMES_MAX {
            let copy = user.pool.duplicate(&frame(60, seed)).unwrap();
            batch.push(copy).unwrap();
        }
        user.queue.send(&mut batch, &mut user.pool).unwrap();
        unsent += batch.len();
        batch.release(batch.len(), &mut user.pool);
    }
    let counts = user.counts();
    assert!(unsent > 0);
    assert_eq!(counts[Counter::TxPackets], 40 * 64 - unsent as u64);
    let received: usize =
        std::iter::from_fn(|| Some(user.receive().len()).filter(|len| *len > 0)).sum();
    assert_eq!(received, 40 * 64 - unsent);
    assert_eq!(user.pool.outstanding(), 0);
}

#[test]
fn port_that_is_down_neither_receives_nor_sends() {
    let mut port = open("net_ring9");
    let mut user = QueueUser {
        queue: port.take_queues().remove(0),
        pool: Pool::new(8),
    };
    assert!(port.status().up);
    user.send(&[frame(60, 1)]);
    port.set_up(false).unwrap();
    assert!(!port.status().up && !port.status().carrier);
    user.send(&[frame(60, 2)]);
    assert_eq!(user.receive(), []);
    port.set_up(true).unwrap();
    user.send(&[frame(60, 3)]);
    assert_eq!(user.receive(), [frame(60, 3)]);
    assert_eq!(user.counts()[Counter::TxDown], 1);
}

#[test]
fn device_reopens_repeatedly() {
    for seed in 0..5 {
        // Frames are left in the device when its memory is released.
        let mut user = QueueUser::open("net_ring10");
        user.send(&[frame(60, seed), frame(60, seed)]);
    }
}

/// A driver that failed to set up its queue is not called for that queue again, not even when its
/// device is closed.
#[test]
fn pcap_device_is_refused_while_memory_pool_is_too_small() {
    let frames: Vec<Frame> = (0..=255)
        .cycle()
        .take(1200)
        .map(|seed| frame(60, seed))
        .collect();
    let file = capture("no-room", &frames);
    let device = |buffers: u32| {
        let file = file.display();
        format!("net_pcap41,rx_pcap={file},infinite_rx=1,buffers={buffers}")
    };
    for _ in 0..3 {
        let error = refusal(&device(1024));
        assert!(error.contains("mbufs"), "{error}");
    }
    let mut user = QueueUser::open(&device(4096));
    assert_eq!(user.receive(), frames[..Batch::FRAMES_MAX]);
}

#[test]
fn dpdk_port_reports_its_status() {
    let mut port = open("net_null11,mtu=1400");
    let status = port.status();
    assert_eq!(status.name, "net_null11");
    assert_eq!((status.mtu, status.up, status.carrier), (1400, true, true));
    assert_eq!(status.driver.as_deref(), Some("net_null"));
    let io_mode = status.io_mode.unwrap();
    assert!(
        io_mode.starts_with("DPDK, net_null, 1 of 1 queues, "),
        "{io_mode}"
    );
    assert_eq!(port.take_queues().len(), 1);
    assert_eq!(port.take_queues().len(), 0);
}

#[test]
fn dpdk_workers_have_separate_queues() {
    let three = NonZeroUsize::new(3).unwrap();
    let arguments = "net_null12,size=100".parse().unwrap();
    let mut port = dpdk::open(&arguments, three).unwrap();
    let queues = port.take_queues();
    assert_eq!(queues.len(), 3);
    let threads: Vec<_> = queues
        .into_iter()
        .map(|mut queue| {
            std::thread::spawn(move || {
                let (mut pool, mut batch) = (Pool::new(64), Batch::new());
                for _ in 0..1000 {
                    queue.receive(&mut pool, &mut batch).unwrap();
                    assert_eq!(batch.len(), Batch::FRAMES_MAX);
                    queue.send(&mut batch, &mut pool).unwrap();
                    assert!(batch.is_empty());
                }
                queue.counters().read()
            })
        })
        .collect();
    for thread in threads {
        let counts = thread.join().unwrap();
        assert_eq!(counts[Counter::RxBytes], 6_400_000);
        assert_eq!(counts[Counter::TxPackets], 64_000);
    }
}

#[test]
fn transmit_only_queue_shares_device_queue() {
    let mut port = open("net_ring17");
    let mut user = QueueUser {
        queue: port.take_queues().remove(0),
        pool: Pool::new(8),
    };
    for seed in 0..3 {
        let mut sender = QueueUser {
            queue: port.tx_queue().unwrap(),
            pool: Pool::new(8),
        };
        sender.send(&[frame(60, seed)]);
        assert_eq!(sender.receive(), []);
        assert_eq!(sender.counts()[Counter::TxPackets], 1);
        assert_eq!(user.receive(), [frame(60, seed)]);
    }
}

#[test]
fn open_error_includes_driver_messages() {
    let error = refusal("net_nonsense13");
    assert!(
        error.starts_with("net_nonsense13: probing the device: "),
        "{error}"
    );
    let error = refusal("net_pcap13,rx_pcap=/no/such/file");
    assert!(error.contains("/no/such/file"), "{error}");
    let error = refusal("net_null13,nonsense=1");
    assert!(
        error.starts_with("net_null13: probing the device: "),
        "{error}"
    );
    let error = refusal("net_null13,buffers=1000000");
    assert!(
        error.starts_with("net_null13: starting the device: "),
        "{error}"
    );
    // A failed open leaves no state.
    drop(open("net_null13"));
    let _open = open("net_null13");
    let error = refusal("net_null13");
    assert!(error.contains("File exists"), "{error}");
}

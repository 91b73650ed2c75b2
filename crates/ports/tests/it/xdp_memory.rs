//! AF_XDP ports that share a UMEM: frames are forwarded in place, and no chunk is lost or has two
//! owners when ports are closed and reopened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use packet::{Frame, Pool};
use ports::xdp::{UmemPools, Xdp, XdpOptions};
use ports::{Batch, Counter, Port, Queue};

use crate::net::{TIMEOUT, TestQueue, forward, frame, in_namespace, ip, name, open_queue, tagged};

/// Chunks of a UMEM for two sockets.
const CHUNKS: usize = 2 * (2048 + 1024 + 64) + 128;
const RX_CHUNKS: usize = 2048;
const TX_CHUNKS: usize = 1024;

/// Creates connected interfaces `p1` and `h1`, `p2` and `h2`, and so on, up.
fn link_pairs(count: usize) {
    for number in 1..=count {
        ip(&format!("link add p{number} type veth peer name h{number}"));
        ip(&format!("link set p{number} up"));
        ip(&format!("link set h{number} up"));
    }
}

fn open(text: &str, pools: &mut UmemPools) -> TestQueue {
    TestQueue::new(open_for_worker(text, 0, pools))
}

/// Opens the queue of a worker.
fn open_for_worker(text: &str, worker: usize, pools: &mut UmemPools) -> Box<dyn Queue> {
    let port = Xdp::open(&name(text), &[worker], XdpOptions::default(), pools);
    port.unwrap().take_queues().remove(0)
}

/// Frames of 60 bytes with different contents.
fn frames(count: usize) -> Vec<Frame> {
    let seeds = (0..251).cycle().take(count);
    seeds.map(|seed| frame(60, seed)).collect()
}

/// The frames received when the first batch of these is sent repeatedly.
fn frames_in_batches(count: usize) -> Vec<Frame> {
    let batch = frames(Batch::FRAMES_MAX);
    batch.iter().cycle().take(count).cloned().collect()
}

/// Receives `count` frames in place.
fn receive_in_place(from: &mut TestQueue, count: usize) -> Vec<Frame> {
    let mut received = Vec::new();
    while received.len() < count {
        from.queue.receive(&mut from.pool, &mut from.batch).unwrap();
        if from.batch.is_empty() {
            assert!(from.wait(TIMEOUT), "{} frames arrived", received.len());
        }
        received.extend(from.batch.drain());
    }
    received
}

/// Sends frames in place.
fn forward_in_place(frames: Vec<Frame>, to: &mut TestQueue) {
    let mut frames = frames.into_iter().peekable();
    while frames.peek().is_some() {
        for frame in frames.by_ref().take(Batch::FRAMES_MAX) {
            to.batch.push(frame).unwrap();
        }
        to.queue.send(&mut to.batch, &mut to.pool).unwrap();
        assert!(to.batch.is_empty());
    }
}

/// Chunks of worker 0 by owner: free, detached, the kernel's.
fn chunk_counts(pools: &UmemPools) -> (usize, usize, usize) {
    let counts = pools.chunk_counts(0);
    (counts.free, counts.detached, counts.kernel)
}

#[test]
fn frames_are_forwarded_zero_copy_without_loss() {
    in_namespace(|| {
        link_pairs(2);
        let mut pools = UmemPools::default();
        let (mut a, mut b) = (open("p1", &mut pools), open("p2", &mut pools));
        assert_eq!(pools.umem_count(0), 1);
        assert_eq!(
            chunk_counts(&pools),
            (CHUNKS - 2 * RX_CHUNKS, 0, 2 * RX_CHUNKS)
        );
        let (mut left, mut right) = (open_queue("h1"), open_queue("h2"));
        let sent = frames(1000);
        // More frames than all rings hold: every chunk is reused.
        for _ in 0..8 {
            left.send(&sent);
            let received = receive_in_place(&mut a, sent.len());
            assert_eq!(pools.chunk_counts(0).detached, sent.len());
            forward_in_place(received, &mut b);
            assert_eq!(right.receive(sent.len()), sent);
        }
        b.queue.maintain().unwrap();
        assert_eq!(
            chunk_counts(&pools),
            (CHUNKS - 2 * RX_CHUNKS, 0, 2 * RX_CHUNKS)
        );
        assert_eq!(a.counts()[Counter::RxCopied], 0);
        assert_eq!(b.counts()[Counter::TxZeroCopy], 8000);
        assert_eq!(b.counts()[Counter::TxPackets], 8000);
        assert_eq!(b.counts()[Counter::TxBytes], 8000 * 60);
        assert_eq!(b.counts()[Counter::TxCopied], 0);
        assert_eq!((a.pool.outstanding(), b.pool.outstanding()), (0, 0));
        drop((a, b));
        assert_eq!(
            pools.umem_count(0),
            0,
            "no socket or frame refers to the UMEM"
        );
    });
}

#[test]
fn frame_is_modified_in_place_and_foreign_frame_is_copied() {
    in_namespace(|| {
        link_pairs(3);
        let mut pools = UmemPools::default();
        let (mut a, mut b) = (open("p1", &mut pools), open("p2", &mut pools));
        let mut other = TestQueue::new(open_for_worker("p3", 1, &mut pools));
        assert_eq!((pools.umem_count(0), pools.umem_count(1)), (1, 1));
        let (mut left, mut right, mut peer) =
            (open_queue("h1"), open_queue("h2"), open_queue("h3"));
        left.send(&frames(3));
        let mut received = receive_in_place(&mut a, 3);
        for frame in &mut received {
            frame.insert_zeros(12, 4).unwrap();
            frame.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, 7]);
        }
        let mut pool = Pool::new(1);
        let copy = pool.duplicate(&received[0]).unwrap();
        // To another worker's UMEM; a copy from a pool; and in place.
        forward_in_place(received.drain(1..2).collect(), &mut other);
        forward_in_place(vec![copy], &mut b);
        forward_in_place(received, &mut b);
        let tagged = |seed| tagged(&[(0x8100, 7)], 64, seed);
        assert_eq!(peer.receive(1), [tagged(1)]);
        assert_eq!(right.receive(3), [tagged(0), tagged(0), tagged(2)]);
        let moved = |open_queue: &TestQueue| {
            let counts = open_queue.counts();
            (counts[Counter::TxZeroCopy], counts[Counter::TxCopied])
        };
        assert_eq!((moved(&b), moved(&other)), ((2, 1), (0, 1)));
        assert_eq!(pools.chunk_counts(0).detached, 0);
    });
}

#[test]
fn held_frames_cause_copies_but_no_loss() {
    in_namespace(|| {
        link_pairs(2);
        let mut pools = UmemPools::default();
        let (mut a, mut b) = (open("p1", &mut pools), open("p2", &mut pools));
        let (mut left, mut right) = (open_queue("h1"), open_queue("h2"));
        let sent = frames(1000);
        let mut held_frames = Vec::new();
        let mut received_count = 0;
        while a.counts()[Counter::RxCopied] == 0 {
            left.send(&sent[..Batch::FRAMES_MAX]);
            held_frames.extend(receive_in_place(&mut a, Batch::FRAMES_MAX));
            received_count += Batch::FRAMES_MAX;
        }
        // All chunks outside the fill rings are detached, except those in the sockets' caches.
        let copied = usize::try_from(a.counts()[Counter::RxCopied]).unwrap();
        let detached = pools.chunk_counts(0).detached;
        assert_eq!(detached + copied, received_count);
        let spare = CHUNKS - 2 * RX_CHUNKS - detached;
        assert!(spare <= 2 * Batch::FRAMES_MAX, "{spare} left");
        assert!(
            held_frames == frames_in_batches(received_count),
            "frames were modified"
        );
        let pooled = held_frames.split_off(detached);
        pooled.into_iter().for_each(|frame| a.pool.put(frame));
        left.send(&sent);
        assert_eq!(a.receive(sent.len()), sent);
        assert_eq!(pools.chunk_counts(0).detached, detached);
        // The other port can still receive.
        right.send(&sent);
        assert_eq!(b.receive(sent.len()), sent);
        assert_eq!(pools.chunk_counts(0).kernel, 2 * RX_CHUNKS);
        // With an empty pool, frames that cannot be detached stay in the ring.
        let buffers: Vec<_> = std::iter::from_fn(|| a.pool.take()).collect();
        left.send(&sent[..1]);
        assert!(a.wait(TIMEOUT));
        a.queue.receive(&mut a.pool, &mut a.batch).unwrap();
        assert!(a.batch.is_empty());
        assert_eq!(a.counts()[Counter::RxNoBuffer], 1);
        buffers.into_iter().for_each(|frame| a.pool.put(frame));
        assert_eq!(a.receive(1), sent[..1]);
        drop(held_frames);
        assert_eq!(
            chunk_counts(&pools),
            (CHUNKS - 2 * RX_CHUNKS, 0, 2 * RX_CHUNKS)
        );
    });
}

#[test]
fn port_that_cannot_send_holds_only_its_tx_chunks() {
    in_namespace(|| {
        link_pairs(2);
        let mut pools = UmemPools::default();
        let (mut a, mut b) = (open("p1", &mut pools), open("p2", &mut pools));
        let mut left = open_queue("h1");
        // While the interface is down the kernel is not notified of enqueued frames.
        ip("link set p2 down");
        let sent = frames(1000);
        let mut dropped = 0;
        for _ in 0..4 {
            left.send(&sent);
            for some in receive_in_place(&mut a, sent.len()).chunks_mut(Batch::FRAMES_MAX) {
                b.batch.append_taken(some);
                b.queue.send(&mut b.batch, &mut b.pool).unwrap();
                dropped += b.batch.len();
                b.batch.release(b.batch.len(), &mut b.pool);
            }
        }
        let counts = b.counts();
        let (down, placed) = (counts[Counter::TxDown], counts[Counter::TxPackets]);
        assert_eq!(down + placed + dropped as u64, 4000);
        assert!(placed <= TX_CHUNKS as u64, "{placed}");
        assert_eq!(pools.chunk_counts(0).detached, 0);
        let received = pools.chunk_counts(0).kernel - 2 * RX_CHUNKS;
        assert!(received <= TX_CHUNKS, "{received} of b");
        ip("link set p2 up");
        b.queue.maintain().unwrap();
        let mut right = open_queue("h2");
        left.send(&sent[..10]);
        forward_in_place(receive_in_place(&mut a, 10), &mut b);
        right.receive_now();
        b.queue.maintain().unwrap();
        assert_eq!(
            chunk_counts(&pools),
            (CHUNKS - 2 * RX_CHUNKS, 0, 2 * RX_CHUNKS)
        );
    });
}

#[test]
fn reopened_port_gets_its_umem_share_back() {
    in_namespace(|| {
        link_pairs(2);
        let mut pools = UmemPools::default();
        let (mut a, mut b) = (open("p1", &mut pools), open("p2", &mut pools));
        let (mut left, mut right) = (open_queue("h1"), open_queue("h2"));
        let sent = frames(500);
        for round in 0..10 {
            left.send(&sent);
            let received = receive_in_place(&mut a, sent.len());
            // Closed in mid-batch, alternately with its interface removed and not.
            drop(a);
            if round % 2 == 1 {
                ip("link delete p1");
                ip("link add p1 type veth peer name h1");
                ip("link set p1 up");
                ip("link set h1 up");
                left = open_queue("h1");
            }
            forward_in_place(received, &mut b);
            assert_eq!(right.receive(sent.len()), sent);
            a = open("p1", &mut pools);
            assert_eq!(pools.umem_count(0), 1, "a share is free, round {round}");
            b.queue.maintain().unwrap();
            assert_eq!(
                chunk_counts(&pools),
                (CHUNKS - 2 * RX_CHUNKS, 0, 2 * RX_CHUNKS)
            );
        }
        assert_eq!(b.counts()[Counter::TxZeroCopy], 5000);
    });
}

#[test]
fn port_moved_to_another_umem_returns_its_share() {
    in_namespace(|| {
        link_pairs(2);
        let mut pools = UmemPools::default();
        let (a, b) = (open("p1", &mut pools), open("p2", &mut pools));
        drop(a);
        assert_eq!(pools.chunk_counts(0).kernel, 2 * RX_CHUNKS);
        let a = open_for_worker("p1", 1, &mut pools);
        assert_eq!(chunk_counts(&pools), (CHUNKS - RX_CHUNKS, 0, RX_CHUNKS));
        drop((a, b));
    });
}

#[test]
fn umem_outlives_closed_port_with_held_frames() {
    in_namespace(|| {
        link_pairs(1);
        let mut pools = UmemPools::default();
        let mut a = open("p1", &mut pools);
        let mut left = open_queue("h1");
        left.send(&frames(3));
        let held_frames = receive_in_place(&mut a, 3);
        ip("link delete p1");
        drop(a);
        assert_eq!(held_frames, frames(3));
        assert_eq!(pools.umem_count(0), 1);
        drop(held_frames);
        assert_eq!(pools.umem_count(0), 0);
    });
}

#[test]
fn ports_beyond_umem_shares_get_another_umem() {
    in_namespace(|| {
        link_pairs(3);
        let mut pools = UmemPools::default();
        let mut ports = ["p1", "p2", "p3"].map(|port| open(port, &mut pools));
        assert_eq!(pools.umem_count(0), 2);
        let mut left = open_queue("h1");
        let [a, b, c] = &mut ports;
        left.send(&frames(2));
        let mut received = receive_in_place(a, 2);
        forward_in_place(received.split_off(1), c);
        forward_in_place(received, b);
        assert_eq!(b.counts()[Counter::TxZeroCopy], 1);
        assert_eq!(c.counts()[Counter::TxCopied], 1);
        drop(ports);
        assert_eq!(pools.umem_count(0), 0);
        pools.reserve_for(3);
        let ports = ["p1", "p2", "p3"].map(|port| open(port, &mut pools));
        assert_eq!(pools.umem_count(0), 1);
        drop(ports);
        // Ports with another chunk length use a separate UMEM.
        ip("link set p2 mtu 3000");
        ip("link set h2 mtu 3000");
        let ports = ["p1", "p2", "p3"].map(|port| open(port, &mut pools));
        assert_eq!(pools.umem_count(0), 2);
        drop(ports);
    });
}

#[test]
fn queues_of_umem_on_two_workers_lose_no_frames() {
    in_namespace(|| {
        link_pairs(4);
        let mut pools = UmemPools::default();
        pools.reserve_for(4);
        let queues = ["p1", "p2", "p3", "p4"].map(|port| open_for_worker(port, 0, &mut pools));
        let [a, b, c, d] = queues;
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            // Worker 0 keeps two of the queues; the others were moved to worker 1.
            let workers = [[a, b], [c, d]].map(|mut queues| {
                let done = &done;
                scope.spawn(move || {
                    forward(&mut queues, done, |from, _| 1 - from);
                    queues
                })
            });
            let pairs = [["h1", "h2"], ["h3", "h4"]];
            let pairs = pairs.map(|pair| scope.spawn(move || exchange(pair)));
            let exchanged = pairs.map(|pair| pair.join());
            done.store(true, Ordering::Relaxed);
            let served = workers.map(|worker| worker.join().unwrap());
            assert!(exchanged.into_iter().all(|pair| pair.is_ok()));
            for queue in served.into_iter().flatten() {
                let counts = queue.counters().read();
                assert_eq!(counts[Counter::TxZeroCopy], counts[Counter::TxPackets]);
                drop(queue);
            }
        });
        assert_eq!(
            pools.umem_count(0),
            0,
            "no socket or frame refers to the UMEM"
        );
    });
}

/// Sends frames in both directions between the other ends of two interfaces; all arrive unmodified.
fn exchange(ends: [&str; 2]) {
    let [mut left, mut right] = ends.map(open_queue);
    let sent = frames(200);
    for _ in 0..50 {
        left.send(&sent);
        assert_eq!(right.receive(sent.len()), sent);
        right.send(&sent);
        assert_eq!(left.receive(sent.len()), sent);
    }
}

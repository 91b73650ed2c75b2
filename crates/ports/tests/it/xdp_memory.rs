//! AF_XDP ports that share a memory: frames move from one to another as they lie, and no
//! chunk is lost or has two owners, whatever becomes of the ports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use packet::{Frame, Pool};
use ports::xdp::{Memories, Options, Xdp};
use ports::{Batch, Counter, Port, Queue};

use crate::net::{Hand, PATIENCE, forward, frame, hand, ip, name, scene, tagged};

/// What a memory for two sockets has; what each socket receives into, and may send.
const CHUNKS: usize = 2 * (2048 + 1024 + 64) + 128;
const COMING: usize = 2048;
const GOING: usize = 1024;

/// So many pairs of interfaces, `p1` joined to `h1` and so on, up.
fn cables(count: usize) {
    for number in 1..=count {
        ip(&format!("link add p{number} type veth peer name h{number}"));
        ip(&format!("link set p{number} up"));
        ip(&format!("link set h{number} up"));
    }
}

fn open(text: &str, memories: &mut Memories) -> Hand {
    Hand::new(open_for(text, 0, memories))
}

/// The queue of a worker.
fn open_for(text: &str, worker: usize, memories: &mut Memories) -> Box<dyn Queue> {
    let port = Xdp::open(&name(text), &[worker], Options::default(), memories);
    port.unwrap().take_queues().remove(0)
}

/// Frames of 60 bytes, each another.
fn frames(count: usize) -> Vec<Frame> {
    let seeds = (0..251).cycle().take(count);
    seeds.map(|seed| frame(60, seed)).collect()
}

/// What comes when the first of these are sent again and again.
fn frames_in_batches(count: usize) -> Vec<Frame> {
    let batch = frames(Batch::FRAMES_MAX);
    batch.iter().cycle().take(count).cloned().collect()
}

/// Waits until so many frames are there, and takes them as they lie.
fn take(from: &mut Hand, count: usize) -> Vec<Frame> {
    let mut taken = Vec::new();
    while taken.len() < count {
        from.queue.receive(&mut from.pool, &mut from.batch).unwrap();
        if from.batch.is_empty() {
            assert!(from.wait(PATIENCE), "{} came", taken.len());
        }
        taken.extend(from.batch.drain());
    }
    taken
}

/// Sends frames as they lie.
fn pass_on(frames: Vec<Frame>, to: &mut Hand) {
    let mut frames = frames.into_iter().peekable();
    while frames.peek().is_some() {
        for frame in frames.by_ref().take(Batch::FRAMES_MAX) {
            to.batch.push(frame).unwrap();
        }
        to.queue.send(&mut to.batch, &mut to.pool).unwrap();
        assert!(to.batch.is_empty());
    }
}

/// Who has what of worker 0's memory: free, lent, the kernel's.
fn chunk_counts(memories: &Memories) -> (usize, usize, usize) {
    let counts = memories.chunk_counts(0);
    (counts.free, counts.detached, counts.kernel)
}

#[test]
fn frames_move_from_port_to_port_as_they_lie_and_none_is_lost() {
    scene(|| {
        cables(2);
        let mut memories = Memories::default();
        let (mut a, mut b) = (open("p1", &mut memories), open("p2", &mut memories));
        assert_eq!(memories.count(0), 1);
        assert_eq!(
            chunk_counts(&memories),
            (CHUNKS - 2 * COMING, 0, 2 * COMING)
        );
        let (mut left, mut right) = (hand("h1"), hand("h2"));
        let sent = frames(1000);
        // Longer than all rings: each chunk comes round.
        for _ in 0..8 {
            left.send(&sent);
            let taken = take(&mut a, sent.len());
            assert_eq!(memories.chunk_counts(0).detached, sent.len());
            pass_on(taken, &mut b);
            assert_eq!(right.receive(sent.len()), sent);
        }
        b.queue.tend().unwrap();
        assert_eq!(
            chunk_counts(&memories),
            (CHUNKS - 2 * COMING, 0, 2 * COMING)
        );
        assert_eq!(a.counts()[Counter::RxCopied], 0);
        assert_eq!(b.counts()[Counter::TxMoved], 8000);
        assert_eq!(b.counts()[Counter::TxPackets], 8000);
        assert_eq!(b.counts()[Counter::TxBytes], 8000 * 60);
        assert_eq!(b.counts()[Counter::TxCopied], 0);
        assert_eq!((a.pool.outstanding(), b.pool.outstanding()), (0, 0));
        drop((a, b));
        assert_eq!(memories.count(0), 0, "nobody has anything of it");
    });
}

#[test]
fn a_frame_is_changed_where_it_lies_and_what_lies_elsewhere_is_copied() {
    scene(|| {
        cables(3);
        let mut memories = Memories::default();
        let (mut a, mut b) = (open("p1", &mut memories), open("p2", &mut memories));
        let mut other = Hand::new(open_for("p3", 1, &mut memories));
        assert_eq!((memories.count(0), memories.count(1)), (1, 1));
        let (mut left, mut right, mut far) = (hand("h1"), hand("h2"), hand("h3"));
        left.send(&frames(3));
        let mut taken = take(&mut a, 3);
        for frame in &mut taken {
            frame.insert_zeros(12, 4).unwrap();
            frame.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, 7]);
        }
        let mut pool = Pool::new(1);
        let copy = pool.duplicate(&taken[0]).unwrap();
        // To another worker's memory; one of a pool; and as it lies.
        pass_on(taken.drain(1..2).collect(), &mut other);
        pass_on(vec![copy], &mut b);
        pass_on(taken, &mut b);
        let tagged = |seed| tagged(&[(0x8100, 7)], 64, seed);
        assert_eq!(far.receive(1), [tagged(1)]);
        assert_eq!(right.receive(3), [tagged(0), tagged(0), tagged(2)]);
        let moved = |hand: &Hand| {
            let counts = hand.counts();
            (counts[Counter::TxMoved], counts[Counter::TxCopied])
        };
        assert_eq!((moved(&b), moved(&other)), ((2, 1), (0, 1)));
        assert_eq!(memories.chunk_counts(0).detached, 0);
    });
}

#[test]
fn who_keeps_frames_costs_others_copies_and_no_frame() {
    scene(|| {
        cables(2);
        let mut memories = Memories::default();
        let (mut a, mut b) = (open("p1", &mut memories), open("p2", &mut memories));
        let (mut left, mut right) = (hand("h1"), hand("h2"));
        let sent = frames(1000);
        let mut held = Vec::new();
        let mut came = 0;
        while a.counts()[Counter::RxCopied] == 0 {
            left.send(&sent[..Batch::FRAMES_MAX]);
            held.extend(take(&mut a, Batch::FRAMES_MAX));
            came += Batch::FRAMES_MAX;
        }
        // All is lent that neither port receives into, but for what they have at hand.
        let copied = usize::try_from(a.counts()[Counter::RxCopied]).unwrap();
        let lent = memories.chunk_counts(0).detached;
        assert_eq!(lent + copied, came);
        let spare = CHUNKS - 2 * COMING - lent;
        assert!(spare <= 2 * Batch::FRAMES_MAX, "{spare} left");
        assert!(held == frames_in_batches(came), "harmed");
        let pooled = held.split_off(lent);
        pooled.into_iter().for_each(|frame| a.pool.put(frame));
        left.send(&sent);
        assert_eq!(a.receive(sent.len()), sent);
        assert_eq!(memories.chunk_counts(0).detached, lent);
        // And the other port receives as ever.
        right.send(&sent);
        assert_eq!(b.receive(sent.len()), sent);
        assert_eq!(memories.chunk_counts(0).kernel, 2 * COMING);
        // An empty pool leaves frames where they are, if they cannot be lent.
        let buffers: Vec<_> = std::iter::from_fn(|| a.pool.take()).collect();
        left.send(&sent[..1]);
        assert!(a.wait(PATIENCE));
        a.queue.receive(&mut a.pool, &mut a.batch).unwrap();
        assert!(a.batch.is_empty());
        assert_eq!(a.counts()[Counter::RxStarved], 1);
        buffers.into_iter().for_each(|frame| a.pool.put(frame));
        assert_eq!(a.receive(1), sent[..1]);
        drop(held);
        assert_eq!(
            chunk_counts(&memories),
            (CHUNKS - 2 * COMING, 0, 2 * COMING)
        );
    });
}

#[test]
fn a_port_that_does_not_send_keeps_no_more_than_its_own() {
    scene(|| {
        cables(2);
        let mut memories = Memories::default();
        let (mut a, mut b) = (open("p1", &mut memories), open("p2", &mut memories));
        let mut left = hand("h1");
        // The kernel is not told of what is placed while the interface is down.
        ip("link set p2 down");
        let sent = frames(1000);
        let mut dropped = 0;
        for _ in 0..4 {
            left.send(&sent);
            for some in take(&mut a, sent.len()).chunks_mut(Batch::FRAMES_MAX) {
                b.batch.take_all(some);
                b.queue.send(&mut b.batch, &mut b.pool).unwrap();
                dropped += b.batch.len();
                b.batch.release(b.batch.len(), &mut b.pool);
            }
        }
        let counts = b.counts();
        let (down, placed) = (counts[Counter::TxDown], counts[Counter::TxPackets]);
        assert_eq!(down + placed + dropped as u64, 4000);
        assert!(placed <= GOING as u64, "{placed}");
        assert_eq!(memories.chunk_counts(0).detached, 0);
        let taken = memories.chunk_counts(0).kernel - 2 * COMING;
        assert!(taken <= GOING, "{taken} of b");
        ip("link set p2 up");
        b.queue.tend().unwrap();
        let mut right = hand("h2");
        left.send(&sent[..10]);
        pass_on(take(&mut a, 10), &mut b);
        right.receive_now();
        b.queue.tend().unwrap();
        assert_eq!(
            chunk_counts(&memories),
            (CHUNKS - 2 * COMING, 0, 2 * COMING)
        );
    });
}

#[test]
fn a_port_that_goes_leaves_its_frames_to_others_and_comes_back_to_its_share() {
    scene(|| {
        cables(2);
        let mut memories = Memories::default();
        let (mut a, mut b) = (open("p1", &mut memories), open("p2", &mut memories));
        let (mut left, mut right) = (hand("h1"), hand("h2"));
        let sent = frames(500);
        for round in 0..10 {
            left.send(&sent);
            let taken = take(&mut a, sent.len());
            // Gone in mid-batch, in turns with its interface and without.
            drop(a);
            if round % 2 == 1 {
                ip("link delete p1");
                ip("link add p1 type veth peer name h1");
                ip("link set p1 up");
                ip("link set h1 up");
                left = hand("h1");
            }
            pass_on(taken, &mut b);
            assert_eq!(right.receive(sent.len()), sent);
            a = open("p1", &mut memories);
            assert_eq!(memories.count(0), 1, "there is room for it, round {round}");
            b.queue.tend().unwrap();
            assert_eq!(
                chunk_counts(&memories),
                (CHUNKS - 2 * COMING, 0, 2 * COMING)
            );
        }
        assert_eq!(b.counts()[Counter::TxMoved], 5000);
    });
}

#[test]
fn a_port_that_goes_to_another_workers_memory_gives_its_share_back() {
    scene(|| {
        cables(2);
        let mut memories = Memories::default();
        let (a, b) = (open("p1", &mut memories), open("p2", &mut memories));
        drop(a);
        assert_eq!(memories.chunk_counts(0).kernel, 2 * COMING);
        let a = open_for("p1", 1, &mut memories);
        assert_eq!(chunk_counts(&memories), (CHUNKS - COMING, 0, COMING));
        drop((a, b));
    });
}

#[test]
fn a_port_that_goes_while_frames_are_kept_takes_nobodys_memory_away() {
    scene(|| {
        cables(1);
        let mut memories = Memories::default();
        let mut a = open("p1", &mut memories);
        let mut left = hand("h1");
        left.send(&frames(3));
        let held = take(&mut a, 3);
        ip("link delete p1");
        drop(a);
        assert_eq!(held, frames(3));
        assert_eq!(memories.count(0), 1);
        drop(held);
        assert_eq!(memories.count(0), 0);
    });
}

#[test]
fn more_ports_than_a_memory_is_for_have_another_and_frames_go_between_them() {
    scene(|| {
        cables(3);
        let mut memories = Memories::default();
        let mut ports = ["p1", "p2", "p3"].map(|port| open(port, &mut memories));
        assert_eq!(memories.count(0), 2);
        let mut left = hand("h1");
        let [a, b, c] = &mut ports;
        left.send(&frames(2));
        let mut taken = take(a, 2);
        pass_on(taken.split_off(1), c);
        pass_on(taken, b);
        assert_eq!(b.counts()[Counter::TxMoved], 1);
        assert_eq!(c.counts()[Counter::TxCopied], 1);
        drop(ports);
        assert_eq!(memories.count(0), 0);
        memories.make_for(3);
        let ports = ["p1", "p2", "p3"].map(|port| open(port, &mut memories));
        assert_eq!(memories.count(0), 1);
        drop(ports);
        // Chunks of one length have a memory of their own.
        ip("link set p2 mtu 3000");
        ip("link set h2 mtu 3000");
        let ports = ["p1", "p2", "p3"].map(|port| open(port, &mut memories));
        assert_eq!(memories.count(0), 2);
        drop(ports);
    });
}

#[test]
fn queues_of_a_memory_in_the_hands_of_two_workers_lose_nothing() {
    scene(|| {
        cables(4);
        let mut memories = Memories::default();
        memories.make_for(4);
        let queues = ["p1", "p2", "p3", "p4"].map(|port| open_for(port, 0, &mut memories));
        let [a, b, c, d] = queues;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            // Worker 0 keeps two of them; the others were moved to worker 1.
            let workers = [[a, b], [c, d]].map(|mut queues| {
                let over = &over;
                scope.spawn(move || {
                    forward(&mut queues, over, |from, _| 1 - from);
                    queues
                })
            });
            let pairs = [["h1", "h2"], ["h3", "h4"]];
            let pairs = pairs.map(|pair| scope.spawn(move || exchange(pair)));
            let exchanged = pairs.map(|pair| pair.join());
            over.store(true, Ordering::Relaxed);
            let served = workers.map(|worker| worker.join().unwrap());
            assert!(exchanged.into_iter().all(|pair| pair.is_ok()));
            for queue in served.into_iter().flatten() {
                let counts = queue.counters().read();
                assert_eq!(counts[Counter::TxMoved], counts[Counter::TxPackets]);
                drop(queue);
            }
        });
        assert_eq!(memories.count(0), 0, "nobody has anything of it");
    });
}

/// Sends frames both ways between two interfaces' other ends; all arrive, unharmed.
fn exchange(ends: [&str; 2]) {
    let [mut left, mut right] = ends.map(hand);
    let sent = frames(200);
    for _ in 0..50 {
        left.send(&sent);
        assert_eq!(right.receive(sent.len()), sent);
        right.send(&sent);
        assert_eq!(left.receive(sent.len()), sent);
    }
}

//! Tests of dummy devices.

use packet::Pool;

use super::state::QUEUE_LEN_MAX;
use super::*;
use crate::{Batch, Counter};

fn open_dummy(options: &DummyOptions, readers: usize) -> (DummyPort, Vec<Box<dyn Queue>>) {
    let readers = NonZeroUsize::new(readers).expect("at least one");
    let mut dummy = DummyPort::open("p1", None, readers, &[]).expect("there are descriptors");
    let queues = dummy.take_queues();
    handle(&dummy)
        .configure(options, Instant::START)
        .expect("files and sockets can be opened");
    (dummy, queues)
}

fn handle(dummy: &DummyPort) -> DummyHandle {
    dummy.dummy().expect("a dummy has a handle")
}

fn is_ready(queue: &dyn Queue) -> bool {
    let readiness = queue.readiness().expect("the queue receives");
    let flags = rustix::event::PollFlags::IN;
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(readiness, flags)];
    let now = rustix::fs::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut fds, Some(&now)).expect("poll succeeds") == 1
}

fn receive(queue: &mut dyn Queue) -> Vec<Frame> {
    let (mut pool, mut batch) = (Pool::new(128), Batch::new());
    queue
        .receive(&mut pool, &mut batch)
        .expect("a dummy is never removed");
    batch.drain().collect()
}

fn send(queue: &mut dyn Queue, frames: &[Frame]) {
    let (mut pool, mut batch) = (Pool::new(128), Batch::new());
    for frame in frames {
        batch.put(frame.clone());
    }
    queue
        .send(&mut batch, &mut pool)
        .expect("a dummy is never removed");
    assert!(batch.is_empty());
}

fn frame(tag: u8) -> Frame {
    Frame::from_bytes(&[tag; 60])
}

#[test]
fn injected_frames_are_received_in_order_and_wake_reader() {
    let (mut dummy, mut queues) = open_dummy(&DummyOptions::default(), 1);
    let (handle, queue) = (handle(&dummy), &mut *queues[0]);
    let frames = [1, 2].map(frame);
    assert!(!is_ready(queue));
    assert!(frames.iter().all(|frame| handle.inject(0, frame.clone())));
    assert!(is_ready(queue));
    assert_eq!(receive(queue), frames);
    assert!(!is_ready(queue));
    assert_eq!(queue.counters().read()[Counter::RxPackets], 2);
    dummy.set_up(false).expect("a dummy can be set down");
    assert!(!handle.inject(0, frame(1)) && !dummy.status().carrier);
    send(queue, &frames);
    assert_eq!(queue.counters().read()[Counter::TxDown], 2);
}

#[test]
fn handle_refuses_frames_beyond_queue_limit() {
    let (dummy, _queues) = open_dummy(&DummyOptions::default(), 1);
    let handle = handle(&dummy);
    let accepted = (0..QUEUE_LEN_MAX + 5).filter(|_| handle.inject(0, frame(1)));
    assert_eq!(accepted.count(), QUEUE_LEN_MAX);
    assert!(!handle.inject(1, frame(1)), "there is no such queue");
}

#[test]
fn received_and_sent_frames_are_appended_to_capture_file() {
    let path = std::env::temp_dir().join(format!("comporta-dummy-{}", std::process::id()));
    let options = DummyOptions {
        files: DummyFiles {
            received: Some(path.clone()),
            sent: Some(path.clone()),
        },
        ..DummyOptions::default()
    };
    for round in 1..=2 {
        let (dummy, mut queues) = open_dummy(&options, 1);
        assert!(handle(&dummy).inject(0, frame(7)));
        let received = receive(&mut *queues[0]);
        send(&mut *queues[0], &received);
        let written = std::fs::read(&path).expect("the file was created");
        assert_eq!(written.len(), 24 + round * 2 * (16 + 60));
        assert_eq!(written[24 + 16..24 + 16 + 60], [7; 60]);
    }
    std::fs::remove_file(path).expect("the file was created");
}

#[test]
fn options_change_while_counters_and_frames_stay() {
    let (dummy, mut queues) = open_dummy(&DummyOptions::default(), 1);
    let handle = handle(&dummy);
    assert!(handle.inject(0, frame(1)));
    send(&mut *queues[0], &[frame(2)]);
    let options = DummyOptions {
        rx_queues: 2.try_into().expect("two"),
        tx_queues: 3.try_into().expect("three"),
        ifindex: Some(1100),
        ..DummyOptions::default()
    };
    handle
        .configure(&options, Instant::START)
        .expect("nothing is opened");
    assert!(handle.inject(1, frame(3)));
    assert_eq!(receive(&mut *queues[0]), [frame(1)]);
    assert_eq!(receive(&mut *queues[0]), [frame(3)]);
    assert_eq!(queues[0].counters().read()[Counter::TxPackets], 1);
    let one = QueueTotals {
        packets: 1,
        bytes: 60,
    };
    assert_eq!(handle.rx_totals(), [one; 2]);
    assert_eq!(handle.tx_totals().len(), 3);
    let counters = handle.counters();
    assert_eq!(counters.len(), 2 + 2 * 5);
    for (name, count) in [
        ("rx_custom_packets_2", 2),
        ("rx_q1_bytes", 60),
        ("tx_q0_packets", 1),
    ] {
        assert!(counters.contains(&(name.to_owned(), count)), "{counters:?}");
    }
    assert_eq!(dummy.status().index, Some(Ifindex(1100)));
}

#[test]
fn receive_queue_moves_between_readers_with_its_frames() {
    let options = DummyOptions {
        rx_queues: 2.try_into().expect("two"),
        ..DummyOptions::default()
    };
    let (dummy, mut queues) = open_dummy(&options, 2);
    let handle = handle(&dummy);
    assert!(handle.inject(0, frame(1)) && handle.inject(1, frame(2)));
    handle.assign(&[Some(1), None]);
    assert_eq!(receive(&mut *queues[0]), []);
    assert!(is_ready(&*queues[1]));
    assert_eq!(receive(&mut *queues[1]), [frame(1)]);
    assert_eq!(receive(&mut *queues[1]), []);
    handle.assign(&[Some(1), Some(0)]);
    assert!(is_ready(&*queues[0]));
    assert_eq!(receive(&mut *queues[0]), [frame(2)]);
}

#[test]
fn frames_pass_between_connected_dummies_and_wake_reader() {
    let path = std::env::temp_dir().join(format!("comporta-wire-{}", std::process::id()));
    let connected = |scheme: &str| DummyOptions {
        connection: format!("{scheme}:{}", path.display()).parse().ok(),
        ..DummyOptions::default()
    };
    let (passive, mut passive_queues) = open_dummy(&connected("punix"), 2);
    let (active, mut active_queues) = open_dummy(&connected("unix"), 1);
    assert_eq!(
        handle(&active).connection_state(),
        ConnectionState::Connected
    );
    // The connection is polled by the reader of the first receive queue.
    handle(&passive).assign(&[Some(1)]);
    for queue in &mut passive_queues {
        assert_eq!(receive(&mut **queue), []);
    }
    send(&mut *active_queues[0], &[frame(1), frame(2)]);
    assert!(is_ready(&*passive_queues[1]) && !is_ready(&*passive_queues[0]));
    assert_eq!(receive(&mut *passive_queues[1]), [frame(1), frame(2)]);
    assert!(!is_ready(&*passive_queues[1]));
    send(&mut *passive_queues[0], &[frame(3)]);
    assert!(is_ready(&*active_queues[0]));
    assert_eq!(receive(&mut *active_queues[0]), [frame(3)]);
    drop(passive);
    drop(passive_queues);
    assert_eq!(receive(&mut *active_queues[0]), []);
    let state = handle(&active).connection_state();
    assert_eq!(state, ConnectionState::Disconnected);
}

#[test]
fn dummy_drops_frames_longer_than_its_mtu() {
    let (mut dummy, mut queues) = open_dummy(&DummyOptions::default(), 1);
    let long = Frame::from_bytes(&[1; 1515]);
    let mut tagged = [1; 1518];
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    send(&mut *queues[0], &[long.clone(), Frame::from_bytes(&tagged)]);
    let counts = queues[0].counters().read();
    assert_eq!(
        (counts[Counter::TxTooLong], counts[Counter::TxPackets]),
        (1, 1)
    );
    dummy.set_link(None, Some(1600)).expect("a valid MTU");
    send(&mut *queues[0], &[long]);
    assert_eq!(queues[0].counters().read()[Counter::TxPackets], 2);
    dummy.set_link(None, Some(67)).expect_err("too short");
    assert_eq!(dummy.status().mtu, 1600);
}

#[test]
fn reader_timer_measures_time_until_next_poll() {
    let time = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let clock = Arc::clone(&time);
    let timer = Arc::new(ReaderTimer::new(move || clock.load(Ordering::Relaxed)));
    let mut dummy = DummyPort::open("p1", None, NonZeroUsize::MIN, &[timer]).expect("descriptors");
    let mut queue = dummy.take_queues().pop().expect("one queue");
    assert!(handle(&dummy).inject(0, frame(1)));
    time.store(100, Ordering::Relaxed);
    assert_eq!(receive(&mut *queue).len(), 1);
    time.store(130, Ordering::Relaxed);
    assert_eq!(receive(&mut *queue), []);
    time.store(900, Ordering::Relaxed);
    assert_eq!(receive(&mut *queue), []);
    assert_eq!(handle(&dummy).busy_nanos(), [30]);
}

//! Parsing of capture files, and distribution and repetition of their frames.

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

/// A capture file of these frames in this byte order.
fn file(number: fn(u32) -> [u8; 4], frames: &[&[u8]]) -> Vec<u8> {
    let mut bytes: Vec<u8> = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]
        .into_iter()
        .flat_map(number)
        .collect();
    for frame in frames {
        let len = u32::try_from(frame.len()).unwrap();
        bytes.extend([0, 0, len, len].into_iter().flat_map(number));
        bytes.extend(*frame);
    }
    bytes
}

fn queues(frames: &[&[u8]], count: usize) -> Vec<ReplayQueue> {
    let capture = Arc::new(PcapFile::parse(file(u32::to_le_bytes, frames)).unwrap());
    let state = Arc::new(ReplayState::new().unwrap());
    let assign_frames = assign_frames(&capture, count).map(|frames| ReplayQueue {
        capture: Arc::clone(&capture),
        frames,
        next: 0,
        state: Arc::clone(&state),
        counters: Arc::default(),
    });
    assign_frames.collect()
}

fn received(queue: &mut ReplayQueue, pool: &mut Pool) -> Vec<u8> {
    let mut batch = Batch::new();
    queue.receive(pool, &mut batch).unwrap();
    let first = batch.iter().map(|frame| frame.bytes()[0]).collect();
    batch.release(batch.len(), pool);
    first
}

#[test]
fn pcap_file_is_read_in_both_byte_orders() {
    for number in [u32::to_le_bytes, u32::to_be_bytes] {
        let capture = PcapFile::parse(file(number, &[&[1; 60], &[2; 14]])).unwrap();
        assert_eq!(capture.len(), 2);
        assert_eq!(capture.frame(0), [1; 60]);
        assert_eq!(capture.frame(1), [2; 14]);
    }
}

#[test]
fn malformed_pcap_file_is_refused_with_reason() {
    let good = file(u32::to_le_bytes, &[&[1; 60], &[2; 60]]);
    for end in 0..good.len() {
        // Truncated behind the first frame it is a valid, shorter file.
        let is_whole = end == FILE_LEN_OF_ONE;
        assert_eq!(
            PcapFile::parse(good[..end].to_vec()).is_ok(),
            is_whole,
            "{end}"
        );
    }
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        PcapFile::parse(bytes).unwrap_err()
    };
    assert!(changed(0, 0).contains("editcap"));
    assert!(changed(20, 113).contains("Ethernet"));
    assert!(changed(36, 61).contains("snap length"));
    assert!(!changed(32, 61).is_empty());
    assert!(PcapFile::parse(file(u32::to_le_bytes, &[&[1; 13]])).is_err());
}

/// Length of a file with one frame of sixty bytes.
const FILE_LEN_OF_ONE: usize = 24 + 16 + 60;

#[test]
fn frames_repeat_after_last_one() {
    let mut queues = queues(&[&[1; 60], &[2; 60], &[3; 60]], 1);
    let mut pool = Pool::new(Batch::FRAMES_MAX);
    let first = received(&mut queues[0], &mut pool);
    assert_eq!(first.len(), Batch::FRAMES_MAX);
    assert!(first.starts_with(&[1, 2, 3, 1, 2, 3]));
    assert_eq!(received(&mut queues[0], &mut pool)[0], 2);
    assert_eq!(pool.outstanding(), 0);
    assert_eq!(queues[0].counters().read()[Counter::RxPackets], 128);
}

#[test]
fn equal_frames_belong_to_same_queue() {
    let frames: Vec<Vec<u8>> = (0..200_u8).map(|n| vec![n % 100; 60]).collect();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let queues = queues(&frames, 2);
    let owners = |frame: usize| -> Vec<usize> {
        let has = |queue: &ReplayQueue| queue.frames.contains(&frame);
        (0..2).filter(|&queue| has(&queues[queue])).collect()
    };
    for frame in 0..100 {
        assert_eq!(owners(frame).len(), 1);
        assert_eq!(owners(frame), owners(frame + 100));
    }
    assert!(queues.iter().all(|queue| !queue.frames.is_empty()));
}

#[test]
fn sent_frames_are_counted_and_released() {
    let mut queues = queues(&[&[1; 60]], 1);
    let (mut pool, mut batch) = (Pool::new(2), Batch::new());
    queues[0].receive(&mut pool, &mut batch).unwrap();
    assert_eq!(batch.len(), 2);
    queues[0].send(&mut batch, &mut pool).unwrap();
    let counts = queues[0].counters().read();
    assert_eq!((batch.len(), pool.outstanding()), (0, 0));
    assert_eq!(
        (counts[Counter::TxPackets], counts[Counter::TxBytes]),
        (2, 120)
    );
    assert_eq!(counts[Counter::RxNoBuffer], 1);
}

#[test]
fn port_that_is_down_receives_and_sends_nothing() {
    let name = "p1".parse().unwrap();
    let mut port = Replay::open(&name, None, NonZeroUsize::MIN).unwrap();
    assert!(port.status().up && port.status().carrier);
    port.set_up(false).unwrap();
    assert!(!port.status().up);
    let mut queues = queues(&[&[1; 60]], 1);
    let (mut pool, mut batch) = (Pool::new(1), Batch::new());
    queues[0].receive(&mut pool, &mut batch).unwrap();
    let is_ready = |queue: &ReplayQueue| {
        let fd = queue.readiness().unwrap();
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
    };
    assert!(is_ready(&queues[0]));
    queues[0].state.set_up(false).unwrap();
    assert!(!is_ready(&queues[0]));
    queues[0].send(&mut batch, &mut pool).unwrap();
    assert_eq!(queues[0].counters().read()[Counter::TxDown], 1);
    assert_eq!(received(&mut queues[0], &mut pool), []);
    queues[0].state.set_up(true).unwrap();
    assert!(is_ready(&queues[0]));
    assert_eq!(received(&mut queues[0], &mut pool), [1]);
}

#[test]
fn missing_file_is_named_in_error() {
    let name = "p1".parse().unwrap();
    let file = Path::new("no-such-file.pcap");
    let error = Replay::open(&name, Some(file), NonZeroUsize::MIN)
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(
        text.starts_with("p1: cannot replay no-such-file.pcap: "),
        "{text}"
    );
}

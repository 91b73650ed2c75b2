//! A port with nothing behind it but memory, as Open vSwitch's tests use them: frames come in
//! when somebody hands them to its [`Feed`], and what is sent is counted and, if files are
//! named, written down as libpcap writes it (draft-ietf-opsawg-pcap).
//!
//! It wakes who sleeps on it, so it can stand where a device does.

use std::collections::VecDeque;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::{Frame, MacAddr, Pool};
use rustix::event::{EventfdFlags, eventfd};

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Port, Queue, Status};

/// Frames that wait to be received: as many as Open vSwitch's dummies keep.
const WAITING_MAX: usize = 100;

/// What an Ethernet device has unless it is told otherwise.
const MTU: u32 = 1500;

/// Where frames of a dummy are written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Files {
    /// Those that come in.
    pub received: Option<PathBuf>,
    /// Those that are sent; the same file may have both.
    pub sent: Option<PathBuf>,
}

/// A dummy.
pub struct Dummy {
    status: Status,
    shared: Arc<Shared>,
    queues: Vec<Box<dyn Queue>>,
}

/// What the port, its queues and its feed have in common.
struct Shared {
    up: AtomicBool,
    waiting: Mutex<VecDeque<Frame>>,
    /// Readable while frames wait.
    ready: OwnedFd,
    received: Option<Arc<Mutex<Capture>>>,
    sent: Option<Arc<Mutex<Capture>>>,
}

/// Where frames are handed to a dummy.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}

#[repr(align(128))]
struct DummyQueue {
    shared: Arc<Shared>,
    /// The first of a port's queues receives, the others only send.
    receives: bool,
    counters: Arc<QueueCounters>,
}

impl Dummy {
    /// A dummy called `name`, up, that writes its frames to `files`.
    ///
    /// # Errors
    /// A file cannot be made, or the system has no event for it.
    pub fn open(
        name: &str,
        address: Option<MacAddr>,
        files: &Files,
        queues: NonZeroUsize,
    ) -> io::Result<Self> {
        let received = files.received.as_deref().map(Capture::create).transpose()?;
        let sent = match &files.sent {
            Some(path) if Some(path) == files.received.as_ref() => received.clone(),
            Some(path) => Some(Capture::create(path)?),
            None => None,
        };
        let shared = Arc::new(Shared {
            up: AtomicBool::new(true),
            waiting: Mutex::default(),
            ready: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            received,
            sent,
        });
        let queue = |place| Box::new(DummyQueue::new(&shared, place == 0)) as Box<dyn Queue>;
        Ok(Self {
            status: Status {
                name: name.to_owned(),
                address: address.unwrap_or_else(|| address_of(name)),
                mtu: MTU,
                up: true,
                carrier: true,
                ..Status::default()
            },
            queues: (0..queues.get()).map(queue).collect(),
            shared,
        })
    }
}

/// A locally administered address that the same name always has.
fn address_of(name: &str) -> MacAddr {
    let mut hasher = std::collections::hash_map::DefaultHasher::new();
    name.hash(&mut hasher);
    MacAddr::from_u64(0xaa55_0000_0000 | hasher.finish() & 0xffff_ffff)
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Frame>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }
}

impl Feed {
    /// Has the dummy receive a frame. One that is down takes none, and one that has many
    /// waiting takes no more; which is told.
    #[must_use]
    pub fn put(&self, frame: Frame) -> bool {
        let mut waiting = self.shared.waiting();
        if !self.shared.is_up() || waiting.len() >= WAITING_MAX {
            return false;
        }
        waiting.push_back(frame);
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.shared.ready, &1_u64.to_ne_bytes());
        true
    }
}

impl Port for Dummy {
    fn status(&self) -> Status {
        let up = self.shared.is_up();
        Status {
            up,
            carrier: up,
            ..self.status.clone()
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn sender(&self) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(DummyQueue::new(&self.shared, false)))
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.shared.up.store(up, Ordering::Relaxed);
        Ok(())
    }

    fn feed(&self) -> Option<Feed> {
        let shared = Arc::clone(&self.shared);
        Some(Feed { shared })
    }
}

impl DummyQueue {
    fn new(shared: &Arc<Shared>, receives: bool) -> Self {
        Self {
            shared: Arc::clone(shared),
            receives,
            counters: Arc::default(),
        }
    }
}

impl Queue for DummyQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        if !self.receives {
            return Ok(());
        }
        let before = batch.len();
        let mut waiting = self.shared.waiting();
        while batch.room() > 0 && !waiting.is_empty() {
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxStarved, 1);
                break;
            };
            let Some(came) = waiting.pop_front() else {
                pool.put(frame);
                break;
            };
            frame
                .copy_from(came.bytes())
                .expect("a frame is no longer than buffers take");
            batch.push(frame).expect("room was asked for");
        }
        if waiting.is_empty() {
            // There is nothing to be read if nothing was written: then it is not readable.
            let _ = rustix::io::read(&self.shared.ready, &mut [0; 8]);
        }
        drop(waiting);
        let came = &batch[before..];
        self.counters.received(came);
        note(self.shared.received.as_ref(), came);
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        if self.shared.is_up() {
            self.counters.sent(batch);
            note(self.shared.sent.as_ref(), batch);
        } else {
            self.counters.add(Counter::TxDown, batch.len() as u64);
        }
        batch.release(batch.len(), pool);
        Ok(())
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.receives.then(|| self.shared.ready.as_fd())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

/// A file of frames. One that can be written to no more is left alone: tests look into it.
struct Capture {
    file: BufWriter<File>,
}

/// The file's header: microseconds, version 2.4, no zone, no accuracy, long frames, Ethernet.
const HEADER: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, 1];

impl Capture {
    fn create(path: &Path) -> io::Result<Arc<Mutex<Self>>> {
        let mut file = BufWriter::new(File::create(path)?);
        for word in HEADER {
            file.write_all(&word.to_le_bytes())?;
        }
        file.flush()?;
        Ok(Arc::new(Mutex::new(Self { file })))
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        // No clock is read for a test's file: all frames are of the first moment.
        for word in [0, 0, length, length] {
            self.file.write_all(&word.to_le_bytes())?;
        }
        self.file.write_all(frame)
    }
}

/// Writes frames down, if there is a file for them.
fn note(capture: Option<&Arc<Mutex<Capture>>>, frames: &[Frame]) {
    if frames.is_empty() {
        return;
    }
    if let Some(capture) = capture {
        let mut capture = capture.lock().unwrap_or_else(PoisonError::into_inner);
        let written = frames
            .iter()
            .try_for_each(|frame| capture.write(frame.bytes()));
        let _ = written.and_then(|()| capture.file.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(files: &Files) -> (Dummy, Box<dyn Queue>) {
        let mut dummy = Dummy::open("p1", None, files, NonZeroUsize::MIN).expect("memory");
        let queue = dummy.take_queues().pop().expect("one");
        (dummy, queue)
    }

    #[test]
    fn what_is_fed_is_received_in_order_and_wakes() {
        let (mut dummy, mut queue) = one(&Files::default());
        let feed = dummy.feed().expect("a dummy has one");
        let frames = [1, 2].map(|i| Frame::from_bytes(&[i; 60]));
        let ready = |queue: &dyn Queue| {
            let fd = queue.readiness().expect("it wakes").try_clone_to_owned();
            let mut fds = [rustix::event::PollFd::from_borrowed_fd(
                queue.readiness().expect("it wakes"),
                rustix::event::PollFlags::IN,
            )];
            drop(fd);
            let now = rustix::fs::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            rustix::event::poll(&mut fds, Some(&now)).expect("it can be asked") == 1
        };
        assert!(!ready(&*queue));
        assert!(frames.iter().all(|frame| feed.put(frame.clone())));
        assert!(ready(&*queue));
        let (mut pool, mut batch) = (Pool::new(8), Batch::new());
        queue.receive(&mut pool, &mut batch).expect("it is there");
        assert_eq!(batch[..], frames);
        assert!(!ready(&*queue));
        assert_eq!(queue.counters().read()[Counter::RxPackets], 2);
        dummy.set_up(false).expect("nobody is in the way");
        assert!(!feed.put(frames[0].clone()) && !dummy.status().carrier);
        queue.send(&mut batch, &mut pool).expect("it is there");
        assert_eq!(queue.counters().read()[Counter::TxDown], 2);
    }

    #[test]
    fn no_more_wait_than_are_kept() {
        let (dummy, _queue) = one(&Files::default());
        let feed = dummy.feed().expect("a dummy has one");
        let frame = Frame::from_bytes(&[1; 60]);
        let taken = (0..WAITING_MAX + 5).filter(|_| feed.put(frame.clone()));
        assert_eq!(taken.count(), WAITING_MAX);
    }

    #[test]
    fn frames_are_written_down_as_they_come_and_go() {
        let path = std::env::temp_dir().join(format!("comporta-dummy-{}", std::process::id()));
        let files = Files {
            received: Some(path.clone()),
            sent: Some(path.clone()),
        };
        let (dummy, mut queue) = one(&files);
        let feed = dummy.feed().expect("a dummy has one");
        assert!(feed.put(Frame::from_bytes(&[7; 60])));
        let (mut pool, mut batch) = (Pool::new(8), Batch::new());
        queue.receive(&mut pool, &mut batch).expect("it is there");
        queue.send(&mut batch, &mut pool).expect("it is there");
        let written = std::fs::read(&path).expect("it was made");
        assert_eq!(written.len(), 24 + 2 * (16 + 60));
        assert_eq!(written[24 + 16..24 + 16 + 60], [7; 60]);
        std::fs::remove_file(path).expect("it was made");
    }
}

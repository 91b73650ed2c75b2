//! Ports without a device, as Open vSwitch's tests use them (`netdev-dummy`): frames are received
//! when a [`DummyInjector`] injects them; sent frames are counted and optionally written to a
//! capture file (draft-ietf-opsawg-pcap).
//!
//! A reader that sleeps on the queue is woken, so a dummy can replace a device.

use std::collections::VecDeque;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capture_file::pcap::{PACKET_HEADER_LEN, PcapHeader};
use packet::{Frame, MacAddr, Pool};
use rustix::event::{EventfdFlags, eventfd};

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Port, Queue, Status};

/// Maximum number of injected frames in the queue, as in Open vSwitch's dummies.
const QUEUE_LEN_MAX: usize = 100;

/// Default MTU of an Ethernet device.
const MTU: u32 = 1500;

/// The interface type that a dummy port replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DummyType {
    /// Type `dummy`.
    #[default]
    Dummy,
    /// Type `internal` of a dummy bridge, and its `LOCAL` port.
    Internal,
    /// Type `dummy-pmd`.
    Pmd,
    /// Type `system`, with `--enable-dummy=system` or `=override`.
    System,
    /// Type `tap`, with `--enable-dummy=override`.
    Tap,
}

impl DummyType {
    /// Returns the type of Open vSwitch's device for an interface of type `interface_type`.
    #[must_use]
    pub fn of_interface(interface_type: &str) -> Self {
        match interface_type {
            "internal" | "dummy-internal" => Self::Internal,
            "dummy-pmd" => Self::Pmd,
            "" | "system" => Self::System,
            "tap" => Self::Tap,
            _ => Self::Dummy,
        }
    }

    /// Returns the name of the type, as in Open vSwitch.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dummy => "dummy",
            Self::Internal => "dummy-internal",
            Self::Pmd => "dummy-pmd",
            Self::System => "system",
            Self::Tap => "tap",
        }
    }
}

/// The type and the capture files of a dummy port.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DummyFiles {
    /// The interface type.
    pub interface_type: DummyType,
    /// File of received frames.
    pub received: Option<PathBuf>,
    /// File of sent frames; may be the same file.
    pub sent: Option<PathBuf>,
}

/// A dummy port.
pub struct DummyPort {
    status: Status,
    state: Arc<DummyState>,
    queues: Vec<Box<dyn Queue>>,
}

/// State shared by the port, its queues and its injectors.
struct DummyState {
    up: AtomicBool,
    queued: Mutex<VecDeque<Frame>>,
    /// Readable while frames are queued.
    ready: OwnedFd,
    received: Option<Arc<Mutex<PcapWriter>>>,
    sent: Option<Arc<Mutex<PcapWriter>>>,
}

/// Injects frames into a dummy port.
#[derive(Clone)]
pub struct DummyInjector {
    state: Arc<DummyState>,
}

#[repr(align(128))]
struct DummyQueue {
    state: Arc<DummyState>,
    /// Only the first queue of a port receives.
    receives: bool,
    counters: Arc<QueueCounters>,
}

impl DummyPort {
    /// Opens a dummy port called `name`, administratively up, that writes its frames to `files`.
    ///
    /// # Errors
    /// A file cannot be created, or the system has no eventfd.
    pub fn open(
        name: &str,
        address: Option<MacAddr>,
        files: &DummyFiles,
        queues: NonZeroUsize,
    ) -> io::Result<Self> {
        let received = files
            .received
            .as_deref()
            .map(PcapWriter::create)
            .transpose()?;
        let sent = match &files.sent {
            Some(path) if Some(path) == files.received.as_ref() => received.clone(),
            Some(path) => Some(PcapWriter::create(path)?),
            None => None,
        };
        let state = Arc::new(DummyState {
            up: AtomicBool::new(true),
            queued: Mutex::default(),
            ready: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            received,
            sent,
        });
        let queue = |index| Box::new(DummyQueue::new(&state, index == 0)) as Box<dyn Queue>;
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
            state,
        })
    }
}

/// Returns a locally administered address derived from the name.
fn address_of(name: &str) -> MacAddr {
    let mut hasher = std::collections::hash_map::DefaultHasher::new();
    name.hash(&mut hasher);
    MacAddr::from_u64(0xaa55_0000_0000 | hasher.finish() & 0xffff_ffff)
}

impl DummyState {
    fn queued(&self) -> MutexGuard<'_, VecDeque<Frame>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }
}

impl DummyInjector {
    /// Queues a frame for reception. Returns false if the port is down or the queue is full.
    #[must_use]
    pub fn inject(&self, frame: Frame) -> bool {
        let mut queued = self.state.queued();
        if !self.state.is_up() || queued.len() >= QUEUE_LEN_MAX {
            return false;
        }
        queued.push_back(frame);
        // A full eventfd counter wakes the reader, too.
        let _ = rustix::io::write(&self.state.ready, &1_u64.to_ne_bytes());
        true
    }
}

impl Port for DummyPort {
    fn status(&self) -> Status {
        let up = self.state.is_up();
        Status {
            up,
            carrier: up,
            ..self.status.clone()
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(DummyQueue::new(&self.state, false)))
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.state.up.store(up, Ordering::Relaxed);
        Ok(())
    }

    fn injector(&self) -> Option<DummyInjector> {
        let state = Arc::clone(&self.state);
        Some(DummyInjector { state })
    }
}

impl DummyQueue {
    fn new(state: &Arc<DummyState>, receives: bool) -> Self {
        Self {
            state: Arc::clone(state),
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
        let mut queued = self.state.queued();
        while batch.remaining_capacity() > 0 && !queued.is_empty() {
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxNoBuffer, 1);
                break;
            };
            let Some(received) = queued.pop_front() else {
                pool.put(frame);
                break;
            };
            frame
                .copy_from(received.bytes())
                .expect("a frame fits a buffer");
            batch.push(frame).expect("the batch has space");
        }
        if queued.is_empty() {
            // The read fails if nothing was written, and the descriptor is then not readable
            // anyway.
            let _ = rustix::io::read(&self.state.ready, &mut [0; 8]);
        }
        drop(queued);
        let received = &batch[before..];
        self.counters.count_received(received);
        write_frames(self.state.received.as_ref(), received);
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        if self.state.is_up() {
            self.counters.count_sent(batch);
            write_frames(self.state.sent.as_ref(), batch);
        } else {
            self.counters.add(Counter::TxDown, batch.len() as u64);
        }
        batch.release(batch.len(), pool);
        Ok(())
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.receives.then(|| self.state.ready.as_fd())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

/// A capture file. Write errors are ignored: the tests check the file.
struct PcapWriter {
    file: BufWriter<File>,
}

impl PcapWriter {
    fn create(path: &Path) -> io::Result<Arc<Mutex<Self>>> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&PcapHeader::ETHERNET.encode())?;
        file.flush()?;
        Ok(Arc::new(Mutex::new(Self { file })))
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut packet = Vec::with_capacity(PACKET_HEADER_LEN + frame.len());
        PcapHeader::ETHERNET.append_packet(&mut packet, frame);
        self.file.write_all(&packet)
    }
}

/// Writes frames if there is a file.
fn write_frames(capture: Option<&Arc<Mutex<PcapWriter>>>, frames: &[Frame]) {
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

    fn open_dummy(files: &DummyFiles) -> (DummyPort, Box<dyn Queue>) {
        let mut dummy =
            DummyPort::open("p1", None, files, NonZeroUsize::MIN).expect("no file is opened");
        let queue = dummy.take_queues().pop().expect("one queue");
        (dummy, queue)
    }

    #[test]
    fn injected_frames_are_received_in_order_and_wake_reader() {
        let (mut dummy, mut queue) = open_dummy(&DummyFiles::default());
        let injector = dummy.injector().expect("a dummy has an injector");
        let frames = [1, 2].map(|i| Frame::from_bytes(&[i; 60]));
        let ready = |queue: &dyn Queue| {
            let fd = queue
                .readiness()
                .expect("the first queue has a descriptor")
                .try_clone_to_owned();
            let mut fds = [rustix::event::PollFd::from_borrowed_fd(
                queue.readiness().expect("the first queue has a descriptor"),
                rustix::event::PollFlags::IN,
            )];
            drop(fd);
            let now = rustix::fs::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            rustix::event::poll(&mut fds, Some(&now)).expect("poll succeeds") == 1
        };
        assert!(!ready(&*queue));
        assert!(frames.iter().all(|frame| injector.inject(frame.clone())));
        assert!(ready(&*queue));
        let (mut pool, mut batch) = (Pool::new(8), Batch::new());
        queue
            .receive(&mut pool, &mut batch)
            .expect("a dummy is never removed");
        assert_eq!(batch[..], frames);
        assert!(!ready(&*queue));
        assert_eq!(queue.counters().read()[Counter::RxPackets], 2);
        dummy.set_up(false).expect("a dummy can be set down");
        assert!(!injector.inject(frames[0].clone()) && !dummy.status().carrier);
        queue
            .send(&mut batch, &mut pool)
            .expect("a dummy is never removed");
        assert_eq!(queue.counters().read()[Counter::TxDown], 2);
    }

    #[test]
    fn injector_refuses_frames_beyond_queue_limit() {
        let (dummy, _queue) = open_dummy(&DummyFiles::default());
        let injector = dummy.injector().expect("a dummy has an injector");
        let frame = Frame::from_bytes(&[1; 60]);
        let accepted = (0..QUEUE_LEN_MAX + 5).filter(|_| injector.inject(frame.clone()));
        assert_eq!(accepted.count(), QUEUE_LEN_MAX);
    }

    #[test]
    fn received_and_sent_frames_are_written_to_capture_file() {
        let path = std::env::temp_dir().join(format!("comporta-dummy-{}", std::process::id()));
        let files = DummyFiles {
            received: Some(path.clone()),
            sent: Some(path.clone()),
            ..DummyFiles::default()
        };
        let (dummy, mut queue) = open_dummy(&files);
        let injector = dummy.injector().expect("a dummy has an injector");
        assert!(injector.inject(Frame::from_bytes(&[7; 60])));
        let (mut pool, mut batch) = (Pool::new(8), Batch::new());
        queue
            .receive(&mut pool, &mut batch)
            .expect("a dummy is never removed");
        queue
            .send(&mut batch, &mut pool)
            .expect("a dummy is never removed");
        let written = std::fs::read(&path).expect("the file was created");
        assert_eq!(written.len(), 24 + 2 * (16 + 60));
        assert_eq!(written[24 + 16..24 + 16 + 60], [7; 60]);
        std::fs::remove_file(path).expect("the file was created");
    }
}

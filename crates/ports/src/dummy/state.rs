//! The state that a dummy port, its queues and its handles share: the receive queues, the counters
//! of each queue, the connection and the capture files.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Instant;
use packet::Frame;
use rustix::event::{EventfdFlags, epoll, eventfd};

use super::connection::{Connection, ConnectionState};
use super::options::DummyOptions;
use super::pcap::PcapWriters;
use super::stream::HasRoom;

/// Maximum number of frames in a receive queue, as in Open vSwitch's dummies.
pub(super) const QUEUE_LEN_MAX: usize = 100;

/// Default MTU of an Ethernet device.
const MTU: u32 = 1500;

/// Frames and bytes of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// Frames.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl QueueTotals {
    pub(super) fn add(&mut self, frame: &Frame) {
        self.packets += frame.wire_frames();
        self.bytes += frame.wire_bytes();
    }
}

/// A receive queue.
pub(super) struct RxQueue {
    pub(super) frames: VecDeque<Frame>,
    /// The reader that polls the queue; none if no reader does.
    pub(super) reader: Option<usize>,
    pub(super) totals: QueueTotals,
    /// Nanoseconds that a reader has spent on frames of this queue.
    pub(super) busy: Arc<AtomicU64>,
}

impl RxQueue {
    fn new(reader: Option<usize>) -> Self {
        Self {
            frames: VecDeque::new(),
            reader,
            totals: QueueTotals::default(),
            busy: Arc::default(),
        }
    }
}

/// The wake-up of a reader.
struct ReaderWakeup {
    /// Readable while the reader's queues may have frames.
    event: OwnedFd,
    /// The epoll instance of `event` and, if the reader polls the first receive queue, of the
    /// connection.
    all: Arc<OwnedFd>,
}

impl ReaderWakeup {
    fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&all, event.as_fd())?;
        Ok(Self {
            event,
            all: Arc::new(all),
        })
    }

    fn wake(&self) {
        // A full eventfd counter wakes the reader, too.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    fn clear(&self) {
        // The read fails if nothing was written, and the descriptor is then not readable anyway.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }
}

fn watch(all: &OwnedFd, source: BorrowedFd<'_>) -> io::Result<()> {
    let data = epoll::EventData::new_u64(0);
    Ok(epoll::add(all, source, data, epoll::EventFlags::IN)?)
}

/// The shared state of a dummy.
pub(super) struct DummyState {
    up: AtomicBool,
    mtu: AtomicU32,
    /// True while the dummy has a connection.
    has_connection: AtomicBool,
    parts: Mutex<DummyParts>,
}

/// The parts of the state that change together.
pub(super) struct DummyParts {
    pub(super) options: DummyOptions,
    pub(super) rx_queues: Vec<RxQueue>,
    pub(super) tx_totals: Vec<QueueTotals>,
    pub(super) files: PcapWriters,
    connection: Connection,
    readers: Vec<ReaderWakeup>,
}

impl DummyState {
    /// Returns the state of a dummy with this number of readers, the first of which polls all
    /// receive queues.
    pub(super) fn new(readers: usize) -> io::Result<Self> {
        let readers: io::Result<_> = (0..readers).map(|_| ReaderWakeup::new()).collect();
        Ok(Self {
            up: AtomicBool::new(true),
            mtu: AtomicU32::new(MTU),
            has_connection: AtomicBool::new(false),
            parts: Mutex::new(DummyParts {
                options: DummyOptions::default(),
                rx_queues: vec![RxQueue::new(Some(0))],
                tx_totals: vec![QueueTotals::default()],
                files: PcapWriters::default(),
                connection: Connection::default(),
                readers: readers?,
            }),
        })
    }

    pub(super) fn parts(&self) -> MutexGuard<'_, DummyParts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    pub(super) fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
    }

    pub(super) fn mtu(&self) -> u32 {
        self.mtu.load(Ordering::Relaxed)
    }

    pub(super) fn set_mtu(&self, mtu: u32) {
        self.mtu.store(mtu, Ordering::Relaxed);
    }

    pub(super) fn has_connection(&self) -> bool {
        self.has_connection.load(Ordering::Relaxed)
    }

    /// Returns the descriptor that wakes a reader.
    pub(super) fn readiness(&self, reader: usize) -> Option<Arc<OwnedFd>> {
        let parts = self.parts();
        parts
            .readers
            .get(reader)
            .map(|reader| Arc::clone(&reader.all))
    }

    /// Applies options; only the differences have an effect. Counters and queued frames stay.
    pub(super) fn configure(&self, options: &DummyOptions, now: Instant) -> io::Result<()> {
        let mut parts = self.parts();
        let files = match parts.options.files == options.files {
            true => Ok(()),
            false => PcapWriters::open(&options.files).map(|files| parts.files = files),
        };
        parts.resize(options.rx_queues, options.tx_queues);
        let connected = parts.connect(options, now);
        let is_connected = parts.connection.configured().is_some();
        self.has_connection.store(is_connected, Ordering::Relaxed);
        parts.options = options.clone();
        files.and(connected)
    }

    /// Assigns each receive queue to a reader. The frames of a queue stay in order.
    pub(super) fn assign(&self, readers: &[Option<usize>]) {
        let mut parts = self.parts();
        parts.unwatch_connection();
        for (queue, reader) in parts.rx_queues.iter_mut().zip(readers) {
            queue.reader = *reader;
        }
        parts.watch_connection();
        parts.readers.iter().for_each(ReaderWakeup::wake);
    }

    /// Queues a frame for reception. Returns false if the port is down, has no such queue, or the
    /// queue is full.
    pub(super) fn inject(&self, queue: usize, frame: Frame) -> bool {
        self.is_up() && self.parts().inject(queue, frame)
    }

    /// Drives the reconnect timer; returns the time of the next call.
    pub(super) fn drive(&self, now: Instant) -> Option<Instant> {
        let has_connection = self.has_connection();
        has_connection.then(|| self.parts().connection.drive(now))?
    }

    pub(super) fn connection_state(&self) -> ConnectionState {
        self.parts().connection.state()
    }
}

impl DummyParts {
    fn resize(&mut self, rx_queues: NonZeroU16, tx_queues: NonZeroU16) {
        let reader = self.rx_queues.first().and_then(|queue| queue.reader);
        self.rx_queues
            .resize_with(rx_queues.get().into(), || RxQueue::new(reader));
        self.tx_totals
            .resize(tx_queues.get().into(), QueueTotals::default());
    }

    fn connect(&mut self, options: &DummyOptions, now: Instant) -> io::Result<()> {
        self.unwatch_connection();
        let connected = self.connection.configure(options.connection.as_ref(), now);
        self.watch_connection();
        connected
    }

    /// Returns the wake-up of the reader of the first receive queue.
    fn first_reader(&self) -> Option<&ReaderWakeup> {
        self.readers.get(self.rx_queues.first()?.reader?)
    }

    fn unwatch_connection(&self) {
        if let (Some(reader), Some(ready)) = (self.first_reader(), self.connection.readiness()) {
            // It fails only if it was not added.
            let _ = epoll::delete(&*reader.all, ready);
        }
    }

    /// Wakes the reader of the first receive queue when the connection has input.
    fn watch_connection(&self) {
        if let (Some(reader), Some(ready)) = (self.first_reader(), self.connection.readiness()) {
            // Without memory for it, the reader still polls the connection while it is awake.
            let _ = watch(&reader.all, ready);
            reader.wake();
        }
    }

    /// Returns true if this reader polls the connection.
    pub(super) fn reads_connection(&self, reader: usize) -> bool {
        let first = self.rx_queues.first();
        first.is_some_and(|queue| queue.reader == Some(reader))
    }

    /// Moves frames from the connection to the first receive queue, while it has room.
    pub(super) fn run_connection(&mut self) {
        let Some(queue) = self.rx_queues.first_mut() else {
            return;
        };
        if queue.frames.len() >= QUEUE_LEN_MAX {
            return;
        }
        self.connection.run(|frame| {
            queue.frames.push_back(Frame::from_bytes(frame));
            match queue.frames.len() < QUEUE_LEN_MAX {
                true => HasRoom::Yes,
                false => HasRoom::No,
            }
        });
    }

    /// Sends a frame to the peers.
    pub(super) fn send_to_peers(&mut self, frame: &Frame) {
        self.connection.send(frame.bytes());
    }

    fn inject(&mut self, queue: usize, frame: Frame) -> bool {
        let Some(queue) = self.rx_queues.get_mut(queue) else {
            return false;
        };
        if queue.frames.len() >= QUEUE_LEN_MAX {
            return false;
        }
        queue.frames.push_back(frame);
        let reader = queue.reader.and_then(|reader| self.readers.get(reader));
        reader.into_iter().for_each(ReaderWakeup::wake);
        true
    }

    /// Clears the wake-up of a reader if its queues are empty.
    pub(super) fn clear_if_empty(&self, reader: usize) {
        let mut own = self
            .rx_queues
            .iter()
            .filter(|queue| queue.reader == Some(reader));
        if own.all(|queue| queue.frames.is_empty())
            && let Some(wakeup) = self.readers.get(reader)
        {
            wakeup.clear();
        }
    }
}

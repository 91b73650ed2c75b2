//! Ports without a device, as Open vSwitch's tests use them (`netdev-dummy`): frames are received
//! when a [`DummyHandle`] injects them, or from another dummy through a stream socket; sent frames
//! are counted, sent to connected dummies, and optionally written to a capture file.
//!
//! A dummy has any number of receive queues, each assigned to one reader, and readers are the
//! queues of workers. A reader that sleeps is woken, so a dummy can replace a device. All options
//! change while the port exists.

mod address;
mod backoff;
mod connection;
mod options;
mod pcap;
mod queue;
mod state;
mod steering;
mod stream;
#[cfg(test)]
mod tests;
mod timer;

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::Instant;
use packet::{Frame, MacAddr};

use crate::{Ifindex, Port, Queue, Status};
pub use address::{BadConnection, DummyConnection, StreamAddress};
pub use connection::ConnectionState;
pub use options::{DUMMY_QUEUES_MAX, DummyOptions, DummyType};
pub use pcap::DummyFiles;
use queue::DummyQueue;
use state::DummyState;
pub use state::QueueTotals;
pub use steering::TxSteering;
pub use stream::{Deframer, StreamFrameTooShort};
pub use timer::ReaderTimer;

/// The limits of the MTU, as in Open vSwitch's dummies.
const MTU_MIN: u32 = 68;
const MTU_MAX: u32 = 65535;

/// A dummy port.
pub struct DummyPort {
    name: String,
    address: MacAddr,
    state: Arc<DummyState>,
    queues: Vec<Box<dyn Queue>>,
    /// The number of queues that send, so far.
    senders: std::sync::atomic::AtomicUsize,
}

/// A handle of a dummy port, for tests.
#[derive(Clone)]
pub struct DummyHandle {
    state: Arc<DummyState>,
}

impl DummyPort {
    /// Opens a dummy port called `name`, administratively up, with this number of queues that
    /// receive. The first one polls all receive queues until they are assigned.
    ///
    /// `timers` measure the time spent on received frames, one for each of the queues.
    ///
    /// # Errors
    /// The system has no eventfd or epoll instance left.
    pub fn open(
        name: &str,
        address: Option<MacAddr>,
        queues: NonZeroUsize,
        timers: &[Arc<ReaderTimer>],
    ) -> io::Result<Self> {
        let state = Arc::new(DummyState::new(queues.get())?);
        let queue = |index: usize| {
            let timer = timers.get(index).cloned();
            Box::new(DummyQueue::reading(&state, index, timer)) as Box<dyn Queue>
        };
        let own_address = next_address();
        Ok(Self {
            name: name.to_owned(),
            address: address.unwrap_or(own_address),
            queues: (0..queues.get()).map(queue).collect(),
            state,
            senders: queues.get().into(),
        })
    }
}

/// Returns a new locally administered address: the dummies of a process count them, as in Open
/// vSwitch. Those with a configured address count, too.
fn next_address() -> MacAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0xaa55_0000);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    MacAddr::from_u64(0xaa55 << 32 | u64::from(number))
}

impl Port for DummyPort {
    fn status(&self) -> Status {
        let up = self.state.is_up();
        Status {
            name: self.name.clone(),
            address: self.address,
            mtu: self.state.mtu(),
            up,
            carrier: up,
            index: self.state.parts().options.ifindex.map(Ifindex),
            ..Status::default()
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        let sender = self.senders.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(DummyQueue::sending(&self.state, sender)))
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.state.set_up(up);
        Ok(())
    }

    fn set_link(&mut self, address: Option<MacAddr>, mtu: Option<u32>) -> io::Result<()> {
        if mtu.is_some_and(|mtu| !(MTU_MIN..=MTU_MAX).contains(&mtu)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.address = address.unwrap_or(self.address);
        mtu.into_iter().for_each(|mtu| self.state.set_mtu(mtu));
        Ok(())
    }

    fn dummy(&self) -> Option<DummyHandle> {
        let state = Arc::clone(&self.state);
        Some(DummyHandle { state })
    }
}

impl DummyHandle {
    /// Applies options. Counters, queued frames and unchanged connections stay.
    ///
    /// # Errors
    /// A capture file or a socket cannot be opened; the other options are applied.
    pub fn configure(&self, options: &DummyOptions, now: Instant) -> io::Result<()> {
        self.state.configure(options, now)
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> DummyOptions {
        self.state.parts().options.clone()
    }

    /// Assigns each receive queue to a reader, by the number of its queue among
    /// [`Port::take_queues`]; a queue without a reader is not polled.
    pub fn assign(&self, readers: &[Option<usize>]) {
        self.state.assign(readers);
    }

    /// Queues a frame for reception by this receive queue. Returns false if the port is down or the
    /// queue is full.
    #[must_use]
    pub fn inject(&self, queue: usize, frame: Frame) -> bool {
        self.state.inject(queue, frame)
    }

    /// Returns true if a reader has queued frames left to receive.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        let parts = self.state.parts();
        let mut queues = parts.rx_queues.iter();
        queues.any(|queue| queue.reader.is_some() && !queue.frames.is_empty())
    }

    /// Connects an active connection when its timer has expired. Returns the time of the next call;
    /// none if the dummy has no active connection.
    pub fn drive_connection(&self, now: Instant) -> Option<Instant> {
        self.state.drive(now)
    }

    /// Returns the state of the connection.
    #[must_use]
    pub fn connection_state(&self) -> ConnectionState {
        self.state.connection_state()
    }

    /// Returns the totals of each receive queue.
    #[must_use]
    pub fn rx_totals(&self) -> Vec<QueueTotals> {
        let parts = self.state.parts();
        parts.rx_queues.iter().map(|queue| queue.totals).collect()
    }

    /// Returns the totals of each transmit queue.
    #[must_use]
    pub fn tx_totals(&self) -> Vec<QueueTotals> {
        self.state.parts().tx_totals.clone()
    }

    /// Returns the counters beside those of frames and bytes, by Open vSwitch's names: the number of
    /// received frames twice, for tests, then frames and bytes of each queue.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, u64)> {
        let (received, sent) = (self.rx_totals(), self.tx_totals());
        let total = received.iter().map(|queue| queue.packets).sum();
        let custom = [1, 2].map(|number| (format!("rx_custom_packets_{number}"), total));
        let of_queues = |direction: &'static str, queues: Vec<QueueTotals>| {
            let queues = queues.into_iter().enumerate();
            queues.flat_map(move |(index, queue)| {
                [("bytes", queue.bytes), ("packets", queue.packets)]
                    .map(|(what, count)| (format!("{direction}_q{index}_{what}"), count))
            })
        };
        let queues = of_queues("rx", received).chain(of_queues("tx", sent));
        custom.into_iter().chain(queues).collect()
    }

    /// Returns the nanoseconds that workers have spent on frames of each receive queue.
    #[must_use]
    pub fn busy_nanos(&self) -> Vec<u64> {
        let parts = self.state.parts();
        let queues = parts.rx_queues.iter();
        queues
            .map(|queue| queue.busy.load(Ordering::Relaxed))
            .collect()
    }
}

//! Network devices as the data plane sees them: one trait, many backends.
//!
//! A backend moves frames and what they owe to the wire. It never looks inside a
//! frame, never blocks, and never drops in silence: what it drops, it counts by
//! the reason.
//!
//! A device is a [`Port`]; each of its [`Queue`]s is taken once and belongs to one
//! worker from then on. [`Captured`] and [`Faulty`] are queues around queues.

pub mod af_packet;
mod batch;
mod captured;
mod counters;
pub mod dummy;
mod error;
mod faulty;
pub mod inner;
pub mod memory;
pub mod pcapng;
pub mod replay;
pub mod shaping;
mod status;
pub mod tap;
pub mod vnet;
pub mod xdp;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use base::QueueId;
use packet::{MacAddr, Pool};

pub use batch::Batch;
pub use captured::Captured;
pub use counters::{Counter, Counts, QueueCounters, on_the_wire};
pub use error::OpenError;
pub use faulty::{Faults, Faulty};
use shaping::{Shape, Shaped};
pub use status::Status;
pub use sys::interface::{Ifindex, InterfaceName, InvalidInterfaceName};

/// The most queues that a port is opened with: more than any machine this runs on
/// has cores to serve them.
pub const QUEUES_MAX: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");

/// A network device, opened; its queues are taken once and move to the workers.
pub trait Port: Send {
    /// How the device is now. Asks the kernel: not for the hot path.
    fn status(&self) -> Status;

    /// The queues, one for each worker; none the second time.
    fn take_queues(&mut self) -> Vec<Box<dyn Queue>>;

    /// A further queue that receives nothing, for a worker that takes none of the device's
    /// frames but sends by it.
    ///
    /// # Errors
    /// `Unsupported`: the device has as many queues as workers. Else the system has no more.
    fn sender(&self) -> io::Result<Box<dyn Queue>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What about the device will cost frames, each with what to do about it. To be
    /// asked once it is opened.
    fn advice(&self) -> Vec<String> {
        Vec::new()
    }

    /// Takes the device administratively up or down.
    ///
    /// # Errors
    /// The device is gone, or the process may not.
    fn set_up(&mut self, up: bool) -> io::Result<()>;

    /// Gives it an Ethernet address, and another length of frames: those that are named.
    ///
    /// # Errors
    /// The device is gone, cannot, or the process may not.
    fn equip(&mut self, _address: Option<MacAddr>, _mtu: Option<u32>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Has what leaves by it be in these queues, or in none; in place of those that it has.
    /// Answers what was made of them.
    ///
    /// # Errors
    /// `Unsupported`: frames do not leave by a queueing discipline. Else the device is gone, the
    /// kernel has no such discipline, or the process may not.
    fn shape(&mut self, _shape: Option<&Shape>) -> io::Result<Option<Shaped>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What has left by each of its queues, if it was given any.
    ///
    /// # Errors
    /// As of [`Port::shape`].
    fn queue_counts(&self) -> io::Result<BTreeMap<QueueId, shaping::ClassCounts>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes note whether there is something at the other end. For ports within this process
    /// ([`inner`]); others know it themselves.
    fn set_carrier(&mut self, _carrier: bool) {}

    /// Where frames are handed to it, if it is a [`dummy`].
    fn feed(&self) -> Option<dummy::Feed> {
        None
    }
}

/// One receive and one transmit queue, owned by one worker. Nothing here blocks.
///
/// An error from any method means that the device is gone and that the queue will
/// never move a frame again: retire it. Whatever passes (an interface that is down,
/// a full queue, a frame too long) is counted and is no error.
///
/// Who implements it and writes to itself for frames has `repr(align(128))`: the queues of a port are
/// made one after the other, and two workers would write to one cache line, or to one
/// beside it, which is prefetched along.
pub trait Queue: Send {
    /// Fills the room left in `batch`. Frames that must be dropped take their share of
    /// the room, so fewer may come, and none, while more wait. An exhausted `pool` ends it
    /// early; the frames then stay where they are.
    ///
    /// # Errors
    /// The device is gone; the frames in `batch` are good.
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()>;

    /// Sends from the front of `batch`. What is sent, or dropped and counted, goes
    /// back to `pool`; what found no room stays in `batch`, in order.
    ///
    /// # Errors
    /// The device is gone; the frames not sent stay in `batch`.
    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()>;

    /// Does what must be done now and then, so that receiving need not: fetches the
    /// kernel's own drop counts, clears a waiting error, notices that the device is
    /// gone, mends a ring that the kernel has jammed.
    ///
    /// To be called every ten milliseconds or so awake, every second asleep; and whenever
    /// a worker was woken for this queue and received nothing, for then an error waits,
    /// which would wake it again and again. Costs a few system calls.
    ///
    /// # Errors
    /// The device is gone.
    fn tend(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// What an idle worker may sleep on until there is something to receive, if this
    /// backend can wake one. The same for as long as the queue lives.
    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether looking for frames costs a system call though none are there. Where frames come
    /// by other queues, a worker then looks less often.
    fn is_dear(&self) -> bool {
        false
    }

    /// Whether there is no device behind it: who owns it takes what is sent on himself.
    fn is_inner(&self) -> bool {
        false
    }

    /// What this queue counts: written by its owner only, read by anybody.
    fn counters(&self) -> Arc<QueueCounters>;
}

impl<Q: Queue + ?Sized> Queue for Box<Q> {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        (**self).receive(pool, batch)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        (**self).send(batch, pool)
    }

    fn tend(&mut self) -> io::Result<()> {
        (**self).tend()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        (**self).readiness()
    }

    fn is_dear(&self) -> bool {
        (**self).is_dear()
    }

    fn is_inner(&self) -> bool {
        (**self).is_inner()
    }

    fn counters(&self) -> Arc<QueueCounters> {
        (**self).counters()
    }
}

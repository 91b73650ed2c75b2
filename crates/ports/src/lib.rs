//! Network devices for the data plane: one trait, [`Port`], with several backends.
//!
//! ```text
//!  control thread                              worker threads
//!  +----------------+   take_queues, once      +----------------------------------+
//!  | Box<dyn Port>  | -----------------------> | Box<dyn Queue>, one per worker   |
//!  | status, MTU,   |                          |   receive: device --> Batch      |
//!  | address, QoS,  |   tx_queue               |   send:    Batch  --> device     |
//!  | counters       | -----------------------> |   maintain, readiness, counters  |
//!  +----------------+   (send only)            +----------------------------------+
//! ```
//!
//! | backend | device | receive | send | zero copy |
//! |---|---|---|---|---|
//! | [`af_packet`] | any Linux interface | mapped ring, no system call | sendmmsg(2), 64 frames per call | no |
//! | [`xdp`] | any Linux interface | mapped ring, no system call | mapped ring, one wake-up per batch | if the driver supports it |
//! | [`tap`] | a TAP device for the host | read(2) per frame | write(2) per frame | no |
//! | [`replay`] | a capture file | memory | counted and dropped | |
//! | [`dummy`] | none, or another dummy, as in Open vSwitch's tests | injected frames, sockets | counted, to sockets and files | |
//! | [`vport`] | none: patch ports and tunnels | | the worker continues with the frame | |
//! | [`memory`] | another port in this process | memory | memory | |
//!
//! A backend transports bytes and offload metadata. It does not parse frames, does not block, and
//! counts every frame that it drops, by reason ([`Counter`]).
//!
//! [`CapturingQueue`] and [`FaultyQueue`] wrap another queue.

pub mod af_packet;
mod batch;
mod capturing;
mod counters;
pub mod dummy;
mod error;
mod faulty;
pub mod memory;
pub mod replay;
pub mod shaping;
mod status;
pub mod tap;
pub mod vnet;
pub mod vport;
pub mod xdp;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use base::QueueId;
use packet::{MacAddr, Pool};

pub use batch::Batch;
pub use capturing::CapturingQueue;
pub use counters::{Counter, QueueCounters, QueueCounts, wire_size};
pub use error::OpenError;
pub use faulty::{FaultyQueue, QueueFaults};
use shaping::{EffectiveQos, QosConfig};
pub use status::Status;
pub use sys::interface::{Ifindex, InterfaceName, InvalidInterfaceName};

/// Maximum number of queues of a port: more than the number of cores of any supported machine.
pub const QUEUES_MAX: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");

/// An open network device. Its queues are taken once and move to the workers.
pub trait Port: Send {
    /// Returns the current state of the device. Uses system calls: not for the hot path.
    fn status(&self) -> Status;

    /// Returns the queues, one per worker; empty on the second call.
    fn take_queues(&mut self) -> Vec<Box<dyn Queue>>;

    /// Opens a further queue that only sends, for a worker that receives nothing from this device.
    ///
    /// # Errors
    /// `Unsupported`: the device has one queue per worker. Otherwise the system has no further
    /// queue.
    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns properties of the device that will cause drops, each with its remedy. Called once
    /// after opening.
    fn advice(&self) -> Vec<String> {
        Vec::new()
    }

    /// Sets the device administratively up or down.
    ///
    /// # Errors
    /// The device was removed, or the process lacks a capability.
    fn set_up(&mut self, up: bool) -> io::Result<()>;

    /// Sets the Ethernet address and the MTU, where given.
    ///
    /// # Errors
    /// The device was removed or does not support the value, or the process lacks a capability.
    fn set_link(&mut self, _address: Option<MacAddr>, _mtu: Option<u32>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Replaces the device's QoS configuration: a queueing discipline with these queues, or none.
    /// Returns the rates in effect.
    ///
    /// # Errors
    /// `Unsupported`: the backend does not send through a queueing discipline. Otherwise the device
    /// was removed, the kernel lacks the discipline, or the process lacks a capability.
    fn set_qos(&mut self, _shape: Option<&QosConfig>) -> io::Result<Option<EffectiveQos>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the counters of each QoS queue.
    ///
    /// # Errors
    /// Those of [`Port::set_qos`].
    fn queue_counts(&self) -> io::Result<BTreeMap<QueueId, shaping::ClassCounts>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets the carrier of a port within this process ([`vport`]); other ports detect it
    /// themselves.
    fn set_carrier(&mut self, _carrier: bool) {}

    /// Returns the handle of a [`dummy`] port, otherwise `None`.
    fn dummy(&self) -> Option<dummy::DummyHandle> {
        None
    }
}

/// One receive and one transmit queue, owned by one worker. No method blocks.
///
/// An error from any method means that the device was removed and the queue will never transport
/// another frame: the worker retires it. Transient conditions (interface down, queue full, frame
/// too long) are counted and are no errors.
///
/// ```text
///  receive:  device --> frames of `pool` --> appended to `batch`
///  send:     front of `batch` --> device; buffers of sent and dropped frames --> `pool`;
///            frames that did not fit stay in `batch`, in order
/// ```
///
/// An implementation that writes to itself for each batch has `repr(align(128))`: the queues of a
/// port are allocated consecutively, and two workers would otherwise write to the same cache line,
/// or to adjacent lines, which the processor prefetches together.
pub trait Queue: Send {
    /// Receives frames until `batch` is full. A dropped frame uses up its place, so fewer frames
    /// than fit may be returned, even none, although more are available. An empty `pool` ends the
    /// call early; the frames stay in the device.
    ///
    /// # Errors
    /// The device was removed; the frames in `batch` are valid.
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()>;

    /// Sends from the front of `batch`. Buffers of frames that were sent, or dropped and counted,
    /// return to `pool`; frames that do not fit stay in `batch`, in order.
    ///
    /// # Errors
    /// The device was removed; unsent frames stay in `batch`.
    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()>;

    /// Periodic work that keeps `receive` short: reads the kernel's drop counters, clears a pending
    /// socket error, detects removal of the device, resets a ring that the kernel has jammed.
    ///
    /// Called about every ten milliseconds by an awake worker and every second by a sleeping one;
    /// also when a worker was woken for this queue and received nothing, because then an error is
    /// pending that would wake it again. Costs a few system calls.
    ///
    /// # Errors
    /// The device was removed.
    fn maintain(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns a descriptor that becomes readable when frames are available, or `None` if the
    /// backend has none. The same descriptor for the lifetime of the queue.
    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// True if polling costs a system call even when no frame is available. A worker that receives
    /// from other queues then polls this one less often.
    fn is_expensive_to_poll(&self) -> bool {
        false
    }

    /// True if no device is behind the queue: its owner takes the sent frames itself.
    fn is_virtual(&self) -> bool {
        false
    }

    /// Returns the counters, written only by the owner of the queue and read by any thread.
    fn counters(&self) -> Arc<QueueCounters>;
}

impl<Q: Queue + ?Sized> Queue for Box<Q> {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        (**self).receive(pool, batch)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        (**self).send(batch, pool)
    }

    fn maintain(&mut self) -> io::Result<()> {
        (**self).maintain()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        (**self).readiness()
    }

    fn is_expensive_to_poll(&self) -> bool {
        (**self).is_expensive_to_poll()
    }

    fn is_virtual(&self) -> bool {
        (**self).is_virtual()
    }

    fn counters(&self) -> Arc<QueueCounters> {
        (**self).counters()
    }
}

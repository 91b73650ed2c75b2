//! Ethernet frames at high rates, at an interface of a namespace, with the kernel's receive
//! timestamps: the basis of the tester's ports.
//!
//! Frames are sent with sendmmsg(2), bypassing the queueing discipline. They are received from a
//! ring in shared memory; polling an empty ring is a memory read.

use std::io;
use std::num::NonZeroU32;

use sys::packet_ring::{PacketRing, PacketRingLayout};
use sys::packet_send::SendVector;
use sys::packet_socket::{PacketSocket, ReceiveFilter};

use crate::raw::is_full;
use crate::realtime::Realtime;
use crate::{Clock, Failure, Namespace};

/// Send buffer in bytes, by the kernel's accounting: large enough never to be the bottleneck.
const SEND_BUFFER: usize = 16 << 20;
/// Memory of a ring: some 16,000 frames of the usual size, more than 10 ms at a million frames a
/// second.
const RING_BYTES: u32 = 32 << 20;
const BLOCK_BYTES: u32 = 64 << 10;
/// The longest header that the kernel writes before a frame in its slot.
const SLOT_HEADER: usize = 128;
/// The longest frame that fits into a slot.
const LONGEST: usize = 32 << 10;

/// Sends frames from an interface. It never blocks.
pub struct FrameSender {
    socket: PacketSocket,
    vector: SendVector,
}

/// Receives all frames of an interface in promiscuous mode, except those that this machine sends.
/// It never blocks.
pub struct FrameReceiver {
    ring: PacketRing,
    realtime: Realtime,
}

impl Namespace {
    /// Opens a sender on `interface`.
    ///
    /// # Errors
    /// The interface does not exist here, or the process lacks the privilege.
    pub fn frame_sender(&self, interface: &str) -> Result<FrameSender, Failure> {
        let index = self.index(interface)?;
        let open = || -> io::Result<FrameSender> {
            let socket = PacketSocket::open()?;
            socket.set_qdisc_bypass()?;
            socket.set_send_buffer(SEND_BUFFER)?;
            socket.bind(index, ReceiveFilter::None)?;
            Ok(FrameSender {
                socket,
                vector: SendVector::new(),
            })
        };
        self.run(open)?
            .map_err(Failure::to(format!("open a sender on {interface}")))
    }

    /// Opens a receiver on `interface` for frames of up to `longest` bytes; longer ones are
    /// truncated. A small value allows more frames to wait and uses less of the caches. Timestamps
    /// are those of `clock`.
    ///
    /// # Errors
    /// The interface does not exist here, the process lacks the privilege, or memory is exhausted.
    pub fn frame_receiver(
        &self,
        interface: &str,
        longest: usize,
        clock: Clock,
    ) -> Result<FrameReceiver, Failure> {
        let index = self.index(interface)?;
        let open = || -> io::Result<FrameReceiver> {
            let socket = PacketSocket::open()?;
            socket.set_ignore_outgoing()?;
            socket.set_promiscuous(index)?;
            let ring = PacketRing::new(socket, layout(longest))?;
            ring.socket().bind(index, ReceiveFilter::AllProtocols)?;
            Ok(FrameReceiver {
                ring,
                realtime: Realtime::new(clock),
            })
        };
        self.run(open)?
            .map_err(Failure::to(format!("open a receiver on {interface}")))
    }
}

/// The layout of a ring for frames of this length.
fn layout(longest: usize) -> PacketRingLayout {
    // An odd number of cache lines spreads the first lines of slots over all sets of the caches.
    let lines = (longest.min(LONGEST) + SLOT_HEADER).div_ceil(64) | 1;
    let slot = u32::try_from(lines * 64).unwrap_or(BLOCK_BYTES);
    let not_zero = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    PacketRingLayout {
        block_len: not_zero(BLOCK_BYTES),
        // For short slots the ring is smaller, so that it stays in the caches.
        blocks: not_zero((RING_BYTES / BLOCK_BYTES).min(slot * SLOTS_MAX / BLOCK_BYTES)),
        slot_len: not_zero(slot),
    }
}

/// The most slots of a ring.
const SLOTS_MAX: u32 = 16 << 10;

impl FrameSender {
    /// Sends from the front of `frames`, at most 64, and returns the number that the kernel
    /// accepted: 0 if there is no space now. Accepted frames are no longer referenced after the
    /// return.
    ///
    /// # Errors
    /// The interface has disappeared or is down, or a frame exceeds its MTU.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        match self.vector.send(&self.socket, frames.iter().copied()) {
            Err(error) if is_full(&error) => Ok(0),
            outcome => outcome,
        }
    }
}

impl FrameReceiver {
    /// Passes up to `limit` received frames to `take`, in order: the timestamp in nanoseconds of
    /// the clock, and the parts of the frame. A VLAN tag that the kernel stripped is one of the
    /// parts.
    ///
    /// # Errors
    /// The interface has disappeared or is down.
    #[inline]
    pub fn receive(
        &mut self,
        limit: usize,
        mut take: impl FnMut(u64, &[&[u8]]),
    ) -> io::Result<usize> {
        for count in 0..limit {
            let Some(slot) = self.ring.next_slot() else {
                return Ok(count);
            };
            let at_ns = self.realtime.instant_ns(slot.timestamp_ns());
            let bytes = slot.bytes();
            match (slot.stripped_tag(), bytes.split_at_checked(12)) {
                (Some(tag), Some((addresses, rest))) => {
                    let [a, b] = tag.tpid.to_be_bytes();
                    let [c, d] = tag.tci.to_be_bytes();
                    take(at_ns, &[addresses, &[a, b, c, d], rest]);
                }
                _ => take(at_ns, &[bytes]),
            }
        }
        Ok(limit)
    }

    /// Returns the number of frames that the kernel has dropped since the last call because the
    /// ring was full. It also clears a pending socket error.
    ///
    /// # Errors
    /// The interface has disappeared.
    pub fn take_drops(&mut self) -> io::Result<u64> {
        let socket = self.ring.socket();
        socket.take_error()?;
        if !socket.is_bound()? {
            return Err(io::ErrorKind::NotConnected.into());
        }
        socket.take_drops()
    }

    /// The largest step of the kernel's clock against the tester's, beyond the permitted drift.
    #[must_use]
    pub const fn step_ns_max(&self) -> u64 {
        self.realtime.step_ns_max()
    }
}

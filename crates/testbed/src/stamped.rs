//! Whole frames in great number, out of and into an interface of a namespace, with the time at which the
//! kernel took each that came in: the ends of cables that an instrument measures at.
//!
//! Frames go out by sendmmsg(2), past the queueing discipline. They come in by a ring in shared memory,
//! and looking into an empty one is a memory read.

use std::io;
use std::num::NonZeroU32;

use sys::packet_ring::{PacketRing, PacketRingLayout};
use sys::packet_send::SendVector;
use sys::packet_socket::{PacketSocket, ReceiveFilter};

use crate::raw::is_full;
use crate::realtime::Realtime;
use crate::{Clock, Failure, Namespace};

/// Room for frames on their way, in bytes as the kernel counts: it must never be what holds up.
const SEND_BUFFER: usize = 16 << 20;
/// Memory of a ring: some 16,000 frames of the usual size, a hundredth of a second of more than a
/// million a second.
const RING_BYTES: u32 = 32 << 20;
const BLOCK_BYTES: u32 = 64 << 10;
/// What the kernel writes before a frame in its slot, at most.
const SLOT_HEADER: usize = 128;
/// The longest frame that finds room in a slot.
const LONGEST: usize = 32 << 10;

/// Sends frames by an interface. It never blocks.
pub struct FrameSender {
    socket: PacketSocket,
    vector: SendVector,
}

/// Receives all frames that come by an interface, to whomever they are, but those that this machine
/// sends by it. It never blocks.
pub struct FrameReceiver {
    ring: PacketRing,
    realtime: Realtime,
}

impl Namespace {
    /// Opens a sender by `interface`.
    ///
    /// # Errors
    /// There is no such interface here, or this process may not.
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

    /// Opens a receiver by `interface` of frames of up to `longest` bytes; longer ones are cut. The
    /// shorter that is, the more frames may wait and the fewer caches they take. Times are those of
    /// `clock`.
    ///
    /// # Errors
    /// There is no such interface here, or this process may not, or there is no memory.
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

/// A ring for frames of this length.
fn layout(longest: usize) -> PacketRingLayout {
    // An odd number of cache lines, so that the slots' first lines spread over all sets of the caches.
    let lines = (longest.min(LONGEST) + SLOT_HEADER).div_ceil(64) | 1;
    let slot = u32::try_from(lines * 64).unwrap_or(BLOCK_BYTES);
    let not_zero = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    PacketRingLayout {
        block_len: not_zero(BLOCK_BYTES),
        // Where slots are short, no more of them than are of use: short rings stay in the caches.
        blocks: not_zero((RING_BYTES / BLOCK_BYTES).min(slot * SLOTS_MAX / BLOCK_BYTES)),
        slot_len: not_zero(slot),
    }
}

/// The most slots.
const SLOTS_MAX: u32 = 16 << 10;

impl FrameSender {
    /// Sends from the front of `frames`, 64 at most, and returns how many the kernel took: none where
    /// it has no room now. It is done with all of them before it returns.
    ///
    /// # Errors
    /// The interface is gone or down, or a frame is longer than it takes.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        match self.vector.send(&self.socket, frames.iter().copied()) {
            Err(error) if is_full(&error) => Ok(0),
            outcome => outcome,
        }
    }
}

impl FrameReceiver {
    /// Hands up to `limit` frames that have come to `take`, in their order: when, in nanoseconds of the
    /// clock, and the parts that a frame is made of, since a tag that the kernel has taken out is put back.
    ///
    /// # Errors
    /// The interface is gone or down.
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

    /// How many frames the kernel has dropped since the last call, the ring being full; and clears an
    /// error that waits.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn take_drops(&mut self) -> io::Result<u64> {
        let socket = self.ring.socket();
        socket.take_error()?;
        if !socket.is_bound()? {
            return Err(io::ErrorKind::NotConnected.into());
        }
        socket.take_drops()
    }

    /// By how much the kernel's clock has stepped against ours at most, beyond what it may drift.
    #[must_use]
    pub const fn step_ns_max(&self) -> u64 {
        self.realtime.step_ns_max()
    }
}

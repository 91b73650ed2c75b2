//! One queue of an interface: a ring to receive from, and a way to send.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use packet::{Frame, Pool};
use sys::interface::InterfaceName;
use sys::packet_ring::{PacketRing, RingSlot, StrippedTag};

use super::sender::PacketSender;
use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Queue, error, vnet};

/// Where a tag stands in a frame: behind the two addresses (IEEE 802.1Q-2018, 9.3).
const TAG_AT: usize = 12;
const TAG_LEN: u16 = 4;
/// An Ethernet header: two addresses and a type.
const HEADER_LEN: usize = 14;

/// One queue of an interface.
#[repr(align(128))]
pub(super) struct PacketQueue {
    name: InterfaceName,
    ring: PacketRing,
    sender: PacketSender,
    counters: Arc<QueueCounters>,
    /// Nothing was received since [`Queue::tend`] last saw the ring empty.
    quiet: bool,
}

impl PacketQueue {
    pub(super) fn new(name: InterfaceName, ring: PacketRing, sender: PacketSender) -> Self {
        Self {
            name,
            ring,
            sender,
            counters: Arc::default(),
            quiet: false,
        }
    }

    /// Fetches how many frames the kernel has dropped for want of room.
    fn count_drops(&self) -> io::Result<u64> {
        let drops = self.ring.socket().take_drops()?;
        if drops > 0 {
            self.counters.add(Counter::RxOverrun, drops);
        }
        Ok(drops)
    }

    /// Lays the ring anew if the kernel has jammed it, having dropped `drops` frames
    /// since we last asked.
    ///
    /// A frame with segments of a kind that a virtio-net header cannot say is dropped by
    /// the kernel after it has reserved a slot, and the reservation is never lifted
    /// (`tpacket_rcv`): every later frame finds the ring full. One such frame from a
    /// neighbour would end the port for good. Frames dropped while the ring was empty
    /// all the time are the sign of it.
    fn mend(&mut self, drops: u64) -> io::Result<()> {
        let empty = !self.ring.is_ready();
        if drops > 0 && self.quiet && empty && self.ring.is_empty() {
            self.ring.recreate()?;
            self.counters.add(Counter::RxMended, 1);
        }
        self.quiet = empty;
        Ok(())
    }
}

impl Queue for PacketQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let mut has_pending_drops = false;
        // As many frames as fit, those to be dropped among them: a flood of such ends too.
        for _ in 0..batch.room() {
            if !self.ring.is_ready() {
                break;
            }
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxStarved, 1);
                break;
            };
            let Some(slot) = self.ring.next_slot() else {
                pool.put(frame);
                break;
            };
            self.quiet = false;
            has_pending_drops |= slot.has_pending_drops();
            match read(&slot, &mut frame) {
                Ok(()) => batch.push(frame).expect("room was asked for"),
                Err(reason) => {
                    self.counters.add(reason, 1);
                    pool.put(frame);
                }
            }
        }
        self.counters.received(&batch[before..]);
        if has_pending_drops {
            self.count_drops()?;
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        self.sender.send(batch, pool, &self.counters)
    }

    fn tend(&mut self) -> io::Result<()> {
        // An error waits when the interface went down, which `send` sees for itself; left
        // there, it would wake the worker again and again.
        self.ring.socket().take_error()?;
        if !self.ring.socket().is_bound()? {
            return Err(error::gone(&self.name));
        }
        let drops = self.count_drops()?;
        self.mend(drops)
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.as_fd())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

/// Copies what a slot holds, or announces, into `frame`; the reason, if it must be dropped.
fn read(slot: &RingSlot<'_>, frame: &mut Frame) -> Result<(), Counter> {
    if slot.is_oversized() {
        let len = slot.receive_oversized(frame.receive_buffer());
        let len = len.ok().filter(|len| *len == slot.wire_len());
        let len = len.ok_or(Counter::RxTruncated)?;
        frame.set_len(len).map_err(|_| Counter::RxTooLong)?;
    } else if slot.bytes().len() < slot.wire_len() {
        return Err(Counter::RxTruncated);
    } else {
        let copied = frame.copy_from(slot.bytes());
        copied.map_err(|_| Counter::RxTooLong)?;
    }
    if frame.len() < HEADER_LEN {
        return Err(Counter::RxRunt);
    }
    let offload = vnet::decode(slot.vnet_header(), frame.len());
    frame.offload = offload.map_err(|_| Counter::RxBadOffload)?;
    match slot.stripped_tag() {
        Some(tag) => put_back(frame, tag),
        None => Ok(()),
    }
}

/// Puts a tag that the kernel took out back where it stood. The offload metadata,
/// which speaks of the frame without it, follows.
fn put_back(frame: &mut Frame, tag: StrippedTag) -> Result<(), Counter> {
    if frame.len() + usize::from(TAG_LEN) > Frame::LEN_MAX {
        return Err(Counter::RxTooLong);
    }
    let opened = frame.insert_zeros(TAG_AT, TAG_LEN);
    opened.map_err(|_| Counter::RxTooLong)?;
    let [a, b] = tag.tpid.to_be_bytes();
    let [c, d] = tag.tci.to_be_bytes();
    frame.bytes_mut()[TAG_AT..TAG_AT + usize::from(TAG_LEN)].copy_from_slice(&[a, b, c, d]);
    Ok(())
}

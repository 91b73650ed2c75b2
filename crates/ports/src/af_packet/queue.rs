//! The queue of one worker: a receive ring and a socket for sending.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use packet::{Frame, Pool};
use sys::interface::InterfaceName;
use sys::packet_ring::{PacketRing, RingSlot, StrippedTag};

use super::sender::PacketSender;
use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Queue, error, vnet};

/// Offset of a VLAN tag in a frame, behind the addresses (IEEE 802.1Q-2018, 9.3).
const TAG_OFFSET: usize = 12;
const TAG_LEN: u16 = 4;
/// Length of an Ethernet header: two addresses and a type.
const HEADER_LEN: usize = 14;

/// The queue of one worker.
#[repr(align(128))]
pub(super) struct PacketQueue {
    name: InterfaceName,
    ring: PacketRing,
    sender: PacketSender,
    counters: Arc<QueueCounters>,
    /// No frame was received since [`Queue::maintain`] last found the ring empty.
    idle: bool,
}

impl PacketQueue {
    pub(super) fn new(name: InterfaceName, ring: PacketRing, sender: PacketSender) -> Self {
        Self {
            name,
            ring,
            sender,
            counters: Arc::default(),
            idle: false,
        }
    }

    /// Counts the frames that the kernel has dropped because the ring was full.
    fn count_drops(&self) -> io::Result<u64> {
        let drops = self.ring.socket().take_drops()?;
        if drops > 0 {
            self.counters.add(Counter::RxOverrun, drops);
        }
        Ok(drops)
    }

    /// Recreates the ring if the kernel has jammed it; `drops` is the number of drops since the
    /// last check.
    ///
    /// The kernel drops a frame whose segmentation type a virtio-net header cannot express after it
    /// has reserved a slot, and never releases the reservation (`tpacket_rcv`): every later frame
    /// finds the ring full. A single such frame from a neighbour would disable the port
    /// permanently. The symptom is drops while the ring was empty all the time.
    fn reset_jammed_ring(&mut self, drops: u64) -> io::Result<()> {
        let empty = !self.ring.is_ready();
        if drops > 0 && self.idle && empty && self.ring.is_empty() {
            self.ring.recreate()?;
            self.counters.add(Counter::RxRingReset, 1);
        }
        self.idle = empty;
        Ok(())
    }
}

impl Queue for PacketQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let mut has_pending_drops = false;
        // Dropped frames count as received ones, so that a flood of invalid frames ends, too.
        for _ in 0..batch.remaining_capacity() {
            if !self.ring.is_ready() {
                break;
            }
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxNoBuffer, 1);
                break;
            };
            let Some(slot) = self.ring.next_slot() else {
                pool.put(frame);
                break;
            };
            self.idle = false;
            has_pending_drops |= slot.has_pending_drops();
            match read(&slot, &mut frame) {
                Ok(()) => batch.push(frame).expect("the batch has space"),
                Err(reason) => {
                    self.counters.add(reason, 1);
                    pool.put(frame);
                }
            }
        }
        self.counters.count_received(&batch[before..]);
        if has_pending_drops {
            self.count_drops()?;
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        self.sender.send(batch, pool, &self.counters)
    }

    fn maintain(&mut self) -> io::Result<()> {
        // An error is pending after the interface went down, which `send` detects by itself;
        // uncleared, it would wake the worker again and again.
        self.ring.socket().take_error()?;
        if !self.ring.socket().is_bound()? {
            return Err(error::removed(&self.name));
        }
        let drops = self.count_drops()?;
        self.reset_jammed_ring(drops)
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.as_fd())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

/// Copies the frame of a slot into `frame`, or returns the drop reason.
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
        Some(tag) => insert_stripped_tag(frame, tag),
        None => Ok(()),
    }
}

/// Inserts a tag that the kernel has stripped. The offload metadata, which describes the untagged
/// frame, is adjusted.
fn insert_stripped_tag(frame: &mut Frame, tag: StrippedTag) -> Result<(), Counter> {
    if frame.len() + usize::from(TAG_LEN) > Frame::LEN_MAX {
        return Err(Counter::RxTooLong);
    }
    let inserted = frame.insert_zeros(TAG_OFFSET, TAG_LEN);
    inserted.map_err(|_| Counter::RxTooLong)?;
    let [a, b] = tag.tpid.to_be_bytes();
    let [c, d] = tag.tci.to_be_bytes();
    frame.bytes_mut()[TAG_OFFSET..TAG_OFFSET + usize::from(TAG_LEN)].copy_from_slice(&[a, b, c, d]);
    Ok(())
}

//! Egress: frames wait with others of their port until the end of the batch, or until a full
//! transmit batch is pending.

use packet::Frame;
use ports::Batch;

use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::slots::PortKey;

impl BatchForwarder {
    /// Sends all frames of a batch to one port. If none are pending there, no frame is moved.
    pub(super) fn send_batch(&mut self, key: PortKey, batch: &mut Batch) {
        match self.slots.find(key) {
            Some(slot) if slot.out.is_empty() => std::mem::swap(&mut slot.out, batch),
            _ => self.send_together(key, batch),
        }
    }

    /// Adds frames to the pending ones of their port.
    #[inline]
    pub(super) fn send_together(&mut self, key: PortKey, frames: &mut [Frame]) {
        match (self.slots.find(key), &mut *frames) {
            // If frames leave by several ports, most arrive here one by one. Each is built in
            // place: a move through a temporary costs several times as much.
            (Some(slot), [frame]) if slot.out.remaining_capacity() > 0 => {
                slot.out.put(std::mem::take(frame))
            }
            (Some(slot), frames) if slot.out.remaining_capacity() >= frames.len() => {
                slot.out.append_taken(frames)
            }
            _ => frames
                .iter_mut()
                .for_each(|frame| self.send(key, std::mem::take(frame))),
        }
    }

    /// Adds a frame to the pending ones of its port; a full batch leaves at once.
    pub(super) fn send(&mut self, key: PortKey, frame: Frame) {
        let Some(slot) = self.slots.find(key) else {
            self.drop_frame(frame, WorkerDrop::NoPort);
            return;
        };
        let Err(frame) = slot.out.push(frame) else {
            return;
        };
        // The flush makes room, unless it finds that the port's device disappeared.
        self.flush_port(key);
        let again = match self.slots.find(key) {
            Some(slot) => slot.out.push(frame),
            None => Err(frame),
        };
        if let Err(frame) = again {
            self.drop_frame(frame, WorkerDrop::NoPort);
        }
    }

    pub(super) fn flush(&mut self) {
        for place in (0..self.slots.len()).rev() {
            let (key, slot) = self.slots.at(place);
            if !slot.out.is_empty() {
                self.flush_port(key);
            }
        }
    }

    /// Sends the pending frames of a port. Frames that the queue has no room for are dropped and
    /// counted: a full port never delays the others.
    pub(super) fn flush_port(&mut self, key: PortKey) {
        let Some(slot) = self.slots.find(key) else {
            return;
        };
        if slot.inner.is_some() || slot.terminates {
            return self.depart(key);
        }
        if slot.policing.policer.has_egress_policy() {
            self.limit_out(key);
        }
        let Some(slot) = self.slots.find(key) else {
            return;
        };
        let sent = slot.queue.send(&mut slot.out, &mut self.pool);
        let left = slot.out.len();
        slot.out.release(left, &mut self.pool);
        self.reporter.links.counters.add(WorkerDrop::PortFull, left);
        if let Err(error) = sent {
            self.retire(key, error);
        }
    }
}

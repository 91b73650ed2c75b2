//! Frames on their way out: they wait with others of their port until the batch is done, or there
//! are as many as leave at once.

use packet::Frame;
use ports::Batch;

use super::Worker;
use crate::counters::WorkerDrop;
use crate::slots::PortKey;

impl Worker {
    /// Sends all frames of a batch by one port. Where nothing waits for the port, none is moved.
    pub(super) fn send_batch(&mut self, key: PortKey, batch: &mut Batch) {
        match self.slots.find(key) {
            Some(slot) if slot.out.is_empty() => std::mem::swap(&mut slot.out, batch),
            _ => self.send_together(key, batch),
        }
    }

    /// Puts frames with those that leave by their port.
    #[inline]
    pub(super) fn send_together(&mut self, key: PortKey, frames: &mut [Frame]) {
        match (self.slots.find(key), &mut *frames) {
            // Where frames leave by several ports, most come one by one. Each is built where it
            // is put: one that goes through another place costs several times as much.
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

    /// Puts the frame with those that leave by its port; a full batch leaves at once.
    pub(super) fn send(&mut self, key: PortKey, frame: Frame) {
        let Some(slot) = self.slots.find(key) else {
            self.drop_frame(frame, WorkerDrop::NoPort);
            return;
        };
        let Err(frame) = slot.out.push(frame) else {
            return;
        };
        // After that there is room, unless the port has just turned out to be gone.
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

    /// Sends what waits for a port. What its queue has no room for is dropped and
    /// counted: a full port never holds up the others.
    pub(super) fn flush_port(&mut self, key: PortKey) {
        let Some(slot) = self.slots.find(key) else {
            return;
        };
        if slot.inner.is_some() || slot.terminates {
            return self.depart(key);
        }
        if slot.policing.policer.touches_egress() {
            self.limit_out(key);
        }
        let Some(slot) = self.slots.find(key) else {
            return;
        };
        let sent = slot.queue.send(&mut slot.out, &mut self.pool);
        let left = slot.out.len();
        slot.out.release(left, &mut self.pool);
        self.shared.counters.add(WorkerDrop::PortFull, left);
        if let Err(error) = sent {
            self.retire(key, error);
        }
    }
}

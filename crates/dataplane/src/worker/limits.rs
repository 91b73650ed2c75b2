//! Limits of what comes and goes by a port, where there are any.

use std::sync::Arc;

use base::Instant;
use ports::{Batch, wire_size};

use super::Worker;
use crate::counters::Drop;
use crate::slots::PortKey;

impl Worker {
    /// Drops what comes too fast.
    pub(super) fn limit(&mut self, place: usize, batch: &mut Batch, now: Instant) {
        let (_, slot) = self.slots.at(place);
        let police = Arc::clone(&slot.gate.police);
        let mut admitted = Batch::new();
        for frame in batch.drain() {
            match police.admits(wire_size(&frame), now) {
                true => admitted.put(frame),
                false => self.drop_frame(frame, Drop::IngressPoliced),
            }
        }
        *batch = admitted;
    }

    /// Drops what is to leave too fast, and marks the rest as its queues say.
    pub(super) fn limit_out(&mut self, key: PortKey) {
        let Some(slot) = self.slots.find(key) else {
            return;
        };
        let police = Arc::clone(&slot.gate.police);
        let mut leaving = std::mem::take(&mut slot.out);
        let mut admitted = Batch::new();
        for mut frame in leaving.drain() {
            match police.lets_out(wire_size(&frame), self.now) {
                true => {
                    police.mark_out(&mut frame);
                    admitted.put(frame);
                }
                false => self.drop_frame(frame, Drop::EgressPoliced),
            }
        }
        if let Some(slot) = self.slots.find(key) {
            slot.out = admitted;
        }
    }
}

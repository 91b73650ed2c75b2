//! Ingress and egress policing in a worker.

use std::sync::Arc;

use base::Instant;
use ports::{Batch, wire_size};

use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::slots::PortKey;

impl BatchForwarder {
    /// Drops frames above the ingress limit.
    pub(super) fn limit(&mut self, place: usize, batch: &mut Batch, now: Instant) {
        let (_, slot) = self.slots.at(place);
        let policer = Arc::clone(&slot.policing.policer);
        let mut admitted = Batch::new();
        for frame in batch.drain() {
            match policer.admits(wire_size(&frame), now) {
                true => admitted.put(frame),
                false => self.drop_frame(frame, WorkerDrop::IngressPoliced),
            }
        }
        *batch = admitted;
    }

    /// Drops frames above the egress limit, and sets the DSCP of the others by their queues.
    pub(super) fn limit_out(&mut self, key: PortKey) {
        let Some(slot) = self.slots.find(key) else {
            return;
        };
        let policer = Arc::clone(&slot.policing.policer);
        let mut leaving = std::mem::take(&mut slot.out);
        let mut admitted = Batch::new();
        for mut frame in leaving.drain() {
            match policer.admits_egress(wire_size(&frame), self.now) {
                true => {
                    policer.mark_out(&mut frame);
                    admitted.put(frame);
                }
                false => self.drop_frame(frame, WorkerDrop::EgressPoliced),
            }
        }
        if let Some(slot) = self.slots.find(key) {
            slot.out = admitted;
        }
    }
}

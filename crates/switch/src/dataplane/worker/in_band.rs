//! The way to controllers through the bridge itself.

use base::{Instant, Priority};
use ports::Batch;

use super::Worker;
use crate::dataplane::in_band::InBand;
use crate::dataplane::program::BridgeProgram;
use crate::dataplane::slots::PortKey;

impl Worker {
    /// Forwards by `NORMAL` what is on that way. Most batches have nothing of it.
    pub(super) fn forward_in_band(
        &mut self,
        (bridge, in_band): (&BridgeProgram, &InBand),
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        let takes = |frame: &[u8]| in_band.takes(from.port, frame);
        if !batch.iter().any(|frame| takes(frame.bytes())) {
            return;
        }
        let mut others = Batch::new();
        let queue = in_band.config().queue;
        let priority = queue.and_then(Priority::of).unwrap_or_default();
        for frame in batch.drain() {
            if !takes(frame.bytes()) {
                others.put(frame);
                continue;
            }
            in_band.count(from.port, frame.bytes());
            self.exits.clear();
            self.normal(bridge, from, (0, priority), &frame, now);
            let exits = std::mem::take(&mut self.exits);
            match exits.is_empty() {
                true => self.pool.put(frame),
                false => self.send_copies(from, frame, exits.iter().copied()),
            }
            self.exits = exits;
        }
        *batch = others;
    }
}

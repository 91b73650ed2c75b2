//! Messages between switches on their way to the control thread.

use ports::Batch;

use super::Worker;
use crate::counters::Drop;
use crate::intercept::Intercepts;
use crate::messages::Event;
use crate::slots::PortKey;

impl Worker {
    /// Takes out what the port is to understand. Most batches have nothing of that.
    pub(super) fn intercept(&mut self, intercepts: &Intercepts, from: PortKey, batch: &mut Batch) {
        let Some(intercept) = intercepts.of(from.port) else {
            return;
        };
        if !batch.iter().any(|frame| intercept.takes(frame.bytes())) {
            return;
        }
        let mut others = Batch::new();
        for frame in batch.drain() {
            match intercept.takes(frame.bytes()) {
                true => {
                    let told = Event::Intercepted(from, frame.bytes().into());
                    self.tell(told, Drop::InterceptedNoRoom);
                    self.pool.put(frame);
                }
                false => others.put(frame),
            }
        }
        *batch = others;
    }
}

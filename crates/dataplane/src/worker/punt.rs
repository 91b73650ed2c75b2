//! Punted frames in a worker.

use packet::Frame;
use ports::Batch;

use super::forwarder::BatchForwarder;
use crate::punt::PuntTable;
use crate::slots::PortKey;

impl BatchForwarder {
    /// Takes punted frames out of a batch. Most batches have none.
    pub(super) fn punt(&mut self, punts: &PuntTable, from: PortKey, batch: &mut Batch) {
        let Some(protocols) = punts.of(from.port) else {
            return;
        };
        let tunnel_key = self.recirculation.tunnel_key();
        let takes = |frame: &Frame| protocols.takes(frame.bytes(), tunnel_key);
        if !batch.iter().any(takes) {
            return;
        }
        let mut others = Batch::new();
        for frame in batch.drain() {
            match takes(&frame) {
                true => {
                    self.report_punted(from, &frame);
                    self.pool.put(frame);
                }
                false => others.put(frame),
            }
        }
        *batch = others;
    }
}

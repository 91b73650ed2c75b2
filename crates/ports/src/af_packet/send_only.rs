//! A queue that only sends, through a packet socket.

use std::io;
use std::sync::Arc;

use packet::Pool;

use super::sender::PacketSender;
use crate::{Batch, Queue, QueueCounters};

/// Sends through an interface and receives nothing.
pub(crate) struct SendOnlyQueue {
    sender: PacketSender,
    counters: Arc<QueueCounters>,
}

impl SendOnlyQueue {
    pub(crate) fn new(sender: PacketSender) -> Self {
        Self {
            sender,
            counters: Arc::default(),
        }
    }
}

impl Queue for SendOnlyQueue {
    fn receive(&mut self, _: &mut Pool, _: &mut Batch) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        self.sender.send(batch, pool, &self.counters)
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

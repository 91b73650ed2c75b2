//! A port with no device behind it: what is sent by it goes on within this process, and what
//! comes by it comes from there. Its queues only count; who owns them moves the frames.
//!
//! Where frames go on, whoever owns the queues knows: another bridge, or a tunnel.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use packet::{MacAddr, Pool};

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Port, Queue, Status};

/// The longest payload that goes on: nothing on the way is shorter than a frame in memory.
const MTU: u32 = 65_535;

/// A port within this process.
pub struct Inner {
    status: Status,
    queues: Vec<Box<dyn Queue>>,
}

/// A worker's place at it.
#[repr(align(128))]
struct InnerQueue {
    counters: Arc<QueueCounters>,
}

impl Inner {
    /// A port called `name`, up, and with nothing at its other end yet.
    #[must_use]
    pub fn new(name: &str, queues: NonZeroUsize) -> Self {
        let queue = || Box::new(InnerQueue::new()) as Box<dyn Queue>;
        Self {
            status: Status {
                name: name.to_owned(),
                address: address(name),
                mtu: MTU,
                up: true,
                ..Status::default()
            },
            queues: (0..queues.get()).map(|_| queue()).collect(),
        }
    }
}

/// A locally administered address that the same name always has.
fn address(name: &str) -> MacAddr {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    MacAddr::from_u64(0x0200_0000_0000 | hasher.finish() & 0x00ff_ffff_ffff)
}

impl InnerQueue {
    fn new() -> Self {
        Self {
            counters: Arc::default(),
        }
    }
}

impl Port for Inner {
    fn status(&self) -> Status {
        Status {
            carrier: self.status.up && self.status.carrier,
            ..self.status.clone()
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn sender(&self) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(InnerQueue::new()))
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.status.up = up;
        Ok(())
    }

    fn set_carrier(&mut self, carrier: bool) {
        self.status.carrier = carrier;
    }
}

impl Queue for InnerQueue {
    fn receive(&mut self, _: &mut Pool, _: &mut Batch) -> io::Result<()> {
        Ok(())
    }

    /// Who owns the queue has not taken the frames: they go nowhere.
    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        self.counters.add(Counter::TxErrors, batch.len() as u64);
        batch.release(batch.len(), pool);
        Ok(())
    }

    /// There is nothing to be found by a look.
    fn is_dear(&self) -> bool {
        true
    }

    fn is_inner(&self) -> bool {
        true
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_within_the_process_is_up_and_has_a_carrier_when_it_is_told_so() {
        let name = "patch-br-int-to-provnet";
        let queues = NonZeroUsize::new(2).expect("two");
        let mut port = Inner::new(name, queues);
        assert_eq!(port.take_queues().len(), 2);
        assert!(port.sender().expect("there is always one").is_inner());
        assert!(port.status().up && !port.status().carrier);
        port.set_carrier(true);
        assert!(port.status().carrier);
        port.set_up(false).expect("nobody is in the way");
        assert!(!port.status().carrier);
        assert_eq!(
            port.status().address,
            Inner::new(name, queues).status().address
        );
    }
}

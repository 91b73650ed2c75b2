//! Ports without a device: patch ports and tunnels. A frame sent to such a port continues within
//! this process, and frames from there are received through it. The queues only count; their owner
//! moves the frames.
//!
//! Not here: the destination, another bridge or a tunnel, which the owner of the queues determines.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use packet::{MacAddr, Pool};

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Port, Queue, Status};

/// Maximum payload: nothing inside the process limits a frame below its buffer.
const MTU: u32 = 65_535;

/// A port within this process.
pub struct VirtualPort {
    status: Status,
    queues: Vec<Box<dyn Queue>>,
}

/// The queue of one worker.
#[repr(align(128))]
struct VirtualQueue {
    counters: Arc<QueueCounters>,
}

impl VirtualPort {
    /// Creates a port called `name`, administratively up and without carrier.
    #[must_use]
    pub fn new(name: &str, queues: NonZeroUsize) -> Self {
        let queue = || Box::new(VirtualQueue::new()) as Box<dyn Queue>;
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

/// Returns a locally administered address derived from the name.
fn address(name: &str) -> MacAddr {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    MacAddr::from_u64(0x0200_0000_0000 | hasher.finish() & 0x00ff_ffff_ffff)
}

impl VirtualQueue {
    fn new() -> Self {
        Self {
            counters: Arc::default(),
        }
    }
}

impl Port for VirtualPort {
    fn status(&self) -> Status {
        Status {
            carrier: self.status.up && self.status.carrier,
            ..self.status.clone()
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(VirtualQueue::new()))
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.status.up = up;
        Ok(())
    }

    fn set_carrier(&mut self, carrier: bool) {
        self.status.carrier = carrier;
    }
}

impl Queue for VirtualQueue {
    fn receive(&mut self, _: &mut Pool, _: &mut Batch) -> io::Result<()> {
        Ok(())
    }

    /// Counts and drops: the owner of the queue has not taken the frames.
    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        self.counters.add(Counter::TxErrors, batch.len() as u64);
        batch.release(batch.len(), pool);
        Ok(())
    }

    /// Polling never finds a frame.
    fn is_expensive_to_poll(&self) -> bool {
        true
    }

    fn is_virtual(&self) -> bool {
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
    fn virtual_port_reports_carrier_as_set() {
        let name = "patch-br-int-to-provnet";
        let queues = NonZeroUsize::new(2).expect("not zero");
        let mut port = VirtualPort::new(name, queues);
        assert_eq!(port.take_queues().len(), 2);
        assert!(
            port.tx_queue()
                .expect("virtual ports have send queues")
                .is_virtual()
        );
        assert!(port.status().up && !port.status().carrier);
        port.set_carrier(true);
        assert!(port.status().carrier);
        port.set_up(false).expect("a virtual port can be set down");
        assert!(!port.status().carrier);
        assert_eq!(
            port.status().address,
            VirtualPort::new(name, queues).status().address
        );
    }
}

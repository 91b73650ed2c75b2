//! A worker's queues, found by bridge and port number, and the frames that wait
//! to leave by each.

use base::PortNo;
use ports::{Batch, Queue};

use super::program::BridgeId;
use crate::police::Gate;

/// A port of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortKey {
    /// The bridge.
    pub(crate) bridge: BridgeId,
    /// The port.
    pub(crate) port: PortNo,
}

/// One queue and what is about to leave by it.
pub(crate) struct Slot {
    /// The queue.
    pub(crate) queue: Box<dyn Queue>,
    /// Frames to be sent when the batch is done.
    pub(crate) out: Batch,
    /// Its way to the controllers.
    pub(crate) gate: Gate,
}

/// The queues of a worker, in the order of their keys.
#[derive(Default)]
pub(crate) struct Slots {
    keys: Vec<PortKey>,
    slots: Vec<Slot>,
}

impl Slots {
    /// Adds a port; one of the same key is replaced.
    pub(crate) fn insert(&mut self, key: PortKey, queue: Box<dyn Queue>, gate: Gate) {
        let slot = Slot {
            queue,
            out: Batch::new(),
            gate,
        };
        match self.keys.binary_search(&key) {
            Ok(place) => self.slots[place] = slot,
            Err(place) => {
                self.keys.insert(place, key);
                self.slots.insert(place, slot);
            }
        }
    }

    /// Takes a port out.
    pub(crate) fn remove(&mut self, key: PortKey) -> Option<Slot> {
        let place = self.keys.binary_search(&key).ok()?;
        self.keys.remove(place);
        Some(self.slots.remove(place))
    }

    /// How many ports there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The port at `place`, below [`Slots::len`].
    pub(crate) fn at(&mut self, place: usize) -> (PortKey, &mut Slot) {
        (self.keys[place], &mut self.slots[place])
    }

    /// The port with this key.
    pub(crate) fn find(&mut self, key: PortKey) -> Option<&mut Slot> {
        let place = self.keys.binary_search(&key).ok()?;
        Some(&mut self.slots[place])
    }

    /// All ports.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PortKey, &Slot)> {
        self.keys.iter().copied().zip(&self.slots)
    }
}

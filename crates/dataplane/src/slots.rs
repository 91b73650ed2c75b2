//! A worker's queues by bridge and port number, and the frames that wait for egress on each.

use std::sync::Arc;

use base::PortNo;
use ports::{Batch, Queue, QueueCounters};

use super::program::BridgeId;
use crate::policer::PortPolicing;

/// A port of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortKey {
    /// The bridge.
    pub bridge: BridgeId,
    /// The port.
    pub port: PortNo,
}

/// One queue and its pending frames.
pub(crate) struct PortSlot {
    /// The queue.
    pub(crate) queue: Box<dyn Queue>,
    /// Frames to send at the end of the batch.
    pub(crate) out: Batch,
    /// Turns in which the queue is not polled, if other queues are.
    pub(crate) skip_turns: u8,
    /// The policers and packet-in counters.
    pub(crate) policing: PortPolicing,
    /// The counters of a virtual port; none for other ports.
    pub(crate) inner: Option<Arc<QueueCounters>>,
    /// True if the port terminates tunnel packets to the host.
    pub(crate) terminates: bool,
}

/// The size of an index by the last byte of port numbers, which finds most ports without a search.
/// It holds one of several ports with the same byte.
const INDEX_LEN: usize = 256;

/// The queues of a worker, sorted by key.
pub(crate) struct PortSlots {
    keys: Vec<PortKey>,
    slots: Vec<PortSlot>,
    /// The index: a position to check for each last byte of a port number.
    index: Box<[u8; INDEX_LEN]>,
    /// True if any queue is cheap to poll.
    has_cheap: bool,
    /// Virtual ports, and ports that terminate tunnel packets.
    inner: Vec<PortKey>,
    /// Ports that terminate tunnel packets.
    terminating: Vec<PortKey>,
}

impl Default for PortSlots {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            slots: Vec::new(),
            index: Box::new([0; INDEX_LEN]),
            has_cheap: false,
            inner: Vec::new(),
            terminating: Vec::new(),
        }
    }
}

impl PortSlots {
    /// Adds a port; replaces one with the same key.
    pub(crate) fn insert(&mut self, key: PortKey, queue: Box<dyn Queue>, policing: PortPolicing) {
        let inner = queue.is_virtual().then(|| queue.counters());
        let slot = PortSlot {
            queue,
            out: Batch::new(),
            skip_turns: 0,
            policing,
            inner,
            terminates: self.terminating.contains(&key),
        };
        match self.keys.binary_search(&key) {
            Ok(place) => self.slots[place] = slot,
            Err(place) => {
                self.keys.insert(place, key);
                self.slots.insert(place, slot);
            }
        }
        self.rebuild_index();
    }

    /// Replaces the queue of a port, and returns the old one.
    pub(crate) fn exchange(
        &mut self,
        key: PortKey,
        queue: Box<dyn Queue>,
    ) -> Option<Box<dyn Queue>> {
        let slot = self.find(key)?;
        let before = std::mem::replace(&mut slot.queue, queue);
        slot.inner = slot.queue.is_virtual().then(|| slot.queue.counters());
        self.rebuild_index();
        Some(before)
    }

    /// Removes a port.
    pub(crate) fn remove(&mut self, key: PortKey) -> Option<PortSlot> {
        let place = self.keys.binary_search(&key).ok()?;
        self.keys.remove(place);
        let slot = self.slots.remove(place);
        self.rebuild_index();
        Some(slot)
    }

    /// Rebuilds the index and the properties of the queues.
    fn rebuild_index(&mut self) {
        self.has_cheap = self
            .slots
            .iter()
            .any(|slot| !slot.queue.is_expensive_to_poll());
        let slots = self.keys.iter().zip(&self.slots);
        let inner = slots.filter(|(_, slot)| slot.inner.is_some() || slot.terminates);
        self.inner = inner.map(|(key, _)| *key).collect();
        for (key, place) in self.keys.iter().zip(0..=u8::MAX) {
            self.index[index_of(*key)] = place;
        }
    }

    /// Returns the number of ports.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the port at position `place`, below [`PortSlots::len`].
    pub(crate) fn at(&mut self, place: usize) -> (PortKey, &mut PortSlot) {
        (self.keys[place], &mut self.slots[place])
    }

    /// Returns the port with this key.
    #[inline]
    pub(crate) fn find(&mut self, key: PortKey) -> Option<&mut PortSlot> {
        let indexed = usize::from(self.index[index_of(key)]);
        let place = match self.keys.get(indexed) {
            Some(found) if *found == key => indexed,
            _ => self.keys.binary_search(&key).ok()?,
        };
        Some(&mut self.slots[place])
    }

    /// Returns whether any queue is cheap to poll.
    pub(crate) const fn have_cheap(&self) -> bool {
        self.has_cheap
    }

    /// Returns whether there are virtual or terminating ports.
    #[inline]
    pub(crate) const fn have_inner(&self) -> bool {
        !self.inner.is_empty()
    }

    /// Sets the ports that terminate tunnel packets.
    pub(crate) fn set_terminating(&mut self, ports: Vec<PortKey>) {
        if self.terminating == ports {
            return;
        }
        self.terminating = ports;
        for (key, slot) in self.keys.iter().zip(&mut self.slots) {
            slot.terminates = self.terminating.contains(key);
        }
        self.rebuild_index();
    }

    /// Returns the virtual and terminating ports.
    pub(crate) fn inner(&self) -> &[PortKey] {
        &self.inner
    }

    /// Polls every queue in the next turn.
    pub(crate) fn poll_all(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.skip_turns = 0);
    }

    /// Returns all ports.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PortKey, &PortSlot)> {
        self.keys.iter().copied().zip(&self.slots)
    }
}

/// Returns the index position of a port.
#[inline]
const fn index_of(key: PortKey) -> usize {
    key.port.0 as usize % INDEX_LEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Pool;
    use ports::memory;

    use crate::policer::Policer;

    fn key(bridge: u32, port: u32) -> PortKey {
        PortKey {
            bridge: BridgeId(bridge),
            port: PortNo(port),
        }
    }

    /// Returns a queue and its peer, which receives the sent frames.
    fn queue() -> (Box<dyn Queue>, Box<dyn Queue>) {
        let [a, b] = memory::pair(["a", "b"], 4).map(|mut port| port.take_queue().unwrap());
        (Box::new(a), Box::new(b))
    }

    fn policing() -> PortPolicing {
        PortPolicing {
            policer: Policer::new(None),
            counters: Arc::default(),
        }
    }

    #[test]
    fn slots_find_ports_with_equal_last_bytes() {
        let keys = [key(0, 1), key(0, 257), key(1, 1), key(0, 2), key(7, 513)];
        let mut slots = PortSlots::default();
        let mut peers = Vec::new();
        for key in keys {
            let (queue, peer) = queue();
            slots.insert(key, queue, policing());
            peers.push(peer);
        }
        assert!(slots.find(key(0, 513)).is_none());
        slots.remove(keys[3]);
        assert!(slots.find(keys[3]).is_none());
        let mut pool = Pool::new(8);
        for place in [0, 1, 2, 4] {
            let slot = slots.find(keys[place]).expect("it is there");
            slot.out.push(pool.take().expect("a frame")).expect("room");
            slot.queue.send(&mut slot.out, &mut pool).expect("a peer");
            let mut received = Batch::new();
            peers[place]
                .receive(&mut pool, &mut received)
                .expect("a peer");
            assert_eq!(received.len(), 1);
        }
    }
}

//! The packets whose traces have ended with a recirculation. A trace of a flow with their `recirc_id`
//! continues them.

use std::collections::BTreeMap;
use std::sync::Arc;

use switch::trace::FrozenPacket;

/// The maximum number of packets: traces are few, and are continued soon.
const PACKETS_MAX: usize = 64;

/// The packets by their ids; the latest have the highest ones.
#[derive(Default)]
pub(super) struct FrozenPackets {
    packets: BTreeMap<u32, Arc<FrozenPacket>>,
    /// The last id; zero for none.
    last: u32,
}

impl FrozenPackets {
    /// Returns the id of the next packet.
    pub(super) const fn next_id(&self) -> u32 {
        self.last.saturating_add(1)
    }

    /// Returns the packet with this id.
    pub(super) fn find(&self, id: u32) -> Option<&Arc<FrozenPacket>> {
        self.packets.get(&id)
    }

    /// Adds a packet, and removes the oldest beyond the limit.
    pub(super) fn insert(&mut self, packet: Arc<FrozenPacket>) {
        self.last = self.last.max(packet.id());
        self.packets.insert(packet.id(), packet);
        if self.packets.len() > PACKETS_MAX {
            self.packets.pop_first();
        }
    }
}

//! What bridges compare: ids, priority vectors and times (IEEE 802.1D-2004, 17.5 to 17.6). The
//! lower one is the better one.

use std::fmt;

/// A bridge: its priority in the upper 16 bits, its address in the lower 48 (9.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeBridgeId(pub(crate) u64);

impl TreeBridgeId {
    /// Of a priority and an address.
    pub fn new(priority: u16, address: packet::MacAddr) -> Self {
        let [a, b, c, d, e, f] = address.0;
        Self(u64::from(priority) << 48 | u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// The priority.
    pub const fn priority(self) -> u16 {
        let [high, low, ..] = self.0.to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    /// The address.
    pub const fn address(self) -> packet::MacAddr {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        packet::MacAddr([a, b, c, d, e, f])
    }

    /// As Open vSwitch writes it of the newer tree, in which the lower 12 bits of the priority are
    /// a number beside it: `8.000.02aabbccddee`.
    pub fn split(self) -> String {
        let (priority, address) = (self.priority(), self.0 & ((1 << 48) - 1));
        format!(
            "{:x}.{:03x}.{address:012x}",
            priority >> 12,
            priority & 0xfff
        )
    }
}

impl fmt::Display for TreeBridgeId {
    /// As Open vSwitch writes it into its columns: `8000.02aabbccddee`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.0 & ((1 << 48) - 1);
        write!(f, "{:04x}.{address:012x}", self.priority())
    }
}

/// A port of a bridge: its priority above its number (9.2.7). The older protocol has 8 bits
/// of each, the newer one 4 and 12; whoever makes one keeps to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePortId(pub u16);

impl TreePortId {
    /// The number without the priority, in both protocols for numbers up to 255.
    const NUMBER: u16 = 0x0fff;
}

/// What a bridge says of the way to the root (17.5, 17.6): compared part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriorityVector {
    /// The root.
    pub root: TreeBridgeId,
    /// What the way there costs.
    pub cost: u32,
    /// Who says so.
    pub bridge: TreeBridgeId,
    /// By which of its ports.
    pub port: TreePortId,
}

impl PriorityVector {
    /// That of a bridge which is the root.
    pub const fn of_bridge(id: TreeBridgeId) -> Self {
        Self {
            root: id,
            cost: 0,
            bridge: id,
            port: TreePortId(0),
        }
    }

    /// Whether this message takes the place of what is known from a port: it is better, or
    /// newer of the same speaker (17.6).
    pub(crate) fn supersedes(&self, known: &Self) -> bool {
        let same_speaker = self.bridge.address() == known.bridge.address()
            && (self.port.0 ^ known.port.0) & TreePortId::NUMBER == 0;
        self < known || (self != known && same_speaker)
    }
}

/// The times that go with what is said of the root, in whole seconds (17.17.5 and others).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeTimes {
    /// How old it is.
    pub(crate) message_age: u16,
    /// How old it may grow.
    pub max_age: u16,
    /// How often it is said.
    pub hello_time: u16,
    /// How long ports wait before they forward.
    pub forward_delay: u16,
}

#[cfg(test)]
mod tests {
    use packet::MacAddr;

    use super::*;

    #[test]
    fn the_lower_one_is_better_and_the_same_speaker_is_believed() {
        let id = |priority| TreeBridgeId::new(priority, MacAddr([2, 0, 0, 0, 0, 1]));
        assert_eq!(id(0x8000).to_string(), "8000.020000000001");
        assert_eq!(id(0x8000).priority(), 0x8000);
        assert_eq!(id(0x8000).address(), MacAddr([2, 0, 0, 0, 0, 1]));
        let good = PriorityVector::of_bridge(id(1));
        let worse = PriorityVector {
            cost: 4,
            root: id(2),
            ..good
        };
        assert!(good.supersedes(&worse) && worse.supersedes(&good));
        let other = PriorityVector {
            bridge: TreeBridgeId(7),
            ..worse
        };
        assert!(good.supersedes(&other) && !other.supersedes(&good));
        assert!(!good.supersedes(&good));
    }
}

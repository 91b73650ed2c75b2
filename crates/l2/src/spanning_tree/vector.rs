//! Identifiers, priority vectors and timer values of bridges (IEEE 802.1D-2004, 17.5 to 17.6). The
//! lower value is the better one.

use std::fmt;

/// A bridge identifier: the priority in the upper 16 bits, the address in the lower 48 (9.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeBridgeId(pub(crate) u64);

impl TreeBridgeId {
    /// Returns the identifier with this priority and address.
    pub fn new(priority: u16, address: packet::MacAddr) -> Self {
        let [a, b, c, d, e, f] = address.0;
        Self(u64::from(priority) << 48 | u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// Returns the priority.
    pub const fn priority(self) -> u16 {
        let [high, low, ..] = self.0.to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    /// Returns the address.
    pub const fn address(self) -> packet::MacAddr {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        packet::MacAddr([a, b, c, d, e, f])
    }

    /// Formats the identifier as Open vSwitch does for RSTP, with the lower 12 bits of the priority
    /// as a separate number: `8.000.02aabbccddee`.
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
    /// Formats the identifier as in the columns of Open vSwitch: `8000.02aabbccddee`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.0 & ((1 << 48) - 1);
        write!(f, "{:04x}.{address:012x}", self.priority())
    }
}

/// A port identifier: the priority above the port number (9.2.7). STP has 8 bits of each, RSTP 4
/// and 12; the caller chooses the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePortId(pub u16);

impl TreePortId {
    /// Mask of the port number, correct in both layouts for numbers up to 255.
    const NUMBER: u16 = 0x0fff;
}

/// A priority vector, compared component by component (17.5, 17.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriorityVector {
    /// The root bridge.
    pub root: TreeBridgeId,
    /// The path cost to the root.
    pub cost: u32,
    /// The bridge that announces the vector.
    pub bridge: TreeBridgeId,
    /// The port of that bridge.
    pub port: TreePortId,
}

impl PriorityVector {
    /// Returns the vector of a bridge that is the root itself.
    pub const fn of_bridge(id: TreeBridgeId) -> Self {
        Self {
            root: id,
            cost: 0,
            bridge: id,
            port: TreePortId(0),
        }
    }

    /// Returns whether this message replaces the information of a port: it is better, or it is
    /// newer information from the same bridge and port (17.6).
    pub(crate) fn supersedes(&self, stored: &Self) -> bool {
        let same_sender = self.bridge.address() == stored.bridge.address()
            && (self.port.0 ^ stored.port.0) & TreePortId::NUMBER == 0;
        self < stored || (self != stored && same_sender)
    }
}

/// Timer values that accompany a priority vector, in whole seconds (17.17.5 and others).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeTimes {
    /// The age of the message.
    pub(crate) message_age: u16,
    /// The maximum age.
    pub max_age: u16,
    /// The interval between messages.
    pub hello_time: u16,
    /// The delay before a port forwards.
    pub forward_delay: u16,
}

#[cfg(test)]
mod tests {
    use packet::MacAddr;

    use super::*;

    #[test]
    fn lower_vector_or_same_sender_supersedes() {
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

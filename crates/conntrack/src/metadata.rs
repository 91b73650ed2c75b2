//! Fields that tracking gives to a packet: `ct_state`, `ct_zone`, `ct_mark`, `ct_label` and the
//! original tuple (`ovs-fields(7)`, "Connection Tracking Fields").

use crate::key::{ConnectionKey, CtZone};

/// Flags of `ct_state`, with the numbers of Open vSwitch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CtState(pub u8);

impl CtState {
    /// No flag: the packet was not tracked.
    pub const NONE: Self = Self(0);
    /// `new`: the packet begins a connection.
    pub const NEW: Self = Self(1 << 0);
    /// `est`: the connection has packets in both directions.
    pub const ESTABLISHED: Self = Self(1 << 1);
    /// `rel`: the packet belongs to a connection by an ICMP error or a helper.
    pub const RELATED: Self = Self(1 << 2);
    /// `rpl`: the packet has the reply direction.
    pub const REPLY: Self = Self(1 << 3);
    /// `inv`: no connection can have such a packet.
    pub const INVALID: Self = Self(1 << 4);
    /// `trk`: the packet was tracked.
    pub const TRACKED: Self = Self(1 << 5);
    /// `snat`: the source was translated.
    pub const SOURCE_NAT: Self = Self(1 << 6);
    /// `dnat`: the destination was translated.
    pub const DESTINATION_NAT: Self = Self(1 << 7);
    /// Either translation.
    pub const NAT: Self = Self(1 << 6 | 1 << 7);

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if a flag of `other` is set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the flags of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these flags except those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Tracking fields of a packet. All are zero before the first `ct`, and after `ct_clear`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtMetadata {
    /// `ct_state`.
    pub state: CtState,
    /// `ct_zone`.
    pub zone: CtZone,
    /// `ct_mark`.
    pub mark: u32,
    /// `ct_label`.
    pub label: u128,
    /// The original direction of the connection: `ct_nw_src` and the like. For a connection that a
    /// helper expected, it is that of the control connection.
    pub original: Option<ConnectionKey>,
}

/// A write of some bits of `ct_mark` or `ct_label`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaskedWrite<T> {
    /// The bits, zero where the mask is.
    pub value: T,
    /// Bits that are written.
    pub mask: T,
}

impl MaskedWrite<u32> {
    /// Returns `old` with the write applied.
    #[must_use]
    pub const fn apply(self, old: u32) -> u32 {
        self.value & self.mask | old & !self.mask
    }
}

impl MaskedWrite<u128> {
    /// Returns `old` with the write applied.
    #[must_use]
    pub const fn apply(self, old: u128) -> u128 {
        self.value & self.mask | old & !self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_write_keeps_other_bits() {
        let write = MaskedWrite {
            value: 0x0f_u32,
            mask: 0xff,
        };
        assert_eq!(write.apply(0x1234), 0x120f);
    }

    #[test]
    fn state_flags_are_a_set() {
        let state = CtState::NEW.with(CtState::TRACKED);
        assert!(state.contains(CtState::NEW) && !state.contains(CtState::NAT));
        assert!(state.intersects(CtState::NEW.with(CtState::REPLY)));
        assert_eq!(state.without(CtState::NEW), CtState::TRACKED);
    }
}

//! The header of the tunnel that a packet arrived by, tunnel options, and outputs to tunnels.

use flow::Subfield;

use super::super::key::{KeyBits, KeyField, is_ip};
use super::{DSCP, ECN, MegaflowBuilder};
use crate::odp::{CHECKSUM, DONT_FRAGMENT, KEY};

/// The fields of a tunnel that OpenFlow 1.5 does not match: the octet of DSCP and ECN, and flags in
/// the bits of a datapath.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OuterHeader {
    /// DSCP and ECN.
    pub(crate) tos: u8,
    /// The flags.
    pub(crate) flags: u8,
}

impl MegaflowBuilder {
    /// Adds the fields of the tunnel that the packet arrived by. If the tunnel packet has
    /// experienced congestion, its mark is copied to an IP packet, whose ECN is examined for this.
    pub(crate) fn leave_tunnel(&mut self, outer: OuterHeader) {
        if !is_tunneled(&self.first) {
            return;
        }
        let flags = u128::from(outer.flags);
        self.first.add(KeyField::TUNNEL_FLAGS, flags);
        let tos = u128::from(outer.tos);
        self.first.set(KeyField::TUNNEL_TOS, tos);
        if tos & ECN == ECN && is_ip(self.first.get(KeyField::ETH_TYPE)) {
            self.examine(KeyField::NW_TOS, ECN);
        }
    }

    /// Records the fields that select the tunnel port.
    pub(super) fn select_tunnel(&mut self) {
        if !is_tunneled(&self.first) {
            return;
        }
        let addresses = match self.first.get(KeyField::TUNNEL_DST) {
            0 => [KeyField::TUNNEL_IPV6_SRC, KeyField::TUNNEL_IPV6_DST],
            _ => [KeyField::TUNNEL_SRC, KeyField::TUNNEL_DST],
        };
        for at in addresses {
            self.examine(at, u128::MAX);
        }
        self.examine(KeyField::TUNNEL_ID, u128::MAX);
        self.examine(KeyField::TUNNEL_TOS, u128::MAX);
        let flags = DONT_FRAGMENT | CHECKSUM | KEY;
        self.examine(KeyField::TUNNEL_FLAGS, u128::from(flags));
    }

    /// Records an output to a tunnel, which copies the ECN and perhaps DSCP and TTL.
    pub(crate) fn enter_tunnel(&mut self, inherits_dscp: bool, inherits_ttl: bool) {
        if !is_ip(self.current.get(KeyField::ETH_TYPE)) {
            return;
        }
        self.examine(KeyField::NW_TOS, ECN);
        if inherits_dscp {
            self.examine(KeyField::NW_TOS, DSCP);
        }
        if inherits_ttl {
            self.examine(KeyField::NW_TTL, u128::MAX);
        }
    }

    /// Records bits of a tunnel option.
    pub(super) fn examine_option(&mut self, bits: Subfield) {
        self.mask.add_option(bits.field(), bits.wide_mask());
    }
}

/// Returns true if the packet was received through a tunnel.
pub(in super::super) fn is_tunneled(bits: &KeyBits) -> bool {
    bits.get(KeyField::TUNNEL_DST) != 0 || bits.get(KeyField::TUNNEL_IPV6_DST) != 0
}

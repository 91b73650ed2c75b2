//! The tunnel that a packet arrived by, as an attribute of a datapath flow:
//! `tunnel(tun_id=0x7b,src=10.0.0.1,dst=10.0.0.2,flags(-df-csum+key))`.

use super::super::key::KeyField;
use super::super::match_text::tunnel_flags;
use super::{KeyDetail, KeyText, NumberFormat};
use crate::odp::{KEY, TUNNEL_FLAGS};

impl KeyText<'_> {
    /// Adds the tunnel. Like Open vSwitch's data path, it writes the key only of a tunnel packet
    /// that has one, and DSCP and ECN unless both are zero.
    pub(super) fn tunnel(&mut self) {
        let (flags, mut mask) = self.field(KeyField::TUNNEL_FLAGS);
        let has_key = flags & u128::from(KEY) != 0;
        let mut parts = Vec::new();
        if has_key {
            parts.push(self.part("tun_id", KeyField::TUNNEL_ID, NumberFormat::PrefixedHex));
        } else {
            mask &= !u128::from(KEY);
        }
        if self.packet.get(KeyField::TUNNEL_DST) != 0 {
            parts.push(self.ipv4("src", KeyField::TUNNEL_SRC));
            parts.push(self.ipv4("dst", KeyField::TUNNEL_DST));
        } else {
            parts.push(self.ipv6("ipv6_src", KeyField::TUNNEL_IPV6_SRC));
            parts.push(self.ipv6("ipv6_dst", KeyField::TUNNEL_IPV6_DST));
        }
        if self.packet.get(KeyField::TUNNEL_TOS) != 0 {
            parts.push(self.part("tos", KeyField::TUNNEL_TOS, NumberFormat::Hex));
        }
        let mut parts: Vec<_> = parts.into_iter().flatten().collect();
        parts.push(match self.detail {
            KeyDetail::Packet => format!("flags({})", flag_names(flags)),
            KeyDetail::Examined | KeyDetail::All => format!("flags({})", tunnel_flags(flags, mask)),
        });
        self.put("tunnel", &parts.join(","));
    }
}

/// Formats the flags that are set.
fn flag_names(flags: u128) -> String {
    let names = TUNNEL_FLAGS.iter();
    let names = names.filter(|(_, bit)| flags & u128::from(*bit) != 0);
    let names: Vec<_> = names.map(|(name, _)| *name).collect();
    names.join("|")
}

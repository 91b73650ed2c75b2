//! The tunnel that a packet arrived by, as an attribute of a datapath flow:
//! `tunnel(tun_id=0x7b,src=10.0.0.1,dst=10.0.0.2,flags(-df-csum+key))`.

use flow::Wide;

use super::super::key::KeyField;
use super::super::match_text::{c_hex, tunnel_flags};
use super::{KeyDetail, KeyText, NumberFormat};
use crate::odp::{KEY, OdpGeneveOption, TUNNEL_FLAGS};

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
        parts.extend(self.geneve());
        parts.push(match self.detail {
            KeyDetail::Packet => format!("flags({})", flag_names(flags)),
            KeyDetail::Examined | KeyDetail::All => format!("flags({})", tunnel_flags(flags, mask)),
        });
        self.put("tunnel", &parts.join(","));
    }

    /// Returns the Geneve options; none without one.
    fn geneve(&self) -> Option<String> {
        let masks = self.mask.geneve().iter();
        let options = self.packet.geneve().iter().zip(masks);
        let options: String = options
            .map(|(option, mask)| self.geneve_option(option, &mask.value))
            .collect();
        (!options.is_empty()).then(|| format!("geneve({options})"))
    }

    /// Formats an option: the value only if bits of it count.
    fn geneve_option(&self, option: &OdpGeneveOption, mask: &[u8]) -> String {
        let is_exact = self.detail == KeyDetail::Packet || mask.iter().all(|byte| *byte == 0xff);
        let is_wildcard = mask.iter().all(|byte| *byte == 0);
        let (class, kind) = (c_hex(option.class.into()), c_hex(option.kind.into()));
        let mut text = format!("{{class={class},type={kind},len={}", option.value.len());
        if !option.value.is_empty() && (self.is_verbose() || !is_wildcard) {
            text.push(',');
            text += &hex_of(&option.value);
            if !is_exact {
                text.push('/');
                text += &hex_of(mask);
            }
        }
        text + "}"
    }
}

/// Formats a number of big-endian bytes like C's `%#x`.
fn hex_of(bytes: &[u8]) -> String {
    format!("{:#x}", Wide::from_be_bytes(bytes).unwrap_or_default())
}

/// Formats the flags that are set.
fn flag_names(flags: u128) -> String {
    let names = TUNNEL_FLAGS.iter();
    let names = names.filter(|(_, bit)| flags & u128::from(*bit) != 0);
    let names: Vec<_> = names.map(|(name, _)| *name).collect();
    names.join("|")
}

//! A megaflow as `ofproto/trace` prints it: a match of `ovs-ofctl`, in the order of its fields.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use base::PortNo;
use flow::Wide;
use packet::MacAddr;

use super::Megaflow;
use super::key::{KeyBits, KeyField, is_arp};
use crate::odp::TUNNEL_FLAGS;

/// All bits of a TCP header's flags.
const TCP_FLAGS: u128 = 0xfff;

/// The names of the TCP flags, from the lowest bit.
const TCP_FLAG_NAMES: [&str; 9] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"];

/// A text under construction: items that end in a comma.
struct MatchText<'a> {
    packet: KeyBits,
    mask: &'a KeyBits,
    text: String,
}

/// Returns the match of a megaflow.
pub(super) fn write(megaflow: &Megaflow) -> String {
    let mut writer = MatchText {
        packet: megaflow.packet.masked(&megaflow.mask),
        mask: &megaflow.mask,
        text: String::new(),
    };
    writer.metadata();
    let (skips_type, skips_protocol) = writer.protocol();
    writer.tunnel();
    writer.link(skips_type);
    writer.network(skips_protocol);
    writer.transport();
    writer.text.pop();
    writer.text
}

impl MatchText<'_> {
    fn put(&mut self, item: &str) {
        self.text += item;
        self.text.push(',');
    }

    /// Returns the value and the mask of an examined field.
    fn examined(&self, at: KeyField) -> Option<(u128, u128)> {
        let mask = self.mask.get(at);
        (mask != 0).then(|| (self.packet.get(at), mask))
    }

    /// Writes a decimal number if all bits count, or value and mask in hexadecimal.
    fn decimal(&mut self, name: &str, at: KeyField, full: u128) {
        match self.examined(at) {
            Some((value, mask)) if mask == full => self.put(&format!("{name}={value}")),
            Some((value, mask)) => self.put(&format!("{name}={value:#x}/{mask:#x}")),
            None => {}
        }
    }

    /// Writes a hexadecimal number, with the mask unless all bits count. Zero has no prefix.
    fn hex(&mut self, name: &str, at: KeyField, full: u128) {
        match self.examined(at) {
            Some((value, mask)) if mask == full => self.put(&format!("{name}={}", c_hex(value))),
            Some((value, mask)) => {
                self.put(&format!("{name}={}/{}", c_hex(value), c_hex(mask)));
            }
            None => {}
        }
    }

    fn ethernet(&mut self, name: &str, at: KeyField) {
        if let Some((value, mask)) = self.examined(at) {
            self.put(&format!("{name}={}", mac_masked(value, mask)));
        }
    }

    fn ipv4(&mut self, name: &str, at: KeyField) {
        let Some((value, mask)) = self.examined(at) else {
            return;
        };
        let (address, len) = (ipv4_of(value), mask.count_ones());
        let is_prefix = super::prefix_trie::prefix_len(32, mask) == len;
        self.put(&match (len, is_prefix) {
            (32, _) => format!("{name}={address}"),
            (len, true) => format!("{name}={address}/{len}"),
            (_, false) => format!("{name}={address}/{}", ipv4_of(mask)),
        });
    }

    fn ipv6(&mut self, name: &str, at: KeyField) {
        let Some((value, mask)) = self.examined(at) else {
            return;
        };
        let (address, len) = (Ipv6Addr::from(value), mask.count_ones());
        let is_prefix = super::prefix_trie::prefix_len(128, mask) == len;
        self.put(&match (len, is_prefix) {
            (128, _) => format!("{name}={address}"),
            (len, true) => format!("{name}={address}/{len}"),
            (_, false) => format!("{name}={address}/{}", Ipv6Addr::from(mask)),
        });
    }

    fn metadata(&mut self) {
        let word = u128::from(u32::MAX);
        self.hex("pkt_mark", KeyField::PKT_MARK, word);
        self.hex("recirc_id", KeyField::RECIRC_ID, word);
        self.hex("dp_hash", KeyField::DP_HASH, word);
        if let Some((priority, _)) = self.examined(KeyField::SKB_PRIORITY) {
            self.put(&format!("skb_priority={}", c_hex(priority)));
        }
        if let Some((value, _)) = self.examined(KeyField::PACKET_TYPE) {
            let (space, id) = (value >> 16, value & 0xffff);
            match value {
                0 => self.put("eth"),
                _ => self.put(&format!(
                    "packet_type=({},{})",
                    short_hex(space),
                    short_hex(id)
                )),
            }
        }
    }

    fn eth_type(&self) -> u128 {
        match self.packet.get(KeyField::PACKET_TYPE) {
            bare if bare >> 16 == 1 => bare & 0xffff,
            _ => self.packet.get(KeyField::ETH_TYPE),
        }
    }

    /// Writes the name of the protocol. Returns whether it stands for the EtherType, and for the
    /// protocol of IP.
    fn protocol(&mut self) -> (bool, bool) {
        if self.examined(KeyField::ETH_TYPE).is_none() {
            return (false, false);
        }
        let protocol = self
            .examined(KeyField::NW_PROTO)
            .map(|(protocol, _)| protocol);
        let (name, has_protocol) = match (self.eth_type(), protocol) {
            (0x0800, Some(1)) => ("icmp", true),
            (0x0800, Some(6)) => ("tcp", true),
            (0x0800, Some(17)) => ("udp", true),
            (0x0800, Some(132)) => ("sctp", true),
            (0x0800, _) => ("ip", false),
            (0x86dd, Some(58)) => ("icmp6", true),
            (0x86dd, Some(6)) => ("tcp6", true),
            (0x86dd, Some(17)) => ("udp6", true),
            (0x86dd, Some(132)) => ("sctp6", true),
            (0x86dd, _) => ("ipv6", false),
            (0x0806, _) => ("arp", false),
            (0x8035, _) => ("rarp", false),
            (0x8847, _) => ("mpls", false),
            (0x8848, _) => ("mplsm", false),
            _ => return (false, false),
        };
        self.put(name);
        (true, has_protocol)
    }

    fn tunnel(&mut self) {
        self.hex("tun_id", KeyField::TUNNEL_ID, u128::from(u64::MAX));
        self.ipv4("tun_src", KeyField::TUNNEL_SRC);
        self.ipv4("tun_dst", KeyField::TUNNEL_DST);
        self.ipv6("tun_ipv6_src", KeyField::TUNNEL_IPV6_SRC);
        self.ipv6("tun_ipv6_dst", KeyField::TUNNEL_IPV6_DST);
        self.decimal("tun_gbp_id", KeyField::GBP_ID, 0xffff);
        self.hex("tun_gbp_flags", KeyField::GBP_FLAGS, 0xff);
        if let Some((tos, _)) = self.examined(KeyField::TUNNEL_TOS) {
            self.put(&format!("tun_tos={tos:x}"));
        }
        self.mirror();
        self.gtpu();
        if let Some((flags, mask)) = self.examined(KeyField::TUNNEL_FLAGS) {
            self.put(&format!("tun_flags={}", tunnel_flags(flags, mask)));
        }
        self.tunnel_options();
    }

    /// Writes the fields of GTP-U, without masks as in Open vSwitch. `ovs-ofctl` of 3.1 sends the
    /// flags as their mask.
    fn gtpu(&mut self) {
        if let Some((flags, mask)) = self.examined(KeyField::GTPU_FLAGS) {
            self.put(&format!("gtpu_flags={}", c_hex(flags & mask)));
        }
        if let Some((message, mask)) = self.examined(KeyField::GTPU_TYPE) {
            self.put(&format!("gtpu_msgtype={}", message & mask));
        }
    }

    /// Writes the fields of ERSPAN that its version has.
    fn mirror(&mut self) {
        self.decimal("tun_erspan_ver", KeyField::ERSPAN_VERSION, 0xf);
        match self.packet.get(KeyField::ERSPAN_VERSION) {
            1 => self.hex("tun_erspan_idx", KeyField::ERSPAN_INDEX, 0xf_ffff),
            2 => {
                self.decimal("tun_erspan_dir", KeyField::ERSPAN_DIRECTION, 1);
                self.hex("tun_erspan_hwid", KeyField::ERSPAN_HARDWARE, 0x3f);
            }
            _ => {}
        }
    }

    /// Writes the options: `NP` for one that is not present.
    fn tunnel_options(&mut self) {
        let masks = self.mask;
        for (field, bits) in masks.options().iter() {
            let name = field.info().ofctl;
            let item = match self.packet.options().value(field) {
                None => format!("{name}=NP"),
                Some(_) if bits.is_zero() => name.to_owned(),
                Some(value) if bits == Wide::ONES => format!("{name}={value:#x}"),
                Some(value) => format!("{name}={value:#x}/{bits:#x}"),
            };
            self.put(&item);
        }
    }

    fn link(&mut self, skips_type: bool) {
        if let Some((port, _)) = self.examined(KeyField::IN_PORT) {
            let port = PortNo(u32::try_from(port).unwrap_or(u32::MAX));
            self.put(&format!("in_port={port}"));
        }
        for (suffix, at) in [("", KeyField::VLAN_TCI), ("1", KeyField::VLAN_TCI_2)] {
            if self.examined(at).is_none() {
                break;
            }
            self.tag(suffix, at);
        }
        self.ethernet("dl_src", KeyField::ETH_SRC);
        self.ethernet("dl_dst", KeyField::ETH_DST);
        if !skips_type && self.examined(KeyField::ETH_TYPE).is_some() {
            self.put(&format!("dl_type={:#06x}", self.eth_type()));
        }
    }

    fn tag(&mut self, suffix: &str, at: KeyField) {
        let Some((value, mask)) = self.examined(at) else {
            return;
        };
        let (vid, pcp) = (mask & 0x0fff, mask & 0xe000);
        let is_whole = matches!(vid, 0 | 0x0fff) && matches!(pcp, 0 | 0xe000) && vid | pcp != 0;
        if mask & value & 0x1000 != 0 && is_whole {
            if vid != 0 {
                self.put(&format!("dl_vlan{suffix}={}", value & 0x0fff));
            }
            if pcp != 0 {
                self.put(&format!("dl_vlan_pcp{suffix}={}", value >> 13));
            }
        } else if mask == 0xffff {
            self.put(&format!("vlan_tci{suffix}={value:#06x}"));
        } else {
            self.put(&format!("vlan_tci{suffix}={value:#06x}/{mask:#06x}"));
        }
    }

    fn network(&mut self, skips_protocol: bool) {
        let eth_type = self.eth_type();
        match eth_type {
            0x86dd => {
                self.ipv6("ipv6_src", KeyField::IPV6_SRC);
                self.ipv6("ipv6_dst", KeyField::IPV6_DST);
                if let Some((label, mask)) = self.examined(KeyField::IPV6_LABEL) {
                    self.put(&match mask {
                        0xf_ffff => format!("ipv6_label={label:#07x}"),
                        mask => format!("ipv6_label={label:#07x}/{mask:#07x}"),
                    });
                }
            }
            0x894f => self.nsh(),
            other => {
                let (src, dst) = match is_arp(other) {
                    true => ("arp_spa", "arp_tpa"),
                    false => ("nw_src", "nw_dst"),
                };
                self.ipv4(src, KeyField::NW_SRC);
                self.ipv4(dst, KeyField::NW_DST);
            }
        }
        if let Some((protocol, _)) = self
            .examined(KeyField::NW_PROTO)
            .filter(|_| !skips_protocol)
        {
            let name = if is_arp(eth_type) {
                "arp_op"
            } else {
                "nw_proto"
            };
            self.put(&format!("{name}={protocol}"));
        }
        if is_arp(eth_type) {
            self.ethernet("arp_sha", KeyField::ARP_SHA);
            self.ethernet("arp_tha", KeyField::ARP_THA);
        }
        if let Some((tos, mask)) = self.examined(KeyField::NW_TOS) {
            if mask & 0xfc != 0 {
                self.put(&format!("nw_tos={}", tos & 0xfc));
            }
            if mask & 3 != 0 {
                self.put(&format!("nw_ecn={}", tos & 3));
            }
        }
        if let Some((ttl, _)) = self.examined(KeyField::NW_TTL) {
            self.put(&format!("nw_ttl={ttl}"));
        }
        self.mpls();
        self.fragment();
    }

    fn nsh(&mut self) {
        self.decimal("nsh_flags", KeyField::NSH_FLAGS, 0xff);
        self.decimal("nsh_ttl", KeyField::NSH_TTL, 0xff);
        self.decimal("nsh_mdtype", KeyField::NSH_MDTYPE, 0xff);
        self.decimal("nsh_np", KeyField::NSH_NP, 0xff);
        self.hex("nsh_spi", KeyField::NSH_SPI, 0xff_ffff);
        self.decimal("nsh_si", KeyField::NSH_SI, 0xff);
        for (name, at) in [
            ("nsh_c1", KeyField::NSH_C1),
            ("nsh_c2", KeyField::NSH_C2),
            ("nsh_c3", KeyField::NSH_C3),
            ("nsh_c4", KeyField::NSH_C4),
        ] {
            self.hex(name, at, u128::from(u32::MAX));
        }
    }

    fn mpls(&mut self) {
        if let Some((entry, mask)) = self.examined(KeyField::MPLS_1) {
            let parts = [
                ("mpls_label", 12, 0xf_ffff),
                ("mpls_tc", 9, 7),
                ("mpls_ttl", 0, 0xff),
                ("mpls_bos", 8, 1),
            ];
            for (name, shift, ones) in parts {
                if mask >> shift & ones != 0 {
                    self.put(&format!("{name}={}", entry >> shift & ones));
                }
            }
        }
        self.decimal("mpls_lse1", KeyField::MPLS_2, u128::from(u32::MAX));
        self.decimal("mpls_lse2", KeyField::MPLS_3, u128::from(u32::MAX));
    }

    fn fragment(&mut self) {
        let Some((value, mask)) = self.examined(KeyField::NW_FRAG) else {
            return;
        };
        let word = match (mask & 3, value & 3) {
            (3, 0) => "no",
            (3, 1) => "first",
            (3, _) => "later",
            (1, value) => {
                if value & 1 == 1 {
                    "yes"
                } else {
                    "no"
                }
            }
            (_, value) => {
                if value & 2 == 2 {
                    "later"
                } else {
                    "not_later"
                }
            }
        };
        self.put(&format!("nw_frag={word}"));
    }

    fn transport(&mut self) {
        let protocol = self.packet.get(KeyField::NW_PROTO);
        let eth_type = self.eth_type();
        let is_icmp = matches!((eth_type, protocol), (0x0800, 1) | (0x86dd, 58));
        let (src, dst) = match is_icmp {
            true => ("icmp_type", "icmp_code"),
            false => ("tp_src", "tp_dst"),
        };
        self.decimal(src, KeyField::TP_SRC, 0xffff);
        self.decimal(dst, KeyField::TP_DST, 0xffff);
        if (eth_type, protocol) == (0x86dd, 58) {
            self.ipv6("nd_target", KeyField::ND_TARGET);
            self.ethernet("nd_sll", KeyField::ARP_SHA);
            self.ethernet("nd_tll", KeyField::ARP_THA);
            self.decimal("nd_reserved", KeyField::ND_RESERVED, u128::from(u32::MAX));
            self.decimal("nd_options_type", KeyField::TCP_FLAGS, 0xffff);
        } else if matches!((eth_type, protocol), (0x0800 | 0x86dd, 6))
            && let Some((flags, mask)) = self.examined(KeyField::TCP_FLAGS)
        {
            let flags = tcp_flags(flags, mask & TCP_FLAGS);
            self.put(&format!("tcp_flags={flags}"));
        }
    }
}

/// Formats the flags of a tunnel that count, each with its sign.
pub(super) fn tunnel_flags(flags: u128, mask: u128) -> String {
    let examined = TUNNEL_FLAGS.iter();
    let examined = examined.filter(|(_, bit)| mask & u128::from(*bit) != 0);
    let flags = examined.map(|(name, bit)| match flags & u128::from(*bit) {
        0 => format!("-{name}"),
        _ => format!("+{name}"),
    });
    flags.collect()
}

/// Formats TCP flags: their names if all count, or each with its sign.
pub(super) fn tcp_flags(flags: u128, mask: u128) -> String {
    if mask == TCP_FLAGS {
        return flag_names(flags);
    }
    if mask == 0 {
        return "0/0".to_owned();
    }
    let mut text = String::new();
    for bit in (0..u128::BITS).filter(|bit| mask >> bit & 1 == 1) {
        let sign = if flags >> bit & 1 == 1 { '+' } else { '-' };
        let name = usize::try_from(bit)
            .ok()
            .and_then(|bit| TCP_FLAG_NAMES.get(bit));
        // Writing to a string cannot fail.
        let _ = write!(text, "{sign}{}", name.unwrap_or(&"[Unknown]"));
    }
    text
}

/// Formats the names of TCP flags; zero for none.
pub(super) fn flag_names(flags: u128) -> String {
    let names = TCP_FLAG_NAMES.iter().enumerate();
    let names = names.filter(|(bit, _)| flags >> bit & 1 == 1);
    let names: Vec<_> = names.map(|(_, name)| *name).collect();
    match names.is_empty() {
        true => "0".to_owned(),
        false => names.join("|"),
    }
}

/// Formats a number like C's `%#x`, which writes no prefix before zero.
pub(super) fn c_hex(number: u128) -> String {
    match number {
        0 => "0".to_owned(),
        number => format!("{number:#x}"),
    }
}

fn short_hex(number: u128) -> String {
    match number {
        0..=9 => number.to_string(),
        number => format!("{number:#x}"),
    }
}

/// Formats an Ethernet address, with the mask unless all bits count.
pub(super) fn mac_masked(value: u128, mask: u128) -> String {
    match mask {
        0xffff_ffff_ffff => mac_of(value).to_string(),
        mask => format!("{}/{}", mac_of(value), mac_of(mask)),
    }
}

pub(super) fn mac_of(value: u128) -> MacAddr {
    MacAddr::from_u64(u64::try_from(value).unwrap_or(u64::MAX))
}

pub(super) fn ipv4_of(value: u128) -> Ipv4Addr {
    Ipv4Addr::from(u32::try_from(value).unwrap_or(u32::MAX))
}

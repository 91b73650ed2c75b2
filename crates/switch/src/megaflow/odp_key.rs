//! The key of a datapath flow and its mask as text (`ovs-dpctl(8)`):
//! `recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth_type(0x0800),ipv4(frag=no)`.
//!
//! Without `-m`, attributes and fields without examined bits are omitted. Values are those of the
//! packet that set up the flow, also where bits do not count.

mod tunnel;

use std::net::Ipv6Addr;

use super::Megaflow;
use super::examined::is_tunneled;
use super::key::{KeyBits, KeyField, is_arp, is_ip, is_mpls};
use super::match_text::{c_hex, flag_names, ipv4_of, mac_of, tcp_flags};

/// The smallest EtherType; smaller values are lengths.
const ETH_TYPE_MIN: u128 = 0x600;

/// The bits of the connection tracking state.
const CT_STATES: &str = "-new-est-rel-rpl-inv-trk-snat-dnat";

/// The form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDetail {
    /// Examined fields.
    Examined,
    /// All fields, with masks.
    All,
    /// All fields, without masks: the key of a packet.
    Packet,
}

/// The text of one level of headers.
struct KeyText<'a> {
    packet: &'a KeyBits,
    mask: &'a KeyBits,
    detail: KeyDetail,
    /// No bit of the flow is a wildcard.
    is_exact: bool,
    attributes: Vec<String>,
}

/// The format of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberFormat {
    Decimal,
    Hex,
    /// With a prefix before zero, too.
    PrefixedHex,
}

/// Returns the text of a flow that `port` enters, which is already formatted.
pub(super) fn write(megaflow: &Megaflow, port: &str, detail: KeyDetail) -> String {
    let mut text = KeyText {
        packet: &megaflow.packet,
        mask: &megaflow.mask,
        detail,
        is_exact: megaflow.is_exact,
        attributes: Vec::new(),
    };
    text.metadata(port);
    if megaflow.packet.get(KeyField::PACKET_TYPE) == 0 {
        text.ethernet();
        text.tagged(
            [
                (KeyField::VLAN_TCI, KeyField::VLAN_TPID),
                (KeyField::VLAN_TCI_2, KeyField::VLAN_TPID_2),
            ]
            .as_slice(),
        );
    } else {
        text.inner();
    }
    text.attributes.join(",")
}

impl KeyText<'_> {
    /// Returns the value and the mask of a field; all bits for the key of a packet.
    fn field(&self, at: KeyField) -> (u128, u128) {
        let mask = match self.detail {
            KeyDetail::Packet => super::examined::width_mask(at),
            KeyDetail::Examined | KeyDetail::All => self.mask.get(at),
        };
        (self.packet.get(at), mask)
    }

    fn is_verbose(&self) -> bool {
        self.detail != KeyDetail::Examined
    }

    fn put(&mut self, name: &str, value: &str) {
        self.attributes.push(format!("{name}({value})"));
    }

    /// Adds an attribute of one number.
    fn number(&mut self, name: &str, at: KeyField) {
        let (value, mask) = self.field(at);
        if mask == 0 && !self.is_verbose() {
            return;
        }
        let value = match mask == super::examined::width_mask(at) {
            true => c_hex(value),
            false => format!("{}/{}", c_hex(value), c_hex(mask)),
        };
        self.put(name, &value);
    }

    /// Adds an attribute of several fields, unless none counts.
    fn group(&mut self, name: &str, fields: &[KeyField], parts: Vec<Option<String>>) {
        let is_wildcard = fields.iter().all(|at| self.field(*at).1 == 0);
        if self.is_verbose() || !is_wildcard {
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            self.put(name, &parts.join(","));
        }
    }

    /// Formats one field of an attribute.
    fn part(&self, name: &str, at: KeyField, format: NumberFormat) -> Option<String> {
        let (value, mask) = self.field(at);
        let full = super::examined::width_mask(at);
        let value = match format {
            NumberFormat::Decimal => value.to_string(),
            NumberFormat::Hex => c_hex(value),
            NumberFormat::PrefixedHex => format!("{value:#x}"),
        };
        self.masked(name, &value, mask, full, c_hex)
    }

    fn masked(
        &self,
        name: &str,
        value: &str,
        mask: u128,
        full: u128,
        write_mask: impl Fn(u128) -> String,
    ) -> Option<String> {
        if mask == 0 && !self.is_verbose() {
            return None;
        }
        Some(match mask & full == full {
            true => format!("{name}={value}"),
            false => format!("{name}={value}/{}", write_mask(mask)),
        })
    }

    fn mac(&self, name: &str, at: KeyField) -> Option<String> {
        let (value, mask) = self.field(at);
        let full = super::examined::width_mask(at);
        self.masked(name, &mac_of(value).to_string(), mask, full, |mask| {
            mac_of(mask).to_string()
        })
    }

    fn ipv4(&self, name: &str, at: KeyField) -> Option<String> {
        let (value, mask) = self.field(at);
        let full = u128::from(u32::MAX);
        self.masked(name, &ipv4_of(value).to_string(), mask, full, |mask| {
            ipv4_of(mask).to_string()
        })
    }

    fn ipv6(&self, name: &str, at: KeyField) -> Option<String> {
        let (value, mask) = self.field(at);
        let text = |value: u128| Ipv6Addr::from(value).to_string();
        self.masked(name, &text(value), mask, u128::MAX, text)
    }

    fn metadata(&mut self, port: &str) {
        self.number("skb_priority", KeyField::SKB_PRIORITY);
        if is_tunneled(self.packet) {
            self.tunnel();
        }
        self.number("skb_mark", KeyField::PKT_MARK);
        self.connection();
        self.number("recirc_id", KeyField::RECIRC_ID);
        self.number("dp_hash", KeyField::DP_HASH);
        self.put("in_port", port);
        let packet_type = self.packet.get(KeyField::PACKET_TYPE);
        let (space, id) = (packet_type >> 16, c_hex(packet_type & 0xffff));
        self.put("packet_type", &format!("ns={space},id={id}"));
    }

    /// Adds the fields of connection tracking, which are zero.
    fn connection(&mut self) {
        let is_exact = self.is_exact || self.detail == KeyDetail::Packet;
        let (state, zero) = match (self.detail, is_exact) {
            (KeyDetail::Examined, false) => return,
            (KeyDetail::Examined, true) => (CT_STATES, "0"),
            (KeyDetail::All, true) => ("0/0xff", "0"),
            (KeyDetail::All, false) => ("0/0", "0/0"),
            (KeyDetail::Packet, _) => ("0", "0"),
        };
        self.put("ct_state", state);
        for name in ["ct_zone", "ct_mark", "ct_label"] {
            self.put(name, zero);
        }
    }

    fn ethernet(&mut self) {
        let parts = vec![
            self.mac("src", KeyField::ETH_SRC),
            self.mac("dst", KeyField::ETH_DST),
        ];
        self.group("eth", &[KeyField::ETH_SRC, KeyField::ETH_DST], parts);
    }

    /// Adds the tags at these positions and all that follows, nested.
    fn tagged(&mut self, tags: &[(KeyField, KeyField)]) {
        let Some(((tci, tpid), rest)) = tags.split_first() else {
            return self.inner();
        };
        let (value, mask) = self.field(*tci);
        if value == 0 {
            return self.inner();
        }
        self.put("eth_type", &format!("{:#06x}", self.packet.get(*tpid)));
        if self.is_verbose() || mask != 0 {
            let parts = self.tag(value, mask);
            self.put("vlan", &parts);
        }
        let mut inner = KeyText {
            attributes: Vec::new(),
            ..*self
        };
        inner.tagged(rest);
        let inner = inner.attributes.join(",");
        self.put("encap", &inner);
    }

    fn tag(&self, value: u128, mask: u128) -> String {
        let mut parts = Vec::new();
        for (name, shift, ones) in [("vid", 0, 0xfff), ("pcp", 13, 7)] {
            let (value, mask) = (value >> shift & ones, mask >> shift & ones);
            if !(self.is_verbose() || value != 0 || mask != 0) {
                continue;
            }
            parts.push(match mask == ones {
                true => format!("{name}={value}"),
                false => format!("{name}={value}/{mask:#x}"),
            });
        }
        parts.join(",")
    }

    /// Adds the EtherType and the headers that follow.
    fn inner(&mut self) {
        let eth_type = self.packet.get(KeyField::ETH_TYPE);
        if eth_type < ETH_TYPE_MIN {
            if self.detail != KeyDetail::Packet {
                self.put("eth_type", "0/0xffff");
            }
            return;
        }
        self.put("eth_type", &format!("{eth_type:#06x}"));
        match eth_type {
            0x0800 => self.ip("ipv4"),
            0x86dd => self.ip("ipv6"),
            other if is_arp(other) => self.arp(),
            other if is_mpls(other) => self.mpls(),
            0x894f => self.nsh(),
            _ => {}
        }
        if is_ip(eth_type) && self.packet.get(KeyField::NW_FRAG) & 2 == 0 {
            self.transport(eth_type);
        }
    }

    fn ip(&mut self, name: &str) {
        use NumberFormat::{Decimal, Hex};
        let fragment = self.fragment();
        let (parts, src, dst) = match name {
            "ipv4" => (
                vec![
                    self.ipv4("src", KeyField::NW_SRC),
                    self.ipv4("dst", KeyField::NW_DST),
                    self.part("proto", KeyField::NW_PROTO, Decimal),
                    self.part("tos", KeyField::NW_TOS, Hex),
                    self.part("ttl", KeyField::NW_TTL, Decimal),
                    fragment,
                ],
                KeyField::NW_SRC,
                KeyField::NW_DST,
            ),
            _ => (
                vec![
                    self.ipv6("src", KeyField::IPV6_SRC),
                    self.ipv6("dst", KeyField::IPV6_DST),
                    self.part("label", KeyField::IPV6_LABEL, Hex),
                    self.part("proto", KeyField::NW_PROTO, Decimal),
                    self.part("tclass", KeyField::NW_TOS, Hex),
                    self.part("hlimit", KeyField::NW_TTL, Decimal),
                    fragment,
                ],
                KeyField::IPV6_SRC,
                KeyField::IPV6_DST,
            ),
        };
        let fields = [
            src,
            dst,
            KeyField::NW_PROTO,
            KeyField::NW_TOS,
            KeyField::NW_TTL,
            KeyField::NW_FRAG,
            KeyField::IPV6_LABEL,
        ];
        self.group(name, &fields, parts);
    }

    fn fragment(&self) -> Option<String> {
        let (value, mask) = self.field(KeyField::NW_FRAG);
        let word = match value & 3 {
            0 => "no",
            1 => "first",
            _ => "later",
        };
        (mask != 0).then(|| format!("frag={word}"))
    }

    fn arp(&mut self) {
        let (op, op_mask) = self.field(KeyField::NW_PROTO);
        let op = self.masked("op", &op.to_string(), op_mask, 0xff, c_hex);
        let parts = vec![
            self.ipv4("sip", KeyField::NW_SRC),
            self.ipv4("tip", KeyField::NW_DST),
            op,
            self.mac("sha", KeyField::ARP_SHA),
            self.mac("tha", KeyField::ARP_THA),
        ];
        let fields = [
            KeyField::NW_SRC,
            KeyField::NW_DST,
            KeyField::NW_PROTO,
            KeyField::ARP_SHA,
            KeyField::ARP_THA,
        ];
        self.group("arp", &fields, parts);
    }

    fn mpls(&mut self) {
        let labels = [KeyField::MPLS_1, KeyField::MPLS_2, KeyField::MPLS_3];
        let bottom = labels
            .iter()
            .position(|at| self.packet.get(*at) >> 8 & 1 == 1);
        let labels = &labels[..bottom.map_or(labels.len(), |bottom| bottom + 1)];
        let full = u128::from(u32::MAX);
        let is_whole = labels.iter().all(|at| self.field(*at).1 == full);
        let entry = |at: &KeyField| {
            let (value, mask) = self.field(*at);
            let (label, tc, ttl, bottom) =
                (value >> 12, value >> 9 & 7, value & 0xff, value >> 8 & 1);
            Some(match is_whole {
                true => format!("label={label},tc={tc},ttl={ttl},bos={bottom}"),
                false => format!(
                    "label={label}/{:#x},tc={tc}/{:x},ttl={ttl}/{:#x},bos={bottom}/{:x}",
                    mask >> 12,
                    mask >> 9 & 7,
                    mask & 0xff,
                    mask >> 8 & 1
                ),
            })
        };
        let parts = labels.iter().map(entry).collect();
        self.group("mpls", labels, parts);
    }

    fn nsh(&mut self) {
        use NumberFormat::{Decimal, Hex};
        let mut parts = vec![
            self.part("flags", KeyField::NSH_FLAGS, Decimal),
            self.part("ttl", KeyField::NSH_TTL, Decimal),
            self.part("mdtype", KeyField::NSH_MDTYPE, Decimal),
            self.part("np", KeyField::NSH_NP, Decimal),
            self.part("spi", KeyField::NSH_SPI, Hex),
            self.part("si", KeyField::NSH_SI, Decimal),
        ];
        let context = [
            KeyField::NSH_C1,
            KeyField::NSH_C2,
            KeyField::NSH_C3,
            KeyField::NSH_C4,
        ];
        if self.packet.get(KeyField::NSH_MDTYPE) == 1 {
            let names = ["c1", "c2", "c3", "c4"];
            parts.extend(
                names
                    .iter()
                    .zip(context)
                    .map(|(name, at)| self.part(name, at, Hex)),
            );
        }
        let fields = [
            KeyField::NSH_FLAGS,
            KeyField::NSH_TTL,
            KeyField::NSH_MDTYPE,
            KeyField::NSH_NP,
            KeyField::NSH_SPI,
            KeyField::NSH_SI,
        ];
        let fields: Vec<_> = fields.into_iter().chain(context).collect();
        self.group("nsh", &fields, parts);
    }

    fn transport(&mut self, eth_type: u128) {
        let name = match (eth_type, self.packet.get(KeyField::NW_PROTO)) {
            (_, 6) => "tcp",
            (_, 17) => "udp",
            (_, 132) => "sctp",
            (0x0800, 1) => "icmp",
            (0x86dd, 58) => "icmpv6",
            _ => return,
        };
        let (names, full) = match name {
            "icmp" | "icmpv6" => (["type", "code"], 0xff),
            _ => (["src", "dst"], 0xffff),
        };
        let fields = [KeyField::TP_SRC, KeyField::TP_DST];
        let parts = names.iter().zip(fields).map(|(name, at)| {
            let (value, mask) = self.field(at);
            self.masked(name, &value.to_string(), mask, full, c_hex)
        });
        let parts = parts.collect();
        self.group(name, &fields, parts);
        match name {
            "tcp" => self.tcp_flags(),
            "icmpv6" => self.neighbor(),
            _ => {}
        }
    }

    fn tcp_flags(&mut self) {
        let (flags, mask) = self.field(KeyField::TCP_FLAGS);
        match self.detail {
            KeyDetail::Packet if flags != 0 => self.put("tcp_flags", &flag_names(flags)),
            KeyDetail::All if flags != 0 || mask != 0 => {
                self.put("tcp_flags", &tcp_flags(flags, mask & 0xfff));
            }
            KeyDetail::Examined if mask != 0 => {
                self.put("tcp_flags", &tcp_flags(flags, mask & 0xfff));
            }
            _ => {}
        }
    }

    fn neighbor(&mut self) {
        let (kind, code) = (self.field(KeyField::TP_SRC), self.field(KeyField::TP_DST));
        let is_discovery = matches!(kind.0, 135 | 136) && code.0 == 0;
        let is_examined = kind.1 & 0xff == 0xff && code.1 & 0xff == 0xff;
        if !is_discovery || !is_examined {
            return;
        }
        let parts = vec![
            self.ipv6("target", KeyField::ND_TARGET),
            self.mac("sll", KeyField::ARP_SHA),
            self.mac("tll", KeyField::ARP_THA),
        ];
        self.group(
            "nd",
            &[KeyField::ND_TARGET, KeyField::ARP_SHA, KeyField::ARP_THA],
            parts,
        );
    }
}

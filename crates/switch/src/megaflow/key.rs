//! The fields that the classifier examines, in the order of Open vSwitch's flow: metadata, L2, L3
//! and L4. Fields of several protocols share a position: the sender of an ARP packet has that of
//! the IPv4 source, and a type of ICMP has that of a source port.

mod options;

use flow::{Field, FlowKey, Term, TunnelOptions};
use packet::wire::vlan::VlanTag;
use packet::wire::{ethernet, vlan};
use packet::{Frame, Link};

use crate::odp::OdpGeneveOption;

/// A position of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyField(u8);

/// The name space of packet types that are EtherTypes (OpenFlow 1.5, 7.2.3.11).
const ETHER_TYPE_SPACE: u128 = 1;

/// The number of registers.
const REGISTERS: u8 = 16;

#[rustfmt::skip]
impl KeyField {
    // Metadata. The registers are the first fields.
    pub(super) const METADATA: Self = Self(REGISTERS);
    pub(super) const TUNNEL_ID: Self = Self(REGISTERS + 1);
    pub(super) const TUNNEL_SRC: Self = Self(REGISTERS + 2);
    pub(super) const TUNNEL_DST: Self = Self(REGISTERS + 3);
    pub(super) const TUNNEL_IPV6_SRC: Self = Self(REGISTERS + 4);
    pub(super) const TUNNEL_IPV6_DST: Self = Self(REGISTERS + 5);
    /// The flags of a datapath's tunnel, of which matches have the lowest.
    pub(super) const TUNNEL_FLAGS: Self = Self(REGISTERS + 6);
    pub(super) const TUNNEL_TOS: Self = Self(REGISTERS + 7);
    pub(super) const GBP_ID: Self = Self(REGISTERS + 8);
    pub(super) const GBP_FLAGS: Self = Self(REGISTERS + 9);
    pub(super) const ERSPAN_VERSION: Self = Self(REGISTERS + 10);
    pub(super) const ERSPAN_INDEX: Self = Self(REGISTERS + 11);
    pub(super) const ERSPAN_DIRECTION: Self = Self(REGISTERS + 12);
    pub(super) const ERSPAN_HARDWARE: Self = Self(REGISTERS + 13);
    pub(super) const GTPU_FLAGS: Self = Self(REGISTERS + 14);
    pub(super) const GTPU_TYPE: Self = Self(REGISTERS + 15);
    pub(super) const SKB_PRIORITY: Self = Self(REGISTERS + 16);
    pub(super) const PKT_MARK: Self = Self(REGISTERS + 17);
    pub(super) const DP_HASH: Self = Self(REGISTERS + 18);
    pub(super) const IN_PORT: Self = Self(REGISTERS + 19);
    pub(super) const RECIRC_ID: Self = Self(REGISTERS + 20);
    pub(super) const PACKET_TYPE: Self = Self(REGISTERS + 21);
    pub(super) const CONJ_ID: Self = Self(REGISTERS + 22);
    pub(super) const ACTSET_OUTPUT: Self = Self(REGISTERS + 23);
    // L2.
    pub(super) const ETH_DST: Self = Self(REGISTERS + 24);
    pub(super) const ETH_SRC: Self = Self(REGISTERS + 25);
    pub(super) const ETH_TYPE: Self = Self(REGISTERS + 26);
    /// The control information of the outermost tag; `0x1000` is set if there is a tag.
    pub(super) const VLAN_TCI: Self = Self(REGISTERS + 27);
    pub(super) const VLAN_TPID: Self = Self(REGISTERS + 28);
    pub(super) const VLAN_TCI_2: Self = Self(REGISTERS + 29);
    pub(super) const VLAN_TPID_2: Self = Self(REGISTERS + 30);
    pub(super) const MPLS_1: Self = Self(REGISTERS + 31);
    pub(super) const MPLS_2: Self = Self(REGISTERS + 32);
    pub(super) const MPLS_3: Self = Self(REGISTERS + 33);
    pub(super) const PBB_ISID: Self = Self(REGISTERS + 34);
    pub(super) const PBB_UCA: Self = Self(REGISTERS + 35);
    // L3.
    pub(super) const NW_SRC: Self = Self(REGISTERS + 36);
    pub(super) const NW_DST: Self = Self(REGISTERS + 37);
    pub(super) const IPV6_SRC: Self = Self(REGISTERS + 38);
    pub(super) const IPV6_DST: Self = Self(REGISTERS + 39);
    pub(super) const IPV6_LABEL: Self = Self(REGISTERS + 40);
    pub(super) const IPV6_EXTENSIONS: Self = Self(REGISTERS + 41);
    pub(super) const NW_FRAG: Self = Self(REGISTERS + 42);
    pub(super) const NW_TOS: Self = Self(REGISTERS + 43);
    pub(super) const NW_TTL: Self = Self(REGISTERS + 44);
    pub(super) const NW_PROTO: Self = Self(REGISTERS + 45);
    // L4.
    pub(super) const ND_TARGET: Self = Self(REGISTERS + 46);
    pub(super) const ARP_SHA: Self = Self(REGISTERS + 47);
    pub(super) const ARP_THA: Self = Self(REGISTERS + 48);
    pub(super) const TCP_FLAGS: Self = Self(REGISTERS + 49);
    pub(super) const NSH_FLAGS: Self = Self(REGISTERS + 50);
    pub(super) const NSH_TTL: Self = Self(REGISTERS + 51);
    pub(super) const NSH_MDTYPE: Self = Self(REGISTERS + 52);
    pub(super) const NSH_NP: Self = Self(REGISTERS + 53);
    pub(super) const NSH_SPI: Self = Self(REGISTERS + 54);
    pub(super) const NSH_SI: Self = Self(REGISTERS + 55);
    pub(super) const NSH_C1: Self = Self(REGISTERS + 56);
    pub(super) const NSH_C2: Self = Self(REGISTERS + 57);
    pub(super) const NSH_C3: Self = Self(REGISTERS + 58);
    pub(super) const NSH_C4: Self = Self(REGISTERS + 59);
    pub(super) const TP_SRC: Self = Self(REGISTERS + 60);
    pub(super) const TP_DST: Self = Self(REGISTERS + 61);
    pub(super) const ND_RESERVED: Self = Self(REGISTERS + 62);
}

/// The number of positions.
const POSITIONS: usize = KeyField::ND_RESERVED.0 as usize + 1;

/// The positions of match fields, except registers.
#[rustfmt::skip]
const PLACES: [(Field, KeyField, u32); 75] = {
    use Field as F;
    use KeyField as K;
    [
        (F::Metadata, K::METADATA, 0),
        (F::TunnelId, K::TUNNEL_ID, 0),
        (F::TunSrc, K::TUNNEL_SRC, 0),
        (F::TunDst, K::TUNNEL_DST, 0),
        (F::TunIpv6Src, K::TUNNEL_IPV6_SRC, 0),
        (F::TunIpv6Dst, K::TUNNEL_IPV6_DST, 0),
        (F::TunFlags, K::TUNNEL_FLAGS, 0),
        (F::TunGbpId, K::GBP_ID, 0),
        (F::TunGbpFlags, K::GBP_FLAGS, 0),
        (F::TunErspanVer, K::ERSPAN_VERSION, 0),
        (F::TunErspanIdx, K::ERSPAN_INDEX, 0),
        (F::TunErspanDir, K::ERSPAN_DIRECTION, 0),
        (F::TunErspanHwid, K::ERSPAN_HARDWARE, 0),
        (F::TunGtpuFlags, K::GTPU_FLAGS, 0),
        (F::TunGtpuMsgtype, K::GTPU_TYPE, 0),
        (F::PktMark, K::PKT_MARK, 0),
        (F::DpHash, K::DP_HASH, 0),
        (F::InPort, K::IN_PORT, 0),
        (F::RecircId, K::RECIRC_ID, 0),
        (F::PacketType, K::PACKET_TYPE, 0),
        (F::ConjId, K::CONJ_ID, 0),
        (F::ActsetOutput, K::ACTSET_OUTPUT, 0),
        (F::EthDst, K::ETH_DST, 0),
        (F::EthSrc, K::ETH_SRC, 0),
        (F::EthType, K::ETH_TYPE, 0),
        (F::VlanVid, K::VLAN_TCI, 0),
        (F::VlanPcp, K::VLAN_TCI, 13),
        (F::MplsLabel, K::MPLS_1, 12),
        (F::MplsTc, K::MPLS_1, 9),
        (F::MplsBos, K::MPLS_1, 8),
        (F::MplsTtl, K::MPLS_1, 0),
        (F::PbbIsid, K::PBB_ISID, 0),
        (F::PbbUca, K::PBB_UCA, 0),
        (F::Ipv4Src, K::NW_SRC, 0),
        (F::ArpSpa, K::NW_SRC, 0),
        (F::Ipv4Dst, K::NW_DST, 0),
        (F::ArpTpa, K::NW_DST, 0),
        (F::Ipv6Src, K::IPV6_SRC, 0),
        (F::Ipv6Dst, K::IPV6_DST, 0),
        (F::Ipv6Flabel, K::IPV6_LABEL, 0),
        (F::Ipv6Exthdr, K::IPV6_EXTENSIONS, 0),
        (F::IpFrag, K::NW_FRAG, 0),
        (F::IpDscp, K::NW_TOS, 2),
        (F::IpEcn, K::NW_TOS, 0),
        (F::IpTtl, K::NW_TTL, 0),
        (F::IpProto, K::NW_PROTO, 0),
        (F::ArpOp, K::NW_PROTO, 0),
        (F::Ipv6NdTarget, K::ND_TARGET, 0),
        (F::ArpSha, K::ARP_SHA, 0),
        (F::Ipv6NdSll, K::ARP_SHA, 0),
        (F::ArpTha, K::ARP_THA, 0),
        (F::Ipv6NdTll, K::ARP_THA, 0),
        (F::TcpFlags, K::TCP_FLAGS, 0),
        (F::NdOptionsType, K::TCP_FLAGS, 0),
        (F::NshFlags, K::NSH_FLAGS, 0),
        (F::NshTtl, K::NSH_TTL, 0),
        (F::NshMdtype, K::NSH_MDTYPE, 0),
        (F::NshNp, K::NSH_NP, 0),
        (F::NshSpi, K::NSH_SPI, 0),
        (F::NshSi, K::NSH_SI, 0),
        (F::NshC1, K::NSH_C1, 0),
        (F::NshC2, K::NSH_C2, 0),
        (F::NshC3, K::NSH_C3, 0),
        (F::NshC4, K::NSH_C4, 0),
        (F::TcpSrc, K::TP_SRC, 0),
        (F::UdpSrc, K::TP_SRC, 0),
        (F::SctpSrc, K::TP_SRC, 0),
        (F::Icmpv4Type, K::TP_SRC, 0),
        (F::Icmpv6Type, K::TP_SRC, 0),
        (F::TcpDst, K::TP_DST, 0),
        (F::UdpDst, K::TP_DST, 0),
        (F::SctpDst, K::TP_DST, 0),
        (F::Icmpv4Code, K::TP_DST, 0),
        (F::Icmpv6Code, K::TP_DST, 0),
        (F::NdReserved, K::ND_RESERVED, 0),
    ]
};

/// The number of segments of a staged lookup.
pub(super) const SEGMENTS: usize = 4;

/// The position of a match field, and the number of bits below it there.
type FieldPlace = (KeyField, u32);

impl KeyField {
    /// Returns the segment of the position: 0 metadata, 1 L2, 2 L3, 3 L4.
    pub(super) const fn segment(self) -> usize {
        if self.0 < Self::ETH_DST.0 {
            0
        } else if self.0 < Self::NW_SRC.0 {
            1
        } else if self.0 < Self::ND_TARGET.0 {
            2
        } else {
            3
        }
    }

    /// Returns the registers.
    pub(super) fn registers() -> impl Iterator<Item = Self> {
        (0..REGISTERS).map(Self)
    }

    /// Returns the fields of a tunnel.
    pub(super) fn tunnel() -> impl Iterator<Item = Self> {
        (Self::TUNNEL_ID.0..=Self::GTPU_TYPE.0).map(Self)
    }

    /// Returns the number of bits.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::METADATA | Self::TUNNEL_ID => 64,
            Self::TUNNEL_IPV6_SRC
            | Self::TUNNEL_IPV6_DST
            | Self::IPV6_SRC
            | Self::IPV6_DST
            | Self::ND_TARGET => 128,
            Self::ETH_DST | Self::ETH_SRC | Self::ARP_SHA | Self::ARP_THA => 48,
            Self::ETH_TYPE
            | Self::VLAN_TCI
            | Self::VLAN_TPID
            | Self::VLAN_TCI_2
            | Self::VLAN_TPID_2
            | Self::GBP_ID
            | Self::TCP_FLAGS
            | Self::TP_SRC
            | Self::TP_DST => 16,
            Self::NW_FRAG
            | Self::NW_TOS
            | Self::NW_TTL
            | Self::NW_PROTO
            | Self::TUNNEL_FLAGS
            | Self::TUNNEL_TOS
            | Self::GBP_FLAGS
            | Self::GTPU_FLAGS
            | Self::GTPU_TYPE
            | Self::NSH_FLAGS
            | Self::NSH_TTL
            | Self::NSH_MDTYPE
            | Self::NSH_NP
            | Self::NSH_SI => 8,
            Self::IPV6_LABEL => 20,
            _ => 32,
        }
    }

    /// Returns all positions.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..).map(Self).take(POSITIONS)
    }

    /// Returns the position of a match field, or `None` for a view, a tunnel option, and a field
    /// that repeats another one.
    pub(super) fn of(field: Field) -> Option<FieldPlace> {
        if let Some(number) = field.register() {
            return Some((Self(u8::try_from(number).ok()?), 0));
        }
        let row = PLACES.iter().find(|(known, ..)| *known == field);
        row.map(|(_, at, shift)| (*at, *shift))
    }

    /// Returns the number of bits of an address, which a prefix trie can index; zero for other
    /// positions.
    pub(super) const fn address_bits(self) -> u32 {
        match self {
            Self::NW_SRC | Self::NW_DST | Self::TUNNEL_SRC | Self::TUNNEL_DST => 32,
            Self::METADATA | Self::TUNNEL_ID => 64,
            Self::IPV6_SRC
            | Self::IPV6_DST
            | Self::TUNNEL_IPV6_SRC
            | Self::TUNNEL_IPV6_DST
            | Self::ND_TARGET => 128,
            _ => 0,
        }
    }
}

/// A value for each position: of a packet, or of a mask.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyBits {
    values: [u128; POSITIONS],
    /// The options of a tunnel, by the fields that they are mapped to.
    options: TunnelOptions,
    /// All options of a Geneve tunnel, in the order of the packet.
    geneve: Vec<OdpGeneveOption>,
}

impl KeyBits {
    /// No bits.
    pub(super) const ZERO: Self = Self {
        values: [0; POSITIONS],
        options: TunnelOptions::new(),
        geneve: Vec::new(),
    };

    /// Returns the value at a position.
    pub(super) const fn get(&self, at: KeyField) -> u128 {
        self.values[at.0 as usize]
    }

    /// Replaces the value at a position.
    pub(super) const fn set(&mut self, at: KeyField, value: u128) {
        self.values[at.0 as usize] = value;
    }

    /// Adds bits at a position.
    pub(super) const fn add(&mut self, at: KeyField, bits: u128) {
        self.values[at.0 as usize] |= bits;
    }

    /// Returns the bits that a mask selects.
    pub(super) fn masked(&self, mask: &Self) -> Self {
        let mut masked = self.clone();
        for (own, mask) in masked.values.iter_mut().zip(mask.values) {
            *own &= mask;
        }
        masked.options = self.masked_options(mask);
        masked.geneve = self.masked_geneve(mask);
        masked
    }

    /// Returns true if a bit is set that is not set in the other.
    pub(super) fn has_more_than(&self, other: &Self) -> bool {
        let mut pairs = self.values.iter().zip(other.values);
        pairs.any(|(own, other)| own & !other != 0) || self.has_more_options_than(other)
    }

    /// Returns the bytes of all values.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        let values = self.values.iter().flat_map(|value| value.to_be_bytes());
        values.chain(self.option_bytes())
    }

    /// Returns true if both have the same bits where the mask has some.
    pub(super) fn equals_under(&self, other: &Self, mask: &Self) -> bool {
        let mut pairs = self.values.iter().zip(other.values).zip(mask.values);
        pairs.all(|((own, other), mask)| (own ^ other) & mask == 0)
            && self.masked_options(mask) == other.masked_options(mask)
    }

    /// Returns the values of a packet's fields; absent fields are zero.
    pub(super) fn of_key(key: &FlowKey) -> Self {
        let mut bits = Self::ZERO;
        for (field, at, shift) in PLACES {
            bits.add(at, key.get(field).unwrap_or_default() << shift);
        }
        for (number, at) in KeyField::registers().enumerate() {
            let register = Field::from_register(number);
            bits.set(at, key.get(register).unwrap_or_default());
        }
        let packet_type = bits.get(KeyField::PACKET_TYPE);
        if packet_type >> 16 == ETHER_TYPE_SPACE {
            bits.set(KeyField::ETH_TYPE, packet_type & 0xffff);
        }
        bits.options.clone_from(key.options());
        bits
    }

    /// Adds headers of the frame that a flow key lacks: the inner tag, and the inner MPLS entries.
    pub(super) fn add_inner_headers(&mut self, frame: &Frame) {
        let tags = tags_of(frame);
        let places = [
            (KeyField::VLAN_TCI, KeyField::VLAN_TPID),
            (KeyField::VLAN_TCI_2, KeyField::VLAN_TPID_2),
        ];
        for (tag, (tci, tpid)) in tags.iter().zip(places) {
            self.set(tpid, u128::from(tag.tpid));
            self.set(tci, tci_of(tag));
        }
        let start = ethernet::TYPE + 2 + tags.len() * vlan::LEN;
        // The type of a frame that is composed of a flow without one.
        if frame.bytes().get(start - 2..start) == Some(&[0; 2]) {
            self.set(KeyField::ETH_TYPE, 0);
        }
        if !is_mpls(self.get(KeyField::ETH_TYPE)) {
            return;
        }
        let labels = frame.bytes().get(start..).unwrap_or_default();
        let places = [KeyField::MPLS_1, KeyField::MPLS_2, KeyField::MPLS_3];
        for (entry, place) in labels.chunks_exact(4).zip(places) {
            let entry = entry
                .iter()
                .fold(0, |sum, byte| sum << 8 | u128::from(*byte));
            self.set(place, entry);
            if entry >> 8 & 1 == 1 {
                break;
            }
        }
    }
}

/// Returns the control information of a tag, with the presence bit.
fn tci_of(tag: &VlanTag) -> u128 {
    u128::from(tag.vid) | 0x1000 | u128::from(tag.pcp) << 13
}

/// Returns all tags of a frame, outermost first.
fn tags_of(frame: &Frame) -> Vec<VlanTag> {
    let tags = Link::parse(frame.bytes()).map_or(0, |link| link.tags());
    let bytes = frame.bytes().get(ethernet::TYPE..).unwrap_or_default();
    let tags = bytes.chunks_exact(vlan::LEN).take(tags);
    let tags = tags.filter_map(|bytes| bytes.first_chunk());
    tags.map(|bytes| VlanTag::parse(*bytes)).collect()
}

/// Returns the bits of a term at its position: where, value and mask. A type or code of ICMP is
/// compared whole, as in Open vSwitch, where it has the sixteen bits of a port.
pub(super) fn of_term(term: &Term) -> Option<(KeyField, u128, u128)> {
    let (at, shift) = KeyField::of(term.field)?;
    let mask = match term.field {
        Field::Icmpv4Type | Field::Icmpv4Code | Field::Icmpv6Type | Field::Icmpv6Code => 0xffff,
        Field::ArpOp => term.mask & 0xff,
        _ => term.mask << shift,
    };
    Some((at, term.value << shift & mask, mask))
}

/// Returns true for the EtherTypes of MPLS.
pub(super) const fn is_mpls(eth_type: u128) -> bool {
    matches!(eth_type, 0x8847 | 0x8848)
}

/// Returns true for the EtherTypes of IPv4 and IPv6.
pub(super) const fn is_ip(eth_type: u128) -> bool {
    matches!(eth_type, 0x0800 | 0x86dd)
}

/// Returns true for the EtherTypes of ARP and RARP.
pub(super) const fn is_arp(eth_type: u128) -> bool {
    matches!(eth_type, 0x0806 | 0x8035)
}

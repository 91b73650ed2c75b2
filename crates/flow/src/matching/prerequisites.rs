//! Facts that the terms of a match imply, for the prerequisites of other fields (OF 1.3.5, table
//! 13). Each fact is a bit, so that a prerequisite is checked without searching the terms.

use super::{Term, bare_packet_ether_type};
use crate::field::{Field, Prerequisite, VID_PRESENT};

/// Set of facts that hold for every frame that the terms accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FactSet(u32);

impl FactSet {
    const IN_PORT: u32 = 1 << 0;
    const VLAN_TAG: u32 = 1 << 1;
    /// An Ethernet header determines the EtherType.
    const TYPED: u32 = 1 << 2;
    const MPLS: u32 = 1 << 3;
    const PBB: u32 = 1 << 4;
    const ARP: u32 = 1 << 5;
    const IP: u32 = 1 << 6;
    const IPV4: u32 = 1 << 7;
    const IPV6: u32 = 1 << 8;
    const NSH: u32 = 1 << 9;
    const TCP: u32 = 1 << 10;
    const UDP: u32 = 1 << 11;
    const SCTP: u32 = 1 << 12;
    const ICMP: u32 = 1 << 13;
    const ICMPV6: u32 = 1 << 14;
    /// Neighbour solicitation or advertisement, by the type of ICMPv6.
    const ND: u32 = 1 << 15;
    const SOLICITATION: u32 = 1 << 16;
    const ADVERTISEMENT: u32 = 1 << 17;

    /// Returns the facts that `terms` imply.
    pub(super) fn of(terms: impl Iterator<Item = Term>) -> Self {
        terms.fold(Self::default(), |facts, term| facts.and(&term))
    }

    /// Returns these facts and those that `term` implies.
    #[inline]
    pub(super) fn and(self, term: &Term) -> Self {
        let more = match term.field {
            Field::InPort => Self::IN_PORT,
            Field::PacketType if self.0 & Self::TYPED == 0 => {
                bare_packet_ether_type(term.value).map_or(0, ether_type_facts)
            }
            // The EtherType of a header takes precedence over that of the packet type.
            Field::EthType => {
                return Self(self.0 & !Self::BY_TYPE | Self::TYPED | ether_type_facts(term.value));
            }
            Field::VlanVid if term.value & u128::from(VID_PRESENT) != 0 => Self::VLAN_TAG,
            Field::IpProto => protocol_facts(term.value),
            Field::Icmpv6Type => icmpv6_type_facts(term.value),
            _ => 0,
        };
        Self(self.0 | more)
    }

    /// True if terms on `field` imply facts.
    pub(super) const fn depend_on(field: Field) -> bool {
        matches!(
            field,
            Field::InPort
                | Field::PacketType
                | Field::EthType
                | Field::VlanVid
                | Field::IpProto
                | Field::Icmpv6Type
        )
    }

    /// All facts that the EtherType determines.
    const BY_TYPE: u32 =
        Self::MPLS | Self::PBB | Self::ARP | Self::IP | Self::IPV4 | Self::IPV6 | Self::NSH;

    /// True if the facts imply the prerequisite.
    #[inline]
    pub(super) const fn satisfy(self, prerequisite: Prerequisite) -> bool {
        self.contain(Self::required_by(prerequisite))
    }

    /// Returns the facts that a prerequisite requires.
    pub(super) const fn required_by(prerequisite: Prerequisite) -> Self {
        Self(required_facts(prerequisite))
    }

    /// True if all of `others` are contained.
    #[inline]
    pub(super) const fn contain(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// Returns the facts that an EtherType implies.
const fn ether_type_facts(eth_type: u128) -> u32 {
    match eth_type {
        0x0800 => FactSet::IP | FactSet::IPV4,
        0x86dd => FactSet::IP | FactSet::IPV6,
        0x0806 | 0x8035 => FactSet::ARP,
        0x8847 | 0x8848 => FactSet::MPLS,
        0x88e7 => FactSet::PBB,
        0x894f => FactSet::NSH,
        _ => 0,
    }
}

/// Returns the facts that a protocol above IP implies.
const fn protocol_facts(protocol: u128) -> u32 {
    match protocol {
        1 => FactSet::ICMP,
        6 => FactSet::TCP,
        17 => FactSet::UDP,
        58 => FactSet::ICMPV6,
        132 => FactSet::SCTP,
        _ => 0,
    }
}

const fn icmpv6_type_facts(kind: u128) -> u32 {
    match kind {
        135 => FactSet::ND | FactSet::SOLICITATION,
        136 => FactSet::ND | FactSet::ADVERTISEMENT,
        _ => 0,
    }
}

/// Returns the facts that a prerequisite requires.
const fn required_facts(prerequisite: Prerequisite) -> u32 {
    match prerequisite {
        Prerequisite::None => 0,
        Prerequisite::InPort => FactSet::IN_PORT,
        Prerequisite::VlanTag => FactSet::VLAN_TAG,
        Prerequisite::Mpls => FactSet::MPLS,
        Prerequisite::Pbb => FactSet::PBB,
        Prerequisite::Arp => FactSet::ARP,
        Prerequisite::Ip => FactSet::IP,
        Prerequisite::Ipv4 => FactSet::IPV4,
        Prerequisite::Ipv6 => FactSet::IPV6,
        Prerequisite::Tcp => FactSet::IP | FactSet::TCP,
        Prerequisite::Udp => FactSet::IP | FactSet::UDP,
        Prerequisite::Sctp => FactSet::IP | FactSet::SCTP,
        Prerequisite::Icmpv4 => FactSet::IPV4 | FactSet::ICMP,
        Prerequisite::Icmpv6 => FactSet::IPV6 | FactSet::ICMPV6,
        Prerequisite::Nd => FactSet::IPV6 | FactSet::ICMPV6 | FactSet::ND,
        Prerequisite::NdSolicitation => FactSet::IPV6 | FactSet::ICMPV6 | FactSet::SOLICITATION,
        Prerequisite::NdAdvertisement => FactSet::IPV6 | FactSet::ICMPV6 | FactSet::ADVERTISEMENT,
        Prerequisite::Nsh => FactSet::NSH,
    }
}

//! What the terms of a match make known of a frame, as far as other fields ask for it
//! (OF 1.3.5, table 13). Each fact is a bit, so that a prerequisite is fulfilled when all
//! of its bits are there; nobody has to look for the terms that make it so.

use super::{Term, of_bare_packets};
use crate::field::{Field, Prerequisite, VID_PRESENT};

/// FactSet. They hold for every frame that the terms accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FactSet(u32);

impl FactSet {
    const IN_PORT: u32 = 1 << 0;
    const VLAN_TAG: u32 = 1 << 1;
    /// The type of the packet is given, by an Ethernet header.
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

    /// What `terms` make known.
    pub(super) fn of(terms: impl Iterator<Item = Term>) -> Self {
        terms.fold(Self::default(), |facts, term| facts.and(&term))
    }

    /// These, and what `term` makes known.
    #[inline]
    pub(super) fn and(self, term: &Term) -> Self {
        let more = match term.field {
            Field::InPort => Self::IN_PORT,
            Field::PacketType if self.0 & Self::TYPED == 0 => {
                of_bare_packets(term.value).map_or(0, of_type)
            }
            // An Ethernet header's type counts, not what bare packets would be.
            Field::EthType => {
                return Self(self.0 & !Self::BY_TYPE | Self::TYPED | of_type(term.value));
            }
            Field::VlanVid if term.value & u128::from(VID_PRESENT) != 0 => Self::VLAN_TAG,
            Field::IpProto => of_protocol(term.value),
            Field::Icmpv6Type => of_icmpv6_type(term.value),
            _ => 0,
        };
        Self(self.0 | more)
    }

    /// Whether terms on `field` make anything known.
    pub(super) const fn are_told_by(field: Field) -> bool {
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

    /// All that the type of the packet makes known.
    const BY_TYPE: u32 =
        Self::MPLS | Self::PBB | Self::ARP | Self::IP | Self::IPV4 | Self::IPV6 | Self::NSH;

    /// Whether `needs` is fulfilled.
    #[inline]
    pub(super) const fn fulfil(self, needs: Prerequisite) -> bool {
        self.have(Self::needed(needs))
    }

    /// The facts that fulfil a prerequisite together.
    pub(super) const fn needed(needs: Prerequisite) -> Self {
        Self(wanted(needs))
    }

    /// Whether all of `others` are among them.
    #[inline]
    pub(super) const fn have(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// What the type of the packet makes known.
const fn of_type(eth_type: u128) -> u32 {
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

/// What the protocol above IP makes known.
const fn of_protocol(protocol: u128) -> u32 {
    match protocol {
        1 => FactSet::ICMP,
        6 => FactSet::TCP,
        17 => FactSet::UDP,
        58 => FactSet::ICMPV6,
        132 => FactSet::SCTP,
        _ => 0,
    }
}

const fn of_icmpv6_type(kind: u128) -> u32 {
    match kind {
        135 => FactSet::ND | FactSet::SOLICITATION,
        136 => FactSet::ND | FactSet::ADVERTISEMENT,
        _ => 0,
    }
}

/// The facts that fulfil a prerequisite together.
const fn wanted(needs: Prerequisite) -> u32 {
    match needs {
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

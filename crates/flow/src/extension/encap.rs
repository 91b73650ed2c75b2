//! Encapsulation headers (`ovs-actions(7)`, encap and decap) and packet types.

use std::fmt;
use std::sync::Arc;

use packet::wire::nsh;

/// Packet type: a name space, and a type in it (OF 1.5.1, 7.2.3.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketType(pub u32);

impl PacketType {
    /// An Ethernet frame.
    pub const ETHERNET: Self = Self(0);
    /// A network service header.
    pub const NSH: Self = Self::of_ether_type(0x894f);
    /// An MPLS entry.
    pub const MPLS: Self = Self::of_ether_type(0x8847);
    /// The same, once "multicast".
    pub const MPLS_MULTICAST: Self = Self::of_ether_type(0x8848);

    /// No type: the removed header identifies the rest.
    pub const NEXT: Self = Self(0xfffe);

    /// Returns the type of the payload of an Ethernet header with this EtherType.
    #[must_use]
    pub const fn of_ether_type(eth_type: u16) -> Self {
        Self(0x0001_0000 | eth_type as u32)
    }

    /// Returns the EtherType, or `None` for an Ethernet frame or an unknown name space.
    #[must_use]
    pub fn ether_type(self) -> Option<u16> {
        let (space, kind) = self.parts();
        (space == 1).then_some(kind)
    }

    /// The name space, and the type in it.
    #[must_use]
    pub const fn parts(self) -> (u16, u16) {
        let [a, b, c, d] = self.0.to_be_bytes();
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    }

    /// True for an Ethernet frame.
    #[must_use]
    pub const fn is_ethernet(self) -> bool {
        self.0 == Self::ETHERNET.0
    }
}

/// A header to put around a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encap {
    /// An Ethernet header, its addresses zero.
    Ethernet,
    /// A network service header, with these properties.
    Nsh(Arc<[NshProperty]>),
    /// An MPLS entry.
    Mpls,
    /// An MPLS entry of the type once called "multicast".
    MplsMulticast,
}

/// Property of a network service header; the last of several wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NshProperty {
    /// Metadata of this type: 1, as without the property, or 2.
    MdType(u8),
    /// An option, for metadata of type 2.
    Tlv {
        /// The class.
        class: u16,
        /// The type in that class.
        kind: u8,
        /// The value.
        value: Vec<u8>,
    },
}

/// Bytes that an option has before its value.
const TLV_HEADER: usize = 4;

impl Encap {
    /// Returns the packet type of the result.
    #[must_use]
    pub const fn makes(&self) -> PacketType {
        match self {
            Self::Ethernet => PacketType::ETHERNET,
            Self::Nsh(_) => PacketType::NSH,
            Self::Mpls => PacketType::MPLS,
            Self::MplsMulticast => PacketType::MPLS_MULTICAST,
        }
    }

    /// True if the properties are valid: known metadata types, and no more options than fit.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        let Self::Nsh(properties) = self else {
            return true;
        };
        let known = |property: &NshProperty| match property {
            NshProperty::MdType(kind) => [nsh::MD_TYPE1, nsh::MD_TYPE2].contains(kind),
            NshProperty::Tlv { value, .. } => u8::try_from(value.len()).is_ok(),
        };
        let bytes: usize = properties.iter().map(NshProperty::bytes).sum();
        properties.iter().all(known) && bytes <= nsh::LEN_MAX - nsh::BASE_LEN
    }
}

impl NshProperty {
    /// Bytes that it takes in the header, with padding.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        match self {
            Self::MdType(_) => 0,
            Self::Tlv { value, .. } => TLV_HEADER + value.len().next_multiple_of(4),
        }
    }
}

impl fmt::Display for Encap {
    /// Formats it like `ovs-ofctl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ethernet => f.write_str("encap(ethernet)"),
            Self::Mpls => f.write_str("encap(mpls)"),
            Self::MplsMulticast => f.write_str("encap(mpls_mc)"),
            Self::Nsh(properties) if properties.is_empty() => f.write_str("encap(nsh)"),
            Self::Nsh(properties) => {
                let all: Vec<_> = properties.iter().map(ToString::to_string).collect();
                write!(f, "encap(nsh({}))", all.join(","))
            }
        }
    }
}

impl fmt::Display for NshProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MdType(kind) => write!(f, "md_type={kind}"),
            Self::Tlv { class, kind, value } => {
                write!(f, "tlv(0x{class:04x},{kind},0x")?;
                value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(")")
            }
        }
    }
}

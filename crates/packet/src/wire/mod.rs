//! Protocol headers, one module each, always in the same order: diagram, offsets of the fields,
//! value type, parser, encoder, tests.
//!
//! `parse` accepts arbitrary bytes, never panics, and returns a value or the reason why the header
//! is malformed. It reads nothing after the header. `emit` returns the whole header; a checksum
//! field is zero, because the checksum covers the payload too.
//!
//! The parsers check structure only: lengths, versions, counts. They verify no checksum (the end
//! host does), and accept any address and any number.
//!
//! ```
//! use packet::wire::tcp::{self, Tcp};
//!
//! let header = Tcp { src: 1024, dst: 80, flags: tcp::SYN };
//! let bytes = header.emit(20);
//! assert_eq!(Tcp::parse(&bytes), Ok(header));
//! assert_eq!(Tcp::parse(&bytes[..19]), Err(packet::Malformed::TcpTruncated));
//! ```

pub mod arp;
pub mod bfd;
pub mod cfm;
pub mod ethernet;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod lldp;
pub mod mpls;
pub mod nsh;
pub mod pbb;
pub mod sctp;
pub mod slow;
pub mod tcp;
pub mod udp;
pub mod vlan;

/// IP protocol number. A newtype, so that unknown numbers survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpProto(pub u8);

impl IpProto {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP.
    pub const ICMPV4: Self = Self(1);
    /// IPv4 in IP.
    pub const IPV4: Self = Self(4);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// DCCP.
    pub const DCCP: Self = Self(33);
    /// IPv6 in IP.
    pub const IPV6: Self = Self(41);
    /// IPv6 routing header.
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header.
    pub const FRAGMENT: Self = Self(44);
    /// Encapsulating security payload: its payload cannot be parsed.
    pub const ESP: Self = Self(50);
    /// Authentication header.
    pub const AH: Self = Self(51);
    /// ICMPv6.
    pub const ICMPV6: Self = Self(58);
    /// IGMP.
    pub const IGMP: Self = Self(2);
    /// IPv6: nothing follows.
    pub const NO_NEXT: Self = Self(59);
    /// IPv6 destination options.
    pub const DESTINATION: Self = Self(60);
    /// SCTP.
    pub const SCTP: Self = Self(132);
    /// UDP-Lite.
    pub const UDPLITE: Self = Self(136);
}

/// Part of an IP packet that a frame carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// All of it.
    #[default]
    No,
    /// The first part, with the transport header.
    First,
    /// A later part, without a transport header.
    Later,
}

/// Returns the two bytes at `at`, which the caller has checked to exist.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

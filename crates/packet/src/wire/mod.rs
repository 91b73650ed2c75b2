//! The headers, one file each and always in the same order: what it looks like,
//! the places of its fields, its value, how it is read, how it is written, tests.
//!
//! Two promises. `parse` takes any bytes whatever, never panics, and answers
//! either a value or the reason why the header is damaged; it looks at nothing
//! behind the header. `emit` writes the whole header and leaves no byte as it
//! was; a checksum field is left zero, since it covers what stands behind.
//!
//! Nothing here judges content: a checksum is never verified (the end host does
//! that), an address may be nonsense, a number may be unknown.

pub mod arp;
pub mod ethernet;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod mpls;
pub mod nsh;
pub mod pbb;
pub mod sctp;
pub mod slow;
pub mod tcp;
pub mod udp;
pub mod vlan;

/// The protocol above IP. Others assign the numbers, so that unknown ones survive.
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
    /// Encapsulating security payload: nothing behind it can be read.
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

/// Which part of an IP packet a frame carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// All of it.
    #[default]
    No,
    /// The first part, with the transport header.
    First,
    /// Another part: there is no transport header.
    Later,
}

/// The two bytes at `at`, which the caller knows to be there.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

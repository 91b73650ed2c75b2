//! Connection keys: zone, protocol, and the two endpoints of one direction of a connection.
//!
//! ```text
//!              source                 destination
//!        +----------------+      +--------------------+
//!  zone  | address | port | ---> | address | port     |  original direction
//!        +----------------+      +--------------------+
//! ```
//!
//! ICMP echo has no ports: both ends have the identifier as their port, and the type that they send
//! as their message type (8 and 0). So the reversed key of a request is the key of its reply.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::wire::IpProto;

/// The zone of a connection: equal keys of different zones are different connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CtZone(pub u16);

/// The version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressFamily {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// An address of either family in 16 bytes. An IPv4 address occupies the last four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CtAddress([u8; 16]);

impl CtAddress {
    /// Returns the address as a number.
    #[must_use]
    pub const fn to_bits(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// Returns the address with this number.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }

    /// Returns the address as one of this family.
    #[must_use]
    pub fn to_ip(self, family: AddressFamily) -> IpAddr {
        let [.., a, b, c, d] = self.0;
        match family {
            AddressFamily::V4 => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            AddressFamily::V6 => IpAddr::V6(Ipv6Addr::from(self.0)),
        }
    }
}

impl From<Ipv4Addr> for CtAddress {
    fn from(address: Ipv4Addr) -> Self {
        Self::from_bits(u128::from(address.to_bits()))
    }
}

impl From<Ipv6Addr> for CtAddress {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address.
    pub address: CtAddress,
    /// Port of TCP, UDP and SCTP; identifier of ICMP; zero for other protocols.
    pub port: u16,
    /// Type of the ICMP messages that this end sends; zero for other protocols.
    pub message_type: u8,
}

/// The packets of one direction of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionKey {
    /// The end that sends these packets.
    pub src: Endpoint,
    /// The end that receives them.
    pub dst: Endpoint,
    /// The zone.
    pub zone: CtZone,
    /// The protocol above IP.
    pub protocol: KeyProtocol,
    /// The version of IP.
    pub family: AddressFamily,
}

/// The protocol number of a key: an [`IpProto`] with an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyProtocol(pub u8);

impl KeyProtocol {
    /// TCP.
    pub const TCP: Self = Self(IpProto::TCP.0);
    /// UDP.
    pub const UDP: Self = Self(IpProto::UDP.0);
    /// SCTP.
    pub const SCTP: Self = Self(IpProto::SCTP.0);
    /// ICMP.
    pub const ICMPV4: Self = Self(IpProto::ICMPV4.0);
    /// ICMPv6.
    pub const ICMPV6: Self = Self(IpProto::ICMPV6.0);

    /// True if NAT may change ports of this protocol.
    #[must_use]
    pub const fn has_nat_ports(self) -> bool {
        matches!(self, Self::TCP | Self::UDP | Self::SCTP)
    }

    /// True for ICMP of either family.
    #[must_use]
    pub const fn is_icmp(self) -> bool {
        matches!(self, Self::ICMPV4 | Self::ICMPV6)
    }
}

impl From<IpProto> for KeyProtocol {
    fn from(protocol: IpProto) -> Self {
        Self(protocol.0)
    }
}

/// One of the two directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrafficDirection {
    /// Direction of the packet that created the connection.
    Original,
    /// The other direction.
    Reply,
}

impl TrafficDirection {
    /// Returns the other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Original => Self::Reply,
            Self::Reply => Self::Original,
        }
    }
}

impl ConnectionKey {
    /// Returns the key of the packets in the other direction, without NAT.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            ..*self
        }
    }

    /// True for queries of ICMP and their replies: both ports are the identifier.
    #[must_use]
    pub(crate) const fn has_identifier(&self) -> bool {
        self.src.message_type != self.dst.message_type
    }

    /// Returns this key in another zone.
    #[must_use]
    pub const fn in_zone(&self, zone: CtZone) -> Self {
        Self { zone, ..*self }
    }

    /// Returns the words of the key for hashing. A key and its reversed key have the same words.
    #[inline]
    #[must_use]
    pub(crate) fn symmetric_words(&self) -> [u64; 5] {
        let (low, high) = if self.src <= self.dst {
            (&self.src, &self.dst)
        } else {
            (&self.dst, &self.src)
        };
        let [a, b] = halves(low.address);
        let [c, d] = halves(high.address);
        let ports = u64::from(low.port) << 48 | u64::from(high.port) << 32;
        let rest = u64::from(self.zone.0) << 16 | u64::from(self.protocol.0) << 8;
        // The types of ICMP are absent: those of both ends follow from one another.
        [a, b, c, d, ports | rest | self.family as u64]
    }
}

fn halves(address: CtAddress) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = address.0;
    [
        u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        u64::from_be_bytes([i, j, k, l, m, n, o, p]),
    ]
}

impl fmt::Display for ConnectionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let src = self.src.address.to_ip(self.family);
        let dst = self.dst.address.to_ip(self.family);
        write!(f, "src={src},dst={dst}")?;
        if self.protocol.is_icmp() {
            write!(f, ",id={},type={}", self.src.port, self.src.message_type)
        } else if self.src.port != 0 || self.dst.port != 0 {
            write!(f, ",sport={},dport={}", self.src.port, self.dst.port)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_packets::udp_key;

    #[test]
    fn key_and_its_reversed_key_have_the_same_words() {
        let key = udp_key(1, 2);
        assert_ne!(key, key.reversed());
        assert_eq!(key, key.reversed().reversed());
        assert_eq!(key.symmetric_words(), key.reversed().symmetric_words());
        let other = key.in_zone(CtZone(9));
        assert_ne!(key.symmetric_words(), other.symmetric_words());
    }

    #[test]
    fn key_prints_addresses_and_ports() {
        let text = "src=10.0.0.1,dst=10.0.0.2,sport=1001,dport=53";
        assert_eq!(udp_key(1, 2).to_string(), text);
    }

    #[test]
    fn address_converts_to_both_families() {
        let v4 = Ipv4Addr::new(192, 0, 2, 1);
        let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        assert_eq!(CtAddress::from(v4).to_ip(AddressFamily::V4), IpAddr::V4(v4));
        assert_eq!(CtAddress::from(v6).to_ip(AddressFamily::V6), IpAddr::V6(v6));
    }
}

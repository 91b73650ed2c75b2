//! Outer headers of a tunnelled packet: Ethernet, IP and UDP.

use std::net::IpAddr;

use super::{TunnelError, TunnelProtocol};
use crate::checksum::InternetSum;
use crate::wire::ethernet::{self, EtherType};
use crate::wire::{IpProto, ipv4, ipv6, u16_at, udp};
use crate::{Link, MacAddr};

/// Offset of the length of a GTP-U message in its datagram.
const GTPU_LENGTH: usize = udp::LEN + 2;

/// Headers before the tunnel header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterHeaders {
    /// Destination address of the Ethernet header.
    pub eth_dst: MacAddr,
    /// Source address of the Ethernet header.
    pub eth_src: MacAddr,
    /// Address of the sending tunnel endpoint.
    pub src: IpAddr,
    /// Address of the receiving tunnel endpoint; both have the same IP version.
    pub dst: IpAddr,
    /// DSCP and ECN.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// True if the "don't fragment" flag of IPv4 is set.
    pub dont_fragment: bool,
    /// Header between IP and the tunnel header.
    pub upper: OuterTransport,
}

/// Header between IP and the tunnel header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OuterTransport {
    /// UDP.
    Udp {
        /// Source port; varies by flow, for multipath routing.
        src: u16,
        /// Destination port; identifies the tunnel protocol.
        dst: u16,
        /// True if the checksum is present.
        summed: bool,
    },
    /// No header: GRE follows IP.
    Gre,
}

/// Packet that may belong to a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelPacket {
    /// Outer headers.
    pub outer: OuterHeaders,
    /// Offset of the IP header.
    network: usize,
    /// Offset of the UDP header, or of the tunnel header.
    transport: usize,
    /// Offset of the tunnel header.
    pub at: usize,
    /// Offset of the end of the packet.
    pub end: usize,
}

/// Parses the outer headers. Returns `None` if the frame is no UDP or GRE packet, has a VLAN tag or
/// extension headers, or is a fragment.
#[must_use]
pub fn parse_outer(bytes: &[u8]) -> Option<TunnelPacket> {
    let link = Link::parse(bytes).ok()?;
    if link.tag.is_some() {
        return None;
    }
    let network = link.payload_at();
    let packet = bytes.get(network..)?;
    let (src, dst, tos, ttl, dont_fragment, protocol, header, end) = match link.eth_type {
        EtherType::IPV4 => parse_ipv4(packet)?,
        EtherType::IPV6 => parse_ipv6(packet)?,
        _ => return None,
    };
    let (transport, end) = (network + header, network + end);
    let (upper, at) = match protocol {
        IpProto::UDP => {
            let header = bytes.get(transport..end)?.first_chunk::<{ udp::LEN }>()?;
            let upper = OuterTransport::Udp {
                src: u16_at(header, udp::SRC),
                dst: u16_at(header, udp::DST),
                summed: u16_at(header, udp::CHECKSUM) != 0,
            };
            (upper, transport + udp::LEN)
        }
        GRE => (OuterTransport::Gre, transport),
        _ => return None,
    };
    let outer = OuterHeaders {
        eth_dst: link.dst,
        eth_src: link.src,
        src,
        dst,
        tos,
        ttl,
        dont_fragment,
        upper,
    };
    Some(TunnelPacket {
        outer,
        network,
        transport,
        at,
        end,
    })
}

/// The number of GRE (RFC 2784, 2).
const GRE: IpProto = IpProto(47);

/// Addresses, DSCP and ECN, TTL, "don't fragment", protocol, length of header and packet.
type OuterNetwork = (IpAddr, IpAddr, u8, u8, bool, IpProto, usize, usize);

fn parse_ipv4(packet: &[u8]) -> Option<OuterNetwork> {
    let header = ipv4::Ipv4::parse(packet).ok()?;
    let fragment = u16_at(packet, ipv4::FRAGMENT);
    if fragment & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_MASK) != 0 {
        return None;
    }
    Some((
        header.src.into(),
        header.dst.into(),
        header.tos,
        header.ttl,
        fragment & ipv4::DONT_FRAGMENT != 0,
        header.protocol,
        header.header_len.into(),
        header.total_len.into(),
    ))
}

fn parse_ipv6(packet: &[u8]) -> Option<OuterNetwork> {
    let header: &[u8; ipv6::LEN] = packet.first_chunk()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().ok()?;
        Some(IpAddr::from(octets))
    };
    let end = ipv6::LEN + usize::from(u16_at(header, ipv6::PAYLOAD_LEN));
    (end <= packet.len()).then_some(())?;
    Some((
        address(ipv6::SRC)?,
        address(ipv6::DST)?,
        header[0] << 4 | header[1] >> 4,
        header[ipv6::HOP_LIMIT],
        true,
        IpProto(header[ipv6::NEXT]),
        ipv6::LEN,
        end,
    ))
}

impl TunnelPacket {
    /// Verifies the checksums of the outer headers. Open vSwitch 3.1 computes that of GTP-U before it
    /// sets the length of the message, so that one is accepted too.
    pub(super) fn verify_checksums(
        &self,
        bytes: &[u8],
        protocol: TunnelProtocol,
    ) -> Result<(), TunnelError> {
        let holds = |sum: InternetSum| match sum.checksum() {
            0 => Ok(()),
            _ => Err(TunnelError::Checksum),
        };
        if self.outer.src.is_ipv4() {
            let header = match self.outer.upper {
                OuterTransport::Udp { .. } | OuterTransport::Gre => {
                    &bytes[self.network..self.transport]
                }
            };
            holds(InternetSum::of(header))?;
        }
        match self.outer.upper {
            OuterTransport::Udp { summed: true, .. } => {
                let datagram = &bytes[self.transport..self.end];
                let len = usize::from(u16_at(datagram, udp::LENGTH));
                let datagram = datagram.get(..len).ok_or(TunnelError::Truncated)?;
                let pseudo = self.outer.pseudo(len);
                let whole = holds(pseudo.plus(InternetSum::of(datagram)));
                match datagram.split_at_checked(GTPU_LENGTH) {
                    Some((before, [_, _, after @ ..]))
                        if whole.is_err() && protocol == TunnelProtocol::Gtpu =>
                    {
                        let before = InternetSum::of(before);
                        holds(pseudo.plus(before).plus(InternetSum::of(after)))
                    }
                    _ => whole,
                }
            }
            OuterTransport::Udp { summed: false, .. } | OuterTransport::Gre => Ok(()),
        }
    }
}

impl OuterHeaders {
    fn pseudo(&self, len: usize) -> InternetSum {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                InternetSum::pseudo_v4(src, dst, IpProto::UDP, len)
            }
            (src, dst) => {
                let wide = |address| match address {
                    IpAddr::V6(address) => address,
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                };
                InternetSum::pseudo_v6(wide(src), wide(dst), IpProto::UDP, len)
            }
        }
    }

    /// Bytes of IP's header.
    fn network_len(&self) -> usize {
        match self.dst {
            IpAddr::V4(_) => ipv4::LEN_MIN,
            IpAddr::V6(_) => ipv6::LEN,
        }
    }

    /// Bytes of all headers here.
    #[must_use]
    pub fn len(&self) -> usize {
        let upper = match self.upper {
            OuterTransport::Udp { .. } => udp::LEN,
            OuterTransport::Gre => 0,
        };
        ethernet::LEN + self.network_len() + upper
    }

    /// Never.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Encodes all that does not depend on the payload. Returns the offset of the tunnel header.
    pub(super) fn emit(&self, into: &mut Vec<u8>) -> usize {
        let protocol = match self.upper {
            OuterTransport::Udp { .. } => IpProto::UDP,
            OuterTransport::Gre => GRE,
        };
        into.extend(self.eth_dst.0);
        into.extend(self.eth_src.0);
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                into.extend(EtherType::IPV4.0.to_be_bytes());
                let header = ipv4::Ipv4 {
                    src,
                    dst,
                    protocol,
                    tos: self.tos,
                    ttl: self.ttl,
                    fragment: crate::wire::Fragment::No,
                    header_len: 20,
                    total_len: 0,
                };
                let mut header = header.emit();
                if self.dont_fragment {
                    header[ipv4::FRAGMENT..][..2]
                        .copy_from_slice(&ipv4::DONT_FRAGMENT.to_be_bytes());
                }
                into.extend(header);
            }
            (src, dst) => {
                into.extend(EtherType::IPV6.0.to_be_bytes());
                let octets = |address| match address {
                    IpAddr::V6(address) => address.octets(),
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                };
                into.extend([0x60 | self.tos >> 4, self.tos << 4, 0, 0, 0, 0]);
                into.extend([protocol.0, self.ttl]);
                into.extend(octets(src));
                into.extend(octets(dst));
            }
        }
        if let OuterTransport::Udp { src, dst, .. } = self.upper {
            into.extend(udp::Udp { src, dst }.emit(0));
        }
        into.len()
    }

    /// Writes lengths and checksums of a whole frame.
    pub(super) fn finalize(&self, bytes: &mut [u8]) {
        let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes();
        let (head, datagram) = bytes.split_at_mut(ethernet::LEN + self.network_len());
        let network = &mut head[ethernet::LEN..];
        match self.dst {
            IpAddr::V4(_) => {
                let total = network.len() + datagram.len();
                let total = u16::try_from(total).unwrap_or(u16::MAX);
                network[ipv4::TOTAL_LEN..][..2].copy_from_slice(&total.to_be_bytes());
                network[ipv4::CHECKSUM..][..2].fill(0);
                let sum = InternetSum::of(network).checksum();
                network[ipv4::CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
            }
            IpAddr::V6(_) => {
                network[ipv6::PAYLOAD_LEN..][..2].copy_from_slice(&length(datagram));
            }
        }
        if let OuterTransport::Udp { summed, .. } = self.upper {
            let len = length(datagram);
            datagram[udp::LENGTH..][..2].copy_from_slice(&len);
            if summed {
                let sum = self.pseudo(datagram.len()).plus(InternetSum::of(datagram));
                // Zero means "no checksum" (RFC 768).
                let sum = match sum.checksum() {
                    0 => u16::MAX,
                    sum => sum,
                };
                datagram[udp::CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

//! Packed keys directly from the bytes of common frames, in one forward pass: at most one VLAN tag,
//! IPv4 without options or IPv6 without extension headers, no fragment, TCP, UDP, SCTP or ICMP. All
//! other frames, malformed ones included, are left to [`Headers::parse`].

use base::PortNo;
use flow::field::VID_PRESENT;
use packet::wire::ethernet::EtherType;
use packet::wire::{IpProto, icmpv4, ipv4, ipv6, sctp, tcp, udp, vlan};
use packet::{Depth, Frame};

use super::{PackedKey, presence, word};

/// The frame is not one of the common kinds that this parser accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UncommonFrame;

/// Offset of the IP header without a VLAN tag.
const IP_OFFSET: usize = 14;

/// Length of the Ethernet, IPv4 and UDP headers: the shortest frame of the first fast case.
const FRONT_LEN: usize = IP_OFFSET + ipv4::LEN_MIN + udp::LEN;

/// Bits of the IPv4 fragment word that are zero in an unfragmented packet.
const FRAGMENT_BITS: u16 = 0x3fff;

/// Smallest type; smaller values are lengths (802.3, 3.2.6).
const TYPE_MIN: u16 = 0x0600;

/// True if the addresses and the type of a frame cannot be malformed, for tables that read nothing
/// above the link layer.
#[inline]
pub(crate) fn is_untagged_frame(frame: &Frame) -> bool {
    let front: Option<&[u8; FRONT_LEN]> = frame.bytes().first_chunk();
    front.is_some_and(|front| frame.offload.is_empty() && has_untagged_type(front))
}

/// True if the frame has an Ethernet type and no VLAN tag.
#[inline]
fn has_untagged_type(front: &[u8; FRONT_LEN]) -> bool {
    let eth_type = EtherType(u16_of(front, 12));
    eth_type.0 >= TYPE_MIN && !eth_type.is_vlan()
}

impl PackedKey {
    /// Parses a frame received on `in_port` to `depth` and fills all header words. The pipeline
    /// fields stay as they are, except the ingress port.
    ///
    /// # Errors
    /// The frame must be parsed by [`packet::Headers::parse`] and the key filled by
    /// [`PackedKey::fill`].
    #[inline(always)]
    pub(crate) fn parse(
        &mut self,
        frame: &Frame,
        in_port: PortNo,
        depth: Depth,
    ) -> Result<(), UncommonFrame> {
        let bytes = frame.bytes();
        if let Some(front) = bytes.first_chunk()
            && frame.offload.is_empty()
            // Words that are parsed deeper than requested are not read.
            && match depth {
                Depth::Link => self.parse_untagged(front, in_port),
                Depth::Network | Depth::Transport => self.parse_common(front, bytes, in_port),
            }
        {
            return Ok(());
        }
        self.parse_ordinary(frame, in_port, depth)
    }

    /// Parses only addresses and type of a frame without a VLAN tag. Returns false if it has one.
    #[inline]
    fn parse_untagged(&mut self, front: &[u8; FRONT_LEN], in_port: PortNo) -> bool {
        let is_untagged = has_untagged_type(front);
        if is_untagged {
            self.0[word::INGRESS] = u64::from(in_port.0) << 32;
            self.0[word::ETH_DST] = u64_of(front, 0) & !0xffff | u64::from(u16_of(front, 12));
            self.0[word::ETH_SRC] = u64_of(front, 6) & !0xffff;
            self.0[word::DETAILS] = 0;
        }
        is_untagged
    }

    /// Parses any frame of the common kinds.
    #[inline(never)]
    fn parse_ordinary(
        &mut self,
        frame: &Frame,
        in_port: PortNo,
        depth: Depth,
    ) -> Result<(), UncommonFrame> {
        let bytes = frame.bytes();
        let header: &[u8; 14] = bytes.first_chunk().ok_or(UncommonFrame)?;
        let mut eth_type = EtherType(u16_of(header, 12));
        let (mut tag, mut payload_at) = (0, header.len());
        if eth_type.is_vlan() {
            let tagged: &[u8; 14 + vlan::LEN] = bytes.first_chunk().ok_or(UncommonFrame)?;
            // The bit of the drop eligible indicator holds, in a match, the presence of a tag
            // (`VID_PRESENT`).
            tag = u64::from(u16_of(tagged, 14) | VID_PRESENT);
            eth_type = EtherType(u16_of(tagged, 16));
            payload_at = tagged.len();
        }
        let offload = frame.offload.validate(payload_at, bytes.len());
        offload.map_err(|_| UncommonFrame)?;
        self.0[word::INGRESS] = u64::from(in_port.0) << 32;
        self.0[word::ETH_DST] = u64_of(header, 0) & !0xffff | u64::from(eth_type.0);
        self.0[word::ETH_SRC] = u64_of(header, 6) & !0xffff | tag;
        self.0[word::DETAILS] = 0;
        let rest = &bytes[payload_at..];
        match eth_type {
            EtherType::VLAN | EtherType::SERVICE_VLAN | EtherType(..TYPE_MIN) => Err(UncommonFrame),
            _ if depth == Depth::Link => Ok(()),
            EtherType::IPV4 => self.parse_ipv4(rest, depth),
            EtherType::IPV6 => self.parse_ipv6(rest, depth),
            EtherType::ARP
            | EtherType::RARP
            | EtherType::MPLS
            | EtherType::MPLS_MULTICAST
            | EtherType::NSH
            | EtherType::PBB => Err(UncommonFrame),
            _ => Ok(()),
        }
    }

    /// Parses the most common frames: no VLAN tag, IPv4, TCP or UDP; `front` is the start of
    /// `bytes`. Returns false for all other frames.
    #[inline]
    fn parse_common(&mut self, front: &[u8; FRONT_LEN], bytes: &[u8], in_port: PortNo) -> bool {
        /// IPv4 Ethernet type, version 4 and a header of five words.
        const PLAIN: u64 = (EtherType::IPV4.0 as u64) << 8 | 0x45;
        let type_word = u64_of(front, 12);
        let ttl_word = u32_of(front, IP_OFFSET + ipv4::FRAGMENT);
        let [_, _, ttl, protocol] = ttl_word.to_be_bytes();
        let (header, details) = match IpProto(protocol) {
            IpProto::TCP if bytes.len() >= IP_OFFSET + ipv4::LEN_MIN + tcp::LEN_MIN => {
                let flags = u16_of(bytes, IP_OFFSET + ipv4::LEN_MIN + tcp::FLAGS);
                (usize::from(flags >> 12) * 4, flags & 0x0fff)
            }
            IpProto::UDP => (udp::LEN, 0),
            _ => return false,
        };
        let total = usize::from(u16_of(front, IP_OFFSET + ipv4::TOTAL_LEN));
        let is_match = type_word >> 40 == PLAIN
            && ttl_word >> 16 & u32::from(FRAGMENT_BITS) == 0
            && (header >= tcp::LEN_MIN || header == udp::LEN && protocol == IpProto::UDP.0)
            && (ipv4::LEN_MIN + header..=bytes.len() - IP_OFFSET).contains(&total);
        if is_match {
            let tos = type_word >> 32 & 0xff;
            let ports = u32_of(front, IP_OFFSET + ipv4::LEN_MIN);
            self.0[word::INGRESS] = u64::from(in_port.0) << 32 | presence::TRANSPORT;
            self.0[word::ETH_DST] = u64_of(front, 0) & !0xffff | u64::from(EtherType::IPV4.0);
            self.0[word::ETH_SRC] = u64_of(front, 6) & !0xffff;
            self.0[word::NETWORK] = u64_of(front, IP_OFFSET + ipv4::SRC);
            self.0[word::TRANSPORT] =
                u64::from(protocol) << 56 | tos << 48 | u64::from(ttl) << 40 | u64::from(ports);
            self.0[word::DETAILS] = details.into();
        }
        is_match
    }

    #[inline]
    fn parse_ipv4(&mut self, rest: &[u8], depth: Depth) -> Result<(), UncommonFrame> {
        /// Version 4 and a header of five words.
        const PLAIN: u8 = 0x45;
        let header: &[u8; ipv4::LEN_MIN] = rest.first_chunk().ok_or(UncommonFrame)?;
        let total = usize::from(u16_of(header, ipv4::TOTAL_LEN));
        if header[0] != PLAIN || u16_of(header, ipv4::FRAGMENT) & FRAGMENT_BITS != 0 {
            return Err(UncommonFrame);
        }
        let payload = rest.get(ipv4::LEN_MIN..total).ok_or(UncommonFrame)?;
        let protocol = IpProto(header[ipv4::PROTOCOL]);
        self.0[word::NETWORK] = u64_of(header, ipv4::SRC);
        self.set_ip(protocol, header[ipv4::TOS], header[ipv4::TTL]);
        match depth {
            Depth::Transport if protocol == IpProto::ICMPV4 => {
                let header: &[u8; icmpv4::LEN] = payload.first_chunk().ok_or(UncommonFrame)?;
                self.set_transport(header[icmpv4::TYPE].into(), header[icmpv4::CODE].into());
                Ok(())
            }
            Depth::Transport => self.parse_ports(protocol, payload),
            Depth::Link | Depth::Network => Ok(()),
        }
    }

    #[inline]
    fn parse_ipv6(&mut self, rest: &[u8], depth: Depth) -> Result<(), UncommonFrame> {
        let header: &[u8; ipv6::LEN] = rest.first_chunk().ok_or(UncommonFrame)?;
        let total = ipv6::LEN + usize::from(u16_of(header, ipv6::PAYLOAD_LEN));
        let first = u32_of(header, 0);
        let protocol = IpProto(header[ipv6::NEXT]);
        if first >> 28 != 6 || !has_no_extension(protocol) {
            return Err(UncommonFrame);
        }
        let payload = rest.get(ipv6::LEN..total).ok_or(UncommonFrame)?;
        self.0[word::IPV6_SRC] = u64_of(header, ipv6::SRC);
        self.0[word::IPV6_SRC + 1] = u64_of(header, ipv6::SRC + 8);
        self.0[word::IPV6_DST] = u64_of(header, ipv6::DST);
        self.0[word::IPV6_DST + 1] = u64_of(header, ipv6::DST + 8);
        self.0[word::DETAILS] = u64::from(first & 0x000f_ffff) << 32;
        let [_, _, _, traffic_class] = (first >> 20).to_be_bytes();
        self.set_ip(protocol, traffic_class, header[ipv6::HOP_LIMIT]);
        match depth {
            Depth::Transport if protocol == IpProto::ICMPV6 => Err(UncommonFrame),
            Depth::Transport => self.parse_ports(protocol, payload),
            Depth::Link | Depth::Network => Ok(()),
        }
    }

    #[inline]
    fn set_ip(&mut self, protocol: IpProto, tos: u8, ttl: u8) {
        self.0[word::TRANSPORT] =
            u64::from(protocol.0) << 56 | u64::from(tos) << 48 | u64::from(ttl) << 40;
    }

    /// Parses the header of TCP, UDP or SCTP; other protocols have no ports.
    #[inline]
    fn parse_ports(&mut self, protocol: IpProto, payload: &[u8]) -> Result<(), UncommonFrame> {
        match protocol {
            IpProto::TCP => {
                let header: &[u8; tcp::LEN_MIN] = payload.first_chunk().ok_or(UncommonFrame)?;
                let offset = usize::from(header[tcp::FLAGS] >> 4) * 4;
                if offset < tcp::LEN_MIN || offset > payload.len() {
                    return Err(UncommonFrame);
                }
                self.0[word::DETAILS] |= u64::from(u16_of(header, tcp::FLAGS) & 0x0fff);
            }
            IpProto::UDP if payload.len() >= udp::LEN => {}
            IpProto::SCTP if payload.len() >= sctp::LEN => {}
            IpProto::UDP | IpProto::SCTP => return Err(UncommonFrame),
            _ => return Ok(()),
        }
        // The ports have the same offsets in all three headers.
        let [a, b, c, d, ..] = *payload else {
            return Err(UncommonFrame);
        };
        self.set_transport(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Ok(())
    }

    #[inline]
    fn set_transport(&mut self, upper: u16, lower: u16) {
        self.0[word::INGRESS] |= presence::TRANSPORT;
        self.0[word::TRANSPORT] |= u64::from(upper) << 16 | u64::from(lower);
    }
}

/// True if the next header is neither an extension header nor "no next header".
const fn has_no_extension(next: IpProto) -> bool {
    !matches!(
        next,
        IpProto::HOP_BY_HOP
            | IpProto::ROUTING
            | IpProto::FRAGMENT
            | IpProto::ESP
            | IpProto::AH
            | IpProto::NO_NEXT
            | IpProto::DESTINATION
    )
}

#[inline]
fn u16_of(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn u32_of(bytes: &[u8], at: usize) -> u32 {
    let four = bytes[at..].first_chunk();
    u32::from_be_bytes(*four.expect("the caller has checked the length"))
}

#[inline]
fn u64_of(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes[at..].first_chunk();
    u64::from_be_bytes(*eight.expect("the caller has checked the length"))
}

const _: () = assert!(
    tcp::SRC == 0 && udp::SRC == 0 && sctp::SRC == 0 && tcp::DST == 2 && udp::DST == 2,
    "the ports come first in all three headers"
);

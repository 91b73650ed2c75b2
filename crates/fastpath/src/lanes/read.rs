//! From the bytes of an ordinary frame to its words, in one pass forward: with a tag or
//! none, IPv4 without options or IPv6 without extension headers, not a fragment, with
//! TCP, UDP, SCTP or ICMP. Of others, damaged ones among them, nothing is said here:
//! [`Headers::parse`] reads them all.

use base::PortNo;
use flow::field::VID_PRESENT;
use packet::wire::ethernet::EtherType;
use packet::wire::{IpProto, icmpv4, ipv4, ipv6, sctp, tcp, udp, vlan};
use packet::{Depth, Frame};

use super::{Lanes, has, lane};

/// The frame is none that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uncommon;

/// Where IP begins behind no tag.
const IP: usize = 14;

/// So many bytes has a frame at least whose headers are those of IPv4 and UDP.
const FRONT: usize = IP + ipv4::LEN_MIN + udp::LEN;

/// All bits of IPv4 but those that say nothing of fragments.
const FRAGMENTED: u16 = 0x3fff;

/// Types below are lengths (802.3, 3.2.6).
const TYPE_MIN: u16 = 0x0600;

/// Whether a frame is one of which nothing can be wrong as far as its addresses and its type,
/// for those who look no further.
#[inline]
pub(crate) fn is_whole_without_tag(frame: &Frame) -> bool {
    let front: Option<&[u8; FRONT]> = frame.bytes().first_chunk();
    front.is_some_and(|front| frame.offload.is_empty() && is_untagged(front))
}

/// Whether it is a frame with a type, and without a tag.
#[inline]
fn is_untagged(front: &[u8; FRONT]) -> bool {
    let eth_type = EtherType(u16_of(front, 12));
    eth_type.0 >= TYPE_MIN && !eth_type.is_vlan()
}

impl Lanes {
    /// Reads a frame that came in by `from`, to `depth`: all the words that are of the
    /// frame itself. What goes with it is not among them, but for the port.
    ///
    /// # Errors
    /// It must be read by [`packet::Headers::parse`] and taken in by [`Lanes::fill`].
    #[inline]
    pub(crate) fn read(
        &mut self,
        frame: &Frame,
        from: PortNo,
        depth: Depth,
    ) -> Result<(), Uncommon> {
        let bytes = frame.bytes();
        if let Some(front) = bytes.first_chunk()
            && frame.offload.is_empty()
            // What is read deeper than asked is looked at by nobody.
            && match depth {
                Depth::Link => self.read_untagged(front, from),
                Depth::Network | Depth::Transport => self.read_plain(front, bytes, from),
            }
        {
            return Ok(());
        }
        self.read_ordinary(frame, from, depth)
    }

    /// Reads no more than the addresses and the type of a frame without a tag. Answers whether
    /// it was one.
    #[inline]
    fn read_untagged(&mut self, front: &[u8; FRONT], from: PortNo) -> bool {
        let is_one = is_untagged(front);
        if is_one {
            self.0[lane::ARRIVAL] = u64::from(from.0) << 32;
            self.0[lane::DST] = u64_of(front, 0) & !0xffff | u64::from(u16_of(front, 12));
            self.0[lane::SRC] = u64_of(front, 6) & !0xffff;
            self.0[lane::DETAILS] = 0;
        }
        is_one
    }

    /// The same, of any frame that is ordinary.
    #[inline(never)]
    fn read_ordinary(&mut self, frame: &Frame, from: PortNo, depth: Depth) -> Result<(), Uncommon> {
        let bytes = frame.bytes();
        let header: &[u8; 14] = bytes.first_chunk().ok_or(Uncommon)?;
        let mut eth_type = EtherType(u16_of(header, 12));
        let (mut tag, mut payload_at) = (0, header.len());
        if eth_type.is_vlan() {
            let tagged: &[u8; 14 + vlan::LEN] = bytes.first_chunk().ok_or(Uncommon)?;
            // Where the bit that may be dropped first stands, a match asks whether there
            // is a tag at all.
            tag = u64::from(u16_of(tagged, 14) | VID_PRESENT);
            eth_type = EtherType(u16_of(tagged, 16));
            payload_at = tagged.len();
        }
        let offload = frame.offload.validate(payload_at, bytes.len());
        offload.map_err(|_| Uncommon)?;
        self.0[lane::ARRIVAL] = u64::from(from.0) << 32;
        self.0[lane::DST] = u64_of(header, 0) & !0xffff | u64::from(eth_type.0);
        self.0[lane::SRC] = u64_of(header, 6) & !0xffff | tag;
        self.0[lane::DETAILS] = 0;
        let rest = &bytes[payload_at..];
        match eth_type {
            EtherType::VLAN | EtherType::SERVICE_VLAN | EtherType(..TYPE_MIN) => Err(Uncommon),
            _ if depth == Depth::Link => Ok(()),
            EtherType::IPV4 => self.read_ipv4(rest, depth),
            EtherType::IPV6 => self.read_ipv6(rest, depth),
            EtherType::ARP
            | EtherType::RARP
            | EtherType::MPLS
            | EtherType::MPLS_MULTICAST
            | EtherType::NSH
            | EtherType::PBB => Err(Uncommon),
            _ => Ok(()),
        }
    }

    /// Reads what most frames are: without a tag, with IPv4 and TCP or UDP; `front` is how
    /// the bytes begin. Answers whether it was one of those.
    #[inline]
    fn read_plain(&mut self, front: &[u8; FRONT], bytes: &[u8], from: PortNo) -> bool {
        /// The type of IPv4, its version, and a header of five words.
        const PLAIN: u64 = (EtherType::IPV4.0 as u64) << 8 | 0x45;
        let of_type = u64_of(front, 12);
        let of_ttl = u32_of(front, IP + ipv4::FRAGMENT);
        let [_, _, ttl, protocol] = of_ttl.to_be_bytes();
        let (header, details) = match IpProto(protocol) {
            IpProto::TCP if bytes.len() >= IP + ipv4::LEN_MIN + tcp::LEN_MIN => {
                let flags = u16_of(bytes, IP + ipv4::LEN_MIN + tcp::FLAGS);
                (usize::from(flags >> 12) * 4, flags & 0x0fff)
            }
            IpProto::UDP => (udp::LEN, 0),
            _ => return false,
        };
        let total = usize::from(u16_of(front, IP + ipv4::TOTAL_LEN));
        let is_one = of_type >> 40 == PLAIN
            && of_ttl >> 16 & u32::from(FRAGMENTED) == 0
            && (header >= tcp::LEN_MIN || header == udp::LEN && protocol == IpProto::UDP.0)
            && (ipv4::LEN_MIN + header..=bytes.len() - IP).contains(&total);
        if is_one {
            let tos = of_type >> 32 & 0xff;
            let ports = u32_of(front, IP + ipv4::LEN_MIN);
            self.0[lane::ARRIVAL] = u64::from(from.0) << 32 | has::TRANSPORT;
            self.0[lane::DST] = u64_of(front, 0) & !0xffff | u64::from(EtherType::IPV4.0);
            self.0[lane::SRC] = u64_of(front, 6) & !0xffff;
            self.0[lane::NETWORK] = u64_of(front, IP + ipv4::SRC);
            self.0[lane::UPPER] =
                u64::from(protocol) << 56 | tos << 48 | u64::from(ttl) << 40 | u64::from(ports);
            self.0[lane::DETAILS] = details.into();
        }
        is_one
    }

    #[inline]
    fn read_ipv4(&mut self, rest: &[u8], depth: Depth) -> Result<(), Uncommon> {
        /// Version 4, and a header of five words.
        const PLAIN: u8 = 0x45;
        let header: &[u8; ipv4::LEN_MIN] = rest.first_chunk().ok_or(Uncommon)?;
        let total = usize::from(u16_of(header, ipv4::TOTAL_LEN));
        if header[0] != PLAIN || u16_of(header, ipv4::FRAGMENT) & FRAGMENTED != 0 {
            return Err(Uncommon);
        }
        let payload = rest.get(ipv4::LEN_MIN..total).ok_or(Uncommon)?;
        let protocol = IpProto(header[ipv4::PROTOCOL]);
        self.0[lane::NETWORK] = u64_of(header, ipv4::SRC);
        self.read_ip(protocol, header[ipv4::TOS], header[ipv4::TTL]);
        match depth {
            Depth::Transport if protocol == IpProto::ICMPV4 => {
                let header: &[u8; icmpv4::LEN] = payload.first_chunk().ok_or(Uncommon)?;
                self.upper(header[icmpv4::TYPE].into(), header[icmpv4::CODE].into());
                Ok(())
            }
            Depth::Transport => self.read_ports(protocol, payload),
            Depth::Link | Depth::Network => Ok(()),
        }
    }

    #[inline]
    fn read_ipv6(&mut self, rest: &[u8], depth: Depth) -> Result<(), Uncommon> {
        let header: &[u8; ipv6::LEN] = rest.first_chunk().ok_or(Uncommon)?;
        let total = ipv6::LEN + usize::from(u16_of(header, ipv6::PAYLOAD_LEN));
        let first = u32_of(header, 0);
        let protocol = IpProto(header[ipv6::NEXT]);
        if first >> 28 != 6 || !is_plain(protocol) {
            return Err(Uncommon);
        }
        let payload = rest.get(ipv6::LEN..total).ok_or(Uncommon)?;
        self.0[lane::IPV6_SRC] = u64_of(header, ipv6::SRC);
        self.0[lane::IPV6_SRC + 1] = u64_of(header, ipv6::SRC + 8);
        self.0[lane::IPV6_DST] = u64_of(header, ipv6::DST);
        self.0[lane::IPV6_DST + 1] = u64_of(header, ipv6::DST + 8);
        self.0[lane::DETAILS] = u64::from(first & 0x000f_ffff) << 32;
        let [_, _, _, traffic_class] = (first >> 20).to_be_bytes();
        self.read_ip(protocol, traffic_class, header[ipv6::HOP_LIMIT]);
        match depth {
            Depth::Transport if protocol == IpProto::ICMPV6 => Err(Uncommon),
            Depth::Transport => self.read_ports(protocol, payload),
            Depth::Link | Depth::Network => Ok(()),
        }
    }

    #[inline]
    fn read_ip(&mut self, protocol: IpProto, tos: u8, ttl: u8) {
        self.0[lane::UPPER] =
            u64::from(protocol.0) << 56 | u64::from(tos) << 48 | u64::from(ttl) << 40;
    }

    /// Reads the header of a transport that has ports, if this is one.
    #[inline]
    fn read_ports(&mut self, protocol: IpProto, payload: &[u8]) -> Result<(), Uncommon> {
        match protocol {
            IpProto::TCP => {
                let header: &[u8; tcp::LEN_MIN] = payload.first_chunk().ok_or(Uncommon)?;
                let offset = usize::from(header[tcp::FLAGS] >> 4) * 4;
                if offset < tcp::LEN_MIN || offset > payload.len() {
                    return Err(Uncommon);
                }
                self.0[lane::DETAILS] |= u64::from(u16_of(header, tcp::FLAGS) & 0x0fff);
            }
            IpProto::UDP if payload.len() >= udp::LEN => {}
            IpProto::SCTP if payload.len() >= sctp::LEN => {}
            IpProto::UDP | IpProto::SCTP => return Err(Uncommon),
            _ => return Ok(()),
        }
        // They stand in the same place of all three.
        let [a, b, c, d, ..] = *payload else {
            return Err(Uncommon);
        };
        self.upper(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Ok(())
    }

    #[inline]
    fn upper(&mut self, upper: u16, lower: u16) {
        self.0[lane::ARRIVAL] |= has::TRANSPORT;
        self.0[lane::UPPER] |= u64::from(upper) << 16 | u64::from(lower);
    }
}

/// Whether no extension header is announced, nor that nothing follows.
const fn is_plain(next: IpProto) -> bool {
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
    u32::from_be_bytes(*four.expect("the caller has looked how long it is"))
}

#[inline]
fn u64_of(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes[at..].first_chunk();
    u64::from_be_bytes(*eight.expect("the caller has looked how long it is"))
}

const _: () = assert!(
    tcp::SRC == 0 && udp::SRC == 0 && sctp::SRC == 0 && tcp::DST == 2 && udp::DST == 2,
    "ports are in front"
);

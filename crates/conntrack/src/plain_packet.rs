//! Packets of the most frequent kind: IPv4 without options or IPv6 without extension headers, no
//! fragment, TCP or UDP. Their facts are a few words at fixed offsets.
//!
//! A [`PlainPacket`] has the same facts as [`extract()`](crate::extract()) returns for its bytes; all
//! other packets are left to that function. Checksums are verified apart, after the connection was
//! found, so that packets without one are not summed twice.

use packet::wire::ipv4;
use packet::wire::ipv6;
use packet::wire::{tcp, udp};

use crate::extract::{ChecksumCheck, fold_16, read_tcp, u16_at, unfolded_sum};
use crate::facts::TcpFacts;
use crate::key::{AddressFamily, KeyProtocol};

/// First byte of an IPv4 header without options.
const PLAIN_V4: u8 = 0x45;
/// Version 6 in the first byte of an IPv6 header.
const VERSION_6: u8 = 6;
/// Bits of the IPv4 fragment word that are zero in a packet that is no fragment.
const FRAGMENT_BITS: u16 = 0x3fff;
/// Flags of segments that change the state of a connection.
const CONTROL_FLAGS: u16 = tcp::SYN | tcp::FIN | tcp::RST;

/// Source and destination address as words: of IPv4 the first one holds both, source first; of IPv6
/// each address has two.
pub(crate) type AddressWords = [u64; 4];

/// A packet whose facts are at fixed offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainPacket<'a> {
    pub(crate) addresses: AddressWords,
    /// Source port, then destination port; neither is zero.
    pub(crate) ports: u32,
    pub(crate) body: PlainBody<'a>,
}

/// The bytes of such a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainBody<'a> {
    pub(crate) protocol: KeyProtocol,
    pub(crate) family: AddressFamily,
    header: &'a [u8],
    /// The transport header and its payload, without padding.
    upper: &'a [u8],
}

impl<'a> PlainPacket<'a> {
    /// Reads a packet over IPv4. `bytes` begin with the IP header and may end with padding. Returns
    /// none for packets of any other kind, malformed ones included.
    #[inline]
    pub(crate) fn read_v4(bytes: &'a [u8]) -> Option<Self> {
        let (header, _) = bytes.split_first_chunk::<{ ipv4::LEN_MIN }>()?;
        let fragment = u16_of(header, ipv4::FRAGMENT) & FRAGMENT_BITS;
        if header[0] != PLAIN_V4 || fragment != 0 {
            return None;
        }
        let upper = bytes.get(ipv4::LEN_MIN..usize::from(u16_of(header, ipv4::TOTAL_LEN)))?;
        let addresses = [u64_at(header, ipv4::SRC)?, 0, 0, 0];
        let protocol = KeyProtocol(header[ipv4::PROTOCOL]);
        Self::with_transport((addresses, AddressFamily::V4), protocol, header, upper)
    }

    /// Reads a packet over IPv6, as [`PlainPacket::read_v4`] does.
    #[inline]
    pub(crate) fn read_v6(bytes: &'a [u8]) -> Option<Self> {
        let (header, _) = bytes.split_first_chunk::<{ ipv6::LEN }>()?;
        if header[0] >> 4 != VERSION_6 {
            return None;
        }
        let total = ipv6::LEN + usize::from(u16_of(header, ipv6::PAYLOAD_LEN));
        let upper = bytes.get(ipv6::LEN..total)?;
        let addresses = [
            u64_at(header, ipv6::SRC)?,
            u64_at(header, ipv6::SRC + 8)?,
            u64_at(header, ipv6::DST)?,
            u64_at(header, ipv6::DST + 8)?,
        ];
        let protocol = KeyProtocol(header[ipv6::NEXT]);
        Self::with_transport((addresses, AddressFamily::V6), protocol, header, upper)
    }

    #[inline]
    fn with_transport(
        (addresses, family): (AddressWords, AddressFamily),
        protocol: KeyProtocol,
        header: &'a [u8],
        upper: &'a [u8],
    ) -> Option<Self> {
        let front: &[u8; udp::LEN] = upper.first_chunk()?;
        let is_complete = match protocol {
            KeyProtocol::TCP => {
                let offset = usize::from(*upper.get(tcp::FLAGS)? >> 4) * 4;
                (tcp::LEN_MIN..=upper.len()).contains(&offset)
            }
            KeyProtocol::UDP => {
                let len = usize::from(u16_of(front, udp::LENGTH));
                (udp::LEN..=upper.len()).contains(&len)
            }
            _ => false,
        };
        let ports = u32::from_be_bytes([front[0], front[1], front[2], front[3]]);
        let has_ports = ports >> 16 != 0 && ports << 16 != 0;
        (is_complete && has_ports).then_some(Self {
            addresses,
            ports,
            body: PlainBody {
                protocol,
                family,
                header,
                upper,
            },
        })
    }
}

impl PlainBody<'_> {
    /// True if the packet cannot change the state of its connection: all of UDP, and segments
    /// without SYN, FIN and RST that acknowledge.
    #[inline]
    pub(crate) fn is_ordinary(&self) -> bool {
        if self.protocol != KeyProtocol::TCP {
            return true;
        }
        let flags = u16_at(self.upper, tcp::FLAGS).unwrap_or(0);
        flags & (CONTROL_FLAGS | tcp::ACK) == tcp::ACK
    }

    /// Facts of the segment; window scales are in segments with SYN only, and are not read.
    #[inline]
    pub(crate) fn segment(&self) -> Option<TcpFacts> {
        let header: &[u8; tcp::LEN_MIN] = self.upper.first_chunk()?;
        let flags = u16_of(header, tcp::FLAGS);
        let header_len = usize::from(flags >> 12) * 4;
        Some(TcpFacts {
            flags: flags & 0x0fff,
            sequence: u32_of(header, tcp::SEQUENCE),
            acknowledgment: u32_of(header, tcp::ACKNOWLEDGMENT),
            window: u16_of(header, tcp::WINDOW),
            window_scale: None,
            payload_len: u32::try_from(self.upper.len() - header_len).ok()?,
        })
    }

    /// Facts of a segment, with its window scale if it has SYN.
    #[inline]
    pub(crate) fn any_segment(&self) -> Option<TcpFacts> {
        let segment = self.segment()?;
        match segment.has(tcp::SYN) {
            true => self.first_segment(),
            false => Some(segment),
        }
    }

    /// Facts of the first segment of a connection, with its window scale.
    pub(crate) fn first_segment(&self) -> Option<TcpFacts> {
        read_tcp(self.upper).ok()
    }

    /// True if the checksums are right, or need not be.
    #[inline]
    pub(crate) fn has_valid_checksums(&self, check: ChecksumCheck) -> bool {
        if check == ChecksumCheck::Skip {
            return true;
        }
        let is_v4 = self.family == AddressFamily::V4;
        let (addresses, is_header_valid) = match self.header.first_chunk() {
            Some(header) if is_v4 => sum_of_v4(header),
            _ => (
                unfolded_sum(self.header.get(ipv6::SRC..).unwrap_or(&[])),
                true,
            ),
        };
        let covered = match self.protocol {
            KeyProtocol::UDP if is_v4 && u16_at(self.upper, udp::CHECKSUM) == Some(0) => {
                return is_header_valid;
            }
            KeyProtocol::UDP => {
                let len = u16_at(self.upper, udp::LENGTH).map_or(0, usize::from);
                self.upper.get(..len).unwrap_or(&[])
            }
            _ => self.upper,
        };
        let len = u16::try_from(covered.len()).unwrap_or(u16::MAX);
        // In the order of the machine, as the sums are.
        let rest = u64::from(u16::from(self.protocol.0).to_be()) + u64::from(len.to_be());
        is_header_valid && fold_16(unfolded_sum(covered) + addresses + rest) == 0xffff
    }
}

/// Returns the sum of both addresses, and whether the checksum of the header is right.
#[inline]
fn sum_of_v4(header: &[u8; ipv4::LEN_MIN]) -> (u64, bool) {
    let (words, _) = header.as_chunks::<4>();
    let word = |at: usize| u64::from(u32::from_ne_bytes(words[at]));
    let addresses = word(3) + word(4);
    let total = word(0) + word(1) + word(2) + addresses;
    (addresses, fold_16(total) == 0xffff)
}

#[inline]
fn u16_of<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn u32_of<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use packet::Frame;
    use packet::build::Stack;
    use proptest::prelude::*;

    use super::*;
    use crate::extract::extract;
    use crate::facts::TransportFacts;
    use crate::key::CtZone;
    use crate::steady::KeyWords;

    const STACKS: [&str; 6] = [
        "ipv4 / udp / data(18)",
        "ipv4 / tcp / data(7)",
        "ipv4 / icmp / data(5)",
        "ipv6 / udp / data(33)",
        "ipv6 / tcp(flags=A) / data(6)",
        "ipv6 / icmpv6 / data(4)",
    ];

    fn packet(stack: &str) -> (Vec<u8>, AddressFamily) {
        let stack: Stack = format!("eth / {stack}").parse().expect(stack);
        let frame: Frame = stack.build();
        let bytes = frame.bytes()[14..].to_vec();
        let family = match bytes[0] >> 4 {
            4 => AddressFamily::V4,
            _ => AddressFamily::V6,
        };
        (bytes, family)
    }

    /// Compares a packet with the facts that `extract` returns. Returns whether it is plain.
    fn compare(bytes: &[u8], family: AddressFamily) -> bool {
        let plain = match family {
            AddressFamily::V4 => PlainPacket::read_v4(bytes),
            AddressFamily::V6 => PlainPacket::read_v6(bytes),
        };
        let Some(plain) = plain else {
            return false;
        };
        let facts = extract(bytes, family, ChecksumCheck::Skip).map(|packet| packet.facts);
        let facts = facts.expect("a plain packet has facts");
        let key = facts.tuple.in_zone(CtZone(7));
        assert_eq!(Some(plain.key(CtZone(7))), KeyWords::of(&key));
        if let TransportFacts::Tcp(segment) = facts.transport {
            let window_scale = None;
            let segment = TcpFacts {
                window_scale,
                ..segment
            };
            assert_eq!(plain.body.segment(), Some(segment));
        }
        let verified = extract(bytes, family, ChecksumCheck::Verify).is_ok();
        assert_eq!(
            plain.body.has_valid_checksums(ChecksumCheck::Verify),
            verified
        );
        true
    }

    #[test]
    fn plain_packets_have_the_facts_of_extraction() {
        let plain = STACKS.map(|stack| {
            let (bytes, family) = packet(stack);
            compare(&bytes, family)
        });
        assert_eq!(plain, [true, true, false, true, true, false]);
    }

    proptest! {
        #[test]
        fn damaged_packets_have_the_facts_of_extraction(
            stack in prop::sample::select(&STACKS[..]),
            changes in prop::collection::vec((0_usize..64, any::<u8>()), 0..4),
            cut in 0_usize..90,
            padding in 0_usize..4,
        ) {
            let (mut bytes, family) = packet(stack);
            for (at, value) in changes {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            bytes.resize(bytes.len() + padding, 0);
            if cut < 60 {
                bytes.truncate(cut);
            }
            compare(&bytes, family);
        }
    }
}

//! Headers of fragments (RFC 791, 3.2; RFC 8200, 4.5), and the header of the reassembled packet.
//!
//! ```text
//!  IPv4   | header                            | payload     offset and "more" in the header
//!  IPv6   | header, extensions | fragment hdr | payload     offset and "more" in the fragment header
//!         '---- kept_len ------'              |
//!         '------------ header_len -----------'
//! ```

use packet::wire::ipv4::{self, Ipv4};
use packet::wire::ipv6::{self, Ipv6};
use packet::wire::{Fragment, IpProto};

use crate::extract::{ChecksumCheck, sum, u16_at};
use crate::ipf::FragmentScope;
use crate::key::{AddressFamily, CtAddress, KeyProtocol};

/// Length of the fragment header of IPv6.
const FRAGMENT_HEADER_LEN: usize = 8;
/// Bits of the fragment offset of IPv6, in bytes.
const OFFSET_MASK_V6: u16 = 0xfff8;
/// The flag of IPv6 that more fragments follow.
const MORE_FRAGMENTS_V6: u16 = 1;
/// Payloads of all fragments but the last are multiples of this.
const UNIT: usize = 8;
/// Longest packet.
const PACKET_MAX: usize = 65_535;

/// Packet that a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FragmentKey {
    pub(super) family: AddressFamily,
    scope: FragmentScope,
    src: CtAddress,
    dst: CtAddress,
    /// Zero for IPv6, where fragments of a packet may have different numbers.
    protocol: KeyProtocol,
    id: u32,
}

/// Header of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FragmentLayout {
    pub(super) key: FragmentKey,
    /// Offsets of the payload in that of the packet.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_last: bool,
    /// Bytes before the payload.
    pub(super) header_len: usize,
    /// Bytes of the header that the reassembled packet has too.
    kept_len: usize,
    /// Offset of the number of the header after those.
    next_at: usize,
}

impl FragmentLayout {
    /// Reads the header of a fragment. Returns none for packets that are no fragments or malformed.
    pub(super) fn read(bytes: &[u8], scope: FragmentScope, family: AddressFamily) -> Option<Self> {
        match family {
            AddressFamily::V4 => Self::read_v4(bytes, scope),
            AddressFamily::V6 => Self::read_v6(bytes, scope),
        }
    }

    fn read_v4(bytes: &[u8], scope: FragmentScope) -> Option<Self> {
        let ip = Ipv4::parse(bytes).ok()?;
        if ip.fragment == Fragment::No {
            return None;
        }
        let word = u16_at(bytes, ipv4::FRAGMENT)?;
        let start = usize::from(word & ipv4::OFFSET_MASK) * UNIT;
        let header_len = usize::from(ip.header_len);
        Some(Self {
            key: FragmentKey {
                family: AddressFamily::V4,
                scope,
                src: ip.src.into(),
                dst: ip.dst.into(),
                protocol: ip.protocol.into(),
                id: u16_at(bytes, ipv4::ID)?.into(),
            },
            start,
            end: start + usize::from(ip.total_len) - header_len,
            is_last: word & ipv4::MORE_FRAGMENTS == 0,
            header_len,
            kept_len: header_len,
            next_at: ipv4::PROTOCOL,
        })
    }

    fn read_v6(bytes: &[u8], scope: FragmentScope) -> Option<Self> {
        let ip = Ipv6::parse(bytes).ok()?;
        if ip.fragment == Fragment::No {
            return None;
        }
        let (at, next_at) = fragment_header(bytes)?;
        let word = u16_at(bytes, at + 2)?;
        let id: [u8; 4] = *bytes.get(at + 4..)?.first_chunk()?;
        let start = usize::from(word & OFFSET_MASK_V6);
        let header_len = at + FRAGMENT_HEADER_LEN;
        Some(Self {
            key: FragmentKey {
                family: AddressFamily::V6,
                scope,
                src: ip.src.into(),
                dst: ip.dst.into(),
                protocol: KeyProtocol::default(),
                id: u32::from_be_bytes(id),
            },
            start,
            end: start + ip.total_len.checked_sub(header_len)?,
            is_last: word & MORE_FRAGMENTS_V6 == 0,
            header_len,
            kept_len: at,
            next_at,
        })
    }

    /// Bytes of header and payload.
    pub(super) const fn len(&self) -> usize {
        self.header_len + self.end - self.start
    }

    /// True if a packet can have this fragment: it has payload, in units of eight bytes if it is not
    /// the last one, and ends within the longest packet; the checksum of its header is right.
    pub(super) fn is_possible(&self, bytes: &[u8], check: ChecksumCheck) -> bool {
        let payload_len = self.end - self.start;
        let is_checked = check == ChecksumCheck::Verify && self.key.family == AddressFamily::V4;
        let header = bytes.get(..self.header_len).unwrap_or(&[]);
        payload_len > 0
            && (self.is_last || payload_len.is_multiple_of(UNIT))
            && self.header_len + self.end <= PACKET_MAX
            && (!is_checked || sum(header, 0) == 0xffff)
    }

    /// Returns the packet whose first fragment is `first` with this header. Returns none if it is
    /// longer than a packet can be.
    pub(super) fn assemble<'a>(
        &self,
        first: &[u8],
        payloads: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Vec<u8>> {
        let mut bytes = first.get(..self.kept_len)?.to_vec();
        for payload in payloads {
            bytes.extend_from_slice(payload);
        }
        match self.key.family {
            AddressFamily::V4 => {
                let total_len = u16::try_from(bytes.len()).ok()?;
                let flags = u16_at(first, ipv4::FRAGMENT)? & ipv4::DONT_FRAGMENT;
                bytes[ipv4::TOTAL_LEN..ipv4::ID].copy_from_slice(&total_len.to_be_bytes());
                bytes[ipv4::FRAGMENT..ipv4::TTL].copy_from_slice(&flags.to_be_bytes());
                bytes[ipv4::CHECKSUM..ipv4::SRC].fill(0);
                let checksum = !u16::try_from(sum(&bytes[..self.kept_len], 0)).ok()?;
                bytes[ipv4::CHECKSUM..ipv4::SRC].copy_from_slice(&checksum.to_be_bytes());
            }
            AddressFamily::V6 => {
                let payload_len = u16::try_from(bytes.len() - ipv6::LEN).ok()?;
                bytes[ipv6::PAYLOAD_LEN..ipv6::NEXT].copy_from_slice(&payload_len.to_be_bytes());
                bytes[self.next_at] = *first.get(self.kept_len)?;
            }
        }
        Some(bytes)
    }
}

/// Returns the offsets of the fragment header and of its number.
fn fragment_header(bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut at, mut next_at) = (ipv6::LEN, ipv6::NEXT);
    for _ in 0..ipv6::EXTENSIONS_MAX {
        let len = usize::from(*bytes.get(at + 1)?);
        let header_len = match IpProto(*bytes.get(next_at)?) {
            IpProto::FRAGMENT => return Some((at, next_at)),
            IpProto::AH => (len + 2) * 4,
            IpProto::HOP_BY_HOP | IpProto::ROUTING | IpProto::DESTINATION => (len + 1) * 8,
            _ => return None,
        };
        next_at = at;
        at += header_len;
    }
    None
}

//! The IPv4 header (RFC 791). Fragments are recognised but never reassembled.
//!
//! ```text
//!  0    4    8      14 16     19              32 bits
//! +----+----+------+--+------+----------------+
//! | 4  |ihl | dscp |ecn|      total length    |
//! +----+----+------+--+------+----------------+
//! |   identification  |flags | fragment offset|
//! +---------+---------+------+----------------+
//! |   ttl   |protocol |    header checksum    |
//! +---------+---------+-----------------------+
//! |                  source                   |
//! |               destination                 |
//! |         options, up to 40 bytes           |
//! +-------------------------------------------+
//! ```

use std::net::Ipv4Addr;

use super::{Fragment, IpProto, u16_at};
use crate::Malformed;

/// Length of a header without options, in bytes.
pub const LEN_MIN: usize = 20;

/// Offset of DSCP and ECN.
pub const TOS: usize = 1;
/// Offset of the total length.
pub const TOTAL_LEN: usize = 2;
/// Offset of the identification.
pub const ID: usize = 4;
/// Offset of the flags and the fragment offset.
pub const FRAGMENT: usize = 6;
/// Offset of the TTL.
pub const TTL: usize = 8;
/// Offset of the protocol.
pub const PROTOCOL: usize = 9;
/// Offset of the header's checksum.
pub const CHECKSUM: usize = 10;
/// Offset of the source.
pub const SRC: usize = 12;
/// Offset of the destination.
pub const DST: usize = 16;

/// The flag that more fragments follow.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// The flag that forbids fragmentation.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// The bits of the fragment offset, in units of eight bytes.
pub const OFFSET_MASK: u16 = 0x1fff;

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Protocol of the payload.
    pub protocol: IpProto,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// Part of the datagram that this fragment holds.
    pub fragment: Fragment,
    /// Length of the header with its options, in bytes.
    pub header_len: u8,
    /// Length of header and payload, in bytes; padding follows.
    pub total_len: u16,
}

impl Ipv4 {
    /// Parses the header at the front of `bytes`, which end where the frame ends.
    ///
    /// # Errors
    /// The header is truncated, has another version, or has a header or total length that does not
    /// fit the frame.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; LEN_MIN] = bytes.first_chunk().ok_or(Malformed::Ipv4Truncated)?;
        if header[0] >> 4 != 4 {
            return Err(Malformed::Ipv4Version);
        }
        let header_len = (header[0] & 15) * 4;
        if usize::from(header_len) < LEN_MIN || usize::from(header_len) > bytes.len() {
            return Err(Malformed::Ipv4HeaderLength);
        }
        let total_len = u16_at(header, TOTAL_LEN);
        if total_len < u16::from(header_len) || usize::from(total_len) > bytes.len() {
            return Err(Malformed::Ipv4TotalLength);
        }
        let fragment = u16_at(header, FRAGMENT);
        let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
        Ok(Self {
            src: Ipv4Addr::new(s0, s1, s2, s3),
            dst: Ipv4Addr::new(d0, d1, d2, d3),
            protocol: IpProto(header[PROTOCOL]),
            tos: header[TOS],
            ttl: header[TTL],
            fragment: match fragment & (MORE_FRAGMENTS | OFFSET_MASK) {
                0 => Fragment::No,
                MORE_FRAGMENTS => Fragment::First,
                _ => Fragment::Later,
            },
            header_len,
            total_len,
        })
    }

    /// Returns the fixed part of the header. Identification and fragment bits are zero; the caller
    /// adds options.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN_MIN] {
        let mut header = [0; LEN_MIN];
        header[0] = 0x40 | (self.header_len / 4) & 15;
        header[TOS] = self.tos;
        header[TOTAL_LEN..ID].copy_from_slice(&self.total_len.to_be_bytes());
        header[TTL] = self.ttl;
        header[PROTOCOL] = self.protocol.0;
        header[SRC..DST].copy_from_slice(&self.src.octets());
        header[DST..].copy_from_slice(&self.dst.octets());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Ipv4 {
        Ipv4 {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
            protocol: IpProto::UDP,
            tos: 0xb9,
            ttl: 64,
            fragment: Fragment::No,
            header_len: 20,
            total_len: 20,
        }
    }

    #[test]
    fn ipv4_header_round_trips_and_padding_is_legal() {
        assert_eq!(Ipv4::parse(&header().emit()), Ok(header()));
        let padded = [&header().emit()[..], &[0; 26]].concat();
        assert_eq!(Ipv4::parse(&padded), Ok(header()));
    }

    #[test]
    fn first_and_later_fragments_differ() {
        let with = |bits: u16| {
            let mut bytes = header().emit();
            bytes[FRAGMENT..TTL].copy_from_slice(&bits.to_be_bytes());
            Ipv4::parse(&bytes).expect("well formed").fragment
        };
        assert_eq!(with(DONT_FRAGMENT), Fragment::No);
        assert_eq!(with(MORE_FRAGMENTS), Fragment::First);
        assert_eq!(with(MORE_FRAGMENTS | 1), Fragment::Later);
        assert_eq!(with(185), Fragment::Later);
    }

    #[test]
    fn malformed_ipv4_header_is_refused() {
        let check = |change: fn(&mut [u8; LEN_MIN]), reason| {
            let mut bytes = header().emit();
            change(&mut bytes);
            assert_eq!(Ipv4::parse(&bytes), Err(reason));
        };
        check(|b| b[0] = 0x65, Malformed::Ipv4Version);
        check(|b| b[0] = 0x44, Malformed::Ipv4HeaderLength);
        check(|b| b[0] = 0x46, Malformed::Ipv4HeaderLength);
        check(|b| b[3] = 19, Malformed::Ipv4TotalLength);
        check(|b| b[3] = 21, Malformed::Ipv4TotalLength);
        assert_eq!(
            Ipv4::parse(&header().emit()[..19]),
            Err(Malformed::Ipv4Truncated)
        );
    }
}

//! The two checksum algorithms: the Internet checksum (RFC 1071), computed in full or updated
//! incrementally (RFC 1624), and the CRC32c of SCTP (RFC 9260, appendix A).
//!
//! The callers decide which bytes a checksum covers and where its field is.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::wire::IpProto;

/// Ones' complement sum of 16-bit words, folded to one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InternetSum(u16);

impl InternetSum {
    /// Returns the sum of `bytes`, padded with a zero byte if their number is odd.
    ///
    /// A ones' complement sum does not depend on byte order (RFC 1071, 2 (B)), so four bytes at a
    /// time are added in the machine's order.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        let total = words.iter().chain([&last]).fold(0_u64, |total, word| {
            total + u64::from(u32::from_ne_bytes(*word))
        });
        Self(u16::from_be_bytes(fold(total).to_ne_bytes()))
    }

    /// Returns the sum of the same bytes at an offset that is one larger.
    pub(crate) const fn byte_swapped(self) -> Self {
        Self(self.0.swap_bytes())
    }

    /// Returns the sum of one word.
    pub(crate) const fn word(word: u16) -> Self {
        Self(word)
    }

    /// The sum of both.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(fold(u64::from(self.0) + u64::from(other.0)))
    }

    /// Returns this sum minus the words of `other`.
    #[must_use]
    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(Self(!other.0))
    }

    /// The sum, as an unfinished checksum field holds it.
    pub(crate) const fn value(self) -> u16 {
        self.0
    }

    /// Returns the checksum: the complement of the sum.
    pub(crate) const fn checksum(self) -> u16 {
        !self.0
    }

    /// The sum that has this checksum.
    pub(crate) const fn from_checksum(checksum: u16) -> Self {
        Self(!checksum)
    }

    /// The pseudo-header of IPv4 (RFC 9293, 3.1).
    pub(crate) fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: IpProto, len: usize) -> Self {
        Self::of(&src.octets())
            .plus(Self::of(&dst.octets()))
            .plus(Self::pseudo_tail(protocol, len))
    }

    /// The pseudo-header of IPv6 (RFC 8200, 8.1).
    pub(crate) fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, protocol: IpProto, len: usize) -> Self {
        Self::of(&src.octets())
            .plus(Self::of(&dst.octets()))
            .plus(Self::pseudo_tail(protocol, len))
    }

    /// Returns the sum of the fields after the addresses, which both pseudo-headers share.
    pub(crate) fn pseudo_tail(protocol: IpProto, len: usize) -> Self {
        Self(fold(u64::from(protocol.0) + len as u64))
    }
}

/// Adds the carries until none remain.
fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total >> 16) + (total & 0xffff);
    }
    u16::try_from(total).expect("no carry remains")
}

/// The CRC32c of `bytes`.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    !crc32c_advance(!0, bytes.iter().copied())
}

/// Returns the bits of a CRC32c that flip when the bits of `flipped` flip and `trailing` bytes follow
/// them. The CRC is linear, so the rest of the packet is not needed.
pub(crate) fn crc32c_delta(flipped: impl Iterator<Item = u8>, trailing: usize) -> u32 {
    crc32c_advance(0, flipped.chain(std::iter::repeat_n(0, trailing)))
}

fn crc32c_advance(crc: u32, bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(crc, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        crc >> 8 ^ CRC32C[usize::from(low ^ byte)]
    })
}

/// Remainder of each byte by the reversed Castagnoli polynomial.
static CRC32C: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0_u32;
    while index < 256 {
        let mut remainder = index;
        let mut bit = 0;
        while bit < 8 {
            remainder = remainder >> 1 ^ (0x82f6_3b78 * (remainder & 1));
            bit += 1;
        }
        table[index as usize] = remainder;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_matches_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(InternetSum::of(&bytes).value(), 0xddf2);
        assert_eq!(InternetSum::of(&bytes[..7]).value(), 0xdcfb);
        assert_eq!(
            InternetSum::of(&bytes[1..]).byte_swapped(),
            InternetSum::of(&bytes)
        );
    }

    #[test]
    fn checksum_update_matches_example_of_rfc_1624() {
        let old = InternetSum::from_checksum(0xdd2f);
        let new = old
            .minus(InternetSum::word(0x5555))
            .plus(InternetSum::word(0x3285));
        assert_eq!(new.checksum(), 0x0000);
    }

    #[test]
    fn crc32c_matches_vectors_of_rfc_3720() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46dd_794e);
    }

    #[test]
    fn crc32c_update_needs_only_changed_bytes() {
        let mut bytes: Vec<u8> = (0..100).collect();
        let before = crc32c(&bytes);
        bytes[3] ^= 0x5a;
        bytes[4] ^= 0xff;
        let after = before ^ crc32c_delta([0x5a, 0xff].into_iter(), 95);
        assert_eq!(after, crc32c(&bytes));
    }
}

//! The two checksums: the Internet's (RFC 1071), computed whole or brought up
//! to date (RFC 1624), and SCTP's CRC32c (RFC 9260, appendix A).
//!
//! Which bytes a checksum covers and where it stands is not known here.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::wire::IpProto;

/// A ones' complement sum of 16-bit words, folded to one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InternetSum(u16);

impl InternetSum {
    /// The sum of `bytes`, with a zero byte behind if their number is odd.
    ///
    /// A ones' complement sum does not care for byte order, so that four bytes
    /// at a time are added as the machine has them.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        let total = words.iter().chain([&last]).fold(0_u64, |total, word| {
            total + u64::from(u32::from_ne_bytes(*word))
        });
        Self(u16::from_be_bytes(fold(total).to_ne_bytes()))
    }

    /// The sum of what would stand one byte further on.
    pub(crate) const fn byte_swapped(self) -> Self {
        Self(self.0.swap_bytes())
    }

    /// One word.
    pub(crate) const fn word(word: u16) -> Self {
        Self(word)
    }

    /// The sum of both.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(fold(u64::from(self.0) + u64::from(other.0)))
    }

    /// This sum without the words of `other`.
    #[must_use]
    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(Self(!other.0))
    }

    /// The sum, as an unfinished checksum field holds it.
    pub(crate) const fn value(self) -> u16 {
        self.0
    }

    /// The checksum over what was summed.
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

    /// What the pseudo-headers of both have behind the addresses.
    pub(crate) fn pseudo_tail(protocol: IpProto, len: usize) -> Self {
        Self(fold(u64::from(protocol.0) + len as u64))
    }
}

/// Adds the carries back in until there are none.
fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total >> 16) + (total & 0xffff);
    }
    u16::try_from(total).expect("no carry is left")
}

/// The CRC32c of `bytes`.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    !crc32c_advance(!0, bytes.iter().copied())
}

/// What to flip in a CRC32c when the bits of `flipped` flip and `behind` bytes follow
/// them. The CRC is linear: nothing else of the packet needs to be known.
pub(crate) fn crc32c_delta(flipped: impl Iterator<Item = u8>, behind: usize) -> u32 {
    crc32c_advance(0, flipped.chain(std::iter::repeat_n(0, behind)))
}

fn crc32c_advance(crc: u32, bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(crc, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        crc >> 8 ^ CRC32C[usize::from(low ^ byte)]
    })
}

/// The remainder of each byte, by the reversed Castagnoli polynomial.
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
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(InternetSum::of(&bytes).value(), 0xddf2);
        assert_eq!(InternetSum::of(&bytes[..7]).value(), 0xdcfb);
        assert_eq!(
            InternetSum::of(&bytes[1..]).byte_swapped(),
            InternetSum::of(&bytes)
        );
    }

    #[test]
    fn the_example_of_rfc_1624() {
        let old = InternetSum::from_checksum(0xdd2f);
        let new = old
            .minus(InternetSum::word(0x5555))
            .plus(InternetSum::word(0x3285));
        assert_eq!(new.checksum(), 0x0000);
    }

    #[test]
    fn the_vectors_of_rfc_3720() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46dd_794e);
    }

    #[test]
    fn a_crc_is_brought_up_to_date_without_the_rest() {
        let mut bytes: Vec<u8> = (0..100).collect();
        let before = crc32c(&bytes);
        bytes[3] ^= 0x5a;
        bytes[4] ^= 0xff;
        let after = before ^ crc32c_delta([0x5a, 0xff].into_iter(), 95);
        assert_eq!(after, crc32c(&bytes));
    }
}

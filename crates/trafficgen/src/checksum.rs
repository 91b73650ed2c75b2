//! The Internet checksum (RFC 1071): sums of 16-bit words, folded at the end.
//!
//! This is a separate implementation from the crate `packet`, because it verifies the switch's
//! frames.

/// The sum of the 16-bit words of `bytes`, padded with a zero byte if their number is odd.
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let total = words.iter().chain([&last]).fold(0_u64, |total, word| {
        total + u64::from(u32::from_ne_bytes(*word))
    });
    // The sum is independent of byte order (RFC 1071, section 2), so native words are added and the
    // result is swapped once.
    u64::from(u16::from_be_bytes(fold(total).to_ne_bytes()))
}

/// Adds the carries to the lower 16 bits until there are none.
pub fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total >> 16) + (total & 0xffff);
    }
    u16::try_from(total).expect("no carry is left")
}

/// The checksum of a sum of words: its folded complement.
pub fn checksum(total: u64) -> u16 {
    !fold(total)
}

/// The sum of a pseudo-header (RFC 768, RFC 8200 section 8.1): addresses, protocol, length.
pub fn pseudo(addresses: &[u8], protocol: u8, length: usize) -> u64 {
    sum(addresses) + u64::from(protocol) + length as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_equals_the_example_of_the_rfc() {
        // RFC 1071, section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0xddf2);
        assert_eq!(sum(&bytes[..7]), 0xdcfb);
        assert_eq!(checksum(0xddf2), 0x220d);
    }
}

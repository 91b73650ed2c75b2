//! Integers of 992 bits, the width of a tunnel option: 124 bytes (`ovs-fields(7)`, "Tunnel
//! Metadata"). All other fields have at most 128 bits and use `u128`.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not, Shl, Shr};

use crate::field::TUNNEL_OPTION_BYTES;

/// Words of a number.
const WORDS: usize = 8;

/// Length of the words in bytes; the upper four bytes are always zero.
const BYTES: usize = 16 * WORDS;

/// Unsigned integer of 992 bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wide {
    /// The uppermost first.
    words: [u128; WORDS],
}

impl Wide {
    /// Zero.
    pub const ZERO: Self = Self { words: [0; WORDS] };

    /// All bits set.
    pub const ONES: Self = {
        let mut words = [u128::MAX; WORDS];
        words[0] >>= 8 * (BYTES - TUNNEL_OPTION_BYTES);
        Self { words }
    };

    /// Returns a number with the lowest `bits` bits set, at most all.
    #[must_use]
    pub fn ones(bits: usize) -> Self {
        !(Self::ONES << bits)
    }

    /// True for zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Returns the lowest 128 bits.
    #[must_use]
    pub const fn low(&self) -> u128 {
        self.words[WORDS - 1]
    }

    /// Decodes a big-endian number, or returns `None` if it exceeds 992 bits.
    #[must_use]
    pub fn from_be_bytes(bytes: &[u8]) -> Option<Self> {
        let beyond = bytes.len().saturating_sub(TUNNEL_OPTION_BYTES);
        let (above, bytes) = bytes.split_at(beyond);
        if above.iter().any(|byte| *byte != 0) {
            return None;
        }
        let mut whole = [0; BYTES];
        whole[BYTES - bytes.len()..].copy_from_slice(bytes);
        let mut words = [0; WORDS];
        let (chunks, _) = whole.as_chunks();
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u128::from_be_bytes(*chunk);
        }
        Some(Self { words })
    }

    /// Encodes the number as big-endian bytes.
    #[must_use]
    pub fn to_be_bytes(&self) -> [u8; TUNNEL_OPTION_BYTES] {
        let mut whole = [0; BYTES];
        for (chunk, word) in whole.chunks_mut(16).zip(self.words) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        let (_, bytes) = whole.split_last_chunk().expect("there are more");
        *bytes
    }

    /// Number of significant bytes; zero for zero.
    #[must_use]
    pub fn width(&self) -> usize {
        let zeros = self.to_be_bytes().into_iter().take_while(|byte| *byte == 0);
        TUNNEL_OPTION_BYTES - zeros.count()
    }

    /// Reads hexadecimal digits, at least one.
    pub(crate) fn from_hex(digits: &str) -> Option<Self> {
        let is_hex = |digit: u8| digit.is_ascii_hexdigit();
        if digits.is_empty() || !digits.bytes().all(is_hex) {
            return None;
        }
        let significant = digits.trim_start_matches('0');
        if significant.len() > 2 * TUNNEL_OPTION_BYTES {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit, as was seen");
        let digits = significant.bytes().map(digit);
        Some(digits.fold(Self::ZERO, |number, digit| {
            number << 4 | Self::from(u128::from(digit))
        }))
    }
}

impl From<u128> for Wide {
    fn from(number: u128) -> Self {
        let mut wide = Self::ZERO;
        wide.words[WORDS - 1] = number;
        wide
    }
}

impl BitAnd for Wide {
    type Output = Self;

    fn bitand(mut self, other: Self) -> Self {
        for (word, other) in self.words.iter_mut().zip(other.words) {
            *word &= other;
        }
        self
    }
}

impl BitOr for Wide {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        for (word, other) in self.words.iter_mut().zip(other.words) {
            *word |= other;
        }
        self
    }
}

impl Not for Wide {
    type Output = Self;

    fn not(self) -> Self {
        Self {
            words: self.words.map(|word| !word),
        } & Self::ONES
    }
}

impl Shl<usize> for Wide {
    type Output = Self;

    /// Bits that are moved beyond the uppermost are lost.
    fn shl(self, bits: usize) -> Self {
        let (skip, bits) = (bits / 128, bits % 128);
        let word = |place: usize| self.words.get(place).copied().unwrap_or(0);
        let mut moved = Self::ZERO;
        for (place, to) in moved.words.iter_mut().enumerate() {
            *to = word(place + skip) << bits;
            if bits != 0 {
                *to |= word(place + skip + 1) >> (128 - bits);
            }
        }
        moved & Self::ONES
    }
}

impl Shr<usize> for Wide {
    type Output = Self;

    fn shr(self, bits: usize) -> Self {
        let (skip, bits) = (bits / 128, bits % 128);
        let word = |place: Option<usize>| place.map_or(0, |place| self.words[place]);
        let mut moved = Self::ZERO;
        for (place, to) in moved.words.iter_mut().enumerate() {
            let from = place.checked_sub(skip);
            *to = word(from) >> bits;
            if bits != 0 {
                *to |= word(from.and_then(|from| from.checked_sub(1))) << (128 - bits);
            }
        }
        moved
    }
}

impl fmt::LowerHex for Wide {
    /// Formats it in hexadecimal. With `#` like C's `%#x`, which writes no 0x before zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() && !self.is_zero() {
            f.write_str("0x")?;
        }
        let first = self.words[..WORDS - 1].iter().position(|word| *word != 0);
        let first = first.unwrap_or(WORDS - 1);
        write!(f, "{:x}", self.words[first])?;
        let mut rest = self.words[first + 1..].iter();
        rest.try_for_each(|word| write!(f, "{word:032x}"))
    }
}

impl fmt::Debug for Wide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ONES {
            return f.write_str("ONES");
        }
        write!(f, "{self:#x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_move_both_ways_and_over_the_edge() {
        let one = Wide::from(1);
        for bits in [0, 1, 63, 64, 127, 128, 129, 500, 991] {
            assert_eq!((one << bits) >> bits, one, "{bits}");
            assert_eq!((one << bits).width(), bits / 8 + 1, "{bits}");
        }
        assert!((one << 992).is_zero() && (one << 5000).is_zero() && (one >> 1).is_zero());
        assert_eq!(
            Wide::ones(130),
            Wide::from(u128::MAX) | Wide::from(3) << 128
        );
        assert_eq!((Wide::ones(992), Wide::ones(0)), (Wide::ONES, Wide::ZERO));
    }

    #[test]
    fn digits_and_bytes_are_the_number() {
        let text = "123456789abcdef00112233445566778899aabbccddeeff";
        let number = Wide::from_hex(text).expect("it fits");
        assert_eq!(format!("{number:x}"), text);
        assert_eq!(Wide::from_be_bytes(&number.to_be_bytes()), Some(number));
        assert_eq!(Wide::from_hex(&"f".repeat(248)), Some(Wide::ONES));
        assert_eq!(Wide::from_hex(&"1".repeat(249)), None);
        assert_eq!(
            Wide::from_hex(&format!("{}1", "0".repeat(300))),
            Some(Wide::from(1))
        );
        assert_eq!(Wide::from_be_bytes(&[1; 125]), None);
        assert_eq!(format!("{:#x} {:#x}", Wide::ZERO, Wide::from(10)), "0 0xa");
    }
}

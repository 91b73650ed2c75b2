//! Keyed hash of masked keys, with seeds that are secret to the process, so that rules and
//! traffic cannot be chosen to collide.
//!
//! Each word is mixed in by a multiplication of 64 by 64 bits whose halves are xored, as wyhash
//! does. The result has 48 bits in three parts: the segment, the tag and the bucket.

use std::hash::{BuildHasher, RandomState};

/// The hash function with its seeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHasher {
    seeds: [u64; 2],
}

impl KeyHasher {
    /// A hash function with random seeds.
    pub(crate) fn new() -> Self {
        let source = RandomState::new();
        Self::with_seeds([source.hash_one(0), source.hash_one(1)])
    }

    /// A hash function with given seeds, for reproducible measurements.
    pub(crate) const fn with_seeds([first, second]: [u64; 2]) -> Self {
        Self {
            // Odd, so that no multiplication loses a bit of the other factor.
            seeds: [first | 1, second | 1],
        }
    }

    #[inline]
    pub(crate) fn hash(&self, words: impl Iterator<Item = u64>) -> KeyHash {
        let [first, second] = self.seeds;
        let mixed = words.fold(first, |hash, word| mix(hash ^ word, second));
        KeyHash(mix(mixed, first) >> 16)
    }

    /// The same with one multiplication for two words.
    #[inline]
    pub(crate) fn hash_pairs(&self, words: &[u64]) -> KeyHash {
        let [first, second] = self.seeds;
        let (pairs, _) = words.as_chunks();
        let pairs = pairs.iter();
        KeyHash(pairs.fold(first, |hash, [one, other]| mix(hash ^ one, second ^ other)) >> 16)
    }

    /// The same in two chains of multiplications, which a processor computes at the same time.
    #[inline]
    pub(crate) fn hash_fours<const N: usize>(&self, words: &[u64; N]) -> KeyHash {
        const { assert!(N.is_multiple_of(4), "words are hashed in fours") };
        let [first, second] = self.seeds;
        let (fours, _) = words.as_chunks();
        let [one, other] = fours
            .iter()
            .fold([first, second], |[one, other], [a, b, c, d]| {
                [mix(one ^ a, second ^ b), mix(other ^ c, first ^ d)]
            });
        KeyHash((one ^ other) >> 16)
    }
}

/// A hash of 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    /// A placeholder where no hash was computed.
    pub(crate) const ZERO: Self = Self(0);

    /// Four parts of 16 bits, the lowest first; the last is zero.
    #[inline]
    const fn parts(self) -> [u16; 4] {
        let [a, b, c, d, e, f, g, h] = self.0.to_le_bytes();
        [
            u16::from_le_bytes([a, b]),
            u16::from_le_bytes([c, d]),
            u16::from_le_bytes([e, f]),
            u16::from_le_bytes([g, h]),
        ]
    }

    /// The part whose uppermost bits select the segment.
    #[inline]
    pub(crate) const fn segment(self) -> u16 {
        self.parts()[2]
    }

    /// The part that a bucket stores, so that few entries are compared in vain.
    #[inline]
    pub(crate) const fn tag(self) -> u16 {
        self.parts()[1]
    }

    /// The part whose lowest bits select the bucket.
    #[inline]
    pub(crate) const fn bucket(self) -> u16 {
        self.parts()[0]
    }

    /// The hash with these parts.
    pub(crate) const fn of(segment: u16, tag: u16, bucket: u16) -> Self {
        Self((segment as u64) << 32 | (tag as u64) << 16 | bucket as u64)
    }
}

/// The xor of both halves of the product.
#[inline]
fn mix(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    let bytes = product.to_le_bytes();
    let (low, high) = bytes.split_at(8);
    let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    half(low) ^ half(high)
}

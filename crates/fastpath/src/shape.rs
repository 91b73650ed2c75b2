//! The shape of a rule: which bits of which words it asks about. Rules of one
//! shape differ only in the values, so one hash finds the one that fits a frame.

use std::borrow::Borrow;
use std::hash::{BuildHasher, RandomState};

use crate::lanes::{Lanes, Parts};

/// Words that are kept beside an entry at most: what a connection or a station is told by.
/// Of larger shapes the rule itself says what it wants.
pub(crate) const KEPT_MAX: usize = 4;

/// The words that count, and which bits of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape(Box<[(u8, u64)]>);

impl Shape {
    /// The shape of a rule with these masks.
    pub(crate) fn of(masks: &[(u8, u64)]) -> Self {
        Self(masks.into())
    }

    /// The words that count, and which bits of them.
    pub(crate) const fn asked(&self) -> &[(u8, u64)] {
        &self.0
    }

    /// How many words are kept beside an entry of this shape: all of them, if they are few.
    #[inline]
    pub(crate) const fn kept(&self) -> usize {
        match self.0.len() <= KEPT_MAX {
            true => self.0.len(),
            false => 0,
        }
    }

    /// What a rule is found by among those of this shape, by words that fulfil its wishes.
    #[inline]
    pub(crate) fn key(&self, lanes: &Lanes, hasher: Hasher) -> Key {
        // What is told apart here is not word by word.
        match *self.0 {
            [a] => Key::of([a], lanes, hasher),
            [a, b] => Key::of([a, b], lanes, hasher),
            [a, b, c] => Key::of([a, b, c], lanes, hasher),
            [a, b, c, d] => Key::of([a, b, c, d], lanes, hasher),
            _ => Key {
                hash: hasher.hash(self.words(lanes)),
                words: [0; KEPT_MAX],
            },
        }
    }

    /// The parts of a frame that they are in.
    pub(crate) fn parts(&self) -> Parts {
        let parts = self
            .0
            .iter()
            .map(|(lane, mask)| Parts::of(usize::from(*lane), *mask));
        parts.fold(Parts::default(), Parts::and)
    }

    /// What a frame has in the places that count.
    #[inline]
    pub(crate) fn words<'a>(&'a self, lanes: &'a Lanes) -> impl Iterator<Item = u64> + Clone + 'a {
        self.0.iter().map(|(lane, mask)| lanes.word(*lane) & mask)
    }
}

impl Borrow<[(u8, u64)]> for Shape {
    fn borrow(&self) -> &[(u8, u64)] {
        &self.0
    }
}

/// A hash that nobody outside can foresee, so that nobody can make keys collide.
///
/// It folds each word in by a multiplication of 64 by 64 bits, as wyhash does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hasher {
    seeds: [u64; 2],
}

impl Hasher {
    /// One with seeds of its own.
    pub(crate) fn new() -> Self {
        let source = RandomState::new();
        Self::with_seeds([source.hash_one(0), source.hash_one(1)])
    }

    /// One that others may know.
    pub(crate) const fn with_seeds([first, second]: [u64; 2]) -> Self {
        Self {
            // Odd, so that no multiplication loses a bit of the other factor.
            seeds: [first | 1, second | 1],
        }
    }

    #[inline]
    pub(crate) fn hash(&self, words: impl Iterator<Item = u64>) -> Hash {
        let [first, second] = self.seeds;
        let mixed = words.fold(first, |hash, word| fold(hash ^ word, second));
        Hash(fold(mixed, first) >> 16)
    }

    /// The same, two words by each multiplication.
    #[inline]
    pub(crate) fn hash_pairs<const N: usize>(&self, words: &[u64; N]) -> Hash {
        let [first, second] = self.seeds;
        let (pairs, _) = words.as_chunks();
        let pairs = pairs.iter();
        Hash(pairs.fold(first, |hash, [one, other]| fold(hash ^ one, second ^ other)) >> 16)
    }
}

/// What a frame is sought by, or a rule is found by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) hash: Hash,
    /// The words that are kept beside an entry, of which the hash was made; zeros if none are.
    pub(crate) words: [u64; KEPT_MAX],
}

impl Key {
    /// By words of which these bits are asked and kept.
    #[inline]
    fn of<const N: usize>(asked: [(u8, u64); N], lanes: &Lanes, hasher: Hasher) -> Self {
        let asked = asked.map(|(lane, mask)| lanes.word(lane) & mask);
        let mut words = [0; KEPT_MAX];
        words[..N].copy_from_slice(&asked);
        let hash = hasher.hash(asked.into_iter());
        Self { hash, words }
    }
}

const _: () = assert!(KEPT_MAX == 4, "Shape::key tells apart so many words");

/// A hash of 48 bits. The uppermost say which segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(u64);

impl Hash {
    /// That of nothing.
    pub(crate) const NONE: Self = Self(0);

    /// Four parts, the lowest first.
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

    /// The uppermost of them say which segment.
    #[inline]
    pub(crate) const fn segment(self) -> u16 {
        self.parts()[2]
    }

    /// Kept where an entry is found, so that few rules are looked at in vain.
    #[inline]
    pub(crate) const fn tag(self) -> u16 {
        self.parts()[1]
    }

    /// The lowest of them say which bucket.
    #[inline]
    pub(crate) const fn bucket(self) -> u16 {
        self.parts()[0]
    }

    /// The one of which these are parts.
    pub(crate) const fn of(segment: u16, tag: u16, bucket: u16) -> Self {
        Self((segment as u64) << 32 | (tag as u64) << 16 | bucket as u64)
    }
}

/// Both halves of the product.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    let bytes = product.to_le_bytes();
    let (low, high) = bytes.split_at(8);
    let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    half(low) ^ half(high)
}

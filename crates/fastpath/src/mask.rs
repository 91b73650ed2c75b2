//! Mask of a tuple: the key bits that a match examines. Rules of one mask differ only in their
//! values, so one hash lookup finds the rule that a packet satisfies.

use std::borrow::Borrow;

use crate::key_hash::{KeyHash, KeyHasher};
use crate::packed_key::{KeyParts, PackedKey};

/// Most words of a mask whose values are stored in hot entries: those that identify a connection
/// or a station. With larger masks, a packet is compared with the match of the rule.
pub(crate) const HOT_WORDS_MAX: usize = 4;

/// Words of the key that a tuple reads, and the bits of each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TupleMask(Box<[(u8, u64)]>);

impl TupleMask {
    /// The mask with these words.
    pub(crate) fn of(words: &[(u8, u64)]) -> Self {
        Self(words.into())
    }

    /// Words that the mask reads, and the bits of each.
    pub(crate) const fn words(&self) -> &[(u8, u64)] {
        &self.0
    }

    /// Number of words that a hot entry of this mask stores: all or, if they are more than
    /// [`HOT_WORDS_MAX`], none.
    #[inline]
    pub(crate) const fn hot_words(&self) -> usize {
        match self.0.len() <= HOT_WORDS_MAX {
            true => self.0.len(),
            false => 0,
        }
    }

    /// The masked key of a packet, or of a rule's values.
    #[inline]
    pub(crate) fn apply(&self, key: &PackedKey, hasher: KeyHasher) -> MaskedKey {
        // One branch here replaces one for each word.
        match *self.0 {
            [a] => MaskedKey::of([a], key, hasher),
            [a, b] => MaskedKey::of([a, b], key, hasher),
            [a, b, c] => MaskedKey::of([a, b, c], key, hasher),
            [a, b, c, d] => MaskedKey::of([a, b, c, d], key, hasher),
            _ => MaskedKey {
                hash: hasher.hash(self.masked_words(key)),
                words: [0; HOT_WORDS_MAX],
            },
        }
    }

    /// Parts of a key that the mask reads.
    pub(crate) fn parts(&self) -> KeyParts {
        KeyParts::of_mask(&self.0)
    }

    /// Words of a key under this mask.
    #[inline]
    pub(crate) fn masked_words<'a>(
        &'a self,
        key: &'a PackedKey,
    ) -> impl Iterator<Item = u64> + Clone + 'a {
        self.0.iter().map(|(word, mask)| key.word(*word) & mask)
    }
}

impl Borrow<[(u8, u64)]> for TupleMask {
    fn borrow(&self) -> &[(u8, u64)] {
        &self.0
    }
}

/// Words of a key under a mask whose number of words is known at compile time.
#[inline(always)]
pub(crate) fn masked_words<const N: usize>(key: &PackedKey, mask: [(u8, u64); N]) -> [u64; N] {
    mask.map(|(word, mask)| key.word(word) & mask)
}

/// A key under the mask of one tuple, with its hash (Open vSwitch
/// `netdev_flow_key_hash_in_minimask`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskedKey {
    pub(crate) hash: KeyHash,
    /// Words that a hot entry stores, of which the hash was computed; zeros if it stores none.
    pub(crate) words: [u64; HOT_WORDS_MAX],
}

impl MaskedKey {
    #[inline]
    fn of<const N: usize>(mask: [(u8, u64); N], key: &PackedKey, hasher: KeyHasher) -> Self {
        let masked = masked_words(key, mask);
        let mut words = [0; HOT_WORDS_MAX];
        words[..N].copy_from_slice(&masked);
        let hash = hasher.hash(masked.into_iter());
        Self { hash, words }
    }
}

const _: () = assert!(
    HOT_WORDS_MAX == 4,
    "TupleMask::apply has a case for each number of words"
);

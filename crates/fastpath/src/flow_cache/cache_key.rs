//! Key of the flow cache: all header bits that any table reads.

use super::entries::SETS;
use crate::classifier::{ContentId, View};
use crate::key_hash::KeyHasher;
use crate::packed_key::PackedKey;

/// Most header words that tables may read: those of a connection between stations are six. With
/// more, the cache is not used.
pub(super) const CACHE_WORDS: usize = 8;

/// Mask of cache keys: the union of the masks of all tables of a view.
#[derive(Debug)]
pub(crate) struct CacheKeyMask {
    content: ContentId,
    hasher: KeyHasher,
    /// Words and their bits; the rest is zero.
    words: [(u8, u64); CACHE_WORDS],
    /// Number of pairs of words, rounded up.
    pub(crate) word_pairs: usize,
}

/// Cache key of a packet, with its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheKey<const N: usize> {
    pub(super) words: [u64; N],
    /// The lowest bits select the set.
    pub(super) bucket: u16,
    /// Never zero.
    pub(super) tag: u8,
}

impl CacheKeyMask {
    /// Returns the mask for a view, or `None` if its tables read too many words.
    pub(super) fn of(view: &View) -> Option<Self> {
        let mut words = [(0, 0); CACHE_WORDS];
        let mut len = 0_usize;
        for (word, mask) in view.header_mask().filter(|(_, mask)| *mask != 0) {
            *words.get_mut(len)? = (word, mask);
            len += 1;
        }
        Some(Self {
            content: view.content(),
            hasher: view.hasher,
            words,
            word_pairs: len.div_ceil(2),
        })
    }

    /// True if it is the mask for the rules of this view.
    #[inline]
    pub(super) fn is_of(&self, view: &View) -> bool {
        view.content() == self.content
    }

    /// Cache key of a packet; the mask has at most `N` words.
    #[inline(always)]
    pub(crate) fn key<const N: usize>(&self, key: &PackedKey) -> CacheKey<N> {
        const {
            assert!(
                N <= CACHE_WORDS && N.is_multiple_of(2),
                "words are hashed in pairs"
            );
        };
        let words = std::array::from_fn(|index| {
            let (word, mask) = self.words[index];
            key.word(word) & mask
        });
        let hash = self.hasher.hash_pairs(&words);
        let [tag, _] = hash.tag().to_le_bytes();
        CacheKey {
            words,
            bucket: hash.bucket(),
            tag: tag.max(1),
        }
    }

    /// The same key in the greatest number of words.
    pub(super) fn full_key(&self, key: &PackedKey) -> CacheKey<CACHE_WORDS> {
        match self.word_pairs {
            0 | 1 => self.key::<2>(key).widen(),
            2 => self.key::<4>(key).widen(),
            3 => self.key::<6>(key).widen(),
            _ => self.key(key),
        }
    }
}

impl<const N: usize> CacheKey<N> {
    /// Number of its set.
    #[inline]
    pub(super) fn set(&self) -> usize {
        usize::from(self.bucket % SETS)
    }

    fn widen(&self) -> CacheKey<CACHE_WORDS> {
        let mut words = [0; CACHE_WORDS];
        words[..N].copy_from_slice(&self.words);
        let Self { bucket, tag, .. } = *self;
        CacheKey { words, bucket, tag }
    }
}

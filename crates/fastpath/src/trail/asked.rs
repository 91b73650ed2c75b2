//! What frames are told apart by that go trails: all bits that any table looks at.

use std::sync::{Arc, Weak};

use super::kept::SETS;
use crate::classifier::{View, Views};
use crate::lanes::Lanes;
use crate::segment::Epoch;
use crate::shape::Hasher;

/// Words of a frame that tables look at, at most: those of a connection between stations are six.
/// Where they look at more there are no trails.
pub(super) const WORDS: usize = 8;

/// What of frames the tables of a view look at.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Keeps the address, not the tables.
    tables: Weak<Views>,
    epoch: Epoch,
    hasher: Hasher,
    /// Words, and bits of them; none of those behind the last that there is.
    words: [(u8, u64); WORDS],
    /// How many pairs of words there are, the last of which may be half empty.
    pub(crate) pairs: usize,
}

/// What a frame is compared by, and where a trail of it would be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark<const N: usize> {
    pub(super) words: [u64; N],
    /// Of this the lowest bits say in which set it is.
    pub(super) bucket: u16,
    /// Never zero.
    pub(super) tag: u8,
}

impl Asked {
    /// What the tables of this view look at; none if it is too much.
    pub(super) fn of(view: &View) -> Option<Self> {
        let mut words = [(0, 0); WORDS];
        let mut len = 0_usize;
        for (lane, mask) in view.asked().filter(|(_, mask)| *mask != 0) {
            *words.get_mut(len)? = (lane, mask);
            len += 1;
        }
        Some(Self {
            tables: Arc::downgrade(&view.tables),
            epoch: view.epoch(),
            hasher: view.hasher,
            words,
            pairs: len.div_ceil(2),
        })
    }

    /// Whether it is what the tables of that view look at.
    #[inline]
    pub(super) fn is_of(&self, view: &View) -> bool {
        view.is(&self.tables, self.epoch)
    }

    /// What a frame of these words is compared by: `N` words, which are all that there are.
    #[inline(always)]
    pub(crate) fn mark<const N: usize>(&self, lanes: &Lanes) -> Mark<N> {
        const { assert!(N <= WORDS && N.is_multiple_of(2), "words come in pairs") };
        let words = std::array::from_fn(|place| {
            let (lane, mask) = self.words[place];
            lanes.word(lane) & mask
        });
        let hash = self.hasher.hash_pairs(&words);
        let [tag, _] = hash.tag().to_le_bytes();
        Mark {
            words,
            bucket: hash.bucket(),
            tag: tag.max(1),
        }
    }

    /// The same, of as many words as there may be.
    pub(super) fn whole_mark(&self, lanes: &Lanes) -> Mark<WORDS> {
        match self.pairs {
            0 | 1 => self.mark::<2>(lanes).widened(),
            2 => self.mark::<4>(lanes).widened(),
            3 => self.mark::<6>(lanes).widened(),
            _ => self.mark(lanes),
        }
    }
}

impl<const N: usize> Mark<N> {
    /// Which set a trail of it is in.
    #[inline]
    pub(super) fn set(&self) -> usize {
        usize::from(self.bucket % SETS)
    }

    /// The same, with room for more words.
    fn widened(&self) -> Mark<WORDS> {
        let mut words = [0; WORDS];
        words[..N].copy_from_slice(&self.words);
        let Self { bucket, tag, .. } = *self;
        Mark { words, bucket, tag }
    }
}

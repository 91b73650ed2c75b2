//! One dimension of aggregated vectors: a field, or several that are cross-multiplied, with the
//! vector of each class.

use sys::cache::prefetch;

use super::WORD;
use super::cross_product::CrossProduct;

/// One word of the summary of a class: a bit for each word of its vector that is not zero, and the
/// position of the first of these words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VectorSummary {
    pub(super) words: u64,
    pub(super) first: u32,
}

/// Vectors of the classes of one dimension.
#[derive(Debug)]
pub(super) struct Dimension {
    pub(super) classes: CrossProduct,
    /// Vector of the rules without a condition here, and its summary.
    pub(super) wildcard: Box<[u64]>,
    pub(super) wildcard_summary: Box<[u64]>,
    /// Summaries of the classes; each class has as many as the summary has words.
    pub(super) summaries: Box<[VectorSummary]>,
    /// Words that the summaries refer to, and one more.
    pub(super) words: Box<[u64]>,
}

impl Dimension {
    /// Words of a summary.
    #[inline]
    pub(super) fn groups(&self) -> usize {
        self.wildcard_summary.len()
    }

    /// Prefetches the summary of a class.
    #[inline]
    pub(super) fn prefetch(&self, class: u16) {
        prefetch(&self.summaries[usize::from(class) * self.groups()]);
    }

    /// One word of the summary of a class.
    #[inline]
    pub(super) fn summary(&self, class: u16, group: usize) -> VectorSummary {
        self.summaries[usize::from(class) * self.groups() + group]
    }

    /// One word of the vector of a class, wildcards included. A branch on whether the class has
    /// this word would be unpredictable, so a word is read in any case.
    #[inline]
    pub(super) fn word(&self, VectorSummary { words, first }: VectorSummary, word: usize) -> u64 {
        let bit = word % WORD;
        let before = (words & ((1 << bit) - 1)).count_ones();
        let own = self.words[(first + before) as usize];
        let has_own = (words >> bit & 1).wrapping_neg();
        self.wildcard[word] | own & has_own
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let words = self.wildcard.len() + self.wildcard_summary.len() + self.words.len();
        8 * words + size_of::<VectorSummary>() * self.summaries.len() + self.classes.bytes()
    }
}

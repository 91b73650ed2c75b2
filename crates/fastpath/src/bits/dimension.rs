//! One field of many rules, or some that are joined: its classes of values, and which rules want each.

use sys::cache::prefetch;

use super::WORD;
use super::joint::Joint;

/// A word of a class's summary, and where those words of its vector are that it names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    pub(super) words: u64,
    pub(super) first: u32,
}

/// See the top of this file.
#[derive(Debug)]
pub(super) struct Dimension {
    pub(super) joint: Joint,
    /// The rules that want nothing here, and their summary.
    pub(super) wild: Box<[u64]>,
    pub(super) wild_summary: Box<[u64]>,
    /// By class, as many as a summary has words.
    pub(super) summaries: Box<[Summary]>,
    /// The words that summaries name, and one more.
    pub(super) own: Box<[u64]>,
}

impl Dimension {
    /// Words of a summary.
    #[inline]
    pub(super) fn groups(&self) -> usize {
        self.wild_summary.len()
    }

    /// Asks for the memory of a class's summary.
    #[inline]
    pub(super) fn prefetch(&self, class: u16) {
        prefetch(&self.summaries[usize::from(class) * self.groups()]);
    }

    /// A word of a class's summary.
    #[inline]
    pub(super) fn summary(&self, class: u16, group: usize) -> Summary {
        self.summaries[usize::from(class) * self.groups() + group]
    }

    /// A word of the vector of all rules that a class fits, by its summary. Whether the class has
    /// a word of its own there is not to be foreseen, and so one is read in any case.
    #[inline]
    pub(super) fn word(&self, Summary { words, first }: Summary, word: usize) -> u64 {
        let bit = word % WORD;
        let before = (words & ((1 << bit) - 1)).count_ones();
        let own = self.own[(first + before) as usize];
        let has_own = (words >> bit & 1).wrapping_neg();
        self.wild[word] | own & has_own
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let words = self.wild.len() + self.wild_summary.len() + self.own.len();
        8 * words + size_of::<Summary>() * self.summaries.len() + self.joint.bytes()
    }
}

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
    /// The words that summaries name.
    pub(super) own: Box<[u64]>,
}

impl Dimension {
    /// Asks for the memory of a class's summary.
    #[inline]
    pub(super) fn prefetch(&self, class: u16) {
        prefetch(&self.summaries[usize::from(class) * self.wild_summary.len()]);
    }

    /// A word of the summary of all rules that a class fits.
    #[inline]
    pub(super) fn summary(&self, class: u16, group: usize) -> u64 {
        self.summaries[usize::from(class) * self.wild_summary.len() + group].words
            | self.wild_summary[group]
    }

    /// A word of the vector of all rules that a class fits.
    #[inline]
    pub(super) fn word(&self, class: u16, group: usize, word: usize) -> u64 {
        let Summary { words, first } =
            self.summaries[usize::from(class) * self.wild_summary.len() + group];
        let bit = word % WORD;
        let own = match words >> bit & 1 {
            0 => 0,
            _ => {
                let before = (words & ((1 << bit) - 1)).count_ones();
                self.own[(first + before) as usize]
            }
        };
        self.wild[word] | own
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let words = self.wild.len() + self.wild_summary.len() + self.own.len();
        8 * words + size_of::<Summary>() * self.summaries.len() + self.joint.bytes()
    }
}

//! One field of all rules: its classes of values, and which rules want each.

use crate::lanes::{Lanes, Spot};
use crate::rows::Rows;

use super::WORD;

/// A word of a class's summary, and where those words of its vector are that it names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    pub(super) words: u64,
    pub(super) first: u32,
}

/// See the top of this file.
#[derive(Debug)]
pub(super) struct Dimension {
    pub(super) spot: Spot,
    pub(super) full: u64,
    pub(super) classes: Classes,
    /// The rules that want nothing here, and their summary.
    pub(super) wild: Box<[u64]>,
    pub(super) wild_summary: Box<[u64]>,
    /// By class, as many as a summary has words; none of few rules.
    pub(super) summaries: Box<[Summary]>,
    /// The words that summaries name. Or, of few rules, for each class the one word of its
    /// summary and all of its vector, with the rules that want nothing here: there is nothing
    /// to count then.
    pub(super) own: Box<[u64]>,
    pub(super) is_dense: bool,
}

impl Dimension {
    /// Where the summary of the frame's class begins; of few rules, among its own words.
    #[inline]
    pub(super) fn class(&self, lanes: &Lanes) -> u32 {
        let value = lanes.word(self.spot.lane) >> self.spot.shift & self.full;
        match &self.classes {
            Classes::Octet(classes) => classes[value.to_le_bytes()[0] as usize],
            Classes::Nested(rows) => rows.find(value),
        }
    }

    /// A word of the summary of all rules that a class fits.
    #[inline]
    pub(super) fn summary(&self, class: u32, group: usize) -> u64 {
        if self.is_dense {
            return self.own[class as usize];
        }
        self.summaries[class as usize + group].words | self.wild_summary[group]
    }

    /// A word of the vector of all rules that a class fits.
    #[inline]
    pub(super) fn word(&self, class: u32, group: usize, word: usize) -> u64 {
        if self.is_dense {
            return self.own[class as usize + 1 + word];
        }
        let Summary { words, first } = self.summaries[class as usize + group];
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
        8 * words + size_of::<Summary>() * self.summaries.len() + self.classes.bytes()
    }
}

/// From a value to where its class's summary begins.
#[derive(Debug)]
pub(super) enum Classes {
    /// Of eight bits at most, of which rules may want any.
    Octet(Box<[u32; 256]>),
    /// Of a field of which rules want the upper bits.
    Nested(Rows),
}

impl Classes {
    fn bytes(&self) -> usize {
        match self {
            Self::Octet(classes) => size_of_val(&**classes),
            Self::Nested(rows) => rows.bytes(),
        }
    }
}

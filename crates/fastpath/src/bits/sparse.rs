//! Vectors of many rules, of which only the words are kept that are not zero.
//!
//! Each vector has a summary above it: a bit for every word that is not
//! zero. Only words that no summary excludes are looked at. A rule without a condition in
//! a dimension is in the vectors of all its classes; such rules are kept once, beside
//! the classes' own vectors, which are short then. And so that summaries exclude much,
//! rules with conditions in the same dimensions lie together, in the order in which
//! they are tried.
//!
//! Cost of a lookup, in modelled instructions: a class and a word of its summary for each
//! dimension, so much for each further word of summaries, and so much for each word
//! of vectors that is looked at. How many these are is found out by looking some of the
//! rules' own values up, when the vectors are made.

use crate::ahead::AHEAD;
use crate::lanes::Lanes;
use crate::places::Places;
use crate::prefix::NONE;

use super::dimension::Dimension;
use super::{DIMENSIONS_MAX, WORD};

/// See the top of this file.
#[derive(Debug)]
pub(super) struct Sparse {
    dimensions: Box<[Dimension]>,
    /// Words of a summary.
    groups: usize,
    /// By bit: the rule's place among all, in the order in which they are tried. Those of a word
    /// stand in order, and so do the words by their least, but for the last.
    ranks: Box<[u32]>,
    /// By word: the least of its ranks.
    least: Box<[u32]>,
    /// The most words that one of the sampled rules' own values had looked at.
    visits: usize,
}

impl Sparse {
    /// The vectors of these dimensions, where bits have these ranks; `samples` are frames that
    /// some of the rules want.
    pub(super) fn of(
        dimensions: Vec<Dimension>,
        ranks: Vec<u32>,
        samples: impl Iterator<Item = Lanes>,
    ) -> Self {
        let least = ranks.chunks(WORD).map(|ranks| ranks.iter().min().copied());
        let mut made = Self {
            dimensions: dimensions.into(),
            groups: ranks.len().div_ceil(WORD).div_ceil(WORD).max(1),
            least: least.map(Option::unwrap_or_default).collect(),
            ranks: ranks.into(),
            visits: 0,
        };
        let visits = samples.map(|lanes| {
            let mut classes = [0; DIMENSIONS_MAX];
            for (class, dimension) in classes.iter_mut().zip(&made.dimensions) {
                *class = dimension.joint.find(&lanes);
            }
            let mut visits = 0;
            made.visit(&classes, |_, _| visits += 1);
            visits
        });
        made.visits = visits.max().unwrap_or(0);
        made
    }

    /// The place among all rules of the one that the frame finds, of those that are `seen`.
    #[inline]
    pub(super) fn find(&self, lanes: &Lanes, seen: impl Fn(usize) -> bool) -> Option<usize> {
        let mut classes = [0; DIMENSIONS_MAX];
        for (class, dimension) in classes.iter_mut().zip(&self.dimensions) {
            *class = dimension.joint.find(lanes);
        }
        let found = self.find_in(&classes, &seen);
        (found != NONE).then_some(found as usize)
    }

    /// The same of each of these frames; [`NONE`] of those that find none.
    #[inline]
    pub(super) fn find_each(
        &self,
        lanes: &[Lanes; AHEAD],
        of: Places,
        seen: impl Fn(usize) -> bool,
    ) -> [u32; AHEAD] {
        let mut each = [NONE; AHEAD];
        let mut by_dimension = [[0; AHEAD]; DIMENSIONS_MAX];
        for (classes, dimension) in by_dimension.iter_mut().zip(&self.dimensions) {
            dimension.joint.find_each(&lanes[..of.end()], classes);
            of.for_each(|place| dimension.prefetch(classes[place % AHEAD]));
        }
        for place in of {
            let mut classes = [0; DIMENSIONS_MAX];
            let count = self.dimensions.len();
            for (class, of_all) in classes.iter_mut().zip(&by_dimension[..count]) {
                *class = of_all[place % AHEAD];
            }
            each[place % AHEAD] = self.find_in(&classes, &seen);
        }
        each
    }

    /// The place of the rule that a frame of these classes finds; [`NONE`] if there is none.
    #[inline]
    fn find_in(&self, classes: &[u16; DIMENSIONS_MAX], seen: &impl Fn(usize) -> bool) -> u32 {
        let mut best = NONE;
        self.visit(classes, |word, group| {
            if self.least[word] < best {
                let rules = self.word(word, classes, group);
                best = self.best(best, word, rules, seen);
            }
        });
        best
    }

    /// The least of the ranks of these rules of a word that are seen, if it is below `best`.
    #[inline]
    fn best(&self, best: u32, word: usize, mut rules: u64, seen: &impl Fn(usize) -> bool) -> u32 {
        while rules != 0 {
            let rank = self.ranks[word * WORD + rules.trailing_zeros() as usize];
            if rank >= best {
                break;
            }
            if seen(rank as usize) {
                return rank;
            }
            rules &= rules - 1;
        }
        best
    }

    /// Comes by each word that no summary excludes.
    #[inline]
    fn visit(&self, classes: &[u16; DIMENSIONS_MAX], mut look: impl FnMut(usize, usize)) {
        for group in 0..self.groups {
            let both = self.dimensions.iter().zip(classes.iter());
            // Without a dimension all words are looked at, and no more.
            let there = (self.least.len() - group * WORD).min(WORD);
            let all = u64::MAX >> (WORD - there);
            let mut words = both.fold(all, |words, (dimension, class)| {
                words & dimension.summary(*class, group)
            });
            while words != 0 {
                let word = group * WORD + words.trailing_zeros() as usize;
                look(word, group);
                words &= words - 1;
            }
        }
    }

    /// Which rules of a word the classes agree on.
    #[inline]
    fn word(&self, word: usize, classes: &[u16; DIMENSIONS_MAX], group: usize) -> u64 {
        let mut rules = u64::MAX;
        for (dimension, class) in self.dimensions.iter().zip(classes) {
            rules &= dimension.word(*class, group, word);
            if rules == 0 {
                break;
            }
        }
        // Of no dimension at all, each rule is for every frame.
        match self.ranks.len() - word * WORD {
            there @ 1..WORD => rules & (u64::MAX >> (WORD - there)),
            _ => rules,
        }
    }

    /// How many dimensions there are, and how many words a sampled lookup looks at at most.
    pub(super) fn extent(&self) -> (usize, usize) {
        (self.dimensions.len(), self.visits)
    }

    /// What a lookup takes, in modelled instructions.
    pub(super) fn cost(&self) -> usize {
        cost(self.dimensions.len(), self.groups, self.visits)
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let dimensions = self.dimensions.iter().map(Dimension::bytes);
        dimensions.sum::<usize>() + 4 * (self.ranks.len() + self.least.len())
    }
}

/// What a lookup takes, in instructions as callgrind counts them.
pub(super) const fn cost(dimensions: usize, groups: usize, visits: usize) -> usize {
    const ALWAYS: usize = 60;
    const CLASS: usize = 35;
    const SUMMARY: usize = 8;
    const VISIT: usize = 60;
    ALWAYS + dimensions * (CLASS + groups * SUMMARY) + visits * VISIT
}

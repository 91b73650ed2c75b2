//! Aggregated bit vectors: many rules of many shapes, found in as many steps as there are
//! fields, whatever the frame.
//!
//! Each rule has a bit. Each field on which some rule has a condition is a *dimension*:
//! a frame's value in it belongs to a *class* of values that the same rules want, and the
//! class has a vector of their bits. The rules that a frame fits have their bit in the
//! vectors of all dimensions.
//!
//! Vectors are long, so each has a summary above it: a bit for every word that is not
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

mod build;
mod dimension;

use std::sync::Arc;

use pipeline::Rule;

use crate::lanes::{Lanes, Spot};
use dimension::Dimension;

/// Most rules of one set of vectors: a summary has four words then.
pub(crate) const RULES_MAX: usize = 16_384;

/// Most dimensions: more than twice as many as the fields of a rule of OpenFlow 1.0.
const DIMENSIONS_MAX: usize = 32;

/// Most words of all vectors of a set: eight megabytes, so that some sets find room in a
/// cache of the third level.
const WORDS_MAX: usize = 1 << 20;

/// Dimensions, of few rules, whose vectors are taken at once. Those of access lists have six.
const ROWS: usize = 8;

/// Bits of a word.
const WORD: usize = 64;

/// The rules are too many, ask for too many fields, or for values too much entangled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

/// What all rules want.
#[derive(Clone, Copy, Debug)]
struct Guard {
    spot: Spot,
    mask: u64,
    value: u64,
}

impl Guard {
    #[inline]
    fn lets_pass(&self, lanes: &Lanes) -> bool {
        lanes.word(self.spot.lane) >> self.spot.shift & self.mask == self.value
    }
}

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Bits {
    guards: Box<[Guard]>,
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

impl Bits {
    /// The vectors of these rules, which stand in the order in which they are tried.
    pub(crate) fn of(rules: &[Arc<Rule>]) -> Result<Self, Unfit> {
        build::build(rules)
    }

    /// The place among all rules of the one that the frame finds, of those that are `seen`.
    #[inline]
    pub(crate) fn find(&self, lanes: &Lanes, seen: impl Fn(usize) -> bool) -> Option<usize> {
        let is_dense = self.dimensions.first().is_some_and(|first| first.is_dense);
        if is_dense && self.dimensions.len() <= ROWS {
            return self.find_dense(lanes, seen);
        }
        let mut best = u32::MAX;
        self.visit(lanes, |word, classes, group| {
            if self.least[word] < best {
                let rules = self.word(word, classes, group);
                best = self.best(best, word, rules, &seen);
            }
        });
        (best != u32::MAX).then_some(best as usize)
    }

    /// The same, of few rules.
    #[inline]
    fn find_dense(&self, lanes: &Lanes, seen: impl Fn(usize) -> bool) -> Option<usize> {
        if !self.guards.iter().all(|guard| guard.lets_pass(lanes)) {
            return None;
        }
        let mut rows: [&[u64]; ROWS] = [&[]; ROWS];
        let rows = &mut rows[..self.dimensions.len()];
        let mut words = u64::MAX;
        for (row, dimension) in rows.iter_mut().zip(&self.dimensions) {
            let class = dimension.class(lanes) as usize;
            *row = &dimension.own[class..class + 1 + self.least.len()];
            words &= row[0];
        }
        let mut best = u32::MAX;
        while words != 0 {
            let word = words.trailing_zeros() as usize;
            words &= words - 1;
            if self.least[word] >= best {
                continue;
            }
            let of_word = rows.iter().map(|row| row[1 + word]);
            let rules = of_word.fold(u64::MAX, |rules, of_row| rules & of_row);
            best = self.best(best, word, rules, &seen);
        }
        (best != u32::MAX).then_some(best as usize)
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
    fn visit(&self, lanes: &Lanes, mut look: impl FnMut(usize, &[u32], usize)) {
        if !self.guards.iter().all(|guard| guard.lets_pass(lanes)) {
            return;
        }
        let mut classes = [0; DIMENSIONS_MAX];
        let classes = &mut classes[..self.dimensions.len()];
        for (class, dimension) in classes.iter_mut().zip(&self.dimensions) {
            *class = dimension.class(lanes);
        }
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
                look(word, classes, group);
                words &= words - 1;
            }
        }
    }

    /// Which rules of a word the classes agree on.
    #[inline]
    fn word(&self, word: usize, classes: &[u32], group: usize) -> u64 {
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

    /// What a lookup takes, in modelled instructions.
    pub(crate) fn cost(&self) -> usize {
        cost(self.dimensions.len(), self.groups, self.visits)
    }

    /// How many dimensions there are, and how many words a sampled lookup looks at at most.
    pub(crate) fn extent(&self) -> (usize, usize) {
        (self.dimensions.len(), self.visits)
    }

    /// What a lookup among so many rules is likely to take, in modelled instructions: those
    /// of access lists have five dimensions, and a frame looks at few words.
    pub(crate) fn likely_cost(rules: usize) -> usize {
        cost(5, rules.div_ceil(WORD).div_ceil(WORD), 2)
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let dimensions = self.dimensions.iter().map(Dimension::bytes);
        dimensions.sum::<usize>() + 4 * (self.ranks.len() + self.least.len())
    }
}

/// What a lookup takes, in instructions as callgrind counts them.
const fn cost(dimensions: usize, groups: usize, visits: usize) -> usize {
    const ALWAYS: usize = 60;
    const CLASS: usize = 35;
    const SUMMARY: usize = 8;
    const VISIT: usize = 60;
    ALWAYS + dimensions * (CLASS + groups * SUMMARY) + visits * VISIT
}

#[cfg(test)]
mod tests;

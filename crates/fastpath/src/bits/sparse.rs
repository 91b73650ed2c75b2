//! Vectors of many rules, of which only the words are kept that are not zero.
//!
//! Each vector has a summary above it: a bit for every word that is not
//! zero. Only words that no summary excludes are looked at. A rule without a condition in
//! a dimension is in the vectors of all its classes; such rules are kept once, beside
//! the classes' own vectors, which are short then. And so that summaries exclude much,
//! rules with conditions in the same dimensions lie together. Words come in the order in which
//! the first rule of each is tried: whoever has found a rule that is tried before all of a word
//! is done.
//!
//! Cost of a lookup, in modelled instructions: so much for each field whose class is looked up,
//! more for one that is searched, so much for each word of the summaries, and for each word
//! of vectors that is looked at. How many these are is found out by looking some of the
//! rules' own values up, when the vectors are made.

use std::ops::ControlFlow;

use crate::ahead::AHEAD;
use crate::lanes::Lanes;
use crate::places::Places;
use crate::prefix::NONE;

use super::classes::{LOOK, SEARCH};
use super::dimension::{Dimension, Summary};
use super::{DIMENSIONS_MAX, WORD};

/// See the top of this file.
#[derive(Debug)]
pub(super) struct Sparse {
    /// One at least.
    dimensions: Box<[Dimension]>,
    /// By bit: the rule's place among all, in the order in which they are tried; [`NONE`] of a
    /// bit that is of no rule. Those of a word stand in order.
    ranks: Box<[u32]>,
    /// By word: the least of its ranks. They stand in order.
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
        let mut made = Self {
            dimensions: dimensions.into(),
            least: ranks.chunks(WORD).map(|word| word[0]).collect(),
            ranks: ranks.into(),
            visits: 0,
        };
        let visits = samples.map(|lanes| {
            let (classes, mut visits) = (made.classes(&lanes), 0);
            visit(&made.dimensions, &classes, |_, _| {
                visits += 1;
                ControlFlow::Continue(())
            });
            visits
        });
        made.visits = visits.max().unwrap_or(0);
        made
    }

    /// The place among all rules of the one that the frame finds, of those that are `seen`.
    #[inline]
    pub(super) fn find(&self, lanes: &Lanes, seen: impl Fn(usize) -> bool) -> Option<usize> {
        let classes = self.classes(lanes);
        let mut best = NONE;
        visit(&self.dimensions, &classes, |word, here| {
            if self.least[word] >= best {
                return ControlFlow::Break(());
            }
            best = self.best(best, word, rules(&self.dimensions, here, word), &seen);
            ControlFlow::Continue(())
        });
        (best != NONE).then_some(best as usize)
    }

    /// The classes of a frame, by dimension.
    fn classes(&self, lanes: &Lanes) -> [[u16; 1]; DIMENSIONS_MAX] {
        let mut classes = [[0]; DIMENSIONS_MAX];
        for (class, dimension) in classes.iter_mut().zip(&self.dimensions) {
            *class = [dimension.joint.find(lanes)];
        }
        classes
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

    /// The place of the first rule that each of these frames fits; [`NONE`] of those that fit
    /// none.
    #[inline]
    pub(super) fn first_each(&self, lanes: &[Lanes; AHEAD], of: Places) -> [u32; AHEAD] {
        // Of so many dimensions as there mostly are the number is known when this is compiled.
        match &*self.dimensions {
            few @ [_, _] => self.first_each_in(few, lanes, of),
            few @ [_, _, _] => self.first_each_in(few, lanes, of),
            few @ [_, _, _, _] => self.first_each_in(few, lanes, of),
            any => self.first_each_in(any, lanes, of),
        }
    }

    /// The same, in all dimensions there are.
    #[inline(always)]
    fn first_each_in(
        &self,
        dimensions: &[Dimension],
        lanes: &[Lanes; AHEAD],
        of: Places,
    ) -> [u32; AHEAD] {
        let mut each = [NONE; AHEAD];
        let mut classes = [[0; AHEAD]; DIMENSIONS_MAX];
        for (classes, dimension) in classes.iter_mut().zip(dimensions) {
            dimension.joint.find_each(&lanes[..of.end()], classes);
            of.for_each(|place| dimension.prefetch(classes[place % AHEAD]));
        }
        for place in of {
            let place = place % AHEAD;
            let mut first = NONE;
            let classes = classes.each_ref().map(|of| [of[place]]);
            visit(dimensions, &classes, |word, here| {
                if self.least[word] >= first {
                    return ControlFlow::Break(());
                }
                // Whether there is one is not to be foreseen.
                let rules = rules(dimensions, here, word);
                let bit = (rules.trailing_zeros() as usize).min(WORD - 1);
                let rank = self.ranks[word * WORD + bit];
                first = first.min(if rules == 0 { NONE } else { rank });
                ControlFlow::Continue(())
            });
            each[place] = first;
        }
        each
    }

    /// How many dimensions there are, and how many words a sampled lookup looks at at most.
    pub(super) fn extent(&self) -> (usize, usize) {
        (self.dimensions.len(), self.visits)
    }

    /// What a lookup takes, in modelled instructions.
    pub(super) fn cost(&self) -> usize {
        let groups = self.dimensions.first().map_or(0, Dimension::groups);
        let each = self.dimensions.iter();
        let each = each.map(|dimension| dimension.joint.extent());
        let fields = each.fold((0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
        cost(fields, self.dimensions.len(), groups, self.visits)
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let dimensions = self.dimensions.iter().map(Dimension::bytes);
        dimensions.sum::<usize>() + size_of_val(&*self.ranks) + size_of_val(&*self.least)
    }
}

/// The summaries of a frame's classes, of one group of words, by dimension.
type Here = [Summary; DIMENSIONS_MAX];

/// Comes by the words that no summary of a frame's classes excludes, as long as it is to go on.
#[inline(always)]
fn visit(
    dimensions: &[Dimension],
    classes: &[[u16; 1]; DIMENSIONS_MAX],
    mut look: impl FnMut(usize, &Here) -> ControlFlow<()>,
) {
    let groups = dimensions.first().map_or(0, Dimension::groups);
    let mut here = [Summary::default(); DIMENSIONS_MAX];
    for group in 0..groups {
        let mut words = u64::MAX;
        let both = dimensions.iter().zip(classes);
        for (here, (dimension, [class])) in here.iter_mut().zip(both) {
            *here = dimension.summary(*class, group);
            words &= here.words | dimension.wild_summary[group];
        }
        while words != 0 {
            let word = group * WORD + words.trailing_zeros() as usize;
            if look(word, &here).is_break() {
                return;
            }
            words &= words - 1;
        }
    }
}

/// The rules of a word that are in the vectors of all dimensions.
#[inline(always)]
fn rules(dimensions: &[Dimension], here: &Here, word: usize) -> u64 {
    let both = dimensions.iter().zip(here);
    both.fold(u64::MAX, |rules, (dimension, summary)| {
        rules & dimension.word(*summary, word)
    })
}

/// What a lookup takes, in instructions as callgrind counts them, where so many fields are
/// searched and so many others looked up.
pub(super) const fn cost(
    (searched, others): (usize, usize),
    dimensions: usize,
    groups: usize,
    visits: usize,
) -> usize {
    const ALWAYS: usize = 60;
    const SUMMARY: usize = 10;
    const VISIT: usize = 20;
    const WORD: usize = 12;
    let classes = searched * SEARCH + others * LOOK;
    let visit = VISIT + dimensions * WORD;
    ALWAYS + classes + dimensions * groups * SUMMARY + visits * visit
}

//! Bit vectors: many rules of many shapes, found in as many steps as there are
//! fields, whatever the frame.
//!
//! Each rule has a bit. Each field on which some rule has a condition is a *dimension*:
//! a frame's value in it belongs to a *class* of values that the same rules want, and the
//! class has a vector of their bits. The rules that a frame fits have their bit in the
//! vectors of all dimensions.
//!
//! Vectors of few rules are kept whole, those of many as summaries and the words that these
//! name; each says what a lookup costs. What all rules want alike is no dimension, but asked
//! for beforehand.

mod build;
mod classes;
mod dimension;
mod field;
mod joint;
mod sparse;
mod whole;

use std::sync::Arc;

use pipeline::Rule;

use crate::ahead::AHEAD;
use crate::lanes::{Lanes, Spot};
use crate::places::Places;
use crate::prefix::NONE;
use sparse::Sparse;
use whole::Whole;

/// Most rules of one set of vectors: a summary has four words then.
pub(crate) const RULES_MAX: usize = 16_384;

/// Most dimensions: more than twice as many as the fields of a rule of OpenFlow 1.0.
const DIMENSIONS_MAX: usize = 32;

/// Most words of all vectors of a set: eight megabytes, so that some sets find room in a
/// cache of the third level.
const WORDS_MAX: usize = 1 << 20;

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

/// The vectors, whole where rules are so few that they have one quad of words, two or four.
#[derive(Debug)]
enum Vectors {
    One(Whole<1>),
    Two(Whole<2>),
    Four(Whole<4>),
    Sparse(Sparse),
}

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Bits {
    guards: Box<[Guard]>,
    vectors: Vectors,
}

impl Bits {
    /// The vectors of these rules, which stand in the order in which they are tried.
    pub(crate) fn of(rules: &[Arc<Rule>]) -> Result<Self, Unfit> {
        build::build(rules)
    }

    /// The place among all rules of the one that the frame finds, of those that are `seen`.
    #[inline]
    pub(crate) fn find(&self, lanes: &Lanes, seen: impl Fn(usize) -> bool) -> Option<usize> {
        if !self.lets_pass(lanes) {
            return None;
        }
        match &self.vectors {
            Vectors::One(whole) => whole.find(lanes, seen),
            Vectors::Two(whole) => whole.find(lanes, seen),
            Vectors::Four(whole) => whole.find(lanes, seen),
            Vectors::Sparse(sparse) => sparse.find(lanes, seen),
        }
    }

    /// The places of the rules that these frames find if all rules are there; [`NONE`] of those
    /// that find none.
    #[inline]
    pub(crate) fn likely_each(&self, lanes: &[Lanes; AHEAD], of: Places) -> [u32; AHEAD] {
        let of = match self.guards.is_empty() {
            true => of,
            false => of.fold(Places::NONE, |mut passing, place| {
                let passes = self.lets_pass(&lanes[place % AHEAD]);
                passing.add(Places::of_if(place, passes));
                passing
            }),
        };
        let mut each = match &self.vectors {
            Vectors::One(whole) => whole.first_each(lanes, of),
            Vectors::Two(whole) => whole.first_each(lanes, of),
            Vectors::Four(whole) => whole.first_each(lanes, of),
            Vectors::Sparse(sparse) => sparse.first_each(lanes, of),
        };
        for place in Places::ALL.without(of) {
            each[place % AHEAD] = NONE;
        }
        each
    }

    #[inline]
    fn lets_pass(&self, lanes: &Lanes) -> bool {
        self.guards.iter().all(|guard| guard.lets_pass(lanes))
    }

    /// What a lookup takes, in modelled instructions.
    pub(crate) fn cost(&self) -> usize {
        match &self.vectors {
            Vectors::One(whole) => whole.cost(),
            Vectors::Two(whole) => whole.cost(),
            Vectors::Four(whole) => whole.cost(),
            Vectors::Sparse(sparse) => sparse.cost(),
        }
    }

    /// What a lookup looks at, in words.
    pub(crate) fn describe(&self) -> String {
        let (searched, others, columns) = match &self.vectors {
            Vectors::One(whole) => whole.extent(),
            Vectors::Two(whole) => whole.extent(),
            Vectors::Four(whole) => whole.extent(),
            Vectors::Sparse(sparse) => {
                let (dimensions, visits) = sparse.extent();
                return format!("{dimensions} dimensions, {visits} words looked at");
            }
        };
        let dimensions = searched + others;
        format!("{dimensions} dimensions in {columns} columns, {searched} of them searched")
    }

    /// What a lookup among so many rules is likely to take, in modelled instructions: those
    /// of access lists have two addresses, which are searched, four other dimensions, and a
    /// frame looks at few words of many.
    pub(crate) fn likely_cost(rules: usize) -> usize {
        match rules {
            ..=whole::RULES_MAX => whole::cost((2, 4), 3 * whole::quads(rules)),
            _ => sparse::cost((2, 4), 3, rules.div_ceil(WORD).div_ceil(WORD), 2),
        }
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.vectors {
            Vectors::One(whole) => whole.bytes(),
            Vectors::Two(whole) => whole.bytes(),
            Vectors::Four(whole) => whole.bytes(),
            Vectors::Sparse(sparse) => sparse.bytes(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Prefixes of one field: a search in the field's rows finds the longest, and those around it
//! are found from there. All else that the rules ask for is the same for all.
//!
//! Whether longer prefixes are tried before shorter ones, as they are where networks are
//! routed, is left to the priorities: of the prefixes around a value one is looked at only
//! if a rule of it or around it could still be tried before what was found.
//!
//! Cost of a lookup, in modelled instructions: a search, so much for each thing that is the
//! same for all, and so much for each prefix that lies around another, of which the deepest
//! has the most.

use std::sync::Arc;

use pipeline::Rule;

use crate::ahead::AHEAD;
use crate::lanes::{Asked, Lanes, Spot, asked};
use crate::places::Places;
use crate::rows::{Making, Rows};

/// What a lookup is likely to take, in modelled instructions: three prefixes around each
/// other.
pub(crate) const LIKELY_COST: usize = 160;

/// Most rules: all are sorted at once, on the thread that a flow-mod came by.
pub(crate) const RULES_MAX: usize = 131_072;

/// No node, and no rule.
pub(crate) const NONE: u32 = u32::MAX;

/// What rules have in common that differ in the prefix of one field only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Family {
    spot: Spot,
    others: Vec<(Spot, u64, u64)>,
}

impl Family {
    /// The families that a rule may be of: one for each field of which it asks upper bits.
    pub(crate) fn all_of(rule: &Rule) -> impl Iterator<Item = Self> {
        let all = asked(rule.matching());
        let spots: Vec<_> = all
            .iter()
            .filter(|asked| is_prefix(asked))
            .map(|asked| asked.spot)
            .collect();
        spots.into_iter().map(move |spot| Self {
            spot,
            others: without(&all, spot),
        })
    }

    /// Whether a rule is of this family.
    pub(crate) fn has(&self, rule: &Rule) -> bool {
        self.prefix_of(rule).is_some()
    }

    /// The value and the mask of a rule's prefix, if it is of this family.
    fn prefix_of(&self, rule: &Rule) -> Option<(u64, u64)> {
        let all = asked(rule.matching());
        let own = all.iter().find(|asked| asked.spot == self.spot)?;
        let is_one = is_prefix(own) && without(&all, self.spot) == self.others;
        is_one.then_some((own.value, own.mask))
    }
}

fn is_prefix(asked: &Asked) -> bool {
    let without = asked.spot.full() & !asked.mask;
    without & (without + 1) == 0
}

fn without(all: &[Asked], spot: Spot) -> Vec<(Spot, u64, u64)> {
    let others = all.iter().filter(|asked| asked.spot != spot);
    others
        .map(|asked| (asked.spot, asked.value, asked.mask))
        .collect()
}

/// A prefix.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Where its rules begin and end.
    first: u32,
    end: u32,
    /// The one around it.
    around: u32,
    /// The place of the rule that is tried first of its own and those around it.
    least: u32,
}

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Prefix {
    family: Family,
    rows: Rows,
    /// The first is for values that no prefix takes.
    nodes: Box<[Node]>,
    /// By node: the places of its rules, in the order in which they are tried.
    places: Box<[u32]>,
    /// How many prefixes lie around each other at most.
    depth: usize,
}

impl Prefix {
    /// The prefixes of these rules, which stand in the order in which they are tried. All
    /// must be of the family; none if one is not, or they are too many.
    pub(crate) fn of(family: Family, rules: &[Arc<Rule>]) -> Option<Self> {
        if rules.len() > RULES_MAX {
            return None;
        }
        let mut prefixes = Vec::with_capacity(rules.len());
        for (place, rule) in (0..).zip(rules) {
            let (value, mask) = family.prefix_of(rule)?;
            prefixes.push((value, mask, place));
        }
        prefixes.sort_unstable();
        let mut nodes = vec![Node {
            first: 0,
            end: 0,
            around: NONE,
            least: NONE,
        }];
        let (mut depths, mut making) = (vec![0_usize], Making::new(family.spot.full()));
        let mut first = 0;
        for same in prefixes.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let (value, mask, least): (u64, u64, u32) = same[0];
            let around = making.around(value);
            let outer = nodes[around as usize];
            let end = first + u32::try_from(same.len()).expect("they are not so many");
            making.add(
                value,
                mask,
                u32::try_from(nodes.len()).expect("they are not so many"),
            );
            nodes.push(Node {
                first,
                end,
                around,
                least: least.min(outer.least),
            });
            depths.push(depths[around as usize] + 1);
            first = end;
        }
        let mut rows = making.done();
        rows.tell(|node| nodes[node as usize].least);
        Some(Self {
            family,
            rows,
            nodes: nodes.into(),
            places: prefixes.into_iter().map(|(.., place)| place).collect(),
            depth: depths.into_iter().max().unwrap_or(0),
        })
    }

    /// The value of the field, if the frame has all else that the rules ask for.
    #[inline]
    fn value(&self, lanes: &Lanes) -> Option<u64> {
        let word = |spot: Spot| lanes.word(spot.lane) >> spot.shift;
        let mut others = self.family.others.iter();
        let spot = self.family.spot;
        others
            .all(|(spot, value, mask)| word(*spot) & mask == *value)
            .then(|| word(spot) & spot.full())
    }

    /// The places of the rules that these frames find if all rules are there; [`NONE`] of those
    /// that find none. What is far away is asked for of all of them together: rows, and what
    /// `prefetch` asks for of a place.
    #[inline]
    pub(crate) fn likely_each(
        &self,
        lanes: &[Lanes; AHEAD],
        of: Places,
        prefetch: impl Fn(u32),
    ) -> [u32; AHEAD] {
        let mut likely = [NONE; AHEAD];
        for place in of {
            if let Some(value) = self.value(&lanes[place % AHEAD]) {
                let first = self.rows.first_of(value);
                self.rows.prefetch(first);
                likely[place % AHEAD] = first;
            }
        }
        let spot = self.family.spot;
        for place in of {
            let place = place % AHEAD;
            if likely[place] != NONE {
                let value = lanes[place].word(spot.lane) >> spot.shift & spot.full();
                likely[place] = self.rows.told(value, likely[place]);
                prefetch(likely[place]);
            }
        }
        likely
    }

    /// The place of the rule that the frame finds, of those that are `seen`.
    #[inline]
    pub(crate) fn find(&self, lanes: &Lanes, seen: impl Fn(usize) -> bool) -> Option<usize> {
        let value = self.value(lanes)?;
        let mut node = self.nodes[self.rows.find(value) as usize];
        // Mostly all rules are there, and the first of all that fit is the one.
        if node.least == NONE || seen(node.least as usize) {
            return (node.least != NONE).then_some(node.least as usize);
        }
        let mut best = NONE;
        while node.least < best {
            let places = &self.places[node.first as usize..node.end as usize];
            let found = places.iter().take_while(|place| **place < best);
            best = found
                .copied()
                .find(|place| seen(*place as usize))
                .unwrap_or(best);
            match self.nodes.get(node.around as usize) {
                Some(around) => node = *around,
                None => break,
            }
        }
        (best != NONE).then_some(best as usize)
    }

    /// How many prefixes lie around each other at most.
    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    /// What a lookup takes, in modelled instructions: all prefixes around a value are
    /// looked at only if the shorter are tried before the longer.
    pub(crate) fn cost(&self) -> usize {
        const ALWAYS: usize = 80;
        const OTHER: usize = 7;
        const AROUND: usize = 20;
        ALWAYS + self.family.others.len() * OTHER + self.depth * AROUND
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes() + size_of_val(&*self.nodes) + size_of_val(&*self.places)
    }
}

#[cfg(test)]
mod tests;

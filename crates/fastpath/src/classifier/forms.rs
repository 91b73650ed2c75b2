//! Which rules of a table are found by their shape, and which are compiled together.
//!
//! A rule that is added goes to the tuple of its shape, at the same cost however large
//! the table is. Many tuples cost a probe each, so when there are more than the last
//! *plan* foresaw, a new one is made: the largest tuples stay, and the rules of the others
//! are compiled into a base; how many stay is chosen so that a lookup costs least.
//!
//! A new base takes the rules of those bases in which fewer than eight times as many
//! live as have come. So a rule is compiled anew some eight times for each factor of eight
//! by which its table grows, whatever is added in whatever order, and a table has few
//! bases.

use std::collections::BTreeMap;
use std::sync::Arc;

use pipeline::Rule;

use super::Table;
use crate::base::{Base, Unfit};
use crate::direct;
use crate::lanes::{Conditions, LANES};
use crate::segment::Epoch;
use crate::shape::{Hasher, Shape};
use crate::tuple::Tuple;

/// What a probe of a tuple takes, in instructions as callgrind counts them.
pub(super) const PROBE: usize = 110;

/// How many times as many live in a base that is left as it is as have come since.
const GROWTH: usize = 8;

/// Probes that are borne until the next plan, as many as a lookup in a base costs.
const SLACK: usize = 3;

/// Tuples that stay at most, however large they are.
const TUPLES_MAX: usize = 64;

/// What the last plan foresaw, and what has happened since.
#[derive(Debug)]
pub(super) struct Plan {
    /// Tuples that are borne.
    tuples: usize,
    /// Rules there were.
    rules: usize,
    /// Rules that have come since.
    pub(super) added: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            tuples: SLACK,
            rules: 0,
            added: 0,
        }
    }
}

impl Table {
    /// Rules that are alive in tuples and bases.
    pub(super) fn rules(&self) -> usize {
        let of_bases = self.bases.iter().map(|base| base.len());
        self.in_tuples + of_bases.sum::<usize>()
    }

    /// Plans anew if it is time. Answers whether the table is to be shown anew.
    pub(super) fn settle(&mut self, hasher: Hasher, epoch: Epoch) -> bool {
        let is_due = self.tuples.len() > self.plan.tuples
            || self.plan.added > GROWTH.max(self.plan.rules)
            || self.bases.iter().any(|base| base.is_worn())
            || self.in_tuples > 0 && self.rules() <= direct::RULES_MAX;
        if !is_due || self.clauses > 0 {
            return false;
        }
        self.reform(hasher, epoch);
        true
    }

    /// Distributes the rules anew.
    fn reform(&mut self, hasher: Hasher, epoch: Epoch) {
        let mut pool = self.take_bases();
        let kept = self.kept_shapes(&pool);
        for shape in self.shapes_but(&kept) {
            let tuple = self.tuples.remove(&shape).expect("it is one of them");
            self.in_tuples -= tuple.len();
            pool.extend(tuple.living());
        }
        let (staying, compiled): (Vec<_>, Vec<_>) = pool
            .into_iter()
            .partition(|rule| kept.contains_key(&shape_of(rule)));
        for rule in &staying {
            self.put_in_tuple(rule, hasher, epoch);
        }
        let mut bearable = self.tuples.len() + SLACK;
        if !compiled.is_empty() {
            let again = compiled.clone();
            match Base::of(compiled) {
                Ok(base) => self.bases.push(Arc::new(base)),
                Err(Unfit) => {
                    for rule in &again {
                        self.put_in_tuple(rule, hasher, epoch);
                    }
                    // Once more when there are twice as many.
                    bearable = 2 * self.tuples.len();
                }
            }
        }
        self.plan = Plan {
            tuples: bearable,
            rules: self.rules(),
            added: 0,
        };
    }

    /// Takes out those bases that are worn or few beside what has come, and answers
    /// their rules.
    fn take_bases(&mut self) -> Vec<Arc<Rule>> {
        let mut pool = Vec::new();
        let mut come = self.plan.added;
        // The smallest stand last.
        while let Some(base) = self.bases.pop_if(|base| base.len() < GROWTH * come) {
            come += base.len();
            pool.extend(base.living().cloned());
        }
        let worn = self.bases.extract_if(.., |base| base.is_worn());
        worn.for_each(|base| pool.extend(base.living().cloned()));
        pool
    }

    /// The shapes whose rules are found by a probe.
    fn kept_shapes(&self, pool: &[Arc<Rule>]) -> BTreeMap<Shape, usize> {
        let tuples = self.tuples.iter();
        let mut sizes: BTreeMap<Shape, usize> = tuples
            .map(|(shape, tuple)| (shape.clone(), tuple.len()))
            .collect();
        for rule in pool {
            *sizes.entry(shape_of(rule)).or_default() += 1;
        }
        let mut shapes: Vec<_> = sizes.into_iter().collect();
        shapes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        let sizes: Vec<_> = shapes.iter().map(|(_, size)| *size).collect();
        shapes.truncate(choose(&sizes));
        shapes.into_iter().collect()
    }

    fn shapes_but(&self, kept: &BTreeMap<Shape, usize>) -> Vec<Shape> {
        let shapes = self.tuples.keys();
        let others = shapes.filter(|shape| !kept.contains_key(*shape));
        others.cloned().collect()
    }

    fn put_in_tuple(&mut self, rule: &Arc<Rule>, hasher: Hasher, epoch: Epoch) {
        let conditions = Conditions::of(rule.matching());
        let shape = shape_of(rule);
        let fresh = || Tuple::new(shape.clone(), hasher, epoch);
        let tuple = self.tuples.entry(shape.clone()).or_insert_with(fresh);
        let (_, hash) = tuple.place_of(&conditions);
        match tuple.insert(hash, rule, epoch) {
            Ok(_) => self.in_tuples += 1,
            Err(_) => self.outside += 1,
        }
    }
}

/// How many of tuples of these sizes, the largest first, are to stay: so many that a
/// lookup is likely to cost least.
fn choose(sizes: &[usize]) -> usize {
    let mut left: usize = sizes.iter().sum();
    let mut best = (usize::MAX, sizes.len());
    for kept in 0..=sizes.len().min(TUPLES_MAX) {
        // Of two that cost the same, tuples are written to more easily.
        if let Some(cost) = Base::likely_cost(left)
            && cost + kept * PROBE <= best.0
        {
            best = (cost + kept * PROBE, kept);
        }
        left -= sizes.get(kept).copied().unwrap_or_default();
    }
    best.1
}

fn shape_of(rule: &Rule) -> Shape {
    let mut room = [(0, 0); LANES];
    Shape::of(Conditions::of(rule.matching()).masks(&mut room))
}

#[cfg(test)]
mod tests;

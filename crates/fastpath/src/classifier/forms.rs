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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pipeline::Rule;

use super::Table;
use crate::base::{Base, Unfit, order};
use crate::bits;
use crate::direct;
use crate::lanes::{Conditions, LANES};
use crate::prefix::{self, Family};
use crate::segment::Epoch;
use crate::shape::{Hasher, Shape};
use crate::tuple::{TooManyAlike, Tuple};

/// What a probe of a tuple takes, in instructions as callgrind counts them.
pub(super) const PROBE: usize = 110;

/// How many times as many live in a base that is left as it is as have come since.
const GROWTH: usize = 8;

/// Probes that are borne until the next plan, as many as a lookup in a base costs.
const SLACK: usize = 3;

/// Tuples that stay at most, however large they are.
const TUPLES_MAX: usize = 64;

/// Of so many shapes, the largest, it is asked whether they are of one family.
const FAMILIES_OF: usize = 256;

/// Rules that are compiled into bases at most; beyond, those of the largest tuples stay.
const COMPILED_MAX: usize = 8 * bits::RULES_MAX;

/// What the last plan foresaw, and what has happened since.
#[derive(Debug)]
pub(super) struct Plan {
    /// Tuples that it left, and whether it left no base as it was.
    kept: usize,
    is_whole: bool,
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
            kept: 0,
            is_whole: true,
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

    /// Whether a lookup would cost less if all was compiled anew.
    pub(super) fn is_untidy(&self) -> bool {
        self.tuples.len() != self.plan.kept || !self.plan.is_whole
    }

    /// Plans anew if it is time. Answers whether the table is to be shown anew.
    pub(super) fn settle(&mut self, hasher: Hasher, epoch: Epoch) -> bool {
        let is_due = self.tuples.len() > self.plan.tuples
            || self.plan.added > GROWTH.max(self.plan.rules)
            || self.bases.iter().any(|base| base.is_worn())
            || self.in_tuples > 0 && self.rules() <= direct::RULES_MAX;
        if is_due {
            let pool = self.take_bases();
            self.reform(pool, hasher, epoch);
        }
        is_due
    }

    /// Compiles all anew.
    pub(super) fn tidy(&mut self, hasher: Hasher, epoch: Epoch) {
        let bases = std::mem::take(&mut self.bases);
        let living = bases.iter().flat_map(|base| base.living().cloned());
        self.reform(living.collect(), hasher, epoch);
    }

    /// Distributes the rules of tuples and these anew.
    fn reform(&mut self, mut pool: Vec<Arc<Rule>>, hasher: Hasher, epoch: Epoch) {
        let is_whole = self.bases.is_empty();
        let Choice { kept, family } = self.choice(&pool);
        for shape in self.shapes_but(&kept) {
            let tuple = self.tuples.remove(&shape).expect("it is one of them");
            self.in_tuples -= tuple.len();
            pool.extend(tuple.living());
        }
        let is_kept = |rule: &Arc<Rule>| kept.contains(&shape_of(rule));
        let (staying, compiled): (Vec<_>, Vec<_>) = pool.into_iter().partition(is_kept);
        self.put_in_tuples(&staying, hasher, epoch);
        let mut bearable = SLACK;
        if self.compile(compiled, family, hasher, epoch) == Err(Unfit) {
            // Once more when there are twice as many.
            bearable = self.tuples.len();
        }
        self.plan = Plan {
            kept: self.tuples.len(),
            is_whole,
            tuples: self.tuples.len() + bearable,
            rules: self.rules(),
            added: 0,
        };
    }

    /// Makes bases of these rules, of those of the family first; what fits none goes to
    /// tuples.
    fn compile(
        &mut self,
        rules: Vec<Arc<Rule>>,
        family: Option<Family>,
        hasher: Hasher,
        epoch: Epoch,
    ) -> Result<(), Unfit> {
        let mut others = rules;
        if let Some(family) = family {
            let of_family: Vec<_> = others.extract_if(.., |rule| family.has(rule)).collect();
            match Base::of_family(family, of_family.clone()) {
                Ok(base) => self.bases.push(Arc::new(base)),
                Err(Unfit) => others.extend(of_family),
            }
        }
        // The first are tried first: a lookup that finds one there is done.
        others.sort_by(order);
        let mut all_fit = Ok(());
        for part in others.chunks(bits::RULES_MAX) {
            match Base::of(part.to_vec()) {
                Ok(base) => self.bases.push(Arc::new(base)),
                Err(Unfit) => {
                    self.put_in_tuples(part, hasher, epoch);
                    all_fit = Err(Unfit);
                }
            }
        }
        self.bases.sort_by_key(|base| std::cmp::Reverse(base.len()));
        all_fit
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

    /// What is likely to cost a lookup least, of the rules in tuples and these.
    fn choice(&self, pool: &[Arc<Rule>]) -> Choice {
        let tuples = self.tuples.iter();
        let mut shapes: BTreeMap<Shape, (usize, Vec<Arc<Rule>>)> = tuples
            .map(|(shape, tuple)| (shape.clone(), (tuple.len(), tuple.some())))
            .collect();
        for rule in pool {
            let (size, some) = shapes.entry(shape_of(rule)).or_default();
            *size += 1;
            if some.is_empty() {
                some.push(Arc::clone(rule));
            }
        }
        let mut shapes: Vec<_> = shapes.into_iter().collect();
        shapes.sort_by_key(|(_, (size, _))| std::cmp::Reverse(*size));
        let mut best = Choice::of(&shapes, None);
        if let Some(family) = largest_family(&shapes) {
            let is_of_it = |some: &[Arc<Rule>]| some.iter().all(|rule| family.has(rule));
            shapes.retain(|(_, (_, some))| !is_of_it(some));
            let others = Choice::of(&shapes, Some(family));
            // What is written to more easily is worth a probe.
            if others.0 + prefix::LIKELY_COST + PROBE < best.0 {
                best = others;
            }
        }
        best.1
    }

    fn shapes_but(&self, kept: &BTreeSet<Shape>) -> Vec<Shape> {
        let shapes = self.tuples.keys();
        let others = shapes.filter(|shape| !kept.contains(*shape));
        others.cloned().collect()
    }

    fn put_in_tuples(&mut self, rules: &[Arc<Rule>], hasher: Hasher, epoch: Epoch) {
        for rule in rules {
            let conditions = Conditions::of(rule.matching());
            let shape = shape_of(rule);
            let fresh = || Tuple::new(shape.clone(), hasher, epoch);
            let tuple = self.tuples.entry(shape.clone()).or_insert_with(fresh);
            let (_, key) = tuple.place_of(&conditions);
            match tuple.insert(&key, rule, epoch) {
                Ok(_) => self.in_tuples += 1,
                Err(TooManyAlike) => self.outside += 1,
            }
        }
    }
}

/// Where rules are to be found.
struct Choice {
    /// The shapes whose tuples stay.
    kept: BTreeSet<Shape>,
    /// The family whose rules are found by their prefix.
    family: Option<Family>,
}

/// Shapes, how many rules each has, and some of them.
type Sized = (Shape, (usize, Vec<Arc<Rule>>));

impl Choice {
    /// The best for these shapes, the largest first, with what it is likely to cost.
    fn of(shapes: &[Sized], family: Option<Family>) -> (usize, Self) {
        let sizes: Vec<_> = shapes.iter().map(|(_, (size, _))| *size).collect();
        let (cost, kept) = choose(&sizes);
        let kept = shapes[..kept].iter().map(|(shape, _)| shape.clone());
        let kept = kept.collect();
        (cost, Self { kept, family })
    }
}

/// The family of the most rules, if there is one of several shapes.
fn largest_family(shapes: &[Sized]) -> Option<Family> {
    let mut families: BTreeMap<Family, (usize, usize)> = BTreeMap::new();
    for (_, (size, some)) in shapes.iter().take(FAMILIES_OF) {
        for family in some.iter().take(1).flat_map(|rule| Family::all_of(rule)) {
            let (shapes, rules) = families.entry(family).or_default();
            *shapes += 1;
            *rules += size;
        }
    }
    let fits = |(shapes, rules): (usize, usize)| shapes > 1 && rules <= prefix::RULES_MAX;
    let fitting = families.into_iter().filter(|(_, counts)| fits(*counts));
    let largest = fitting.max_by_key(|(_, (_, rules))| *rules);
    largest.map(|(family, _)| family)
}

/// What a lookup is likely to cost least, and how many of tuples of these sizes, the
/// largest first, are to stay for that.
fn choose(sizes: &[usize]) -> (usize, usize) {
    let mut left: usize = sizes.iter().sum();
    let mut best = (usize::MAX, sizes.len());
    for kept in 0..=sizes.len().min(TUPLES_MAX) {
        // Of two that cost the same, tuples are written to more easily.
        let cost = Base::likely_cost(left) + kept * PROBE;
        if left <= COMPILED_MAX && cost <= best.0 {
            best = (cost, kept);
        }
        left -= sizes.get(kept).copied().unwrap_or_default();
    }
    best
}

fn shape_of(rule: &Rule) -> Shape {
    let mut room = [(0, 0); LANES];
    Shape::of(Conditions::of(rule.matching()).masks(&mut room))
}

#[cfg(test)]
mod tests;

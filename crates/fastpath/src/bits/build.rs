//! From rules to their vectors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pipeline::Rule;

use super::dimension::{Classes, Dimension, Summary};
use super::{Bits, DIMENSIONS_MAX, Guard, RULES_MAX, Unfit, WORD, WORDS_MAX};
use crate::lanes::{Asked, Conditions, Spot, asked};
use crate::rows::{Making, Rows};

/// How many rules' own values are looked up to see what that takes.
const SAMPLES: usize = 64;

/// Words of vectors that are kept whole: of a thousand rules, a summary has one word, and
/// a class of each rule takes 128 bytes.
const DENSE_MAX: usize = 16;

/// What makes a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Axis {
    spot: Spot,
    /// Whether its conditions are on its upper bits.
    is_nested: bool,
}

/// What the rule of a bit wants in a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Condition {
    value: u64,
    mask: u64,
    bit: u32,
}

impl Condition {
    fn wants_the_same(&self, other: &Self) -> bool {
        (self.value, self.mask) == (other.value, other.mask)
    }
}

/// Words of a vector that are not zero, by their number.
type Sparse = Vec<(u32, u64)>;

pub(super) fn build(rules: &[Arc<Rule>]) -> Result<Bits, Unfit> {
    if rules.len() > RULES_MAX {
        return Err(Unfit);
    }
    let (axes, wanted) = axes(rules)?;
    let ranks = in_order(&axes, &wanted);
    let groups = rules.len().div_ceil(WORD).div_ceil(WORD).max(1);
    let (mut guards, mut dimensions, mut room) = (Vec::new(), Vec::new(), WORDS_MAX);
    for axis in &axes {
        let conditions = conditions_on(*axis, &wanted, &ranks);
        let [first, .., last] = conditions[..] else {
            dimensions.push(dimension(*axis, &conditions, rules.len(), &mut room)?);
            continue;
        };
        if conditions.len() == rules.len() && first.wants_the_same(&last) {
            guards.push(Guard {
                spot: axis.spot,
                mask: first.mask,
                value: first.value,
            });
        } else {
            dimensions.push(dimension(*axis, &conditions, rules.len(), &mut room)?);
        }
    }
    // What has the most classes excludes the most.
    dimensions.sort_by_key(|(classes, _)| std::cmp::Reverse(*classes));
    let dimensions = dimensions.into_iter().map(|(_, dimension)| dimension);
    let least = ranks.chunks(WORD).map(|ranks| ranks.iter().min().copied());
    let mut bits = Bits {
        guards: guards.into(),
        dimensions: dimensions.collect(),
        groups,
        least: least.map(Option::unwrap_or_default).collect(),
        ranks: ranks.into(),
        visits: 0,
    };
    bits.visits = sampled(&bits, rules);
    Ok(bits)
}

/// What each rule wants, dimension by dimension.
type Wanted = Vec<Vec<(Axis, u64, u64)>>;

/// The dimensions that there are, and what each rule wants of them.
fn axes(rules: &[Arc<Rule>]) -> Result<(Vec<Axis>, Wanted), Unfit> {
    let of_rule = |rule: &Arc<Rule>| {
        let asked = asked(rule.matching()).into_iter();
        let split = |asked: Asked| split(asked.spot, asked.value, asked.mask);
        asked.flat_map(split).collect::<Vec<_>>()
    };
    let wanted: Wanted = rules.iter().map(of_rule).collect();
    let mut axes = Vec::new();
    for (axis, ..) in wanted.iter().flatten() {
        if let Err(place) = axes.binary_search(axis) {
            axes.insert(place, *axis);
        }
        if axes.len() > DIMENSIONS_MAX {
            return Err(Unfit);
        }
    }
    Ok((axes, wanted))
}

/// A condition on upper bits is one; any other is one for each octet that it touches.
fn split(spot: Spot, value: u64, mask: u64) -> Vec<(Axis, u64, u64)> {
    let without = spot.full() & !mask;
    if without & (without + 1) == 0 {
        let is_nested = true;
        return vec![(Axis { spot, is_nested }, value, mask)];
    }
    let octets = (0..spot.bits).step_by(8).map(|below| {
        let spot = Spot {
            shift: spot.shift + below,
            bits: 8,
            ..spot
        };
        let is_nested = false;
        let [value, mask] = [value, mask].map(|word| word >> below & 0xff);
        (Axis { spot, is_nested }, value, mask)
    });
    octets.filter(|(.., mask)| *mask != 0).collect()
}

/// The ranks of the rules, by bit: rules that want something in the same dimensions lie
/// together, and of those the ones that want the same or nearly, first in the dimension
/// where conditions lie most within each other. So the rules of a class are in few words.
fn in_order(axes: &[Axis], wanted: &Wanted) -> Vec<u32> {
    let overlap = |axis: &Axis| std::cmp::Reverse(overlap(*axis, wanted));
    let mut axes = axes.to_vec();
    axes.sort_by_cached_key(overlap);
    let key = |rule: &Vec<(Axis, u64, u64)>| {
        let here = |axis: &Axis| rule.iter().find(|(of, ..)| of == axis);
        let mut signature = 0_u32;
        let mut values = Vec::with_capacity(rule.len());
        for (place, axis) in axes.iter().enumerate() {
            if let Some((_, value, mask)) = here(axis) {
                signature |= 1 << place;
                values.push((*value, *mask));
            }
        }
        (signature, values)
    };
    let mut ranks: Vec<u32> = (0..).take(wanted.len()).collect();
    ranks.sort_by_cached_key(|rank| key(&wanted[*rank as usize]));
    word_by_word(&ranks)
}

/// The same, in each word in the order in which they are tried, and so the words by what is
/// tried first of each: whoever has found a rule is done with all that are tried later. The
/// last word stays, which may not be full.
fn word_by_word(ranks: &[u32]) -> Vec<u32> {
    let (whole, rest) = ranks.as_chunks::<WORD>();
    let mut whole = whole.to_vec();
    whole.iter_mut().for_each(|word| word.sort_unstable());
    whole.sort_unstable_by_key(|word| word[0]);
    let mut rest = rest.to_vec();
    rest.sort_unstable();
    whole.into_iter().flatten().chain(rest).collect()
}

/// How many conditions the rules have around conditions in a dimension, all in all.
fn overlap(axis: Axis, wanted: &Wanted) -> usize {
    let of_rule = |rule: &Vec<(Axis, u64, u64)>| {
        let here = rule.iter().find(|(of, ..)| *of == axis);
        here.map(|(_, value, mask)| (*value, *mask))
    };
    let mut all: Vec<_> = wanted.iter().filter_map(of_rule).collect();
    all.sort_unstable();
    let mut distinct = all.clone();
    distinct.dedup();
    let before = |value: u64| distinct.partition_point(|(other, _)| *other <= value);
    let around = |(value, mask): &(u64, u64)| {
        before(value | !mask & axis.spot.full())
            - distinct.partition_point(|other| other < &(*value, *mask))
    };
    all.iter().map(around).sum()
}

/// All conditions in one dimension, by value, the wider before those within them.
fn conditions_on(axis: Axis, wanted: &Wanted, ranks: &[u32]) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for (bit, rank) in (0..).zip(ranks) {
        let of_rule = wanted[*rank as usize].iter();
        let here = of_rule.filter(|(of, ..)| *of == axis);
        conditions.extend(here.map(|(_, value, mask)| Condition {
            value: *value,
            mask: *mask,
            bit,
        }));
    }
    conditions.sort_unstable();
    conditions
}

/// How many classes there are, and all of them.
fn dimension(
    axis: Axis,
    conditions: &[Condition],
    rules: usize,
    room: &mut usize,
) -> Result<(usize, Dimension), Unfit> {
    let (words, mut vectors) = (rules.div_ceil(WORD), Vectors::new(room));
    let groups = words.div_ceil(WORD).max(1);
    let is_dense = words <= DENSE_MAX;
    let apart = if is_dense { words + 1 } else { groups };
    let classes = if axis.is_nested {
        by_value(
            axis.spot,
            nested(axis.spot, conditions, &mut vectors, apart)?,
        )
    } else {
        Classes::Octet(octet(conditions, &mut vectors, apart)?)
    };
    let mut wild = vec![u64::MAX; words];
    if let Some(last) = wild.last_mut().filter(|_| !rules.is_multiple_of(WORD)) {
        *last = (1 << (rules % WORD)) - 1;
    }
    for condition in conditions {
        wild[condition.bit as usize / WORD] &= !(1 << (condition.bit as usize % WORD));
    }
    let mut wild_summary = vec![0; groups];
    for (word, _) in wild.iter().enumerate().filter(|(_, bits)| **bits != 0) {
        wild_summary[word / WORD] |= 1 << (word % WORD);
    }
    let (summaries, own) = match is_dense {
        true => (Vec::new(), dense(&vectors.all, &wild)),
        false => summaries(&vectors.all, groups),
    };
    let dimension = Dimension {
        spot: axis.spot,
        full: axis.spot.full(),
        classes,
        wild: wild.into(),
        wild_summary: wild_summary.into(),
        summaries: summaries.into(),
        own: own.into(),
        is_dense,
    };
    Ok((vectors.all.len(), dimension))
}

/// Rows of values; of eight bits at most, each value's own.
fn by_value(spot: Spot, rows: Rows) -> Classes {
    if spot.bits > 8 {
        return Classes::Nested(rows);
    }
    let mut each = Box::new([0; 256]);
    for (value, class) in (0..=spot.full()).zip(each.iter_mut()) {
        *class = rows.find(value);
    }
    Classes::Octet(each)
}

/// The vectors of classes, and the room that is left for more.
struct Vectors<'a> {
    all: Vec<Sparse>,
    room: &'a mut usize,
}

impl<'a> Vectors<'a> {
    /// One class, which no rule wants.
    fn new(room: &'a mut usize) -> Self {
        let all = vec![Sparse::new()];
        Self { all, room }
    }

    /// One more class. Answers its number.
    fn add(&mut self, vector: Sparse) -> Result<usize, Unfit> {
        // A summary takes room too.
        let more = vector.len() + 2;
        *self.room = self.room.checked_sub(more).ok_or(Unfit)?;
        self.all.push(vector);
        Ok(self.all.len() - 1)
    }
}

/// Where a class's summary begins, of summaries that are so far apart.
fn place_of(class: usize, apart: usize) -> u32 {
    u32::try_from(class * apart).expect("there is room for less")
}

/// Classes of values in a row: each condition makes one, which has what those have
/// around it.
fn nested(
    spot: Spot,
    conditions: &[Condition],
    vectors: &mut Vectors<'_>,
    apart: usize,
) -> Result<Rows, Unfit> {
    let mut making = Making::new(spot.full());
    for same in conditions.chunk_by(Condition::wants_the_same) {
        let Condition { value, mask, .. } = same[0];
        let around = making.around(value) as usize / apart;
        let class = vectors.add(union(&vectors.all[around], &bits_of(same)))?;
        making.add(value, mask, place_of(class, apart));
    }
    Ok(making.done())
}

/// Classes of eight bits: values that the same conditions take.
fn octet(
    conditions: &[Condition],
    vectors: &mut Vectors<'_>,
    apart: usize,
) -> Result<Box<[u32; 256]>, Unfit> {
    let each: Vec<_> = conditions.chunk_by(Condition::wants_the_same).collect();
    let mut known = BTreeMap::from([(Vec::new(), 0)]);
    let mut classes = Box::new([0; 256]);
    for (value, place) in (0..).zip(classes.iter_mut()) {
        let takes = |same: &&[Condition]| value & same[0].mask == same[0].value;
        let takers = each.iter().enumerate().filter(|(_, same)| takes(same));
        let takers: Vec<usize> = takers.map(|(number, _)| number).collect();
        let class = match known.get(&takers) {
            Some(class) => *class,
            None => {
                let all = takers.iter().map(|number| bits_of(each[*number]));
                let all = all.reduce(|one, other| union(&one, &other));
                let class = vectors.add(all.unwrap_or_default())?;
                known.insert(takers, class);
                class
            }
        };
        *place = place_of(class, apart);
    }
    Ok(classes)
}

/// The vector of these bits, which stand in order.
fn bits_of(conditions: &[Condition]) -> Sparse {
    let mut words = Sparse::new();
    for bit in conditions.iter().map(|condition| condition.bit) {
        let (word, bit) = (bit / u64::BITS, 1 << (bit % u64::BITS));
        match words.last_mut() {
            Some(last) if last.0 == word => last.1 |= bit,
            _ => words.push((word, bit)),
        }
    }
    words
}

fn union(one: &Sparse, other: &Sparse) -> Sparse {
    let mut all = Sparse::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let Some(next) = match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if a.0 > b.0 => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    } {
        match all.last_mut() {
            Some((word, bits)) if *word == next.0 => *bits |= next.1,
            _ => all.push(*next),
        }
    }
    all
}

/// The summaries of classes, and the words that they name, one behind the other.
fn summaries(vectors: &[Sparse], groups: usize) -> (Vec<Summary>, Vec<u64>) {
    let (mut summaries, mut own) = (Vec::new(), Vec::new());
    for vector in vectors {
        let mut left = vector.iter().peekable();
        for group in 0..groups {
            let words: Range<usize> = group * WORD..(group + 1) * WORD;
            let first = u32::try_from(own.len()).expect("there is room for less");
            let mut summary = Summary { words: 0, first };
            while let Some((word, bits)) = left.next_if(|word| words.contains(&(word.0 as usize))) {
                summary.words |= 1 << (*word as usize % WORD);
                own.push(*bits);
            }
            summaries.push(summary);
        }
    }
    (summaries, own)
}

/// The words of the vectors of classes, one class behind the other, each behind its summary.
fn dense(vectors: &[Sparse], wild: &[u64]) -> Vec<u64> {
    let mut all = Vec::with_capacity(vectors.len() * (wild.len() + 1));
    for vector in vectors {
        let first = all.len() + 1;
        all.push(0);
        all.extend_from_slice(wild);
        for (word, bits) in vector {
            all[first + *word as usize] |= bits;
        }
        let words = all[first..].iter().enumerate();
        all[first - 1] = words.fold(0, |summary, (word, bits)| {
            summary | u64::from(*bits != 0) << word
        });
    }
    all
}

/// The most words that the own values of some of the rules had looked at.
fn sampled(bits: &Bits, rules: &[Arc<Rule>]) -> usize {
    let step = (rules.len() / SAMPLES).max(1);
    let some = rules.iter().step_by(step);
    let visits = some.map(|rule| {
        let mut visits = 0;
        let values = Conditions::of(rule.matching()).values;
        bits.visit(&values, |_, _, _| visits += 1);
        visits
    });
    visits.max().unwrap_or(0)
}

//! From rules to their vectors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pipeline::Rule;

use super::classes::Classes;
use super::dimension::{Dimension, Summary};
use super::field::{Field, Words, all, joined};
use super::joint::Joint;
use super::sparse::Sparse;
use super::whole::{self, Whole};
use super::{Bits, DIMENSIONS_MAX, Guard, RULES_MAX, Unfit, Vectors, WORD, WORDS_MAX};
use crate::lanes::{Asked, Conditions, Spot, asked};
use crate::prefix::NONE;
use crate::rows::{Making, Rows};

/// How many rules' own values are looked up to see what that takes.
const SAMPLES: usize = 64;

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

pub(super) fn build(rules: &[Arc<Rule>]) -> Result<Bits, Unfit> {
    if rules.len() > RULES_MAX {
        return Err(Unfit);
    }
    let (axes, wanted) = axes(rules)?;
    if rules.len() <= whole::RULES_MAX {
        let ranks: Vec<u32> = (0..).take(rules.len()).collect();
        let (guards, fields) = split_up(&axes, &wanted, &ranks)?;
        let vectors = match whole::quads(rules.len()) {
            1 => Whole::of(&ranks, fields).map(Vectors::One),
            2 => Whole::of(&ranks, fields).map(Vectors::Two),
            _ => Whole::of(&ranks, fields).map(Vectors::Four),
        };
        if let Ok(vectors) = vectors {
            return Ok(Bits { guards, vectors });
        }
    }
    let ranks = in_order(&axes, &wanted);
    let (guards, fields) = split_up(&axes, &wanted, &ranks)?;
    let vectors = Vectors::Sparse(sparse(fields, ranks, rules));
    Ok(Bits { guards, vectors })
}

/// What all rules want, and the dimensions in which they differ, where bits have these ranks.
fn split_up(
    axes: &[Axis],
    wanted: &Wanted,
    ranks: &[u32],
) -> Result<(Box<[Guard]>, Vec<Field>), Unfit> {
    let (mut guards, mut fields) = (Vec::new(), Vec::new());
    let mut room = WORDS_MAX;
    for axis in axes {
        let conditions = conditions_on(*axis, wanted, ranks);
        if let [first, .., last] = conditions[..]
            && conditions.len() == wanted.len()
            && first.wants_the_same(&last)
        {
            guards.push(Guard {
                spot: axis.spot,
                mask: first.mask,
                value: first.value,
            });
        } else {
            fields.push(field_of(*axis, &conditions, ranks, &mut room)?);
        }
    }
    Ok((guards.into(), joined(fields, &mut room)))
}

/// Vectors of which the words are kept that are not zero.
fn sparse(mut fields: Vec<Field>, ranks: Vec<u32>, rules: &[Arc<Rule>]) -> Sparse {
    if fields.is_empty() {
        fields.push(Field::of_none(&ranks));
    }
    let groups = rules.len().div_ceil(WORD).div_ceil(WORD);
    // What has the most classes excludes the most.
    fields.sort_by_key(|field| std::cmp::Reverse(field.own.len()));
    let dimension = |field: Field| {
        let mut wild_summary = vec![0; groups];
        for (word, _) in field
            .wild
            .iter()
            .enumerate()
            .filter(|(_, bits)| **bits != 0)
        {
            wild_summary[word / WORD] |= 1 << (word % WORD);
        }
        let (summaries, own) = summaries(&field.own, groups);
        Dimension {
            joint: field.joint,
            wild: field.wild.into(),
            wild_summary: wild_summary.into(),
            summaries: summaries.into(),
            own: own.into(),
        }
    };
    let dimensions = fields.into_iter().map(dimension).collect();
    let step = (rules.len() / SAMPLES).max(1);
    let some = rules.iter().step_by(step);
    let samples = some.map(|rule| Conditions::of(rule.matching()).values);
    Sparse::of(dimensions, ranks, samples)
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
    // In each word in the order in which they are tried, and so the words.
    ranks.resize(ranks.len().next_multiple_of(WORD), NONE);
    let (words, _) = ranks.as_chunks_mut::<WORD>();
    words.iter_mut().for_each(|word| word.sort_unstable());
    words.sort_unstable_by_key(|word| word[0]);
    ranks
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
    for (bit, rank) in (0..).zip(ranks).filter(|(_, rank)| **rank != NONE) {
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

/// The classes of a dimension, and which of the rules that have these ranks want each.
fn field_of(
    axis: Axis,
    conditions: &[Condition],
    ranks: &[u32],
    room: &mut usize,
) -> Result<Field, Unfit> {
    let mut vectors = Drawing::new(room);
    let classes = match axis.is_nested {
        true => {
            let rows = nested(axis.spot, conditions, &mut vectors)?;
            Classes::of_rows(axis.spot, rows)
        }
        false => Classes::of_octet(axis.spot, octet(conditions, &mut vectors)?),
    };
    let mut wild = all(ranks);
    for condition in conditions {
        wild[condition.bit as usize / WORD] &= !(1 << (condition.bit as usize % WORD));
    }
    Ok(Field {
        joint: Joint::of(classes),
        own: vectors.all,
        wild,
    })
}

/// The vectors of classes, and the room that is left for more.
struct Drawing<'a> {
    all: Vec<Words>,
    room: &'a mut usize,
}

impl<'a> Drawing<'a> {
    /// One class, which no rule wants.
    fn new(room: &'a mut usize) -> Self {
        let all = vec![Words::new()];
        Self { all, room }
    }

    /// One more class. Answers its number.
    fn add(&mut self, vector: Words) -> Result<u16, Unfit> {
        // A summary takes room too.
        let more = vector.len() + 2;
        *self.room = self.room.checked_sub(more).ok_or(Unfit)?;
        self.all.push(vector);
        Ok(u16::try_from(self.all.len() - 1).expect("there are not so many rules"))
    }
}

/// Classes of values in a row: each condition makes one, which has what those have
/// around it.
fn nested(spot: Spot, conditions: &[Condition], vectors: &mut Drawing<'_>) -> Result<Rows, Unfit> {
    let mut making = Making::new(spot.full());
    for same in conditions.chunk_by(Condition::wants_the_same) {
        let Condition { value, mask, .. } = same[0];
        let around = making.around(value) as usize;
        let class = vectors.add(union(&vectors.all[around], &bits_of(same)))?;
        making.add(value, mask, class.into());
    }
    Ok(making.done())
}

/// Classes of eight bits: values that the same conditions take.
fn octet(conditions: &[Condition], vectors: &mut Drawing<'_>) -> Result<Box<[u16; 256]>, Unfit> {
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
        *place = class;
    }
    Ok(classes)
}

/// The vector of these bits, which stand in order.
fn bits_of(conditions: &[Condition]) -> Words {
    let mut words = Words::new();
    for bit in conditions.iter().map(|condition| condition.bit) {
        let (word, bit) = (bit / u64::BITS, 1 << (bit % u64::BITS));
        match words.last_mut() {
            Some(last) if last.0 == word => last.1 |= bit,
            _ => words.push((word, bit)),
        }
    }
    words
}

fn union(one: &Words, other: &Words) -> Words {
    let mut all = Words::with_capacity(one.len() + other.len());
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
fn summaries(vectors: &[Words], groups: usize) -> (Vec<Summary>, Vec<u64>) {
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
    own.push(0);
    (summaries, own)
}

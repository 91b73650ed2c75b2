//! Construction of bit vectors from rules.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pipeline::Rule;

use super::aggregated::AggregatedVectors;
use super::class_table::ClassTable;
use super::cross_product::CrossProduct;
use super::dense::{self, DenseVectors};
use super::dimension::{Dimension, VectorSummary};
use super::field_vectors::{FieldVectors, SparseWords, all_rules, multiply_small};
use super::{
    BitVector, CommonCondition, DIMENSIONS_MAX, FormLimit, RULES_MAX, VectorForm, WORD, WORDS_MAX,
};
use crate::interval_table::{IntervalBuilder, IntervalTable};
use crate::packed_key::{BitRange, FieldCondition, PackedMatch, field_conditions};
use crate::rank::NO_RULE;

/// Rules whose own values are looked up to measure the cost of aggregated vectors.
const SAMPLES: usize = 64;

/// Key of a dimension: bits of the key, and the kind of conditions on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DimensionKey {
    range: BitRange,
    /// True if the conditions are prefixes, so that they are nested or disjoint.
    is_prefix: bool,
}

/// The condition of one rule in a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DimensionCondition {
    value: u64,
    mask: u64,
    /// Bit of the rule.
    bit: u32,
}

impl DimensionCondition {
    fn is_same_as(&self, other: &Self) -> bool {
        (self.value, self.mask) == (other.value, other.mask)
    }
}

pub(super) fn build(rules: &[Arc<Rule>]) -> Result<BitVector, FormLimit> {
    if rules.len() > RULES_MAX {
        return Err(FormLimit);
    }
    let (dimensions, conditions) = split_rules(rules)?;
    if rules.len() <= dense::RULES_MAX {
        let ranks: Vec<u32> = (0..).take(rules.len()).collect();
        let (common, fields) = field_vectors(&dimensions, &conditions, &ranks)?;
        let vectors = match dense::quads(rules.len()) {
            1 => DenseVectors::of(&ranks, fields).map(VectorForm::OneQuad),
            2 => DenseVectors::of(&ranks, fields).map(VectorForm::TwoQuads),
            _ => DenseVectors::of(&ranks, fields).map(VectorForm::FourQuads),
        };
        if let Ok(vectors) = vectors {
            return Ok(BitVector { common, vectors });
        }
    }
    let ranks = rearrange(&dimensions, &conditions);
    let (common, fields) = field_vectors(&dimensions, &conditions, &ranks)?;
    let vectors = VectorForm::Aggregated(aggregate(fields, ranks, rules));
    Ok(BitVector { common, vectors })
}

/// Conditions that all rules have, and the vectors of the dimensions in which they differ, where
/// bits have these ranks.
fn field_vectors(
    dimensions: &[DimensionKey],
    conditions: &RuleConditions,
    ranks: &[u32],
) -> Result<(Box<[CommonCondition]>, Vec<FieldVectors>), FormLimit> {
    let (mut common, mut fields) = (Vec::new(), Vec::new());
    let mut words_left = WORDS_MAX;
    for dimension in dimensions {
        let here = conditions_in(*dimension, conditions, ranks);
        if let [first, .., last] = here[..]
            && here.len() == conditions.len()
            && first.is_same_as(&last)
        {
            common.push(CommonCondition {
                range: dimension.range,
                mask: first.mask,
                value: first.value,
            });
        } else {
            fields.push(vectors_of(*dimension, &here, ranks, &mut words_left)?);
        }
    }
    Ok((common.into(), multiply_small(fields, &mut words_left)))
}

/// Aggregated vectors of these fields.
fn aggregate(
    mut fields: Vec<FieldVectors>,
    ranks: Vec<u32>,
    rules: &[Arc<Rule>],
) -> AggregatedVectors {
    if fields.is_empty() {
        fields.push(FieldVectors::of_no_field(&ranks));
    }
    let groups = rules.len().div_ceil(WORD).div_ceil(WORD);
    // The field with the most classes excludes the most words.
    fields.sort_by_key(|field| std::cmp::Reverse(field.accepting.len()));
    let dimension = |field: FieldVectors| {
        let mut wildcard_summary = vec![0; groups];
        for (word, _) in field
            .wildcard
            .iter()
            .enumerate()
            .filter(|(_, bits)| **bits != 0)
        {
            wildcard_summary[word / WORD] |= 1 << (word % WORD);
        }
        let (summaries, words) = summarize(&field.accepting, groups);
        Dimension {
            classes: field.classes,
            wildcard: field.wildcard.into(),
            wildcard_summary: wildcard_summary.into(),
            summaries: summaries.into(),
            words: words.into(),
        }
    };
    let dimensions = fields.into_iter().map(dimension).collect();
    let step = (rules.len() / SAMPLES).max(1);
    let sampled = rules.iter().step_by(step);
    let samples = sampled.map(|rule| PackedMatch::of(rule.matching()).values);
    AggregatedVectors::of(dimensions, ranks, samples)
}

/// Conditions of each rule: dimension, value and mask.
type RuleConditions = Vec<Vec<(DimensionKey, u64, u64)>>;

/// Splits the rules into conditions. Returns all dimensions in order, and the conditions by rule.
fn split_rules(rules: &[Arc<Rule>]) -> Result<(Vec<DimensionKey>, RuleConditions), FormLimit> {
    let of_rule = |rule: &Arc<Rule>| {
        let conditions = field_conditions(rule.matching()).into_iter();
        let split = |condition: FieldCondition| {
            split_condition(condition.range, condition.value, condition.mask)
        };
        conditions.flat_map(split).collect::<Vec<_>>()
    };
    let conditions: RuleConditions = rules.iter().map(of_rule).collect();
    let mut dimensions = Vec::new();
    for (dimension, ..) in conditions.iter().flatten() {
        if let Err(index) = dimensions.binary_search(dimension) {
            dimensions.insert(index, *dimension);
        }
        if dimensions.len() > DIMENSIONS_MAX {
            return Err(FormLimit);
        }
    }
    Ok((dimensions, conditions))
}

/// A prefix condition stays whole; any other becomes one condition for each octet that its mask
/// touches.
fn split_condition(range: BitRange, value: u64, mask: u64) -> Vec<(DimensionKey, u64, u64)> {
    let unset = range.full_mask() & !mask;
    if unset & (unset + 1) == 0 {
        let is_prefix = true;
        return vec![(DimensionKey { range, is_prefix }, value, mask)];
    }
    let octets = (0..range.bits).step_by(8).map(|offset| {
        let range = BitRange {
            shift: range.shift + offset,
            bits: 8,
            ..range
        };
        let is_prefix = false;
        let [value, mask] = [value, mask].map(|word| word >> offset & 0xff);
        (DimensionKey { range, is_prefix }, value, mask)
    });
    octets.filter(|(.., mask)| *mask != 0).collect()
}

/// Ranks of the rules by bit, rearranged so that the rules of a class are in few words: rules with
/// conditions in the same dimensions are adjacent, and among these the ones with equal or similar
/// values, first by the dimension whose conditions are nested most.
fn rearrange(dimensions: &[DimensionKey], conditions: &RuleConditions) -> Vec<u32> {
    let nesting = |dimension: &DimensionKey| std::cmp::Reverse(nesting(*dimension, conditions));
    let mut dimensions = dimensions.to_vec();
    dimensions.sort_by_cached_key(nesting);
    let key = |rule: &Vec<(DimensionKey, u64, u64)>| {
        let here = |dimension: &DimensionKey| rule.iter().find(|(of, ..)| of == dimension);
        let mut used_dimensions = 0_u32;
        let mut values = Vec::with_capacity(rule.len());
        for (index, dimension) in dimensions.iter().enumerate() {
            if let Some((_, value, mask)) = here(dimension) {
                used_dimensions |= 1 << index;
                values.push((*value, *mask));
            }
        }
        (used_dimensions, values)
    };
    let mut ranks: Vec<u32> = (0..).take(conditions.len()).collect();
    ranks.sort_by_cached_key(|rank| key(&conditions[*rank as usize]));
    // Ascending ranks within each word, and words in the order of their lowest rank.
    ranks.resize(ranks.len().next_multiple_of(WORD), NO_RULE);
    let (words, _) = ranks.as_chunks_mut::<WORD>();
    words.iter_mut().for_each(|word| word.sort_unstable());
    words.sort_unstable_by_key(|word| word[0]);
    ranks
}

/// Number of distinct conditions in a dimension that are equal to or nested in the condition of a
/// rule, summed over the rules.
fn nesting(dimension: DimensionKey, conditions: &RuleConditions) -> usize {
    let of_rule = |rule: &Vec<(DimensionKey, u64, u64)>| {
        let here = rule.iter().find(|(of, ..)| *of == dimension);
        here.map(|(_, value, mask)| (*value, *mask))
    };
    let mut all: Vec<_> = conditions.iter().filter_map(of_rule).collect();
    all.sort_unstable();
    let mut distinct = all.clone();
    distinct.dedup();
    let up_to = |value: u64| distinct.partition_point(|(other, _)| *other <= value);
    let nested = |(value, mask): &(u64, u64)| {
        up_to(value | !mask & dimension.range.full_mask())
            - distinct.partition_point(|other| other < &(*value, *mask))
    };
    all.iter().map(nested).sum()
}

/// All conditions in one dimension in ascending order of their values, the wider before those
/// nested in them.
fn conditions_in(
    dimension: DimensionKey,
    conditions: &RuleConditions,
    ranks: &[u32],
) -> Vec<DimensionCondition> {
    let mut all = Vec::new();
    for (bit, rank) in (0..).zip(ranks).filter(|(_, rank)| **rank != NO_RULE) {
        let of_rule = conditions[*rank as usize].iter();
        let here = of_rule.filter(|(of, ..)| *of == dimension);
        all.extend(here.map(|(_, value, mask)| DimensionCondition {
            value: *value,
            mask: *mask,
            bit,
        }));
    }
    all.sort_unstable();
    all
}

/// Classes of a dimension with their vectors, where bits have these ranks.
fn vectors_of(
    dimension: DimensionKey,
    conditions: &[DimensionCondition],
    ranks: &[u32],
    words_left: &mut usize,
) -> Result<FieldVectors, FormLimit> {
    let mut vectors = VectorBuilder::new(words_left);
    let classes = match dimension.is_prefix {
        true => {
            let intervals = classify_prefixes(dimension.range, conditions, &mut vectors)?;
            ClassTable::of_intervals(dimension.range, intervals)
        }
        false => ClassTable::of_octet(dimension.range, classify_octet(conditions, &mut vectors)?),
    };
    let mut wildcard = all_rules(ranks);
    for condition in conditions {
        wildcard[condition.bit as usize / WORD] &= !(1 << (condition.bit as usize % WORD));
    }
    Ok(FieldVectors {
        classes: CrossProduct::of(classes),
        accepting: vectors.all,
        wildcard,
    })
}

/// Vectors of the classes of one dimension, and the words that all dimensions may still take.
struct VectorBuilder<'a> {
    all: Vec<SparseWords>,
    words_left: &'a mut usize,
}

impl<'a> VectorBuilder<'a> {
    /// Starts with class 0, which no condition accepts.
    fn new(words_left: &'a mut usize) -> Self {
        let all = vec![SparseWords::new()];
        Self { all, words_left }
    }

    /// Adds a class and returns its number.
    fn add(&mut self, vector: SparseWords) -> Result<u16, FormLimit> {
        // Two words more for the summary.
        let words = vector.len() + 2;
        *self.words_left = self.words_left.checked_sub(words).ok_or(FormLimit)?;
        self.all.push(vector);
        Ok(u16::try_from(self.all.len() - 1)
            .expect("a dimension has at most one class more than rules"))
    }
}

/// Classes of intervals: each prefix makes one, which the rules of the prefixes that contain it
/// accept too.
fn classify_prefixes(
    range: BitRange,
    conditions: &[DimensionCondition],
    vectors: &mut VectorBuilder<'_>,
) -> Result<IntervalTable, FormLimit> {
    let mut builder = IntervalBuilder::new(range.full_mask());
    for same in conditions.chunk_by(DimensionCondition::is_same_as) {
        let DimensionCondition { value, mask, .. } = same[0];
        let outer = builder.mark_at(value) as usize;
        let class = vectors.add(union(&vectors.all[outer], &bits_of(same)))?;
        builder.add(value, mask, class.into());
    }
    Ok(builder.build())
}

/// Classes of eight bits: values that the same conditions accept.
fn classify_octet(
    conditions: &[DimensionCondition],
    vectors: &mut VectorBuilder<'_>,
) -> Result<Box<[u16; 256]>, FormLimit> {
    let distinct: Vec<_> = conditions
        .chunk_by(DimensionCondition::is_same_as)
        .collect();
    let mut known = BTreeMap::from([(Vec::new(), 0)]);
    let mut classes = Box::new([0; 256]);
    for (value, class_of_value) in (0..).zip(classes.iter_mut()) {
        let accepts = |same: &&[DimensionCondition]| value & same[0].mask == same[0].value;
        let accepting = distinct
            .iter()
            .enumerate()
            .filter(|(_, same)| accepts(same));
        let accepting: Vec<usize> = accepting.map(|(number, _)| number).collect();
        let class = match known.get(&accepting) {
            Some(class) => *class,
            None => {
                let all = accepting.iter().map(|number| bits_of(distinct[*number]));
                let all = all.reduce(|one, other| union(&one, &other));
                let class = vectors.add(all.unwrap_or_default())?;
                known.insert(accepting, class);
                class
            }
        };
        *class_of_value = class;
    }
    Ok(classes)
}

/// Vector of the bits of these conditions, which are in ascending order.
fn bits_of(conditions: &[DimensionCondition]) -> SparseWords {
    let mut words = SparseWords::new();
    for bit in conditions.iter().map(|condition| condition.bit) {
        let (word, bit) = (bit / u64::BITS, 1 << (bit % u64::BITS));
        match words.last_mut() {
            Some(last) if last.0 == word => last.1 |= bit,
            _ => words.push((word, bit)),
        }
    }
    words
}

fn union(one: &SparseWords, other: &SparseWords) -> SparseWords {
    let mut all = SparseWords::with_capacity(one.len() + other.len());
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

/// Summaries of the classes, and the words that they refer to, in one list.
fn summarize(vectors: &[SparseWords], groups: usize) -> (Vec<VectorSummary>, Vec<u64>) {
    let (mut summaries, mut all_words) = (Vec::new(), Vec::new());
    for vector in vectors {
        let mut remaining = vector.iter().peekable();
        for group in 0..groups {
            let words: Range<usize> = group * WORD..(group + 1) * WORD;
            let first = u32::try_from(all_words.len()).expect("vectors have at most 2^20 words");
            let mut summary = VectorSummary { words: 0, first };
            while let Some((word, bits)) =
                remaining.next_if(|word| words.contains(&(word.0 as usize)))
            {
                summary.words |= 1 << (*word as usize % WORD);
                all_words.push(*bits);
            }
            summaries.push(summary);
        }
    }
    all_words.push(0);
    (summaries, all_words)
}

//! Bit vectors: many rules with many masks are found in as many steps as there are fields,
//! whatever the packet (Lakshman and Stiliadis, "High-speed policy-based packet forwarding using
//! efficient multi-dimensional range matching", SIGCOMM 1998).
//!
//! Each rule has a bit. Each field on which some rule has a condition is a *dimension*. The
//! values of a dimension fall into *equivalence classes*: values that the same rules accept. Each
//! class has a vector with the bits of the rules that accept it, including the rules without a
//! condition in that dimension. A packet satisfies a rule if the vectors of all its classes have
//! the bit of the rule; with the bits in match order, the first common bit is the result:
//!
//! ```text
//!  rule  nw_src         tp_dst       dimension nw_src          dimension tp_dst
//!   0    10.0.0.0/8     80           class 0: other   0010     class 0: other  0100
//!   1    10.1.0.0/16    *            class 1: 10/8    1010     class 1: 80     1111
//!   2    *              80           class 2: 10.1/16 1110     class 2: 443    0101
//!   3    192.0.2.0/24   *            class 3: 192...  0011          (bits: rule 0123)
//!
//!  packet nw_src=10.1.2.3, tp_dst=443:   1110 & 0101 = 0100   ->  rule 1
//! ```
//!
//! A lookup has two stages. *Classification* maps each field to its class: a table for fields of
//! up to 16 bits, an [interval table](crate::interval_table) for wider ones. *Intersection* and-s
//! the vectors. Conditions that all rules share are no dimension: they are tested first.
//!
//! | form of the vectors | rules | intersection |
//! |---|---|---|
//! | [`dense`] | up to 1,024 | all words, without a branch, four at a time |
//! | [`aggregated`] | up to 16,384 | words that the summaries of all dimensions allow |
//!
//! Dimensions with few classes are combined in advance ([`cross_product`]), so that an access list
//! is intersected in one vector for each address and one for everything else.
//!
//! Cost of a lookup, in modelled instructions, for `s` dimensions that are searched and `t` that
//! are looked up in a table: `45 + 75 s + 22 t + 4 q` for dense vectors, where `q` is the number of
//! columns times that of groups of four words; see [`aggregated`] for the others. The cost depends
//! on the rules and not on the packet, so no traffic makes a lookup slower.
//!
//! Chosen by the merge plan for rules with many masks, where a probe for each mask costs more.
//! Rules can die in place, but none is added: see [`compiled_set`](crate::compiled_set).
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::text::parse_flow_line;
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for n in 0..200 {
//!     let bits = 9 + n % 24;
//!     let line = format!("priority={n},tcp,nw_src=10.{n}.0.0/{bits},tp_dst={},actions=drop", n % 7);
//!     let command = parse_flow_line(&line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! classifier.publish(&pipeline);
//! let description = &classifier.describe()[0];
//! assert_eq!((&*description.form, description.rules), ("bits", 200));
//! // An address that is searched and a port that is looked up share a column of one quad.
//! assert_eq!(description.cost, Some(45 + 75 + 22 + 4));
//! ```

mod aggregated;
mod build;
mod class_table;
mod cross_product;
mod dense;
mod dimension;
mod field_vectors;

use std::sync::Arc;

use pipeline::Rule;

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::packed_key::{BitRange, PackedKey};
use crate::rank::NO_RULE;
use aggregated::AggregatedVectors;
use dense::DenseVectors;

/// Most rules of one set of vectors: a summary has four words then.
pub(crate) const RULES_MAX: usize = 16_384;

/// Most dimensions: more than twice the number of fields of a rule of OpenFlow 1.0.
const DIMENSIONS_MAX: usize = 32;

/// Most words of all vectors of a set: eight megabytes, so that some sets fit in a third-level
/// cache.
const WORDS_MAX: usize = 1 << 20;

/// Bits of a word.
const WORD: usize = 64;

/// The rules exceed a limit of the form: they are too many, match on too many fields, or overlap
/// so much that the vectors would be too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormLimit;

/// A condition that all rules have.
#[derive(Clone, Copy, Debug)]
struct CommonCondition {
    range: BitRange,
    mask: u64,
    value: u64,
}

impl CommonCondition {
    #[inline]
    fn holds(&self, key: &PackedKey) -> bool {
        key.word(self.range.word) >> self.range.shift & self.mask == self.value
    }
}

/// Storage of the vectors: dense for one, two or four quads of words, else aggregated.
#[derive(Debug)]
enum VectorForm {
    OneQuad(DenseVectors<1>),
    TwoQuads(DenseVectors<2>),
    FourQuads(DenseVectors<4>),
    Aggregated(AggregatedVectors),
}

/// Bit vectors of a set of rules.
#[derive(Debug)]
pub(crate) struct BitVector {
    common: Box<[CommonCondition]>,
    vectors: VectorForm,
}

impl BitVector {
    /// Builds the vectors from rules in match order.
    pub(crate) fn of(rules: &[Arc<Rule>]) -> Result<Self, FormLimit> {
        build::build(rules)
    }

    /// Returns the rank of the first visible rule that the packet satisfies.
    #[inline]
    pub(crate) fn find(
        &self,
        key: &PackedKey,
        is_visible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if !self.common_conditions_hold(key) {
            return None;
        }
        match &self.vectors {
            VectorForm::OneQuad(dense) => dense.find(key, is_visible),
            VectorForm::TwoQuads(dense) => dense.find(key, is_visible),
            VectorForm::FourQuads(dense) => dense.find(key, is_visible),
            VectorForm::Aggregated(aggregated) => aggregated.find(key, is_visible),
        }
    }

    /// Ranks of the rules that these packets match if all rules are visible; [`NO_RULE`] for
    /// packets without a match.
    #[inline]
    pub(crate) fn likely_ranks(
        &self,
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
    ) -> [u32; LOOKUP_BATCH] {
        let packets = match self.common.is_empty() {
            true => packets,
            false => packets.fold(BatchMask::EMPTY, |mut passing, index| {
                let passes = self.common_conditions_hold(&keys[index % LOOKUP_BATCH]);
                passing.insert(BatchMask::single_if(index, passes));
                passing
            }),
        };
        let mut ranks = match &self.vectors {
            VectorForm::OneQuad(dense) => dense.first_ranks(keys, packets),
            VectorForm::TwoQuads(dense) => dense.first_ranks(keys, packets),
            VectorForm::FourQuads(dense) => dense.first_ranks(keys, packets),
            VectorForm::Aggregated(aggregated) => aggregated.first_ranks(keys, packets),
        };
        for index in BatchMask::ALL.difference(packets) {
            ranks[index % LOOKUP_BATCH] = NO_RULE;
        }
        ranks
    }

    #[inline]
    fn common_conditions_hold(&self, key: &PackedKey) -> bool {
        self.common.iter().all(|condition| condition.holds(key))
    }

    /// Cost of a lookup in modelled instructions.
    pub(crate) fn cost(&self) -> usize {
        match &self.vectors {
            VectorForm::OneQuad(dense) => dense.cost(),
            VectorForm::TwoQuads(dense) => dense.cost(),
            VectorForm::FourQuads(dense) => dense.cost(),
            VectorForm::Aggregated(aggregated) => aggregated.cost(),
        }
    }

    /// Size of the vectors, as text for `comporta tables`.
    pub(crate) fn describe(&self) -> String {
        let (searched, others, columns) = match &self.vectors {
            VectorForm::OneQuad(dense) => dense.extent(),
            VectorForm::TwoQuads(dense) => dense.extent(),
            VectorForm::FourQuads(dense) => dense.extent(),
            VectorForm::Aggregated(aggregated) => {
                let (dimensions, visits) = aggregated.extent();
                return format!("{dimensions} dimensions, up to {visits} words a lookup");
            }
        };
        let dimensions = searched + others;
        format!("{dimensions} dimensions in {columns} columns, {searched} of them searched")
    }

    /// Expected cost of a lookup among so many rules, in modelled instructions: an access list
    /// has two addresses, which are searched, and four other dimensions; a packet reads few of
    /// many words.
    pub(crate) fn expected_cost(rules: usize) -> usize {
        match rules {
            ..=dense::RULES_MAX => dense::cost((2, 4), 3 * dense::quads(rules)),
            _ => aggregated::cost((2, 4), 3, rules.div_ceil(WORD).div_ceil(WORD), 2),
        }
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.vectors {
            VectorForm::OneQuad(dense) => dense.bytes(),
            VectorForm::TwoQuads(dense) => dense.bytes(),
            VectorForm::FourQuads(dense) => dense.bytes(),
            VectorForm::Aggregated(aggregated) => aggregated.bytes(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Linear form: a few rules are compared with a packet one after the other, in the order in
//! which they are tried, as every classifier does that has too few rules for an index.
//!
//! A batch is compared rule by rule, not packet by packet. The words that the rules read are
//! transposed first, so that one instruction compares the same word of several packets:
//!
//! ```text
//!               keys, packet by packet          columns, word by word
//!             word 1  word 3  word 4
//! packet 0    [ a0      b0      c0 ]            word 1: [ a0 a1 a2 a3 ... ]
//! packet 1    [ a1      b1      c1 ]    --->    word 3: [ b0 b1 b2 b3 ... ]
//! packet 2    [ a2      b2      c2 ]            word 4: [ c0 c1 c2 c3 ... ]
//!
//! rule 0: word 1 & mask == value  and  word 4 & mask == value  ->  bits of the packets that match
//! ```
//!
//! Each rule removes the packets that it matches; the scan ends when none is left. The columns are
//! built only when the packets of the batch disagree: if all satisfy the first rule, a fold over
//! the keys is cheaper.
//!
//! Cost of a lookup of one packet, in modelled instructions, for `r` rules with `w` conditions on
//! words in all: `15 + 10 r + 7 w`.
//!
//! Chosen for tables of at most [`RULES_MAX`] rules, and for the remainder of a larger table after
//! the merge plan has distributed the rest.
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::text::parse_flow_line;
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for line in ["priority=2,tcp,tp_dst=80,actions=output:2", "priority=1,actions=drop"] {
//!     let command = parse_flow_line(line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! classifier.publish(&pipeline);
//! let description = &classifier.describe()[0];
//! assert_eq!((&*description.form, description.rules), ("direct", 2));
//! // Three words: presence bits, type, protocol and port.
//! assert_eq!(description.cost, Some(15 + 2 * 10 + 3 * 7));
//! ```

use std::sync::Arc;

use pipeline::Rule;
use sys::vectors::{self, WordCondition};

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::packed_key::{KEY_WORDS, PackedKey, PackedMatch};

/// Most rules. Beyond it, other forms cost less.
pub(crate) const RULES_MAX: usize = 16;

/// Most columns of a batch. Rules that read more words are compared packet by packet.
const COLUMNS_MAX: usize = 8;

/// A condition of a rule on one word.
#[derive(Clone, Copy, Debug)]
struct KeyCondition {
    word: u8,
    mask: u64,
    value: u64,
}

/// The words of a batch that rules read, word by word.
#[derive(Debug)]
pub(crate) struct WordColumns([[u64; LOOKUP_BATCH]; COLUMNS_MAX]);

/// Conditions of all rules in the order in which rules are tried.
#[derive(Debug)]
pub(crate) struct LinearSearch {
    conditions: Box<[KeyCondition]>,
    /// The same conditions on columns; empty if the rules read more than [`COLUMNS_MAX`] words.
    column_conditions: Box<[WordCondition]>,
    /// Word of each column.
    columns: Box<[u8]>,
    /// End of the conditions of each rule.
    ends: Box<[usize]>,
}

impl LinearSearch {
    /// Builds the form from rules in match order.
    pub(crate) fn of(rules: &[Arc<Rule>]) -> Self {
        let (mut all, mut ends) = (Vec::new(), Vec::new());
        for rule in rules {
            let packed = PackedMatch::of(rule.matching());
            let mut buffer = [(0, 0); KEY_WORDS];
            let mask = packed.mask(&mut buffer).iter();
            all.extend(mask.map(|(word, mask)| KeyCondition {
                word: *word,
                mask: *mask,
                value: packed.values.word(*word),
            }));
            ends.push(all.len());
        }
        let (columns, column_conditions) = by_columns(&all);
        Self {
            conditions: all.into(),
            column_conditions: column_conditions.into(),
            columns: columns.into(),
            ends: ends.into(),
        }
    }

    /// Returns the rank of the first visible rule that the packet satisfies.
    #[inline]
    pub(crate) fn find(
        &self,
        key: &PackedKey,
        is_visible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut start = 0;
        for (rank, end) in self.ends.iter().enumerate() {
            let holds = |condition: &KeyCondition| {
                key.word(condition.word) & condition.mask == condition.value
            };
            if self.conditions[start..*end].iter().all(holds) && is_visible(rank) {
                return Some(rank);
            }
            start = *end;
        }
        None
    }

    /// Returns the packets of `candidates` that satisfy the rule of this rank. `columns` holds
    /// the transposed words from the first call that needs them.
    #[inline]
    pub(crate) fn matching_packets(
        &self,
        rank: usize,
        keys: &[PackedKey; LOOKUP_BATCH],
        candidates: BatchMask,
        columns: &mut Option<WordColumns>,
    ) -> BatchMask {
        let start = rank
            .checked_sub(1)
            .map_or(0, |previous| self.ends[previous]);
        let of_rule = start..self.ends[rank];
        if let Some(columns) = columns {
            return matching_columns(columns, &self.column_conditions[of_rule], candidates);
        }
        let conditions = &self.conditions[of_rule.clone()];
        if candidates
            .len_if_contiguous()
            .is_some_and(|count| all_match(conditions, &keys[..count]))
        {
            return candidates;
        }
        // A few packets among many are compared one by one.
        let is_dense = 2 * candidates.len() as usize >= candidates.end();
        if is_dense && self.column_conditions.len() == self.conditions.len() {
            let columns = columns.insert(self.transpose(&keys[..candidates.end()]));
            return matching_columns(columns, &self.column_conditions[of_rule], candidates);
        }
        let mut matching = candidates;
        for KeyCondition { word, mask, value } in conditions {
            let holds = |key: &PackedKey| (key.word(*word) ^ value) & mask == 0;
            matching = matching.fold(BatchMask::EMPTY, |mut matching, index| {
                matching.insert(BatchMask::single_if(
                    index,
                    holds(&keys[index % LOOKUP_BATCH]),
                ));
                matching
            });
            if matching.is_empty() {
                break;
            }
        }
        matching
    }

    /// The words of these packets that rules read, word by word.
    #[inline]
    fn transpose(&self, keys: &[PackedKey]) -> WordColumns {
        let mut columns = [[0; LOOKUP_BATCH]; COLUMNS_MAX];
        for (column, index) in columns.iter_mut().zip(&self.columns) {
            for (word, key) in column.iter_mut().zip(keys) {
                *word = key.word(*index);
            }
        }
        WordColumns(columns)
    }

    /// Cost of a lookup in modelled instructions.
    pub(crate) fn cost(&self) -> usize {
        cost(self.ends.len(), self.conditions.len())
    }

    /// Expected cost of a lookup among so many rules: two words decide that a rule does not
    /// match.
    pub(crate) const fn expected_cost(rules: usize) -> usize {
        cost(rules, 2 * rules)
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let conditions = size_of_val(&*self.conditions) + size_of_val(&*self.column_conditions);
        conditions + size_of_val(&*self.columns) + size_of_val(&*self.ends)
    }
}

/// Returns the words of the columns and the conditions on columns; both are empty if there would
/// be more than [`COLUMNS_MAX`].
fn by_columns(conditions: &[KeyCondition]) -> (Vec<u8>, Vec<WordCondition>) {
    let mut words: Vec<u8> = conditions.iter().map(|condition| condition.word).collect();
    words.sort_unstable();
    words.dedup();
    if words.len() > COLUMNS_MAX {
        return (Vec::new(), Vec::new());
    }
    let column = |of: &KeyCondition| words.iter().position(|word| *word == of.word);
    let on_column = |condition: &KeyCondition| WordCondition {
        column: column(condition).expect("each word of a condition has a column"),
        mask: condition.mask,
        value: condition.value,
    };
    let conditions = conditions.iter().map(on_column).collect();
    (words, conditions)
}

/// Returns the packets of `candidates` that satisfy all conditions.
#[inline]
fn matching_columns(
    WordColumns(columns): &WordColumns,
    conditions: &[WordCondition],
    candidates: BatchMask,
) -> BatchMask {
    candidates.intersection(BatchMask::from_bits(vectors::match_words(
        columns,
        conditions,
        candidates.bits(),
    )))
}

/// True if all packets satisfy all conditions. Cheaper than the set of those that do; the first
/// packet decides whether the others are compared.
#[inline]
fn all_match(conditions: &[KeyCondition], keys: &[PackedKey]) -> bool {
    let difference = |key: &PackedKey, condition: &KeyCondition| {
        (key.word(condition.word) ^ condition.value) & condition.mask
    };
    let first_matches = keys.first().is_some_and(|first| {
        conditions
            .iter()
            .all(|condition| difference(first, condition) == 0)
    });
    first_matches
        && conditions.iter().all(|condition| {
            let all = keys.iter();
            all.fold(0, |differing, key| differing | difference(key, condition)) == 0
        })
}

/// Cost of a lookup, in instructions as callgrind counts them.
const fn cost(rules: usize, words: usize) -> usize {
    const LOOKUP: usize = 15;
    const RULE: usize = 10;
    const WORD: usize = 7;
    LOOKUP + rules * RULE + words * WORD
}

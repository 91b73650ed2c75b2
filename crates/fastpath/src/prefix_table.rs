//! Prefix table: longest-prefix match on one field by binary search over ranges (Lampson,
//! Srinivasan, Varghese, "IP lookups using multiway and multicolumn search", 1998; compare DPDK
//! `rte_lpm`, which is DIR-24-8 of Gupta, Lin and McKeown 1998).
//!
//! All rules of the table match on a prefix of the same field and are equal in everything else: a
//! [`PrefixFamily`], as the routes of one table are. Each prefix is a node with its rules; nodes
//! form a forest by inclusion. The [interval table](crate::interval_table) of the field maps a
//! value to the narrowest prefix that contains it:
//!
//! ```text
//! value        10.0          10.1.0      10.1.2   10.1.3        10.2
//!              |---- /8 -----|--- /16 ---|- /24 --|---- /16 ----|---- /8 ---
//!
//! nodes        /8:  rules 7        least 7
//!              /16: rules 2, 9     least 2      parent /8
//!              /24: rules 4        least 2      parent /16
//! ```
//!
//! OpenFlow does not require that longer prefixes have higher priorities. So each node also has
//! `least`, the lowest rank among its own rules and those of its ancestors: the rule that is tried
//! first. If all rules are visible, which is the common case, the interval holds the answer
//! itself. Only if that rule has died, the search walks from the node to its ancestors, and stops
//! at the first whose `least` cannot be better than what was found.
//!
//! Cost of a lookup, in modelled instructions, for a family with `c` other conditions and prefixes
//! nested `d` deep: `80 + 7 c + 20 d`. The walk over all ancestors is counted although it is rare.
//!
//! Chosen by the merge plan if the rules of one family with at least two prefix lengths cost less
//! here than in tuples or bit vectors.
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
//!     let bits = 16 + n % 9;
//!     let line = format!("priority={bits},ip,nw_dst=10.{n}.0.0/{bits},actions=output:2");
//!     let command = parse_flow_line(&line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! classifier.publish(&pipeline);
//! let description = &classifier.describe()[0];
//! assert_eq!((&*description.form, description.rules), ("prefix", 200));
//! // One other condition, the Ethernet type; no prefix is within another.
//! assert_eq!(description.cost, Some(80 + 7 + 20));
//! ```

use std::sync::Arc;

use pipeline::Rule;

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::interval_table::{IntervalBuilder, IntervalTable};
use crate::packed_key::{BitRange, FieldCondition, PackedKey, field_conditions};
use crate::rank::NO_RULE;

/// Expected cost of a lookup in modelled instructions: prefixes nested three deep.
pub(crate) const EXPECTED_COST: usize = 160;

/// Most rules. All are sorted together, on the thread that handles flow-mods.
pub(crate) const RULES_MAX: usize = 131_072;

/// Node without a parent.
const NO_NODE: u32 = u32::MAX;

/// Common part of rules that differ only in the prefix of one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PrefixFamily {
    range: BitRange,
    other_conditions: Vec<(BitRange, u64, u64)>,
}

impl PrefixFamily {
    /// The families that a rule can belong to: one for each field that it matches by a prefix.
    pub(crate) fn all_of(rule: &Rule) -> impl Iterator<Item = Self> {
        let all = field_conditions(rule.matching());
        let ranges: Vec<_> = all
            .iter()
            .filter(|condition| is_prefix(condition))
            .map(|condition| condition.range)
            .collect();
        ranges.into_iter().map(move |range| Self {
            range,
            other_conditions: without(&all, range),
        })
    }

    /// True if the rule belongs to this family.
    pub(crate) fn contains(&self, rule: &Rule) -> bool {
        self.prefix_of(rule).is_some()
    }

    /// Returns value and mask of the prefix of a rule, or `None` if it is of another family.
    fn prefix_of(&self, rule: &Rule) -> Option<(u64, u64)> {
        let all = field_conditions(rule.matching());
        let own = all.iter().find(|condition| condition.range == self.range)?;
        let is_member = is_prefix(own) && without(&all, self.range) == self.other_conditions;
        is_member.then_some((own.value, own.mask))
    }
}

fn is_prefix(condition: &FieldCondition) -> bool {
    let unset = condition.range.full_mask() & !condition.mask;
    unset & (unset + 1) == 0
}

fn without(all: &[FieldCondition], range: BitRange) -> Vec<(BitRange, u64, u64)> {
    let others = all.iter().filter(|condition| condition.range != range);
    others
        .map(|condition| (condition.range, condition.value, condition.mask))
        .collect()
}

/// A prefix with its rules.
#[derive(Clone, Copy, Debug)]
struct PrefixNode {
    /// Start and end of its rules in [`PrefixTable::ranks`].
    first: u32,
    end: u32,
    /// The next wider prefix that contains it.
    parent: u32,
    /// Lowest rank of its own rules and those of its ancestors.
    least: u32,
}

/// Prefixes of one family.
#[derive(Debug)]
pub(crate) struct PrefixTable {
    family: PrefixFamily,
    intervals: IntervalTable,
    /// The first is for values that no prefix contains.
    nodes: Box<[PrefixNode]>,
    /// Ranks of the rules of each node, in ascending order.
    ranks: Box<[u32]>,
    /// Greatest number of prefixes that contain the same value.
    depth: usize,
}

impl PrefixTable {
    /// Builds the table from rules in match order, or returns `None` if one is of another family
    /// or they are more than [`RULES_MAX`].
    pub(crate) fn of(family: PrefixFamily, rules: &[Arc<Rule>]) -> Option<Self> {
        if rules.len() > RULES_MAX {
            return None;
        }
        let mut prefixes = Vec::with_capacity(rules.len());
        for (rank, rule) in (0..).zip(rules) {
            let (value, mask) = family.prefix_of(rule)?;
            prefixes.push((value, mask, rank));
        }
        prefixes.sort_unstable();
        let mut nodes = vec![PrefixNode {
            first: 0,
            end: 0,
            parent: NO_NODE,
            least: NO_RULE,
        }];
        let (mut depths, mut builder) = (
            vec![0_usize],
            IntervalBuilder::new(family.range.full_mask()),
        );
        let mut first = 0;
        for same in prefixes.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let (value, mask, least): (u64, u64, u32) = same[0];
            let parent = builder.mark_at(value);
            let outer = nodes[parent as usize];
            let end = first + narrow(same.len());
            builder.add(value, mask, narrow(nodes.len()));
            nodes.push(PrefixNode {
                first,
                end,
                parent,
                least: least.min(outer.least),
            });
            depths.push(depths[parent as usize] + 1);
            first = end;
        }
        let mut intervals = builder.build();
        intervals.set_results(|node| nodes[node as usize].least);
        Some(Self {
            family,
            intervals,
            nodes: nodes.into(),
            ranks: prefixes.into_iter().map(|(.., rank)| rank).collect(),
            depth: depths.into_iter().max().unwrap_or(0),
        })
    }

    /// Returns the value of the field, or `None` if the packet does not satisfy the other
    /// conditions of the family.
    #[inline]
    fn value(&self, key: &PackedKey) -> Option<u64> {
        let word = |range: BitRange| key.word(range.word) >> range.shift;
        let mut others = self.family.other_conditions.iter();
        let range = self.family.range;
        others
            .all(|(range, value, mask)| word(*range) & mask == *value)
            .then(|| word(range) & range.full_mask())
    }

    /// Ranks of the rules that these packets match if all rules are visible; [`NO_RULE`] for
    /// packets without a match. Memory latencies overlap: intervals are prefetched for all
    /// packets, then `prefetch` is called with each rank.
    #[inline]
    pub(crate) fn likely_ranks(
        &self,
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
        prefetch: impl Fn(u32),
    ) -> [u32; LOOKUP_BATCH] {
        let mut ranks = [NO_RULE; LOOKUP_BATCH];
        for index in packets {
            if let Some(value) = self.value(&keys[index % LOOKUP_BATCH]) {
                let first = self.intervals.first_candidate(value);
                self.intervals.prefetch(first);
                ranks[index % LOOKUP_BATCH] = first;
            }
        }
        let range = self.family.range;
        for index in packets {
            let index = index % LOOKUP_BATCH;
            if ranks[index] != NO_RULE {
                let value = keys[index].word(range.word) >> range.shift & range.full_mask();
                ranks[index] = self.intervals.result(value, ranks[index]);
                prefetch(ranks[index]);
            }
        }
        ranks
    }

    /// Returns the rank of the first visible rule that the packet satisfies.
    #[inline]
    pub(crate) fn find(
        &self,
        key: &PackedKey,
        is_visible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let value = self.value(key)?;
        let mut node = self.nodes[self.intervals.find(value) as usize];
        // Mostly all rules are visible, and the first of all that match is the result.
        if node.least == NO_RULE || is_visible(node.least as usize) {
            return (node.least != NO_RULE).then_some(node.least as usize);
        }
        let mut best = NO_RULE;
        while node.least < best {
            let ranks = &self.ranks[node.first as usize..node.end as usize];
            let better = ranks.iter().take_while(|rank| **rank < best);
            best = better
                .copied()
                .find(|rank| is_visible(*rank as usize))
                .unwrap_or(best);
            match self.nodes.get(node.parent as usize) {
                Some(parent) => node = *parent,
                None => break,
            }
        }
        (best != NO_RULE).then_some(best as usize)
    }

    /// Greatest number of prefixes that contain the same value.
    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    /// Cost of a lookup in modelled instructions. All ancestors of a node are visited only if
    /// shorter prefixes have higher priorities than longer ones.
    pub(crate) fn cost(&self) -> usize {
        const LOOKUP: usize = 80;
        const CONDITION: usize = 7;
        const ANCESTOR: usize = 20;
        LOOKUP + self.family.other_conditions.len() * CONDITION + self.depth * ANCESTOR
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.intervals.bytes() + size_of_val(&*self.nodes) + size_of_val(&*self.ranks)
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("a prefix table has fewer rules than 2^32")
}

#[cfg(test)]
mod tests;

//! Aggregated bit vectors of many rules: a summary above each vector says which of its words are
//! not zero, and only these words are stored and read (Baboescu and Varghese, "Scalable packet
//! classification", SIGCOMM 2001).
//!
//! ```text
//! dimension 0   summary of the class   0 1 0 0 1 0 ...     words  [ w1 w4 ]
//! dimension 1   summary of the class   0 0 1 0 1 0 ...     words  [ w2 w4 ]
//!               wildcard summaries     0 0 0 0 0 1 ...     (rules without a condition here)
//!               -----------------------------------------
//!               and of all dimensions  0 0 0 0 1 0 ...     only word 4 is read and and-ed
//! ```
//!
//! Three measures keep the number of words low:
//!
//! * A rule without a condition in a dimension would be in the vectors of all its classes. Such
//!   rules are stored once for each dimension, in the wildcard vector.
//! * Rules are rearranged, as the paper proposes: rules with conditions in the same dimensions are
//!   adjacent, and among these the ones with equal or similar values. So the rules of a class are
//!   in few words. The bits then are not in match order; a table maps each bit to the rank of its
//!   rule.
//! * Words are in the order of their lowest rank. A lookup that has found a rule stops at the
//!   first word whose rules are all tried later.
//!
//! Cost of a lookup, in modelled instructions: `60 + 75 s + 22 t + 10 d g + v (20 + 12 d)` for `s`
//! fields that are searched, `t` that are looked up, `d` dimensions, `g` words of a summary and `v`
//! words that are read. `v` is measured when the vectors are built, as the maximum over lookups of
//! a sample of the rules' own values.
//!
//! Chosen for 1,025 to 16,384 rules, and for fewer that need too many dense columns.
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::text::parse_flow_line;
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for n in 0..3000 {
//!     let (upper, lower, bits) = (n / 250, n % 250, 20 + n % 13);
//!     let line = format!(
//!         "priority={n},tcp,nw_src=10.{upper}.{lower}.128/{bits},tp_dst={n},actions=drop"
//!     );
//!     let command = parse_flow_line(&line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! classifier.publish(&pipeline);
//! let description = &classifier.describe()[0];
//! assert_eq!((&*description.form, description.rules), ("bits", 3000));
//! assert!(description.why.starts_with("3000 rules with many masks: 2 dimensions, up to"));
//! ```

use std::ops::ControlFlow;

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::packed_key::PackedKey;
use crate::rank::NO_RULE;

use super::class_table::{SEARCH_COST, TABLE_COST};
use super::dimension::{Dimension, VectorSummary};
use super::{DIMENSIONS_MAX, WORD};

/// Aggregated vectors of a set of rules.
#[derive(Debug)]
pub(super) struct AggregatedVectors {
    /// At least one.
    dimensions: Box<[Dimension]>,
    /// Rank of the rule of each bit; [`NO_RULE`] for a bit without a rule. Ascending within a
    /// word.
    ranks: Box<[u32]>,
    /// Lowest rank of each word, in ascending order.
    least: Box<[u32]>,
    /// Most words that a lookup of the sampled values read.
    visits: usize,
}

impl AggregatedVectors {
    /// Builds the form from dimensions and the rank of each bit; `samples` are keys that some of
    /// the rules match.
    pub(super) fn of(
        dimensions: Vec<Dimension>,
        ranks: Vec<u32>,
        samples: impl Iterator<Item = PackedKey>,
    ) -> Self {
        let mut form = Self {
            dimensions: dimensions.into(),
            least: ranks.chunks(WORD).map(|word| word[0]).collect(),
            ranks: ranks.into(),
            visits: 0,
        };
        let visits = samples.map(|key| {
            let (classes, mut visits) = (form.classes(&key), 0);
            visit_words(&form.dimensions, &classes, |_, _| {
                visits += 1;
                ControlFlow::Continue(())
            });
            visits
        });
        form.visits = visits.max().unwrap_or(0);
        form
    }

    /// Returns the rank of the first visible rule that the packet satisfies.
    #[inline]
    pub(super) fn find(
        &self,
        key: &PackedKey,
        is_visible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let classes = self.classes(key);
        let mut best = NO_RULE;
        visit_words(&self.dimensions, &classes, |word, summaries| {
            if self.least[word] >= best {
                return ControlFlow::Break(());
            }
            let rules = matching_rules(&self.dimensions, summaries, word);
            best = self.best_rank(best, word, rules, &is_visible);
            ControlFlow::Continue(())
        });
        (best != NO_RULE).then_some(best as usize)
    }

    /// Classes of a packet, by dimension.
    fn classes(&self, key: &PackedKey) -> [[u16; 1]; DIMENSIONS_MAX] {
        let mut classes = [[0]; DIMENSIONS_MAX];
        for (class, dimension) in classes.iter_mut().zip(&self.dimensions) {
            *class = [dimension.classes.find(key)];
        }
        classes
    }

    /// The lower of `best` and the lowest rank of the visible rules among these bits of a word.
    #[inline]
    fn best_rank(
        &self,
        best: u32,
        word: usize,
        mut rules: u64,
        is_visible: &impl Fn(usize) -> bool,
    ) -> u32 {
        while rules != 0 {
            let rank = self.ranks[word * WORD + rules.trailing_zeros() as usize];
            if rank >= best {
                break;
            }
            if is_visible(rank as usize) {
                return rank;
            }
            rules &= rules - 1;
        }
        best
    }

    /// Rank of the first rule that each of these packets satisfies; [`NO_RULE`] for packets
    /// without a match.
    #[inline]
    pub(super) fn first_ranks(
        &self,
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
    ) -> [u32; LOOKUP_BATCH] {
        // For the usual numbers of dimensions, the loops have a length known at compile time.
        match &*self.dimensions {
            few @ [_, _] => self.first_ranks_in(few, keys, packets),
            few @ [_, _, _] => self.first_ranks_in(few, keys, packets),
            few @ [_, _, _, _] => self.first_ranks_in(few, keys, packets),
            any => self.first_ranks_in(any, keys, packets),
        }
    }

    /// The same; `dimensions` are all dimensions.
    #[inline(always)]
    fn first_ranks_in(
        &self,
        dimensions: &[Dimension],
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
    ) -> [u32; LOOKUP_BATCH] {
        let mut ranks = [NO_RULE; LOOKUP_BATCH];
        let mut classes = [[0; LOOKUP_BATCH]; DIMENSIONS_MAX];
        for (classes, dimension) in classes.iter_mut().zip(dimensions) {
            dimension.classes.find_each(&keys[..packets.end()], classes);
            packets.for_each(|index| dimension.prefetch(classes[index % LOOKUP_BATCH]));
        }
        for index in packets {
            let index = index % LOOKUP_BATCH;
            let mut first = NO_RULE;
            let classes = classes.each_ref().map(|of| [of[index]]);
            visit_words(dimensions, &classes, |word, summaries| {
                if self.least[word] >= first {
                    return ControlFlow::Break(());
                }
                // A branch on whether a rule matches would be unpredictable.
                let rules = matching_rules(dimensions, summaries, word);
                let bit = (rules.trailing_zeros() as usize).min(WORD - 1);
                let rank = self.ranks[word * WORD + bit];
                first = first.min(if rules == 0 { NO_RULE } else { rank });
                ControlFlow::Continue(())
            });
            ranks[index] = first;
        }
        ranks
    }

    /// Number of dimensions, and most words that a sampled lookup read.
    pub(super) fn extent(&self) -> (usize, usize) {
        (self.dimensions.len(), self.visits)
    }

    /// Cost of a lookup in modelled instructions.
    pub(super) fn cost(&self) -> usize {
        let groups = self.dimensions.first().map_or(0, Dimension::groups);
        let each = self.dimensions.iter();
        let each = each.map(|dimension| dimension.classes.extent());
        let fields = each.fold((0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
        cost(fields, self.dimensions.len(), groups, self.visits)
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let dimensions = self.dimensions.iter().map(Dimension::bytes);
        dimensions.sum::<usize>() + size_of_val(&*self.ranks) + size_of_val(&*self.least)
    }
}

/// Summaries of a packet's classes for one group of words, by dimension.
type GroupSummaries = [VectorSummary; DIMENSIONS_MAX];

/// Calls `visit` with each word that the summaries of all classes contain, until it breaks.
#[inline(always)]
fn visit_words(
    dimensions: &[Dimension],
    classes: &[[u16; 1]; DIMENSIONS_MAX],
    mut visit: impl FnMut(usize, &GroupSummaries) -> ControlFlow<()>,
) {
    let groups = dimensions.first().map_or(0, Dimension::groups);
    let mut summaries = [VectorSummary::default(); DIMENSIONS_MAX];
    for group in 0..groups {
        let mut words = u64::MAX;
        let both = dimensions.iter().zip(classes);
        for (summary, (dimension, [class])) in summaries.iter_mut().zip(both) {
            *summary = dimension.summary(*class, group);
            words &= summary.words | dimension.wildcard_summary[group];
        }
        while words != 0 {
            let word = group * WORD + words.trailing_zeros() as usize;
            if visit(word, &summaries).is_break() {
                return;
            }
            words &= words - 1;
        }
    }
}

/// Bits of the rules of a word that are in the vectors of all dimensions.
#[inline(always)]
fn matching_rules(dimensions: &[Dimension], summaries: &GroupSummaries, word: usize) -> u64 {
    let both = dimensions.iter().zip(summaries);
    both.fold(u64::MAX, |rules, (dimension, summary)| {
        rules & dimension.word(*summary, word)
    })
}

/// Cost of a lookup, in instructions as callgrind counts them: `searched` and `others` are numbers
/// of fields, `groups` the words of a summary, `visits` the words that are read.
pub(super) const fn cost(
    (searched, others): (usize, usize),
    dimensions: usize,
    groups: usize,
    visits: usize,
) -> usize {
    const LOOKUP: usize = 60;
    const SUMMARY: usize = 10;
    const VISIT: usize = 20;
    const WORD: usize = 12;
    let classes = searched * SEARCH_COST + others * TABLE_COST;
    let visit = VISIT + dimensions * WORD;
    LOOKUP + classes + dimensions * groups * SUMMARY + visits * visit
}

//! Merge plan: which rules of a table stay in tuples, and which are compiled together. The policy
//! is that of a log-structured merge tree (O'Neil, Cheng, Gawlick, O'Neil 1996; compare Bentley and
//! Saxe, "Decomposable searching problems", 1980): additions go where they are cheap, and sets are
//! merged when that many rules have been added that the work is amortised.
//!
//! A rule that is added goes to the tuple of its mask, at a cost that does not depend on the size of
//! the table. Each tuple costs a lookup one probe. When there are more tuples than the last plan
//! allowed, a new plan is made: the largest tuples stay, and the rules of the others are compiled.
//! The number of tuples that stay minimises the expected cost of a lookup:
//!
//! ```text
//!   cost(k) = 110 k + expected cost of the rules outside the k largest tuples
//!
//!   rules of each tuple    9000  40  30  20  10
//!   k = 0    9,100 rules in aggregated vectors                      500
//!   k = 1    9,000 rules in a tuple, 100 in dense vectors           405   <- chosen
//!   k = 2    the second tuple saves nothing: dense vectors remain   515
//! ```
//!
//! Before that, the rules that differ only in the prefix of one field may be taken out as a
//! [prefix table](crate::prefix_table), if that is cheaper still.
//!
//! A new compiled set absorbs each set that has fewer than eight times as many live rules as have
//! been added since, the smallest first:
//!
//! ```text
//!   sets before      20,000    1,600    150         50 rules added
//!   150 < 8 * 50     absorbed: 200 rules
//!   1,600 = 8 * 200  stays
//!   sets after       20,000    1,600    200
//! ```
//!
//! So a rule is compiled about eight times for each factor of eight by which its table grows, in
//! whatever order rules are added, and a table has few sets. [`Classifier::request_compaction`]
//! merges all sets and tuples when there is time.
//!
//! [`Classifier::request_compaction`]: super::Classifier::request_compaction
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::text::parse_flow_line;
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! let mut form_with = |lines: &mut dyn Iterator<Item = String>| {
//!     for line in lines {
//!         let command = parse_flow_line(&line).expect("a flow");
//!         let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!         classifier.queue_changes(&changes);
//!         classifier.publish(&pipeline);
//!     }
//!     classifier.describe().swap_remove(0).form
//! };
//! // One rule is compared; a hundred rules of another mask stay in their tuple; two thousand
//! // rules with many masks are compiled to bit vectors, and the tuple stays.
//! let one = "tcp,tp_dst=1,actions=drop".to_owned();
//! assert_eq!(form_with(&mut [one].into_iter()), "direct");
//! let mut stations = (0..100).map(|n| format!("dl_dst=02:00:00:00:00:{n:02x},actions=output:1"));
//! assert_eq!(form_with(&mut stations), "exact + direct");
//! let mut networks = (0..200).map(|n| {
//!     let (source, target) = (8 + n % 24, 9 + n % 7);
//!     format!("priority={n},ip,nw_src=10.{n}.0.0/{source},nw_dst=10.{n}.0.0/{target},actions=drop")
//! });
//! assert!(form_with(&mut networks).contains("bits"));
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pipeline::Rule;

use super::ClassifierTable;
use crate::bitvector::{self, FormLimit};
use crate::compiled_set::CompiledSet;
use crate::epoch::Epoch;
use crate::key_hash::KeyHasher;
use crate::linear;
use crate::mask::TupleMask;
use crate::packed_key::{KEY_WORDS, PackedMatch};
use crate::prefix_table::{self, PrefixFamily};
use crate::rank::match_order;
use crate::tuple::{DuplicateLimit, Tuple};

/// Cost of a lookup in one tuple, in instructions as callgrind counts them.
pub(super) const PROBE_COST: usize = 110;

/// A compiled set stays if it has at least so many times as many live rules as were added since.
const GROWTH: usize = 8;

/// Tuples that may be created before the next plan: their probes cost as much as a lookup in a
/// compiled set.
const TUPLES_SLACK: usize = 3;

/// Most tuples that stay, however large they are.
const TUPLES_MAX: usize = 64;

/// Masks, the largest first, that are searched for a prefix family.
const FAMILY_MASKS_MAX: usize = 256;

/// Most rules that are compiled; beyond it, the largest tuples stay.
const COMPILED_MAX: usize = 8 * bitvector::RULES_MAX;

/// Result of the last plan, and changes since.
#[derive(Debug)]
pub(super) struct MergePlan {
    /// Tuples that stayed.
    kept_tuples: usize,
    /// True if no compiled set was left as it was.
    is_complete: bool,
    /// Tuples at which the next plan is due.
    tuples_max: usize,
    /// Rules of the table then.
    rules: usize,
    /// Rules added since.
    pub(super) added: usize,
}

impl Default for MergePlan {
    fn default() -> Self {
        Self {
            kept_tuples: 0,
            is_complete: true,
            tuples_max: TUPLES_SLACK,
            rules: 0,
            added: 0,
        }
    }
}

impl ClassifierTable {
    /// Live rules in tuples and compiled sets.
    pub(super) fn rules(&self) -> usize {
        let in_sets = self.compiled_sets.iter().map(|compiled| compiled.len());
        self.in_tuples + in_sets.sum::<usize>()
    }

    /// True if a lookup would cost less after a complete merge.
    pub(super) fn can_compact(&self) -> bool {
        self.tuples.len() != self.plan.kept_tuples || !self.plan.is_complete
    }

    /// Makes a new plan if it is due. Returns true if the view of the table must be replaced.
    pub(super) fn merge_if_due(&mut self, hasher: KeyHasher, epoch: Epoch) -> bool {
        let is_due = self.tuples.len() > self.plan.tuples_max
            || self.plan.added > GROWTH.max(self.plan.rules)
            || self
                .compiled_sets
                .iter()
                .any(|compiled| compiled.needs_rebuild())
            || self.in_tuples > 0 && self.rules() <= linear::RULES_MAX;
        if is_due {
            let absorbed = self.absorb_sets();
            self.distribute(absorbed, hasher, epoch);
        }
        is_due
    }

    /// Merges all compiled sets and tuples.
    pub(super) fn compact(&mut self, hasher: KeyHasher, epoch: Epoch) {
        let compiled_sets = std::mem::take(&mut self.compiled_sets);
        let live = compiled_sets
            .iter()
            .flat_map(|compiled| compiled.live_rules().cloned());
        self.distribute(live.collect(), hasher, epoch);
    }

    /// Distributes the rules of all tuples, and these, to tuples and compiled sets.
    fn distribute(&mut self, mut rules: Vec<Arc<Rule>>, hasher: KeyHasher, epoch: Epoch) {
        let is_complete = self.compiled_sets.is_empty();
        let FormChoice { kept, family } = self.choose_forms(&rules);
        for mask in self.masks_except(&kept) {
            let tuple = self.tuples.remove(&mask).expect("the mask has a tuple");
            self.in_tuples -= tuple.len();
            rules.extend(tuple.rules());
        }
        let is_kept = |rule: &Arc<Rule>| kept.contains(&mask_of(rule));
        let (in_tuples, compiled): (Vec<_>, Vec<_>) = rules.into_iter().partition(is_kept);
        self.insert_in_tuples(&in_tuples, hasher, epoch);
        let mut slack = TUPLES_SLACK;
        if self.compile(compiled, family, hasher, epoch) == Err(FormLimit) {
            // The next attempt is due when there are twice as many tuples.
            slack = self.tuples.len();
        }
        self.plan = MergePlan {
            kept_tuples: self.tuples.len(),
            is_complete,
            tuples_max: self.tuples.len() + slack,
            rules: self.rules(),
            added: 0,
        };
    }

    /// Compiles these rules, those of the family first. Rules that exceed a limit go to tuples.
    fn compile(
        &mut self,
        rules: Vec<Arc<Rule>>,
        family: Option<PrefixFamily>,
        hasher: KeyHasher,
        epoch: Epoch,
    ) -> Result<(), FormLimit> {
        let mut others = rules;
        if let Some(family) = family {
            let of_family: Vec<_> = others
                .extract_if(.., |rule| family.contains(rule))
                .collect();
            match CompiledSet::of_family(family, of_family.clone()) {
                Ok(compiled) => self.compiled_sets.push(Arc::new(compiled)),
                Err(FormLimit) => others.extend(of_family),
            }
        }
        // In match order, so that a lookup that finds a rule in the first set is complete.
        others.sort_by(match_order);
        let mut result = Ok(());
        for part in others.chunks(bitvector::RULES_MAX) {
            match CompiledSet::of(part.to_vec()) {
                Ok(compiled) => self.compiled_sets.push(Arc::new(compiled)),
                Err(FormLimit) => {
                    self.insert_in_tuples(part, hasher, epoch);
                    result = Err(FormLimit);
                }
            }
        }
        self.compiled_sets
            .sort_by_key(|compiled| std::cmp::Reverse(compiled.len()));
        result
    }

    /// Takes out the compiled sets that are small compared with the rules added since, or that
    /// need a rebuild, and returns their live rules.
    fn absorb_sets(&mut self) -> Vec<Arc<Rule>> {
        let mut rules = Vec::new();
        let mut added = self.plan.added;
        // The smallest set is the last.
        while let Some(compiled) = self
            .compiled_sets
            .pop_if(|compiled| compiled.len() < GROWTH * added)
        {
            added += compiled.len();
            rules.extend(compiled.live_rules().cloned());
        }
        let to_rebuild = self
            .compiled_sets
            .extract_if(.., |compiled| compiled.needs_rebuild());
        to_rebuild.for_each(|compiled| rules.extend(compiled.live_rules().cloned()));
        rules
    }

    /// The forms with the least expected cost for the rules in tuples and these.
    fn choose_forms(&self, rules: &[Arc<Rule>]) -> FormChoice {
        let tuples = self.tuples.iter();
        let mut masks: BTreeMap<TupleMask, (usize, Vec<Arc<Rule>>)> = tuples
            .map(|(mask, tuple)| (mask.clone(), (tuple.len(), tuple.sample())))
            .collect();
        for rule in rules {
            let (size, sample) = masks.entry(mask_of(rule)).or_default();
            *size += 1;
            if sample.is_empty() {
                sample.push(Arc::clone(rule));
            }
        }
        let mut masks: Vec<_> = masks.into_iter().collect();
        masks.sort_by_key(|(_, (size, _))| std::cmp::Reverse(*size));
        let mut best = FormChoice::of(&masks, None);
        if let Some(family) = largest_family(&masks) {
            let is_member = |sample: &[Arc<Rule>]| sample.iter().all(|rule| family.contains(rule));
            masks.retain(|(_, (_, sample))| !is_member(sample));
            let with_family = FormChoice::of(&masks, Some(family));
            // Cheaper additions to tuples are worth a probe.
            if with_family.0 + prefix_table::EXPECTED_COST + PROBE_COST < best.0 {
                best = with_family;
            }
        }
        best.1
    }

    fn masks_except(&self, kept: &BTreeSet<TupleMask>) -> Vec<TupleMask> {
        let masks = self.tuples.keys();
        let others = masks.filter(|mask| !kept.contains(*mask));
        others.cloned().collect()
    }

    fn insert_in_tuples(&mut self, rules: &[Arc<Rule>], hasher: KeyHasher, epoch: Epoch) {
        for rule in rules {
            let packed = PackedMatch::of(rule.matching());
            let mask = mask_of(rule);
            let new_tuple = || Tuple::new(mask.clone(), hasher, epoch);
            let tuple = self.tuples.entry(mask.clone()).or_insert_with(new_tuple);
            let (_, key) = tuple.masked_key(&packed);
            match tuple.insert(&key, rule, epoch) {
                Ok(_) => self.in_tuples += 1,
                Err(DuplicateLimit) => self.uncompiled.insert(rule),
            }
        }
    }
}

/// Forms of the rules of a table.
struct FormChoice {
    /// Masks whose tuples stay.
    kept: BTreeSet<TupleMask>,
    /// Family whose rules are compiled to a prefix table.
    family: Option<PrefixFamily>,
}

/// A mask, with the number of its rules and a sample of them.
type MaskSample = (TupleMask, (usize, Vec<Arc<Rule>>));

impl FormChoice {
    /// The cheapest choice for these masks, in descending order of their size, and its expected
    /// cost.
    fn of(masks: &[MaskSample], family: Option<PrefixFamily>) -> (usize, Self) {
        let sizes: Vec<_> = masks.iter().map(|(_, (size, _))| *size).collect();
        let (cost, kept) = cheapest_split(&sizes);
        let kept = masks[..kept].iter().map(|(mask, _)| mask.clone());
        let kept = kept.collect();
        (cost, Self { kept, family })
    }
}

/// Returns the family with the most rules among those with several masks, if there is one.
fn largest_family(masks: &[MaskSample]) -> Option<PrefixFamily> {
    let mut families: BTreeMap<PrefixFamily, (usize, usize)> = BTreeMap::new();
    for (_, (size, sample)) in masks.iter().take(FAMILY_MASKS_MAX) {
        for family in sample
            .iter()
            .take(1)
            .flat_map(|rule| PrefixFamily::all_of(rule))
        {
            let (masks, rules) = families.entry(family).or_default();
            *masks += 1;
            *rules += size;
        }
    }
    let is_suitable =
        |(masks, rules): (usize, usize)| masks > 1 && rules <= prefix_table::RULES_MAX;
    let suitable = families
        .into_iter()
        .filter(|(_, counts)| is_suitable(*counts));
    let largest = suitable.max_by_key(|(_, (_, rules))| *rules);
    largest.map(|(family, _)| family)
}

/// Returns the least expected cost of a lookup, and how many tuples stay for that, given the sizes
/// of all tuples in descending order.
fn cheapest_split(sizes: &[usize]) -> (usize, usize) {
    let mut compiled: usize = sizes.iter().sum();
    let mut best = (usize::MAX, sizes.len());
    for kept in 0..=sizes.len().min(TUPLES_MAX) {
        // At equal cost, tuples are preferred, since additions to them are cheaper.
        let cost = CompiledSet::expected_cost(compiled) + kept * PROBE_COST;
        if compiled <= COMPILED_MAX && cost <= best.0 {
            best = (cost, kept);
        }
        compiled -= sizes.get(kept).copied().unwrap_or_default();
    }
    best
}

fn mask_of(rule: &Rule) -> TupleMask {
    let mut buffer = [(0, 0); KEY_WORDS];
    TupleMask::of(PackedMatch::of(rule.matching()).mask(&mut buffer))
}

#[cfg(test)]
mod tests;

//! Compiled set: rules that are frozen and compiled together, in one of three forms. None is added
//! afterwards; one that dies is marked with the epoch of its death, so that older views still find
//! it.
//!
//! A compiled set relates to the tuples of a table as a run to the memtable of an LSM tree
//! (O'Neil et al., "The log-structured merge-tree", 1996): rules are added where that is cheap, and
//! merged later into what is cheaper to search. [`classifier`](crate::classifier) has the merge
//! plan.
//!
//! ```text
//!                    +--> linear form      up to 16 rules, compared one after the other
//!  CompiledSet ------+--> prefix table     prefixes of one field
//!    rules           +--> bit vectors      all other rules, up to 16,384
//!    hot rules
//!      |
//!      form: key -> rank -> hot rule [ died | counters | inline program ]  (32 bytes)
//!                        -> rule     only if the inline program does not suffice
//! ```
//!
//! All forms map a key to a *rank*, the index of the rule in match order. A batch finds the *likely*
//! ranks first, as if no rule had died, and prefetches their hot rules; only a packet whose rule is
//! not visible is looked up again, alone.
//!
//! A set is rebuilt when an eighth of its rules, and more than eight, have died.
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::FlowModCommand;
//! use flow::text::parse_flow;
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! let mut change = |command, line: &str| {
//!     let command = parse_flow(command, line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the change is legal");
//!     classifier.queue_changes(&changes);
//!     classifier.publish(&pipeline);
//!     let description = classifier.describe().swap_remove(0);
//!     (description.form, description.rules)
//! };
//! // Small tables are compiled with each addition; the death of a rule changes nothing else.
//! assert_eq!(change(FlowModCommand::Add, "tcp,tp_dst=80,actions=drop"), ("direct".into(), 1));
//! assert_eq!(change(FlowModCommand::Add, "ip,actions=output:2"), ("direct".into(), 2));
//! assert_eq!(change(FlowModCommand::Delete, "tcp"), ("direct".into(), 1));
//! ```

use std::sync::Arc;

use base::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use pipeline::{Counters, Rule};
use sys::cache::prefetch;
use sys::processor;

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::bitvector::{self, BitVector, FormLimit};
use crate::epoch::Epoch;
use crate::linear::{self, LinearSearch};
use crate::packed_key::{KEY_WORDS, KeyParts, PackedKey, PackedMatch};
use crate::prefix_table::{PrefixFamily, PrefixTable};
use crate::rank::{NO_RULE, match_order};

/// Epoch of death of a live rule.
const NEVER: Epoch = Epoch::MAX;

/// A set is rebuilt when more rules than both of these have died: this many, and one in so many.
const DEAD_MIN: usize = 8;
const DEAD_SHARE: usize = 8;

/// Lookup structure of a set.
#[derive(Debug)]
enum CompiledForm {
    Linear(LinearSearch),
    Prefix(PrefixTable),
    BitVector(BitVector),
}

/// The part of a rule that packets need which match it, stored adjacently, so that the rule itself
/// is not read.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct HotRule {
    /// Epoch from which the rule is not visible.
    died: AtomicU64,
    pub(crate) counters: Counters,
    /// Encoded [`InlineProgram`](crate::action_program::InlineProgram).
    pub(crate) inline_program: u32,
    pub(crate) priority: u16,
}

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<HotRule>() == 32, "half a cache line");

impl HotRule {
    fn of(rule: &Arc<Rule>) -> Self {
        Self {
            died: AtomicU64::new(NEVER),
            counters: rule.counters.clone(),
            inline_program: rule.instructions.program_slot().inline_program(),
            priority: rule.priority(),
        }
    }

    /// True if the rule is visible as of `epoch`.
    #[inline]
    pub(crate) fn is_visible(&self, epoch: Epoch) -> bool {
        epoch < self.died.load(Relaxed)
    }

    fn is_live(&self) -> bool {
        self.died.load(Relaxed) == NEVER
    }
}

/// Rules of one table that are compiled together.
#[derive(Debug)]
pub(crate) struct CompiledSet {
    /// In match order: the index is the rank.
    rules: Box<[Arc<Rule>]>,
    /// By rank.
    hot_rules: Box<[HotRule]>,
    /// Dead rules; only the writer uses it.
    dead: AtomicUsize,
    form: CompiledForm,
    /// Highest priority of the rules.
    pub(crate) highest: u16,
    /// True if rules are clauses of conjunctions.
    pub(crate) has_clauses: bool,
    /// True if all rules are clauses.
    has_only_clauses: bool,
    /// Words of the key that the rules read, and the bits of each.
    mask: Box<[(u8, u64)]>,
    /// Parts of the key that these words are in.
    pub(crate) parts: KeyParts,
}

impl CompiledSet {
    /// Compiles live rules of one table: to the linear form if they are few, else to bit vectors.
    pub(crate) fn of(mut rules: Vec<Arc<Rule>>) -> Result<Self, FormLimit> {
        rules.sort_by(match_order);
        let form = if rules.len() <= linear::RULES_MAX {
            CompiledForm::Linear(LinearSearch::of(&rules))
        } else {
            CompiledForm::BitVector(BitVector::of(&rules)?)
        };
        Ok(Self::new(rules, form))
    }

    /// Compiles rules of one family to a prefix table.
    pub(crate) fn of_family(
        family: PrefixFamily,
        mut rules: Vec<Arc<Rule>>,
    ) -> Result<Self, FormLimit> {
        rules.sort_by(match_order);
        let table = PrefixTable::of(family, &rules).ok_or(FormLimit)?;
        Ok(Self::new(rules, CompiledForm::Prefix(table)))
    }

    fn new(rules: Vec<Arc<Rule>>, form: CompiledForm) -> Self {
        let mask = mask_of(&rules);
        Self {
            hot_rules: rules.iter().map(HotRule::of).collect(),
            dead: AtomicUsize::new(0),
            form,
            highest: rules.first().map_or(0, |first| first.priority()),
            has_clauses: rules.iter().any(|rule| rule.is_clause()),
            has_only_clauses: rules.iter().all(|rule| rule.is_clause()),
            parts: KeyParts::of_mask(&mask),
            mask,
            rules: rules.into(),
        }
    }

    /// Words of the key that the rules read, and the bits of each.
    pub(crate) fn mask(&self) -> &[(u8, u64)] {
        &self.mask
    }

    /// Expected cost of a lookup among so many rules with many masks, in modelled instructions,
    /// in as many sets as they need.
    pub(crate) fn expected_cost(rules: usize) -> usize {
        let full = rules / bitvector::RULES_MAX * BitVector::expected_cost(bitvector::RULES_MAX);
        full + match rules % bitvector::RULES_MAX {
            0 => 0,
            few @ 1..=linear::RULES_MAX => LinearSearch::expected_cost(few),
            many => BitVector::expected_cost(many),
        }
    }

    /// Returns the rule that the packet matches first among the eligible ones, as of `epoch`.
    #[inline]
    pub(crate) fn find(
        &self,
        key: &PackedKey,
        epoch: Epoch,
        is_eligible: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let rank = self.rank(key, epoch, |rank| is_eligible(&self.rules[rank]));
        rank.map(|rank| &self.rules[rank])
    }

    /// Returns the rule that the packet matches first among those that are no clauses.
    pub(crate) fn find_plain(&self, key: &PackedKey, epoch: Epoch) -> Option<&Arc<Rule>> {
        if self.has_only_clauses {
            return None;
        }
        self.find(key, epoch, |rule| !rule.is_clause())
    }

    /// Returns the rank of the rule that the packet matches first among the eligible ones.
    #[inline]
    fn rank(
        &self,
        key: &PackedKey,
        epoch: Epoch,
        is_eligible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let is_visible = |rank: usize| self.hot_rules[rank].is_visible(epoch) && is_eligible(rank);
        match &self.form {
            CompiledForm::Linear(linear) => linear.find(key, is_visible),
            CompiledForm::Prefix(table) => table.find(key, is_visible),
            CompiledForm::BitVector(vectors) => vectors.find(key, is_visible),
        }
    }

    /// Ranks of the rules that these packets match if all rules are visible; [`NO_RULE`] for
    /// packets without a match. A rank whose rule is not visible requires another lookup. Hot rules
    /// are prefetched.
    pub(crate) fn likely_ranks(
        &self,
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
        epoch: Epoch,
    ) -> [u32; LOOKUP_BATCH] {
        let prefetch = |rank: u32| {
            let hot = self.hot_rules.get(rank as usize);
            hot.into_iter().for_each(prefetch);
        };
        let ranks = match &self.form {
            CompiledForm::Prefix(table) => return table.likely_ranks(keys, packets, prefetch),
            CompiledForm::BitVector(vectors) => {
                processor::with_avx2(|| vectors.likely_ranks(keys, packets))
            }
            CompiledForm::Linear(_) => {
                let mut ranks = [NO_RULE; LOOKUP_BATCH];
                for index in packets {
                    let rank = self.rank(&keys[index % LOOKUP_BATCH], epoch, |_| true);
                    let rank = rank.and_then(|rank| u32::try_from(rank).ok());
                    ranks[index % LOOKUP_BATCH] = rank.unwrap_or(NO_RULE);
                }
                ranks
            }
        };
        packets.for_each(|index| prefetch(ranks[index % LOOKUP_BATCH]));
        ranks
    }

    /// Returns the hot rule of this rank if it is visible as of `epoch`.
    #[inline]
    pub(crate) fn hot_rule(&self, rank: u32, epoch: Epoch) -> Option<&HotRule> {
        let hot = self.hot_rules.get(rank as usize)?;
        hot.is_visible(epoch).then_some(hot)
    }

    /// The rule of this rank, visible or not.
    #[inline]
    pub(crate) fn rule(&self, rank: u32) -> Option<&Arc<Rule>> {
        self.rules.get(rank as usize)
    }

    /// Returns the linear form if the set has it.
    #[inline]
    pub(crate) const fn as_linear(&self) -> Option<&LinearSearch> {
        match &self.form {
            CompiledForm::Linear(linear) => Some(linear),
            CompiledForm::Prefix(_) | CompiledForm::BitVector(_) => None,
        }
    }

    /// Returns the rule that the packet matches first, as of `epoch`; `linear` is the form of
    /// this set.
    #[inline]
    pub(crate) fn find_linear(
        &self,
        linear: &LinearSearch,
        key: &PackedKey,
        epoch: Epoch,
    ) -> Option<&Arc<Rule>> {
        let rank = linear.find(key, |rank| self.hot_rules[rank].is_visible(epoch));
        rank.map(|rank| &self.rules[rank])
    }

    /// Ranks and rules that are visible as of `epoch`, in match order.
    #[inline]
    pub(crate) fn visible_rules(&self, epoch: Epoch) -> impl Iterator<Item = (usize, &Rule)> {
        let all = self.rules.iter().zip(&self.hot_rules).enumerate();
        all.filter(move |(_, (_, hot))| hot.is_visible(epoch))
            .map(|(rank, (rule, _))| (rank, &**rule))
    }

    /// Lets a rule die in `epoch`. Returns false if it is not in the set, or dead. For the one
    /// writer.
    pub(crate) fn remove(&self, rule: &Arc<Rule>, epoch: Epoch) -> bool {
        let found = self
            .rules
            .binary_search_by(|other| match_order(other, rule));
        let is_same =
            |rank: &usize| Arc::ptr_eq(&self.rules[*rank], rule) && self.hot_rules[*rank].is_live();
        let Some(rank) = found.ok().filter(is_same) else {
            return false;
        };
        self.hot_rules[rank].died.store(epoch, Relaxed);
        self.dead.fetch_add(1, Relaxed);
        true
    }

    /// True if so many rules have died that the set must be rebuilt.
    pub(crate) fn needs_rebuild(&self) -> bool {
        let dead = self.dead.load(Relaxed);
        dead == self.rules.len() || dead > DEAD_MIN.max(self.rules.len() / DEAD_SHARE)
    }

    /// Number of live rules.
    pub(crate) fn len(&self) -> usize {
        self.rules.len() - self.dead.load(Relaxed)
    }

    /// Live rules.
    pub(crate) fn live_rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        let all = self.rules.iter().zip(&self.hot_rules);
        all.filter(|(_, hot)| hot.is_live()).map(|(rule, _)| rule)
    }

    /// Cost of a lookup in modelled instructions.
    pub(crate) fn cost(&self) -> usize {
        match &self.form {
            CompiledForm::Linear(linear) => linear.cost(),
            CompiledForm::Prefix(table) => table.cost(),
            CompiledForm::BitVector(vectors) => vectors.cost(),
        }
    }

    /// Name of the form, and the reason for it.
    pub(crate) fn describe(&self) -> (&'static str, String) {
        let rules = self.len();
        match &self.form {
            CompiledForm::Linear(_) => ("direct", format!("{rules} rules compared one by one")),
            CompiledForm::Prefix(table) => {
                let depth = table.depth();
                let why = format!("{rules} rules on prefixes of one field, nested {depth} deep");
                ("prefix", why)
            }
            CompiledForm::BitVector(vectors) => {
                let extent = vectors.describe();
                ("bits", format!("{rules} rules with many masks: {extent}"))
            }
        }
    }

    /// Size in bytes without the rules.
    pub(crate) fn bytes(&self) -> usize {
        let of_form = match &self.form {
            CompiledForm::Linear(linear) => linear.bytes(),
            CompiledForm::Prefix(table) => table.bytes(),
            CompiledForm::BitVector(vectors) => vectors.bytes(),
        };
        of_form + self.rules.len() * (size_of::<Arc<Rule>>() + size_of::<HotRule>())
    }
}

/// Words of the key that these rules read, and the bits of each.
fn mask_of(rules: &[Arc<Rule>]) -> Box<[(u8, u64)]> {
    let mut masks = [0; KEY_WORDS];
    for rule in rules {
        let mut buffer = [(0, 0); KEY_WORDS];
        for (word, mask) in PackedMatch::of(rule.matching()).mask(&mut buffer) {
            masks[usize::from(*word)] |= mask;
        }
    }
    (0..).zip(masks).filter(|(_, mask)| *mask != 0).collect()
}

//! Recording of walks while the executor runs packets.
//!
//! Walks nest: a copy that continues in tables after `ct` is a walk of its own, within that of the
//! packet.

use base::TableId;
use pipeline::{Counters, Rule};

use super::rewrites::simplify;
use super::walk::{Walk, WalkEffect, WalkLookup};
use super::walk_key::{NeededBits, StartBits, WalkWords};
use crate::classifier::TableView;
use crate::epoch::Epoch;
use crate::packed_key::{MatchEvidence, OptionalBits, PackedKey};
use crate::tuple::TupleView;

/// Walks that are recorded in a lookup batch, so that the cost is low if no flow repeats.
const RECORDED_MAX: u32 = 4;

/// Most effects of a walk, and those among them that have memory of their own; most lookups, and most
/// actions and stack entries of a packet that is tracked. Rules whose walks exceed them are not
/// cached, so that a full cache is bounded.
const EFFECTS_MAX: usize = 64;
const LARGE_EFFECTS_MAX: usize = 8;
const LOOKUPS_MAX: usize = 256;
const SAVED_MAX: usize = 4;

/// Rules that are examined for a walk one by one, so that its recording takes some tens of
/// microseconds: in tables, and in the compiled sets of tables with more rules.
const RULES_EXAMINED_MAX: usize = 1024;

/// A walk that is being recorded.
#[derive(Debug)]
struct Recording {
    /// `None` if the walk cannot be cached.
    words: Option<WalkWords>,
    /// Optional bits that keys of its start had.
    known: StartBits,
    /// Optional bits on which it depends, besides those of the first level.
    needed: NeededBits,
    /// Rules of tables, and of compiled sets of tables, that may still be examined for it.
    rules_left: usize,
    set_rules_left: usize,
    effects: Vec<WalkEffect>,
    lookups: Vec<WalkLookup>,
}

impl Recording {
    /// The optional bits that keys of the walk have.
    fn known_bits(&self) -> OptionalBits {
        let [mut known, ..] = self.known.levels;
        known.insert(&self.needed.all);
        known
    }

    /// Adds the optional bits that tell whether the packet satisfies the matches of these rules.
    /// Returns false, without a change, if they are more than are `left`.
    fn examine<'r>(
        &mut self,
        key: &PackedKey,
        left: &mut usize,
        rules: impl Iterator<Item = &'r Rule>,
    ) -> bool {
        let [_, later @ ..] = &self.known.levels;
        let (mut known, mut needed) = (self.known_bits(), self.needed);
        for rule in rules {
            let Some(fewer) = left.checked_sub(1) else {
                return false;
            };
            *left = fewer;
            let bits = match known.examined_by(key, rule.matching(), later) {
                MatchEvidence::Known => continue,
                MatchEvidence::Bit(bit) => {
                    needed.evidence.insert(&bit);
                    bit
                }
                MatchEvidence::All(bits) => bits,
            };
            known.insert(&bits);
            needed.all.insert(&bits);
        }
        self.needed = needed;
        true
    }
}

/// A walk, the packet that it was recorded for, and the optional bits on which it depends.
pub(super) type FinishedWalk = (WalkWords, NeededBits, Walk);

/// The recorder of a worker.
#[derive(Debug)]
pub(crate) struct WalkRecorder {
    /// The innermost walk is the last.
    open: Vec<Recording>,
    finished: Vec<FinishedWalk>,
    /// Number of walks that the lookup batch may still record.
    left: u32,
    /// Number of rules that are examined for a walk one by one.
    examined_max: usize,
    last_id: u64,
}

impl WalkRecorder {
    pub(super) const fn new() -> Self {
        Self {
            open: Vec::new(),
            finished: Vec::new(),
            left: 0,
            examined_max: RULES_EXAMINED_MAX,
            last_id: super::walk_key::FROM_PORT,
        }
    }

    pub(crate) const fn limit_examined(&mut self, rules: usize) {
        self.examined_max = rules;
    }

    pub(super) const fn begin_batch(&mut self) {
        self.left = RECORDED_MAX;
    }

    /// True if one more walk than so many others may be recorded in this lookup batch.
    #[inline]
    pub(crate) const fn may_record(&self, others: u32) -> bool {
        self.left > others
    }

    /// Starts a walk within the current one. Keys of its start have the optional bits `known`.
    pub(super) fn begin(&mut self, words: Option<WalkWords>, known: StartBits) {
        self.left = self.left.saturating_sub(1);
        self.open.push(Recording {
            words,
            known,
            needed: NeededBits::default(),
            rules_left: self.examined_max,
            set_rules_left: self.examined_max,
            effects: Vec::new(),
            lookups: Vec::new(),
        });
    }

    /// Ends the innermost walk. `reads_network` is true if rewrites apply to IP.
    pub(crate) fn end(&mut self, reads_network: bool) {
        if let Some(recording) = self.open.pop()
            && let Some(words) = recording.words
        {
            let effects = match words.is_untagged() && reads_network {
                true => simplify(recording.effects),
                false => recording.effects,
            };
            let walk = Walk::of(effects, recording.lookups);
            self.finished.push((words, recording.needed, walk));
        }
    }

    /// Discards what the innermost walk has recorded: it cannot be cached.
    pub(crate) fn give_up(&mut self) {
        if let Some(recording) = self.open.last_mut() {
            recording.words = None;
            recording.effects.clear();
            recording.lookups.clear();
        }
    }

    /// True if the innermost walk can still be cached.
    pub(crate) fn is_valid(&self) -> bool {
        self.open.last().is_some_and(|walk| walk.words.is_some())
    }

    /// Records an effect.
    pub(crate) fn add_effect(&mut self, effect: WalkEffect) {
        let Some(recording) = self.open.last_mut().filter(|walk| walk.words.is_some()) else {
            return;
        };
        let large = recording.effects.iter().filter(|effect| effect.is_large());
        let has_room = recording.effects.len() < EFFECTS_MAX
            && (!effect.is_large() || large.count() < LARGE_EFFECTS_MAX)
            && effect.saved_len() <= SAVED_MAX;
        match has_room {
            true => recording.effects.push(effect),
            false => self.give_up(),
        }
    }

    /// Adds optional bits on which the innermost walk depends.
    pub(crate) fn add_bits(&mut self, bits: &OptionalBits) {
        if let Some(recording) = self.open.last_mut() {
            recording.needed.all.insert(bits);
        }
    }

    /// Adds all optional bits that a table reads. Walks that need fewer do not share their keys.
    pub(crate) fn add_table(&mut self, bits: &OptionalBits) {
        if let Some(recording) = self.open.last_mut() {
            recording.needed.all.insert(bits);
            recording.needed.evidence.insert(bits);
        }
    }

    /// Adds the optional bits that tell whether the packet satisfies the matches of these rules of a
    /// table. Returns false, without a change, if the walk has examined too many.
    pub(crate) fn examine<'r>(
        &mut self,
        key: &PackedKey,
        rules: impl Iterator<Item = &'r Rule>,
    ) -> bool {
        self.open.last_mut().is_none_or(|recording| {
            let mut left = recording.rules_left;
            let is_complete = recording.examine(key, &mut left, rules);
            recording.rules_left = left;
            is_complete
        })
    }

    /// Adds the optional bits on which the result of a table depends that has found a rule of this
    /// priority or a higher one, structure by structure.
    pub(crate) fn examine_structures(
        &mut self,
        key: &PackedKey,
        (view, epoch): (&TableView, Epoch),
        least: u16,
    ) {
        for compiled in view.compiled_sets() {
            let rules = compiled.visible_rules(epoch).map(|(_, rule)| rule);
            let rules = rules.take_while(|rule| rule.priority() >= least);
            if !self.examine_set(key, rules) {
                self.add_table(&OptionalBits::of_mask(compiled.mask()));
            }
        }
        let tuples = view.tuples().iter();
        for tuple in tuples.filter(|tuple| tuple.highest >= least) {
            self.examine_tuple(key, tuple);
        }
    }

    /// Examines rules of a compiled set. Returns false, without a change, if the walk has examined
    /// too many.
    fn examine_set<'r>(&mut self, key: &PackedKey, rules: impl Iterator<Item = &'r Rule>) -> bool {
        self.open.last_mut().is_none_or(|recording| {
            let mut left = recording.set_rules_left;
            let is_complete = recording.examine(key, &mut left, rules);
            recording.set_rules_left = left;
            is_complete
        })
    }

    /// Adds an optional bit that shows that the packet matches no rule of a tuple, if the bits that
    /// its rules have in common show it, and else all optional bits of its mask.
    fn examine_tuple(&mut self, key: &PackedKey, tuple: &TupleView) {
        let Some(recording) = self.open.last_mut() else {
            return;
        };
        let [_, later @ ..] = &recording.known.levels;
        let known = recording.known_bits();
        match known.examined_by_words(key, tuple.common(), later) {
            MatchEvidence::Known => {}
            MatchEvidence::Bit(bit) => {
                recording.needed.evidence.insert(&bit);
                recording.needed.all.insert(&bit);
            }
            MatchEvidence::All(_) => self.add_table(&OptionalBits::of_mask(tuple.mask())),
        }
    }

    /// Records a lookup: the counters of the rule that matched, if one did.
    pub(crate) fn add_lookup(&mut self, table: TableId, counters: Option<&Counters>) {
        let Some(recording) = self.open.last_mut().filter(|walk| walk.words.is_some()) else {
            return;
        };
        match recording.lookups.len() < LOOKUPS_MAX {
            true => recording.lookups.push((counters.cloned(), table)),
            false => self.give_up(),
        }
    }

    /// Returns an id that no other walk has: greater than that of the walk before.
    pub(crate) const fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn take_finished(&mut self) -> impl Iterator<Item = FinishedWalk> {
        self.finished.drain(..)
    }

    /// Discards all walks.
    pub(super) fn discard(&mut self) {
        self.open.clear();
        self.finished.clear();
    }
}

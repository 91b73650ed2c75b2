//! Recording of walks while the executor runs packets.
//!
//! Walks nest: a copy that continues in tables after `ct` is a walk of its own, within that of the
//! packet.

use base::TableId;
use pipeline::{Counters, Rule};

use super::rewrites::simplify;
use super::walk::{Walk, WalkEffect, WalkLookup};
use super::walk_key::{NeededBits, StartBits, WalkWords};
use crate::packed_key::{MatchEvidence, OptionalBits, PackedKey};

/// Walks that are recorded in a lookup batch, so that the cost is low if no flow repeats.
const RECORDED_MAX: u32 = 4;

/// Most effects of a walk, and those among them that have memory of their own; most lookups, and most
/// actions and stack entries of a packet that is tracked. Rules whose walks exceed them are not
/// cached, so that a full cache is bounded.
const EFFECTS_MAX: usize = 64;
const LARGE_EFFECTS_MAX: usize = 8;
const LOOKUPS_MAX: usize = 256;
const SAVED_MAX: usize = 4;

/// Rules that are examined for a walk, so that its recording takes some tens of microseconds.
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
    /// Rules that may still be examined for it.
    rules_left: usize,
    effects: Vec<WalkEffect>,
    lookups: Vec<WalkLookup>,
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
    last_id: u64,
}

impl WalkRecorder {
    pub(super) const fn new() -> Self {
        Self {
            open: Vec::new(),
            finished: Vec::new(),
            left: 0,
            last_id: super::walk_key::FROM_PORT,
        }
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
            rules_left: RULES_EXAMINED_MAX,
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

    /// Adds the optional bits that tell whether the packet satisfies the matches of these rules.
    /// Returns false if the walk has examined too many.
    pub(crate) fn examine<'r>(
        &mut self,
        key: &PackedKey,
        rules: impl Iterator<Item = &'r Rule>,
    ) -> bool {
        let Some(recording) = self.open.last_mut() else {
            return true;
        };
        let [first, later @ ..] = &recording.known.levels;
        let mut known = *first;
        known.insert(&recording.needed.all);
        for rule in rules {
            let Some(left) = recording.rules_left.checked_sub(1) else {
                return false;
            };
            recording.rules_left = left;
            let bits = match known.examined_by(key, rule.matching(), later) {
                MatchEvidence::Known => continue,
                MatchEvidence::Bit(bit) => {
                    recording.needed.evidence.insert(&bit);
                    bit
                }
                MatchEvidence::All(bits) => bits,
            };
            known.insert(&bits);
            recording.needed.all.insert(&bits);
        }
        true
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

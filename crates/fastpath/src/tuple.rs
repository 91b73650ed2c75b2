//! Tuple space search: one hash table for each mask (Srinivasan, Suri, Varghese, "Packet
//! classification using tuple space search", SIGCOMM 1999; Open vSwitch `struct cls_subtable`).
//!
//! Rules with the same mask form a *tuple* and differ only in their values, so a lookup in the
//! tuple masks the key of the packet, computes one hash and finds the rule or no rule. A table with
//! `m` masks is searched in `m` tuples, in descending order of the highest priority in each; the
//! search ends when the rule that it has found has a higher priority than all rules of the next:
//!
//! ```text
//!   tuple   mask                    highest   rules
//!     0     eth_type, nw_dst           40     nw_dst=10.0.0.1 ..., 10.0.0.2 ..., ...
//!     1     eth_type, nw_src/16        30     nw_src=10.0/16 ...
//!     2     in_port                    10     in_port=1 ..., in_port=2 ...
//!
//!   packet: tuple 0 finds a rule of priority 20  ->  tuple 1 may have a better one: continue
//!           tuple 1 finds a rule of priority 25  ->  10 < 25: tuple 2 is not searched
//! ```
//!
//! The hash table of a tuple is divided into [segments](crate::segment) by the upper bits of the
//! hash; the directory maps these bits to segments, and doubles when a segment must be split that
//! fills one slot of it (extendible hashing):
//!
//! ```text
//!   directory, 2 bits    00 -> segment A        A was not split, so it is in two slots
//!                        01 -> segment A
//!                        10 -> segment B
//!                        11 -> segment C
//! ```
//!
//! Rules are added and removed in place, and each becomes visible with an
//! [epoch](crate::epoch), so an addition costs the same in a table of a hundred rules and of a
//! million.
//!
//! Cost of a lookup: 110 modelled instructions for each tuple. Since masks come from rules only and
//! not from traffic, no traffic can add tuples (compare the "tuple space explosion" attack on
//! Open vSwitch's megaflows, Csikor et al. 2019); if rules have many masks, the [merge
//! plan](crate::classifier) replaces the smaller tuples by compiled sets.
//!
//! Chosen for every rule that is added, and for the tuples whose rules are too many to compile.
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::text::parse_flow_line;
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for n in 0..1000 {
//!     let line = format!("udp,nw_src=10.0.{}.{},actions=output:2", n / 250, n % 250);
//!     let command = parse_flow_line(&line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! classifier.publish(&pipeline);
//! let description = &classifier.describe()[0];
//! assert_eq!((&*description.form, description.rules), ("exact", 1000));
//! assert_eq!(description.cost, Some(110));
//! ```

mod common_bits;
mod segment_directory;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use pipeline::Rule;
use sys::cache::prefetch;

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::epoch::Epoch;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::mask::{MaskedKey, TupleMask, masked_words};
use crate::packed_key::{KeyParts, PackedKey, PackedMatch};
use crate::segment::{
    CAPACITY_MAX, CAPACITY_MIN, HotEntry, LiveEntry, SearchKey, Segment, SegmentFull,
};

use common_bits::CommonBits;
pub(crate) use common_bits::CommonWord;
use segment_directory::{DIRECTORY_BITS_MAX, SegmentDirectory};

/// Most entries of a segment whose hashes are all equal, so that no split separates them: the
/// number of an entry has sixteen bits.
const EQUAL_HASHES_MAX: usize = 32_768;

/// Too many rules differ only in their priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DuplicateLimit;

/// A tuple as workers read it.
#[derive(Clone, Debug)]
pub(crate) struct TupleView {
    mask: Arc<TupleMask>,
    /// Highest priority of its rules, or more.
    pub(crate) highest: u16,
    /// True if all rules have that priority, so that it is known without the rule.
    has_one_priority: bool,
    /// True if rules are clauses of conjunctions.
    pub(crate) has_clauses: bool,
    /// True if all rules are clauses.
    pub(crate) has_only_clauses: bool,
    /// Bits that all rules have in common, or fewer.
    common: CommonBits,
    directory: Arc<SegmentDirectory>,
}

/// Segments of a tuple whose counters are prefetched: so many have eight thousand entries, which
/// take some 800 kB with their counters.
const FAR_SEGMENTS: usize = 16;

/// Lookups of a batch by hot entries, before any hot entry is read.
pub(crate) struct HotLookups<'v> {
    /// Segment and hash of each packet.
    pub(crate) segments: [(&'v Segment, KeyHash); LOOKUP_BATCH],
    /// Hot entry that each packet may match.
    pub(crate) hot: [Option<&'v HotEntry>; LOOKUP_BATCH],
    /// Packets that match no rule of the tuple.
    pub(crate) missing: BatchMask,
}

impl TupleView {
    /// Begins the lookup of a batch by hot entries: prefetches the buckets of all packets, then
    /// their hot entries. `mask` is the mask of the tuple.
    #[inline(always)]
    pub(crate) fn begin_hot_lookups<const N: usize>(
        &self,
        hasher: KeyHasher,
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
        mask: [(u8, u64); N],
    ) -> HotLookups<'_> {
        let mut segments: [(&Segment, KeyHash); LOOKUP_BATCH] =
            [(self.first_segment(), KeyHash::ZERO); LOOKUP_BATCH];
        for index in packets {
            let words = masked_words(&keys[index % LOOKUP_BATCH], mask);
            let hash = hasher.hash(words.into_iter());
            let segment = self.segment(hash);
            segment.prefetch_bucket(hash);
            segments[index % LOOKUP_BATCH] = (segment, hash);
        }
        let mut hot: [Option<&HotEntry>; LOOKUP_BATCH] = [None; LOOKUP_BATCH];
        let mut missing = BatchMask::EMPTY;
        for index in packets {
            let (segment, hash) = segments[index % LOOKUP_BATCH];
            match segment.likely_hot_entry(hash) {
                Some(entry) => {
                    prefetch(entry);
                    hot[index % LOOKUP_BATCH] = Some(entry);
                }
                None => missing.insert(BatchMask::single(index)),
            }
        }
        HotLookups {
            segments,
            hot,
            missing,
        }
    }

    /// Returns the rules that these packets match. Buckets, entries and rules are prefetched for
    /// all packets, stage by stage.
    pub(crate) fn find_each(
        &self,
        (hasher, epoch): (KeyHasher, Epoch),
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
    ) -> [Option<&Arc<Rule>>; LOOKUP_BATCH] {
        let first = &*self.directory.segments[0];
        let mut stages = [(KeyHash::ZERO, first, None); LOOKUP_BATCH];
        for index in packets {
            let hash = hasher.hash(self.mask.masked_words(&keys[index]));
            let segment = &**self.directory.segment(hash);
            segment.prefetch_bucket(hash);
            stages[index] = (hash, segment, None);
        }
        for index in packets {
            let (hash, segment, number) = &mut stages[index];
            *number = segment.likely(*hash);
            if let Some(number) = *number {
                segment.prefetch_entry(number);
            }
        }
        let mut found = [None; LOOKUP_BATCH];
        for index in packets {
            let (hash, segment, number) = stages[index];
            let Some(number) = number else {
                continue;
            };
            let search = SearchKey::Key(&keys[index]);
            let likely = segment.likely_rule(number, search, epoch);
            found[index] = likely.or_else(|| segment.find(hash, search, epoch, |_| true));
            found[index]
                .into_iter()
                .for_each(|rule| prefetch_rule(rule));
        }
        found
    }

    /// True if the counters of its rules, with everything else that packets read, exceed a
    /// second-level cache.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.directory.segments.len() >= FAR_SEGMENTS
    }

    /// Returns the priority of the rule of a hot entry that was found by this hash.
    #[inline]
    pub(crate) fn priority_of(
        &self,
        (segment, hash): (&Segment, KeyHash),
        hot: &HotEntry,
    ) -> Option<u16> {
        match self.has_one_priority {
            true => Some(self.highest),
            false => {
                let rule = segment.rule_of_hot_entry(hash, hot);
                rule.map(|rule| rule.priority())
            }
        }
    }

    /// The segment of a hash.
    #[inline]
    pub(crate) fn segment(&self, hash: KeyHash) -> &Segment {
        self.directory.segment(hash)
    }

    /// The first segment; a tuple has at least one.
    pub(crate) fn first_segment(&self) -> &Segment {
        &self.directory.segments[0]
    }

    #[inline]
    fn search_key<'a>(&self, masked: &'a MaskedKey, key: &'a PackedKey) -> SearchKey<'a> {
        match self.mask.hot_words() {
            0 => SearchKey::Key(key),
            words => SearchKey::Words(&masked.words[..words]),
        }
    }

    /// Words of the mask, and the bits of each.
    pub(crate) fn mask(&self) -> &[(u8, u64)] {
        self.mask.words()
    }

    /// Bits that all rules have in common.
    pub(crate) fn common(&self) -> &[CommonWord] {
        self.common.words()
    }

    /// Parts of a key that the mask reads.
    pub(crate) fn parts(&self) -> KeyParts {
        self.mask.parts()
    }

    /// Returns the rule that the packet matches first among the eligible ones, as of `epoch`.
    #[inline]
    pub(crate) fn find(
        &self,
        key: &PackedKey,
        hasher: KeyHasher,
        epoch: Epoch,
        is_eligible: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let masked = self.mask.apply(key, hasher);
        let segment = self.directory.segment(masked.hash);
        segment.find(
            masked.hash,
            self.search_key(&masked, key),
            epoch,
            is_eligible,
        )
    }
}

/// Prefetches the fields of a rule that was found.
#[inline]
fn prefetch_rule(rule: &Rule) {
    prefetch(&rule.instructions);
    prefetch(&rule.counters);
}

/// A tuple as the writer holds it.
#[derive(Debug)]
pub(crate) struct Tuple {
    mask: Arc<TupleMask>,
    hasher: KeyHasher,
    directory: Arc<SegmentDirectory>,
    /// Number of rules by priority.
    priorities: BTreeMap<u16, usize>,
    /// Number of rules that are clauses of conjunctions.
    clauses: usize,
    /// Number of the others.
    plain: usize,
    /// Bits that all rules have in common that were added since the tuple was empty.
    common: CommonBits,
}

impl Tuple {
    pub(crate) fn new(mask: TupleMask, hasher: KeyHasher, epoch: Epoch) -> Self {
        let segment = Segment::new(CAPACITY_MIN, mask.hot_words(), epoch);
        Self {
            mask: Arc::new(mask),
            hasher,
            directory: Arc::new(SegmentDirectory {
                bits: 0,
                segments: vec![Arc::new(segment)],
            }),
            priorities: BTreeMap::new(),
            clauses: 0,
            plain: 0,
            common: CommonBits::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.priorities.is_empty()
    }

    /// Number of rules.
    pub(crate) fn len(&self) -> usize {
        self.priorities.values().sum()
    }

    /// Segments without repetition: equal ones are in adjacent slots.
    fn segments(&self) -> Vec<Arc<Segment>> {
        let mut segments = self.directory.segments.clone();
        segments.dedup_by(|one, other| Arc::ptr_eq(one, other));
        segments
    }

    /// Size in bytes without the rules.
    pub(crate) fn bytes(&self) -> usize {
        let of_segments = self.segments().into_iter().map(|segment| segment.bytes());
        of_segments.sum::<usize>() + self.directory.segments.len() * size_of::<Arc<Segment>>()
    }

    /// A sample of the rules, at least one if there are any.
    pub(crate) fn sample(&self) -> Vec<Arc<Rule>> {
        const SAMPLES: usize = 8;
        for segment in self.segments() {
            let live = segment.live_entries();
            if !live.is_empty() {
                let sample = live.iter().take(SAMPLES);
                return sample
                    .map(|entry| Arc::clone(segment.rule_of(entry)))
                    .collect();
            }
        }
        Vec::new()
    }

    /// All rules.
    pub(crate) fn rules(&self) -> Vec<Arc<Rule>> {
        let of_segment = |segment: &Arc<Segment>| {
            let live = segment.live_entries().into_iter();
            live.map(|entry| Arc::clone(segment.rule_of(&entry)))
                .collect::<Vec<_>>()
        };
        self.segments().iter().flat_map(of_segment).collect()
    }

    pub(crate) fn highest(&self) -> u16 {
        let last = self.priorities.last_key_value();
        last.map_or(0, |(priority, _)| *priority)
    }

    pub(crate) fn view(&self) -> TupleView {
        TupleView {
            mask: Arc::clone(&self.mask),
            highest: self.highest(),
            has_one_priority: self.priorities.len() == 1,
            has_clauses: self.clauses > 0,
            has_only_clauses: self.plain == 0,
            common: self.common.clone(),
            directory: Arc::clone(&self.directory),
        }
    }

    /// The mask, and the masked key of a rule with this match.
    pub(crate) fn masked_key(&self, packed: &PackedMatch) -> (Arc<TupleMask>, MaskedKey) {
        let key = self.mask.apply(&packed.values, self.hasher);
        (Arc::clone(&self.mask), key)
    }

    /// Brings the memory that rules of these hashes will be written to into the cache. In a large
    /// table it is in no cache, and the latencies of several rules overlap.
    pub(crate) fn prefetch_hashes(&self, hashes: impl Iterator<Item = KeyHash> + Clone) {
        let segments = hashes.map(|hash| (hash, self.directory.segment(hash)));
        let headers = segments.clone().map(|(_, segment)| segment.touch());
        black_box(headers.sum::<usize>());
        // Buckets are in no cache most often; in a loop of their own all are in flight together.
        let buckets = segments.clone();
        buckets.for_each(|(hash, segment)| segment.prefetch_bucket(hash));
        let next = segments.map(|(_, segment)| segment.touch_next_entry());
        black_box(next.sum::<usize>());
    }

    /// Adds a rule with its masked key, visible from `epoch`. Returns true if the view of the
    /// tuple has changed.
    pub(crate) fn insert(
        &mut self,
        key: &MaskedKey,
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Result<bool, DuplicateLimit> {
        let hash = key.hash;
        let (highest, count) = (self.highest(), self.priorities.len());
        let mut is_replaced = self.replace_if_old(hash, epoch)?;
        while let Err(SegmentFull) = self.directory.segment(hash).insert(key, rule, epoch) {
            self.replace_segment(hash, 1, epoch)?;
            is_replaced = true;
        }
        let is_narrowed = match self.is_empty() {
            true => {
                self.common = CommonBits::of_rule(&self.mask, rule);
                true
            }
            false => self.common.narrow(&self.mask, key, rule),
        };
        *self.priorities.entry(rule.priority()).or_default() += 1;
        let (clauses, plain) = (self.clauses, self.plain);
        *self.count_of(rule) += 1;
        let has_new_kind =
            (clauses == 0) != (self.clauses == 0) || (plain == 0) != (self.plain == 0);
        let has_second_priority = count == 1 && self.priorities.len() == 2;
        let is_higher = rule.priority() > highest;
        Ok(is_replaced || is_narrowed || is_higher || has_second_priority || has_new_kind)
    }

    /// Removes a rule as of `epoch`. Returns true if the view of the tuple has changed, or `None`
    /// if the rule is not in the tuple.
    pub(crate) fn remove(
        &mut self,
        packed: &PackedMatch,
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Option<bool> {
        let hash = self.hash(packed);
        let was_old = self.replace_if_old(hash, epoch).ok()?;
        let segment = Arc::clone(self.directory.segment(hash));
        let dead = segment.remove(hash, rule, epoch)?;
        let highest = self.highest();
        *self.count_of(rule) -= 1;
        if let Some(count) = self.priorities.get_mut(&rule.priority()) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&rule.priority());
            }
        }
        let is_worn = dead > DEAD_OF_MATCH_MAX || segment.is_mostly_dead();
        let is_compacted = is_worn && self.replace_segment(hash, 0, epoch).is_ok();
        Some(was_old || is_compacted || self.highest() != highest)
    }

    /// Number of rules that are clauses as this rule is, or are none as it is.
    fn count_of(&mut self, rule: &Rule) -> &mut usize {
        match rule.is_clause() {
            true => &mut self.clauses,
            false => &mut self.plain,
        }
    }

    /// Number of entries in the longest list of one match.
    #[cfg(test)]
    pub(crate) fn longest_list(&self) -> usize {
        let segments = self.directory.segments.iter();
        let lists = segments.map(|segment| segment.longest_list());
        lists.max().unwrap_or(0)
    }

    fn hash(&self, packed: &PackedMatch) -> KeyHash {
        self.hasher.hash(self.mask.masked_words(&packed.values))
    }

    /// Replaces the segment of `hash` if it is too old to be written to. Returns true if it was.
    fn replace_if_old(&mut self, hash: KeyHash, epoch: Epoch) -> Result<bool, DuplicateLimit> {
        let is_old = self.directory.segment(hash).is_old(epoch);
        if is_old {
            self.replace_segment(hash, 0, epoch)?;
        }
        Ok(is_old)
    }

    /// Replaces the segment of `hash` by one or two with its live entries and room for `more`.
    fn replace_segment(
        &mut self,
        hash: KeyHash,
        more: usize,
        epoch: Epoch,
    ) -> Result<(), DuplicateLimit> {
        let slot = self.directory.slot(hash);
        let old = Arc::clone(&self.directory.segments[slot]);
        let live = old.live_entries();
        let inherits = more > 0 && old.can_be_inherited(epoch);
        let has_equal_hashes = live.windows(2).all(|two| two[0].hash == two[1].hash);
        // Full below its capacity: its buckets are too few for these hashes.
        let is_crowded = more > 0 && !old.is_used_up();
        let least = if is_crowded { old.capacity() + 1 } else { 0 };
        let capacity = capacity_for(live.len() + more).max(least.next_power_of_two());
        let directory = Arc::make_mut(&mut self.directory);
        let splits =
            capacity > CAPACITY_MAX && !has_equal_hashes && directory.bits < DIRECTORY_BITS_MAX;
        if !splits {
            let segment = fill_segment(&old, live.iter(), capacity, epoch, inherits)?;
            let slots = directory.slots_of(slot);
            directory.segments[slots].fill(Arc::new(segment));
            return Ok(());
        }
        if directory.slots_of(slot).len() == 1 {
            directory.double();
        }
        let slots = directory.slots_of(directory.slot(hash));
        let middle = slots.start + slots.len() / 2;
        for half in [slots.start..middle, middle..slots.end] {
            let is_in_half = |entry: &&LiveEntry| half.contains(&directory.slot(entry.hash));
            let part = live.iter().filter(is_in_half);
            let capacity = capacity_for(part.clone().count() + 1);
            let segment = fill_segment(&old, part, capacity, epoch, inherits)?;
            directory.segments[half].fill(Arc::new(segment));
        }
        Ok(())
    }
}

/// Maximum number of dead entries in the list of one match: every packet of the match passes them. A
/// rule that is rewritten in a loop costs a copy of its segment as often.
const DEAD_OF_MATCH_MAX: usize = 16;

/// Builds a segment of these entries of `old`, of `capacity` or, if its buckets do not suffice, of
/// the next power of two that does.
fn fill_segment<'a>(
    old: &Segment,
    live: impl Iterator<Item = &'a LiveEntry> + Clone,
    mut capacity: usize,
    epoch: Epoch,
    inherits: bool,
) -> Result<Segment, DuplicateLimit> {
    while capacity <= EQUAL_HASHES_MAX {
        match old.with_entries(live.clone(), capacity, epoch, inherits) {
            Ok(segment) => return Ok(segment),
            Err(SegmentFull) => capacity *= 2,
        }
    }
    Err(DuplicateLimit)
}

/// Capacity for so many entries and half as many more.
fn capacity_for(entries: usize) -> usize {
    (entries + entries / 2)
        .next_power_of_two()
        .max(CAPACITY_MIN)
}

//! Entries of the walk cache, and their pending statistics. A search touches the tags of a set and
//! the words of the entry that is found.

use std::time::Duration;

use base::{Instant, TableId};
use pipeline::{Counters, Pipeline, Totals};
use sys::cache::prefetch;

use super::walk::{ShortWalk, TrackEffect, WalkEffect, WalkLookup};
use super::walk_key::{KeyBits, KeyPlace, StartBits, WalkKey, WalkWords};
use super::walk_recorder::FinishedWalk;
use crate::batch_stats::{TableBatchStats, add};
use crate::classifier::{ContentId, View};
use crate::exec::SteadyCall;
use crate::flow_cache::{WAYS, boxed_array, equal_tags};
use crate::packed_key::{IP_WORDS, IpVersion, PackedKey};

/// Number of sets.
const SETS: u16 = 2048;

/// Number of entries.
const ENTRIES: usize = SETS as usize * WAYS;

const _: () = assert!(
    ENTRIES <= 1 << u16::BITS,
    "an entry has a number of 16 bits"
);

/// Interval after which pending statistics are due: longer than that of the flow cache, since a walk
/// has many rules.
pub(super) const FLUSH_INTERVAL: Duration = Duration::from_millis(200);

/// Entries that are flushed before each batch, once they are due.
const FLUSHED_PER_BATCH: usize = 16;

/// Bits of a tag.
const TAG_BITS: usize = u8::BITS as usize;

/// Key words of an entry.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct EntryWords([u64; IP_WORDS]);

/// A walk, and the packets that its rules have not counted yet.
#[derive(Debug, Default)]
struct WalkEntry {
    effects: Box<[WalkEffect]>,
    lookups: Box<[WalkLookup]>,
    /// The effects, if they are that simple.
    short: Option<ShortWalk>,
    totals: Totals,
    /// Time of the last of them.
    used: Instant,
    /// True if the entry is listed as having pending statistics.
    is_listed: bool,
}

/// Result of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WalkSearch {
    /// The number of the walk.
    Found(u16),
    /// The packet has no walk.
    Absent,
    /// Packets like this one have no walks.
    NoKey,
}

/// All entries of a walk cache.
#[derive(Debug)]
pub(super) struct WalkEntries {
    writer: usize,
    /// The rules of the entries, if there are any.
    content: Option<ContentId>,
    /// Optional bits that keys have.
    bits: Option<KeyBits>,
    /// Eight bits of the hash of each entry; zero if there is no entry.
    tags: Box<[[u8; WAYS]; SETS as usize]>,
    words: Box<[EntryWords; ENTRIES]>,
    walks: Box<[WalkEntry; ENTRIES]>,
    /// The entry whose walk is released next if it was removed.
    next_release: usize,
    /// Entries that were hit since the last interval began, and those that are due.
    fresh: Vec<u16>,
    due: Vec<u16>,
    /// End of the interval.
    next_flush: Instant,
    /// Counters of lookups and of matches, by table number.
    table_counters: Vec<(Counters, Counters)>,
    table_stats: TableBatchStats,
    /// Time of the last packet that was flushed.
    last_used: Instant,
}

impl WalkEntries {
    /// Empty entries.
    pub(super) fn new(writer: usize) -> Self {
        Self {
            writer,
            content: None,
            bits: None,
            tags: boxed_array(|| [0; WAYS]),
            words: boxed_array(|| EntryWords([0; IP_WORDS])),
            walks: boxed_array(WalkEntry::default),
            next_release: ENTRIES,
            fresh: Vec::new(),
            due: Vec::new(),
            next_flush: Instant::START,
            table_counters: Vec::new(),
            table_stats: TableBatchStats::new(),
            last_used: Instant::START,
        }
    }

    /// True if the entries are of the rules of this view.
    #[inline]
    pub(super) fn is_of(&self, view: &View) -> bool {
        self.content == Some(view.content())
    }

    /// Removes all entries and prepares for a view.
    pub(super) fn reset(&mut self, view: &View, pipeline: &Pipeline) {
        self.clear();
        self.content = Some(view.content());
        self.bits = Some(KeyBits::of(view));
        let counters = (0..=TableId::LAST.0).map(|id| {
            let (lookups, matches) = pipeline.table_counters(TableId(id));
            (lookups.clone(), matches.clone())
        });
        self.table_counters = counters.collect();
    }

    /// Removes all entries. Their walks are released later.
    pub(super) fn clear(&mut self) {
        self.flush_all();
        self.tags.fill([0; WAYS]);
        self.next_release = 0;
        self.content = None;
    }

    /// Returns the words of a packet.
    pub(super) fn words_of(&self, key: &PackedKey, start: u64) -> Option<WalkWords> {
        self.bits.as_ref()?.words_of(key, start)
    }

    /// Returns the optional bits that keys of these words have.
    pub(super) fn bits_of(&self, words: &WalkWords) -> Option<StartBits> {
        self.bits.as_ref().map(|bits| bits.bits_of(words).clone())
    }

    /// Returns the walk of a packet, or its key without a walk in the first level.
    #[inline]
    pub(super) fn find(&self, key: &PackedKey, start: u64) -> WalkSearch {
        let (Some(bits), Some(version)) = (&self.bits, key.ip_version()) else {
            return WalkSearch::NoKey;
        };
        let found = match version {
            IpVersion::V4 => bits.find_v4(key, start, |words, place| self.find_words(words, place)),
            IpVersion::V6 => bits
                .keys_of(key, start)
                .find_map(|key| self.find_words(&key.words, key.place)),
        };
        found.map_or(WalkSearch::Absent, WalkSearch::Found)
    }

    /// Returns the key of a packet in the first level.
    pub(super) fn first_key_of(&self, key: &PackedKey, start: u64) -> Option<WalkKey> {
        self.bits.as_ref()?.first_key_of(key, start)
    }

    /// Prefetches the effects of an entry.
    #[inline]
    pub(super) fn prefetch_walk(&self, index: u16) {
        let first = self.walks[usize::from(index) % ENTRIES].effects.first();
        first.into_iter().for_each(prefetch);
    }

    /// Returns the number of the entry with these words: all of them, or those that a packet of IPv4
    /// has.
    #[inline]
    fn find_words<const N: usize>(&self, words: &[u64; N], place: KeyPlace) -> Option<u16> {
        let set = set_of(place);
        let mut likely = equal_tags(self.tags[set], place.tag);
        while likely != 0 {
            let index = (set * WAYS + likely.trailing_zeros() as usize / TAG_BITS) % ENTRIES;
            // Word by word: they were just computed, and a wider load would wait for their stores.
            let EntryWords(of_entry) = &self.words[index];
            if of_entry.iter().zip(words).all(|(one, other)| one == other) {
                return u16::try_from(index).ok();
            }
            likely &= likely - 1;
        }
        None
    }

    /// Returns the effects of an entry, if they are simple.
    #[inline]
    pub(super) fn short_walk(&self, index: u16) -> Option<&ShortWalk> {
        self.walks[usize::from(index) % ENTRIES].short.as_ref()
    }

    /// Returns the first `ct` of an entry, if it has one that may be on the short path.
    #[inline]
    pub(super) fn first_track(&self, index: u16) -> Option<&TrackEffect> {
        let effects = &self.walks[usize::from(index) % ENTRIES].effects;
        let track = effects.iter().find_map(|effect| match effect {
            WalkEffect::Track(track) => Some(&**track),
            _ => None,
        });
        track.filter(|track| track.steady != SteadyCall::None)
    }

    /// Counts a packet of an entry.
    #[inline]
    pub(super) fn count(&mut self, index: u16, weight: Totals, now: Instant) {
        let entry = &mut self.walks[usize::from(index) % ENTRIES];
        add(&mut entry.totals, weight);
        entry.used = now;
        if !entry.is_listed {
            entry.is_listed = true;
            self.fresh.push(index);
        }
    }

    /// Takes the effects of an entry, and counts a packet.
    #[inline]
    pub(super) fn take_effects(
        &mut self,
        index: u16,
        weight: Totals,
        now: Instant,
    ) -> Box<[WalkEffect]> {
        self.count(index, weight, now);
        std::mem::take(&mut self.walks[usize::from(index) % ENTRIES].effects)
    }

    /// Returns the effects of an entry.
    #[inline]
    pub(super) fn return_effects(&mut self, index: u16, effects: Box<[WalkEffect]>) {
        self.walks[usize::from(index) % ENTRIES].effects = effects;
    }

    /// Adds a walk.
    pub(super) fn insert(&mut self, (words, needed, walk): FinishedWalk) {
        let Some(all) = &mut self.bits else {
            return;
        };
        let key = all.add(&words, &needed);
        if self.find_words(&key.words, key.place).is_some() {
            return;
        }
        let set = set_of(key.place);
        let free = self.tags[set].iter().position(|tag| *tag == 0);
        // Walks after a walk that was replaced are never used again.
        let oldest = (0..WAYS).min_by_key(|way| self.walks[set * WAYS + way].used);
        let way = free.or(oldest).unwrap_or(0);
        let index = set * WAYS + way;
        self.flush_entry(index);
        self.flush_tables();
        self.tags[set][way] = key.place.tag;
        self.words[index] = EntryWords(key.words);
        let entry = &mut self.walks[index];
        entry.short = ShortWalk::of(&walk.effects);
        (entry.effects, entry.lookups) = (walk.effects, walk.lookups);
    }

    /// Releases the walk of the next entry if it was removed: one for each batch, so that no batch
    /// waits for all. Returns false if there was none left.
    #[inline]
    pub(super) fn release_next(&mut self) -> bool {
        let Some(entry) = self.walks.get_mut(self.next_release) else {
            return false;
        };
        if self.tags[self.next_release / WAYS][self.next_release % WAYS] == 0 {
            (entry.effects, entry.lookups) = (Box::default(), Box::default());
        }
        self.next_release += 1;
        true
    }

    /// Begins a batch: flushes some of the entries that are due.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant) {
        if now >= self.next_flush || !self.due.is_empty() {
            self.flush_some(now);
        }
    }

    #[inline(never)]
    fn flush_some(&mut self, now: Instant) {
        if self.due.is_empty() {
            std::mem::swap(&mut self.due, &mut self.fresh);
            self.next_flush = now + FLUSH_INTERVAL;
        }
        let remaining = self.due.len().saturating_sub(FLUSHED_PER_BATCH);
        self.flush_due(remaining);
    }

    /// Flushes all entries.
    #[inline]
    pub(super) fn flush_all(&mut self) {
        if self.has_pending_stats() {
            self.due.append(&mut self.fresh);
            self.flush_due(0);
        }
    }

    /// True if statistics are pending.
    #[inline]
    pub(super) fn has_pending_stats(&self) -> bool {
        !(self.due.is_empty() && self.fresh.is_empty())
    }

    /// Flushes the entries that are due, except the first `remaining`.
    fn flush_due(&mut self, remaining: usize) {
        let mut due = std::mem::take(&mut self.due);
        for index in due.drain(remaining..) {
            self.flush_entry(index.into());
            self.walks[usize::from(index) % ENTRIES].is_listed = false;
        }
        self.due = due;
        self.flush_tables();
    }

    /// Adds the packets of all flushed entries to the counters of tables.
    fn flush_tables(&mut self) {
        let all = &self.table_counters;
        let counters = |table: TableId| {
            let (lookups, matches) = &all[usize::from(table.0)];
            (lookups, matches)
        };
        self.table_stats
            .flush(counters, self.writer, self.last_used);
    }

    /// Adds the packets of one entry to the counters of its rules, and to the sums of tables. It stays
    /// listed.
    fn flush_entry(&mut self, index: usize) {
        let entry = &mut self.walks[index % ENTRIES];
        let totals = std::mem::take(&mut entry.totals);
        if totals.packets == 0 {
            return;
        }
        for (counters, table) in &entry.lookups {
            self.table_stats.count_lookups(*table, totals);
            match counters {
                Some(counters) => counters.add_until(self.writer, totals, entry.used),
                None => self.table_stats.count_misses(*table, totals),
            }
        }
        self.last_used = self.last_used.max(entry.used);
    }
}

/// Number of a key's set.
#[inline]
fn set_of(place: KeyPlace) -> usize {
    usize::from(place.bucket % SETS)
}

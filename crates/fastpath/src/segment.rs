//! Segment: a part of a tuple's hash table that one thread writes while others read, without a
//! lock and without waiting.
//!
//! A tuple's table is an extendible hash table (Fagin, Nievergelt, Pippenger, Strong 1979) whose
//! bucket pages are segments of at most [`CAPACITY_MAX`] entries: a segment that is full is
//! replaced by a larger one, or by two. So no insertion costs more than copying the largest
//! segment, whatever the size of the table. The directory of segments is in [`tuple`](crate::tuple).
//!
//! ```text
//!              hash (48 bits):  | segment 16 | tag 16 | bucket 16 |
//!                                                  |       |
//!   buckets (32 bytes)     8 tags, 8 numbers    <--+-------+   candidates: bucket,
//!                          [t t t t t t . .]                   bucket ^ tag
//!                          [n n n n n n . .]
//!                             |
//!   blocks                    v number = block, position
//!     hot entries (64 bytes)  [ 4 words | counters | inline program | born | until ]
//!     entries (24 bytes)      [ rule | born | died | next ] -> entry with the same match -> ...
//!     hashes (4 bytes)        [ segment and bucket part of the hash ]
//! ```
//!
//! **Buckets.** An entry is in one of two buckets, whose distance is the tag, as in partial-key
//! cuckoo hashing (Fan, Andersen, Kaminsky, "MemC3", 2013); but nothing is ever moved, so that a
//! reader never misses an entry. The second bucket is used only after the first has
//! [`PREFERRED`] entries, so most lookups read one bucket. All tags of a bucket are compared
//! together.
//!
//! **Entries** are written once: a reader finds an entry completely or not at all. Rules with the
//! same match and different priorities form a list, whose first entry buckets name. The live entries
//! of a list are in match order: an entry that precedes all of them becomes the first, and its number
//! replaces that of the former first in the bucket. So a lookup ends at the first entry that is
//! visible, and the hot entry of the first decides, however many there are.
//!
//! **Hot entries** repeat, for tuples of up to four words, everything that most packets need of an
//! entry, in one cache line. See [`hot_entry`].
//!
//! **Epochs.** An entry is visible from the epoch of its birth until that of its death, see
//! [`epoch`](crate::epoch). Both are stored as *ages* of 16 bits, counted from the epoch in which
//! the first of its blocks was made; a reader of the segment is of that epoch or a later one. A
//! segment that is older than the ages reach is replaced before it is written to.
//!
//! **Compaction.** A segment that replaces a full one shares its blocks: entries keep their
//! positions, and new ones are appended in blocks of its own. So the rules, which are scattered in
//! the memory of a large table, are not read when the table grows. Of each entry one segment is the
//! *successor*, and no other writes to it. If most entries of a segment have died, its replacement
//! copies the live ones into new blocks, which releases the dead rules.
//!
//! Cost of a lookup: one bucket, one hot entry and one cell of counters, each at most one cache
//! miss; 110 modelled instructions with the computation of the hash.
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::text::{parse_flow, parse_flow_line};
//! use flow::FlowModCommand;
//! use pipeline::{Limits, Pipeline};
//! use std::sync::Arc;
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! let mut rules = Vec::new();
//! // A window of 2,000 rules moves over 20,000 matches: segments fill, split and are compacted.
//! for n in 0..20_000_u32 {
//!     let add = parse_flow_line(&format!("udp,tp_dst={n},actions=drop")).expect("a flow");
//!     let changes = pipeline.flow_mod(&add, Instant::START).expect("the table has room");
//!     rules.extend(changes.added.iter().map(Arc::downgrade));
//!     classifier.queue_changes(&changes);
//!     if let Some(old) = n.checked_sub(2_000) {
//!         let delete = format!("priority=32768,udp,tp_dst={old}");
//!         let delete = parse_flow(FlowModCommand::DeleteStrict, &delete).expect("a flow");
//!         let changes = pipeline.flow_mod(&delete, Instant::START).expect("the rule exists");
//!         classifier.queue_changes(&changes);
//!     }
//!     classifier.publish(&pipeline);
//! }
//! let in_memory = rules.iter().filter(|rule| rule.strong_count() > 0).count();
//! assert!(in_memory < 3 * 2_000, "{in_memory} rules");
//! ```

mod block;
mod bucket;
mod hash_parts;
mod hot_entry;
mod live_entries;
mod prefetch;

use std::sync::Arc;

use base::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use pipeline::Rule;

use crate::epoch::Epoch;
use crate::key_hash::KeyHash;
use crate::mask::MaskedKey;
use crate::packed_key::{PackedKey, PackedMatch};
use block::{
    BLOCK, BLOCK_BITS, BLOCKS_MAX, EntryBlock, NEVER, NO_ENTRY, SegmentEntry, position_of,
};
use bucket::{SLOTS, TagBucket};
use hash_parts::without_tag;
pub(crate) use hot_entry::HotEntry;
pub(crate) use live_entries::LiveEntry;

/// Entries of the smallest segment, and of the largest. Replacing the largest takes some tens of
/// microseconds, which a flow-mod may have to wait for.
pub(crate) const CAPACITY_MIN: usize = 4;
pub(crate) const CAPACITY_MAX: usize = 1024;

/// Entries of the first bucket before the second is used: so most lookups read one bucket, and
/// hardly a segment is full before its capacity.
const PREFERRED: usize = 6;

/// Key of a search in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SearchKey<'a> {
    /// Words to compare with hot entries.
    Words(&'a [u64]),
    /// A key to compare with the matches of rules.
    Key(&'a PackedKey),
}

/// The segment has no room for the entry: it must be replaced by a larger one, or by two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentFull;

/// Part of a tuple's hash table.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Epoch from which ages are counted.
    origin: Epoch,
    buckets: Box<[TagBucket]>,
    /// Inherited blocks, then its own.
    blocks: Box<[EntryBlock]>,
    /// Number of inherited blocks.
    inherited_blocks: usize,
    /// Most entries, inherited ones included.
    capacity: usize,
    /// Words of a hot entry; zero if there are none.
    hot_words: usize,
    /// Most entries in its own blocks.
    own_capacity: usize,
    /// Entries written to its own blocks; only the writer uses it.
    used: AtomicU32,
    /// Inherited entries, and those that have died in the inherited blocks.
    inherited: u32,
    /// Dead entries of its blocks; only the writer uses it.
    dead: AtomicU32,
    /// Own entries that follow another in a list; only the writer uses it.
    chained: AtomicU32,
}

impl Segment {
    /// An empty segment for `capacity` entries, a power of two, and readers from epoch `origin`.
    pub(crate) fn new(capacity: usize, hot_words: usize, origin: Epoch) -> Self {
        Self::with_blocks(&[], capacity, capacity, hot_words, origin)
    }

    /// A segment without entries that shares these blocks, and has room for `own_capacity`
    /// entries in blocks of its own.
    fn with_blocks(
        inherited: &[EntryBlock],
        capacity: usize,
        own_capacity: usize,
        hot_words: usize,
        origin: Epoch,
    ) -> Self {
        // Two slots for each entry.
        let buckets = (2 * capacity).div_ceil(SLOTS).next_power_of_two();
        let own = (0..own_capacity).step_by(BLOCK);
        let own = own.map(|start| EntryBlock::new(BLOCK.min(own_capacity - start), hot_words > 0));
        Self {
            origin,
            buckets: (0..buckets).map(|_| TagBucket::default()).collect(),
            blocks: inherited.iter().cloned().chain(own).collect(),
            inherited_blocks: inherited.len(),
            capacity,
            hot_words,
            own_capacity,
            used: AtomicU32::new(0),
            inherited: 0,
            dead: AtomicU32::new(0),
            chained: AtomicU32::new(0),
        }
    }

    /// Most entries.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Size in bytes without the rules.
    pub(crate) fn bytes(&self) -> usize {
        let of_blocks = self.blocks.iter().map(EntryBlock::bytes).sum::<usize>();
        size_of::<Self>() + size_of_val(&*self.buckets) + size_of_val(&*self.blocks) + of_blocks
    }

    /// True if most entries have died.
    pub(crate) fn is_mostly_dead(&self) -> bool {
        let dead = self.dead.load(Ordering::Relaxed);
        dead > 8 && 2 * dead > self.inherited + self.used.load(Ordering::Relaxed)
    }

    /// True if the ages do not reach `epoch`, so that the segment must be replaced before it is
    /// written to. At the highest rate of publications that is half a minute after its origin.
    pub(crate) const fn is_old(&self, epoch: Epoch) -> bool {
        self.age(epoch) >= NEVER as u64
    }

    /// True if a successor can share its blocks: unless many of their entries are dead, or the
    /// successor would soon be too old to be written to.
    pub(crate) fn can_be_inherited(&self, epoch: Epoch) -> bool {
        self.age(epoch) < u64::from(NEVER) / 2 && !self.is_mostly_dead()
    }

    /// Publications from the origin to `epoch`.
    const fn age(&self, epoch: Epoch) -> u64 {
        epoch.saturating_sub(self.origin)
    }

    /// Age of a reader of `epoch`. Every entry that dies does so at the last age or before.
    #[inline]
    fn age_to_read(&self, epoch: Epoch) -> u16 {
        let age = self.age(epoch).min(u64::from(NEVER) - 1);
        u16::try_from(age).expect("the age is at most 65,534")
    }

    fn age_to_write(&self, epoch: Epoch) -> u16 {
        u16::try_from(self.age(epoch)).expect("the tuple replaces a segment that is old")
    }

    #[inline]
    fn entry(&self, number: u16) -> Option<&SegmentEntry> {
        let block = self.blocks.get(usize::from(number >> BLOCK_BITS))?;
        block.entries.get(position_of(number))?.get()
    }

    /// Hash of an entry without its tag.
    fn hash_without_tag(&self, number: u16) -> u32 {
        let block = &self.blocks[usize::from(number >> BLOCK_BITS)];
        block.hashes[position_of(number)].load(Ordering::Relaxed)
    }

    /// Returns the block and the number of the next entry, or `None` if all are written.
    fn next(&self) -> Option<(&EntryBlock, u16)> {
        let written = self.written();
        let number = self.inherited_blocks * BLOCK + written;
        let block = self.blocks.get(number / BLOCK)?;
        let number = u16::try_from(number).expect("a segment has at most 63 blocks");
        (written < self.own_capacity).then_some((block, number))
    }

    /// Returns the rule of the search key and hash that is tried first among the eligible ones,
    /// as of `epoch`.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: KeyHash,
        search: SearchKey<'_>,
        epoch: Epoch,
        is_eligible: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let age = self.age_to_read(epoch);
        let (_, mut entry) =
            self.first(hash, |number, entry| self.is_hit(number, entry, search))?;
        // Entries that are visible together are in match order.
        while !entry.is_visible(age) || !is_eligible(&entry.rule) {
            entry = self.entry(entry.next.load(Ordering::Acquire))?;
        }
        Some(&entry.rule)
    }

    /// True if an entry has the search key.
    #[inline]
    fn is_hit(&self, number: u16, entry: &SegmentEntry, search: SearchKey<'_>) -> bool {
        match search {
            SearchKey::Words(words) => {
                let hot = self.hot_entry(number);
                hot.is_some_and(|hot| hot.words().zip(words).all(|(own, word)| own == *word))
            }
            SearchKey::Key(key) => key.satisfies(entry.rule.matching()),
        }
    }

    /// Returns the first entry with the tag of the hash for which `is_hit` holds. The second
    /// bucket can have it only if the first has its preferred number of entries.
    #[inline]
    fn first(
        &self,
        hash: KeyHash,
        is_hit: impl Fn(u16, &SegmentEntry) -> bool,
    ) -> Option<(u16, &SegmentEntry)> {
        let [mut bucket, last] = self.buckets_of(hash);
        loop {
            for number in self.buckets[bucket].numbers(hash.tag()) {
                if let Some(entry) = self.entry(number)
                    && is_hit(number, entry)
                {
                    return Some((number, entry));
                }
            }
            if bucket == last || !self.buckets[bucket].has(PREFERRED) {
                return None;
            }
            bucket = last;
        }
    }

    /// Returns the first entry with the same match as `rule`, which has the mask of the tuple.
    fn first_with_match_of(&self, hash: KeyHash, rule: &Rule) -> Option<(u16, &SegmentEntry)> {
        let rest = without_tag(hash);
        self.first(hash, |number, entry| {
            self.hash_without_tag(number) == rest && has_same_match(rule, &entry.rule)
        })
    }

    /// Indices of the two buckets of a hash. Each follows from the other and the tag.
    #[inline]
    fn buckets_of(&self, hash: KeyHash) -> [usize; 2] {
        let mask = self.buckets.len() - 1;
        let first = usize::from(hash.bucket());
        [first & mask, (first ^ usize::from(hash.tag())) & mask]
    }

    /// Adds an entry that is visible from `epoch`. For the one writer.
    pub(crate) fn insert(
        &self,
        key: &MaskedKey,
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Result<(), SegmentFull> {
        let link = self.link_for(key.hash, rule).ok_or(SegmentFull)?;
        self.write(link, key.hash, key.words.into_iter(), rule, epoch)
    }

    /// Builds a segment of `capacity` with these entries of this one. With `inherits`, and if
    /// block numbers suffice, the entries stay in their blocks. The first entry of a list refers
    /// to the next, so lists are written again in any case.
    pub(crate) fn with_entries<'a>(
        &self,
        entries: impl Iterator<Item = &'a LiveEntry> + Clone,
        capacity: usize,
        epoch: Epoch,
        inherits: bool,
    ) -> Result<Self, SegmentFull> {
        let has_numbers = self.blocks.len() + capacity.div_ceil(BLOCK) <= BLOCKS_MAX;
        let inherits = inherits && has_numbers;
        let segment = match inherits {
            true => self.successor(entries.clone(), capacity),
            false => Self::new(capacity, self.hot_words, epoch),
        };
        for entry in entries {
            let hash = entry.hash;
            if inherits && entry.is_alone {
                let (bucket, slot) = segment.free_slot(hash).ok_or(SegmentFull)?;
                bucket.insert(slot, hash.tag(), entry.number);
                continue;
            }
            let link = match segment.last().filter(|_| entry.is_chained) {
                Some(before) => EntryLink::After(before),
                None => EntryLink::Slot(segment.free_slot(hash).ok_or(SegmentFull)?),
            };
            let hot = self.hot_entry(entry.number);
            let words = hot.into_iter().flat_map(HotEntry::words);
            segment.write(link, hash, words, self.rule_of(entry), epoch)?;
        }
        Ok(segment)
    }

    /// A segment without entries that shares the blocks of these entries.
    fn successor<'a>(&self, entries: impl Iterator<Item = &'a LiveEntry>, capacity: usize) -> Self {
        let (mut shared, mut count) = ([false; BLOCKS_MAX], 0);
        for entry in entries.filter(|entry| entry.is_alone) {
            shared[usize::from(entry.number >> BLOCK_BITS)] = true;
            count += 1;
        }
        let blocks = self.blocks.iter().zip(shared).map(|(block, is_shared)| {
            if is_shared {
                block.clone()
            } else {
                EntryBlock::default()
            }
        });
        let blocks: Vec<_> = blocks.collect();
        let dead = self.dead.load(Ordering::Relaxed);
        let live = u32::try_from(count).expect("a segment has at most 32,768 entries");
        let own_capacity = capacity - count;
        Self {
            inherited: live + dead,
            dead: AtomicU32::new(dead),
            ..Self::with_blocks(&blocks, capacity, own_capacity, self.hot_words, self.origin)
        }
    }

    /// The entry that was written last to its own blocks.
    fn last(&self) -> Option<&SegmentEntry> {
        let last = self.inherited_blocks * BLOCK + self.written().checked_sub(1)?;
        self.entry(u16::try_from(last).ok()?)
    }

    /// Reads the header of the segment, so that it is in the cache.
    pub(crate) fn touch(&self) -> usize {
        self.written()
    }

    /// Reads the memory of the next entry, so that it is in the cache.
    pub(crate) fn touch_next_entry(&self) -> usize {
        let next = self.next().map(|(block, number)| {
            let position = position_of(number);
            let hashed = block.hashes[position].load(Ordering::Relaxed) != 0;
            [hashed, block.entries[position].get().is_some()]
        });
        let set = next.into_iter().flatten();
        set.filter(|set| *set).count()
    }

    fn write(
        &self,
        link: EntryLink<'_>,
        hash: KeyHash,
        words: impl Iterator<Item = u64>,
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Result<(), SegmentFull> {
        let (block, number) = self.next().ok_or(SegmentFull)?;
        let (position, born) = (position_of(number), self.age_to_write(epoch));
        if let Some(hot) = block.hot.get(position) {
            // It is found while the entry is the first of its list.
            hot.write(words, rule, (born, NEVER));
        }
        block.hashes[position].store(without_tag(hash), Ordering::Relaxed);
        let next = match &link {
            EntryLink::After(before) => before.next.load(Ordering::Relaxed),
            EntryLink::Before(first) => *first,
            EntryLink::Slot(_) => NO_ENTRY,
        };
        let written = block.entries[position].set(SegmentEntry {
            rule: Arc::clone(rule),
            born,
            died: AtomicU16::new(NEVER),
            next: AtomicU16::new(next),
        });
        written.expect("an entry is written once");
        match link {
            EntryLink::After(before) => {
                before.next.store(number, Ordering::Release);
                self.chained.fetch_add(1, Ordering::Relaxed);
            }
            EntryLink::Before(first) => {
                let mut buckets = self.buckets_of(hash).into_iter();
                let replaced = buckets.any(|bucket| self.buckets[bucket].replace(first, number));
                debug_assert!(replaced, "a bucket names the first entry of a list");
                self.chained.fetch_add(1, Ordering::Relaxed);
            }
            EntryLink::Slot((bucket, slot)) => bucket.insert(slot, hash.tag(), number),
        }
        let used = self.used.load(Ordering::Relaxed);
        self.used.store(used + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the link by which a new entry is found, or `None` if both buckets are full. In a
    /// list it is placed after the last live entry that precedes it. Dead entries are visible to no
    /// reader that sees the new one.
    fn link_for(&self, hash: KeyHash, rule: &Rule) -> Option<EntryLink<'_>> {
        let Some((first, entry)) = self.first_with_match_of(hash, rule) else {
            return self.free_slot(hash).map(EntryLink::Slot);
        };
        let (mut before, mut next) = (None, Some(entry));
        while let Some(entry) = next
            && !(entry.is_live() && rule.precedes(&entry.rule))
        {
            before = Some(entry).filter(|entry| entry.is_live()).or(before);
            next = self.entry(entry.next.load(Ordering::Relaxed));
        }
        Some(before.map_or(EntryLink::Before(first), EntryLink::After))
    }

    /// Returns the first free slot of the first bucket or, if that has its preferred number of
    /// entries, of the emptier one.
    fn free_slot(&self, hash: KeyHash) -> Option<(&TagBucket, usize)> {
        let [first, second] = self.buckets_of(hash).map(|bucket| &self.buckets[bucket]);
        let free = |bucket| TagBucket::free(bucket).map(|slot| (bucket, slot));
        if !first.has(PREFERRED) {
            return free(first);
        }
        let both = [first, second].into_iter().filter_map(free);
        both.min_by_key(|(_, slot)| *slot)
    }

    /// Lets the entry of `rule` die in `epoch`. Returns the number of dead entries before it, of
    /// itself and of those that follow it directly in the list of its match, or `None` if there is no
    /// such entry. For the one writer.
    pub(crate) fn remove(&self, hash: KeyHash, rule: &Arc<Rule>, epoch: Epoch) -> Option<usize> {
        let (mut number, mut entry) = self.first_with_match_of(hash, rule)?;
        let mut dead = 1;
        while !entry.is_live() || !Arc::ptr_eq(&entry.rule, rule) {
            dead += usize::from(!entry.is_live());
            number = entry.next.load(Ordering::Relaxed);
            entry = self.entry(number)?;
        }
        let age = self.age_to_write(epoch);
        entry.died.store(age, Ordering::Relaxed);
        let hot = self.hot_entry(number).into_iter();
        hot.for_each(|hot| hot.end(age));
        self.dead.fetch_add(1, Ordering::Relaxed);
        let following = self.list(entry.next.load(Ordering::Relaxed));
        dead += following.take_while(|(_, entry)| !entry.is_live()).count();
        Some(dead)
    }

    /// The list that starts with this number, from there.
    fn list(&self, number: u16) -> impl Iterator<Item = (u16, &SegmentEntry)> {
        let at = |number: u16| self.entry(number).map(|entry| (number, entry));
        std::iter::successors(at(number), move |(_, entry)| {
            at(entry.next.load(Ordering::Acquire))
        })
    }

    /// Number of entries in the longest list of one match.
    #[cfg(test)]
    pub(crate) fn longest_list(&self) -> usize {
        let lists = (0..NO_ENTRY).map(|number| self.list(number).count());
        lists.max().unwrap_or(0)
    }

    /// True if all entries of its own blocks are written.
    pub(crate) fn is_used_up(&self) -> bool {
        self.written() == self.own_capacity
    }

    fn written(&self) -> usize {
        usize::try_from(self.used.load(Ordering::Relaxed)).expect("an index")
    }
}

/// Link by which an entry is found.
enum EntryLink<'a> {
    /// The entry before it in the list of its match.
    After(&'a SegmentEntry),
    /// The bucket, where it replaces the first of the list, which has this number.
    Before(u16),
    /// A free slot of a bucket.
    Slot((&'a TagBucket, usize)),
}

/// True if two rules of one mask have the same match.
fn has_same_match(one: &Rule, other: &Rule) -> bool {
    let values = PackedMatch::of(one.matching()).values;
    values.satisfies(other.matching())
}

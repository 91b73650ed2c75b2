//! A piece of a hash table that one thread writes while others read, without a
//! lock and without ever waiting.
//!
//! A place is found by either of two buckets, so that a full bucket is rare; what
//! finds no place makes the segment *full*, and its owner makes a larger one or
//! two of it. Nothing is ever moved, and an entry is written once: a reader finds
//! it whole or not at all. What it wants of a frame is written in a *line* beside it if that is
//! few words, with all else that most frames need. Else the rule says so itself, which takes
//! longer, but there may be a million.
//!
//! Which entries a reader sees is decided by its *epoch*: an entry is there from
//! the epoch in which it was born until the one in which it died. So a reader of
//! an older epoch sees what was there then, whatever is written meanwhile. Epochs
//! are kept as *ages*, counted from the one in which the first of its blocks was made:
//! who sees the segment at all is of that epoch or a later one.
//!
//! Entries lie in *blocks*. A segment that is made because another is full goes on with
//! that one's blocks, in the same places, and writes behind them: so a rule is not asked
//! for when the table grows, which of a large one lies far away. Of each entry one segment
//! is the heir, and nobody else writes to it. A segment that begins anew copies its entries
//! and lets go of what has died.

mod block;
mod bucket;
mod glance;
mod line;
mod living;
mod slot;

use std::sync::Arc;

use base::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use pipeline::Rule;

use crate::lanes::{Conditions, Lanes};
use crate::shape::{Hash, Key};
use block::{BLOCK, BLOCK_BITS, BLOCKS_MAX, Block, Entry, NEVER, NONE, place_of};
use bucket::{Bucket, SLOTS};
pub(crate) use line::Line;
pub(crate) use living::Living;
use slot::rest_of;

/// The number of a publication. Readers of it see what was born until then and
/// had not died.
pub(crate) type Epoch = u64;

/// Entries of the smallest segment, and of the largest. Remaking the largest
/// takes some tens of microseconds, which is how long a flow-mod may wait for it.
pub(crate) const CAPACITY_MIN: usize = 4;
pub(crate) const CAPACITY_MAX: usize = 1024;

/// Entries that a bucket takes before the other of the two is asked: so most are found where
/// they are looked for first, and hardly a segment is full before its time.
const PREFERRED: usize = 6;

/// What is sought in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sought<'a> {
    /// These words, in a segment that has words beside its entries.
    Words(&'a [u64]),
    /// A rule that a frame of these fits.
    Lanes(&'a Lanes),
}

/// There was no room: a larger segment, or two, must take its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The epoch from which ages are counted.
    made: Epoch,
    buckets: Box<[Bucket]>,
    /// Those that it goes on with, and then its own.
    blocks: Box<[Block]>,
    /// How many blocks it goes on with.
    before: usize,
    /// How many entries there are room for, those that it goes on with among them.
    capacity: usize,
    /// How many words are beside each.
    width: usize,
    /// How many entries of its own there are room for.
    room: usize,
    /// How many of its own were written; the writer's own.
    used: AtomicU32,
    /// How many entries it goes on with, and how many have died beside them.
    inherited: u32,
    /// How many entries of its blocks have died; the writer's own.
    dead: AtomicU32,
    /// How many of its own are behind others that want the same; the writer's own.
    behind: AtomicU32,
}

impl Segment {
    /// One with room for `capacity` entries, a power of two, with so many words beside each,
    /// for readers from epoch `made` on.
    pub(crate) fn new(capacity: usize, width: usize, made: Epoch) -> Self {
        Self::with(&[], capacity, capacity, width, made)
    }

    /// One that goes on with these blocks, and has room for so many entries of its own.
    fn with(before: &[Block], capacity: usize, room: usize, width: usize, made: Epoch) -> Self {
        // Two slots an entry.
        let buckets = (2 * capacity).div_ceil(SLOTS).next_power_of_two();
        let own = (0..room).step_by(BLOCK);
        let own = own.map(|start| Block::new(BLOCK.min(room - start), width > 0));
        Self {
            made,
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            blocks: before.iter().cloned().chain(own).collect(),
            before: before.len(),
            capacity,
            width,
            room,
            used: AtomicU32::new(0),
            inherited: 0,
            dead: AtomicU32::new(0),
            behind: AtomicU32::new(0),
        }
    }

    /// How many entries there can be.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The bytes it takes, besides the rules.
    pub(crate) fn bytes(&self) -> usize {
        let of_blocks = self.blocks.iter().map(Block::bytes).sum::<usize>();
        size_of::<Self>() + size_of_val(&*self.buckets) + size_of_val(&*self.blocks) + of_blocks
    }

    /// Whether most of what was written has died.
    pub(crate) fn is_mostly_dead(&self) -> bool {
        let dead = self.dead.load(Ordering::Relaxed);
        dead > 8 && 2 * dead > self.inherited + self.used.load(Ordering::Relaxed)
    }

    /// Whether so many publications have been since it was made that it must be remade
    /// before it is written to: at the fastest that is half a minute's.
    pub(crate) const fn is_old(&self, epoch: Epoch) -> bool {
        self.age(epoch) >= NEVER as u64
    }

    /// Whether another can go on with its blocks: not if it kept many dead, or would soon
    /// be too old to be written to.
    pub(crate) fn can_be_inherited(&self, epoch: Epoch) -> bool {
        self.age(epoch) < u64::from(NEVER) / 2 && !self.is_mostly_dead()
    }

    /// How long after the segment was made that is, in publications.
    const fn age(&self, epoch: Epoch) -> u64 {
        epoch.saturating_sub(self.made)
    }

    /// The age that a reader of `epoch` asks for. Whatever dies here has done so by the
    /// last age there is.
    #[inline]
    fn age_to_read(&self, epoch: Epoch) -> u16 {
        let age = self.age(epoch).min(u64::from(NEVER) - 1);
        u16::try_from(age).expect("it is no greater than that")
    }

    fn age_to_write(&self, epoch: Epoch) -> u16 {
        u16::try_from(self.age(epoch)).expect("the owner remakes a segment that is old")
    }

    #[inline]
    fn entry(&self, number: u16) -> Option<&Entry> {
        let block = self.blocks.get(usize::from(number >> BLOCK_BITS))?;
        block.entries.get(place_of(number))?.get()
    }

    /// What the tag leaves out of the hash of an entry.
    fn rest(&self, number: u16) -> u32 {
        let block = &self.blocks[usize::from(number >> BLOCK_BITS)];
        block.hashes[place_of(number)].load(Ordering::Relaxed)
    }

    /// The block in which the next entry is written, and its number; none if all were.
    fn next(&self) -> Option<(&Block, u16)> {
        let written = self.written();
        let number = self.before * BLOCK + written;
        let block = self.blocks.get(number / BLOCK)?;
        let number = u16::try_from(number).expect("there are not so many blocks");
        (written < self.room).then_some((block, number))
    }

    /// The rule that a frame of these words and this hash finds among those that are
    /// wanted, as `epoch` saw it.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: Hash,
        sought: Sought<'_>,
        epoch: Epoch,
        wanted: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let age = self.age_to_read(epoch);
        let (_, first) = self.first(hash, |number, entry| self.is_sought(number, entry, sought))?;
        let is_it = |entry: &Entry| entry.is_seen(age) && wanted(&entry.rule);
        let mut best = is_it(first).then_some(&first.rule);
        let mut next = first.next.load(Ordering::Acquire);
        while let Some(this) = self.entry(next) {
            if best.is_none_or(|best| this.rule.precedes(best)) && is_it(this) {
                best = Some(&this.rule);
            }
            next = this.next.load(Ordering::Acquire);
        }
        best
    }

    /// Whether an entry wants what is sought.
    #[inline]
    fn is_sought(&self, number: u16, entry: &Entry, sought: Sought<'_>) -> bool {
        match sought {
            Sought::Words(sought) => {
                let line = self.line(number);
                line.is_some_and(|line| line.words().zip(sought).all(|(kept, word)| kept == *word))
            }
            Sought::Lanes(lanes) => lanes.fit(entry.rule.matching()),
        }
    }

    /// The first entry with the hash's tag that it is. The other bucket has it only if the
    /// first had taken what it takes.
    #[inline]
    fn first(&self, hash: Hash, is_it: impl Fn(u16, &Entry) -> bool) -> Option<(u16, &Entry)> {
        let [mut bucket, last] = self.places(hash);
        loop {
            for number in self.buckets[bucket].numbers(hash.tag()) {
                if let Some(entry) = self.entry(number)
                    && is_it(number, entry)
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

    /// The first entry that wants the same as `rule`, whose shape is that of all.
    fn first_like(&self, hash: Hash, rule: &Rule) -> Option<(u16, &Entry)> {
        let rest = rest_of(hash);
        self.first(hash, |number, entry| {
            self.rest(number) == rest && wants_same(rule, &entry.rule)
        })
    }

    /// The two buckets that what has the hash may be in; the tag and one tell the other.
    #[inline]
    fn places(&self, hash: Hash) -> [usize; 2] {
        let mask = self.buckets.len() - 1;
        let one = usize::from(hash.bucket());
        [one & mask, (one ^ usize::from(hash.tag())) & mask]
    }

    /// Writes an entry that is there from `epoch` on. By the one writer only.
    pub(crate) fn insert(&self, key: &Key, rule: &Arc<Rule>, epoch: Epoch) -> Result<(), Full> {
        let link = self.link_for(key.hash, rule).ok_or(Full)?;
        self.write(link, key.hash, key.words.into_iter(), rule, epoch)
    }

    /// A segment of `capacity` with these entries of this one, which `goes_on` if it can: then
    /// they stay in their places in its blocks. The beginning of the list of those that want
    /// the same says which is the next, and so is written anew, as all of the list.
    pub(crate) fn with_those<'a>(
        &self,
        living: impl Iterator<Item = &'a Living> + Clone,
        capacity: usize,
        epoch: Epoch,
        goes_on: bool,
    ) -> Result<Self, Full> {
        let has_numbers = self.blocks.len() + capacity.div_ceil(BLOCK) <= BLOCKS_MAX;
        let goes_on = goes_on && has_numbers;
        let segment = match goes_on {
            true => self.heir(living.clone(), capacity),
            false => Self::new(capacity, self.width, epoch),
        };
        let mut first = NONE;
        for this in living {
            let hash = this.hash;
            if goes_on && this.is_alone {
                let (bucket, slot) = segment.free_slot(hash).ok_or(Full)?;
                bucket.put(slot, hash.tag(), this.number);
                continue;
            }
            let link = match segment.last().filter(|_| this.again) {
                Some(last) => Link::After { first, last },
                None => {
                    first = segment.next().map_or(NONE, |(_, number)| number);
                    Link::Slot(segment.free_slot(hash).ok_or(Full)?)
                }
            };
            let words = self.line(this.number).into_iter().flat_map(Line::words);
            segment.write(link, hash, words, self.rule_of(this), epoch)?;
        }
        Ok(segment)
    }

    /// One that goes on with the blocks in which these entries are, and has none yet.
    fn heir<'a>(&self, living: impl Iterator<Item = &'a Living>, capacity: usize) -> Self {
        let (mut kept, mut count) = ([false; BLOCKS_MAX], 0);
        for this in living.filter(|this| this.is_alone) {
            kept[usize::from(this.number >> BLOCK_BITS)] = true;
            count += 1;
        }
        let kept = self.blocks.iter().zip(kept);
        let blocks = kept.map(|(block, kept)| {
            if kept {
                block.clone()
            } else {
                Block::default()
            }
        });
        let blocks: Vec<_> = blocks.collect();
        let dead = self.dead.load(Ordering::Relaxed);
        let alive = u32::try_from(count).expect("a segment has not so many");
        Self {
            inherited: alive + dead,
            dead: AtomicU32::new(dead),
            ..Self::with(&blocks, capacity, capacity - count, self.width, self.made)
        }
    }

    /// The entry that was written last, of its own.
    fn last(&self) -> Option<&Entry> {
        let last = self.before * BLOCK + self.written().checked_sub(1)?;
        self.entry(u16::try_from(last).ok()?)
    }

    /// Looks at what comes before any entry.
    pub(crate) fn glance(&self) -> usize {
        self.written()
    }

    /// Looks at where the next entry would be written.
    pub(crate) fn glance_at_next(&self) -> usize {
        let next = self.next().map(|(block, number)| {
            let place = place_of(number);
            let hashed = block.hashes[place].load(Ordering::Relaxed) != 0;
            [hashed, block.entries[place].get().is_some()]
        });
        let seen = next.into_iter().flatten();
        seen.filter(|seen| *seen).count()
    }

    fn write(
        &self,
        link: Link<'_>,
        hash: Hash,
        words: impl Iterator<Item = u64>,
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Result<(), Full> {
        let (block, number) = self.next().ok_or(Full)?;
        let (place, born) = (place_of(number), self.age_to_write(epoch));
        if let Some(line) = block.lines.get(place) {
            // Nobody finds the line of one that is behind another.
            line.write(words, rule, (born, NEVER));
        }
        block.hashes[place].store(rest_of(hash), Ordering::Relaxed);
        let fresh = block.entries[place].set(Entry {
            rule: Arc::clone(rule),
            born,
            died: AtomicU16::new(NEVER),
            next: AtomicU16::new(NONE),
        });
        fresh.expect("an entry is written once");
        match link {
            Link::After { first, last } => {
                self.end_line(first, born);
                last.next.store(number, Ordering::Release);
                self.behind.fetch_add(1, Ordering::Relaxed);
            }
            Link::Slot((bucket, slot)) => bucket.put(slot, hash.tag(), number),
        }
        let used = self.used.load(Ordering::Relaxed);
        self.used.store(used + 1, Ordering::Relaxed);
        Ok(())
    }

    /// From where a new entry is to be found.
    fn link_for(&self, hash: Hash, rule: &Rule) -> Option<Link<'_>> {
        if let Some((first, mut last)) = self.first_like(hash, rule) {
            while let Some(next) = self.entry(last.next.load(Ordering::Relaxed)) {
                last = next;
            }
            return Some(Link::After { first, last });
        }
        self.free_slot(hash).map(Link::Slot)
    }

    /// The first free slot of the first of the two buckets, unless that is rather full: then
    /// of the emptier.
    fn free_slot(&self, hash: Hash) -> Option<(&Bucket, usize)> {
        let [first, second] = self.places(hash).map(|bucket| &self.buckets[bucket]);
        let free = |bucket| Bucket::free(bucket).map(|slot| (bucket, slot));
        if !first.has(PREFERRED) {
            return free(first);
        }
        let both = [first, second].into_iter().filter_map(free);
        both.min_by_key(|(_, slot)| *slot)
    }

    /// Lets the entry of `rule` die in `epoch`. Answers whether there was one. By
    /// the one writer only.
    pub(crate) fn remove(&self, hash: Hash, rule: &Arc<Rule>, epoch: Epoch) -> bool {
        let Some((first, mut this)) = self.first_like(hash, rule) else {
            return false;
        };
        while !this.is_alive() || !Arc::ptr_eq(&this.rule, rule) {
            match self.entry(this.next.load(Ordering::Relaxed)) {
                Some(next) => this = next,
                None => return false,
            }
        }
        let age = self.age_to_write(epoch);
        this.died.store(age, Ordering::Relaxed);
        self.end_line(first, age);
        self.dead.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// From this age on, what the line of this entry says is not all that there is to say.
    fn end_line(&self, number: u16, age: u16) {
        let line = self.line(number).into_iter();
        line.for_each(|line| line.end(age));
    }

    /// Whether as many entries were written as there can be.
    pub(crate) fn is_used_up(&self) -> bool {
        self.written() == self.room
    }

    fn written(&self) -> usize {
        usize::try_from(self.used.load(Ordering::Relaxed)).expect("an index")
    }
}

/// From where an entry is found.
enum Link<'a> {
    /// From the last one that wants the same, of which there is a first.
    After { first: u16, last: &'a Entry },
    /// From this free slot.
    Slot((&'a Bucket, usize)),
}

/// Whether two rules of one shape want the same.
fn wants_same(one: &Rule, other: &Rule) -> bool {
    let wanted = Conditions::of(one.matching()).values;
    wanted.fit(other.matching())
}

//! A piece of a hash table that one thread writes while others read, without a
//! lock and without ever waiting.
//!
//! A place is found by either of two buckets, so that a full bucket is rare; what
//! finds no place makes the segment *full*, and its owner makes a larger one or
//! two of it. Nothing is ever moved, and an entry is written once: a reader finds
//! it whole or not at all. What it wants of a frame is not written beside it: the
//! rule says so itself, and is needed anyhow by a frame that finds it.
//!
//! Which entries a reader sees is decided by its *epoch*: an entry is there from
//! the epoch in which it was born until the one in which it died. So a reader of
//! an older epoch sees what was there then, whatever is written meanwhile. Epochs
//! are kept as *ages*, counted from the one in which the segment was made: who sees
//! the segment at all is of that epoch or a later one.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use pipeline::Rule;

use crate::lanes::{Conditions, Lanes};
use crate::shape::Hash;

/// The number of a publication. Readers of it see what was born until then and
/// had not died.
pub(crate) type Epoch = u64;

/// Entries of the smallest segment, and of the largest. Remaking the largest
/// takes some tens of microseconds, which is how long a flow-mod may wait for it.
pub(crate) const CAPACITY_MIN: usize = 4;
pub(crate) const CAPACITY_MAX: usize = 1024;

/// Slots of a bucket: half a cache line.
const SLOTS: usize = 8;

/// No entry.
const NONE: u16 = u16::MAX;

/// The age at which an entry dies that lives.
const NEVER: u16 = u16::MAX;

/// Sixteen bits of the hash above, an entry's number plus one below; zero for none.
#[derive(Debug, Default)]
struct Bucket([AtomicU32; SLOTS]);

/// There may be a million: it is kept small.
#[derive(Debug)]
struct Entry {
    rule: Arc<Rule>,
    born: u16,
    /// [`NEVER`] while it lives.
    died: AtomicU16,
    /// The next entry that wants the same.
    next: AtomicU16,
}

impl Entry {
    #[inline]
    fn is_seen(&self, age: u16) -> bool {
        self.born <= age && age < self.died.load(Ordering::Relaxed)
    }

    fn is_alive(&self) -> bool {
        self.died.load(Ordering::Relaxed) == NEVER
    }
}

/// There was no room: a larger segment, or two, must take its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The epoch in which it was made.
    made: Epoch,
    buckets: Box<[Bucket]>,
    entries: Box<[OnceLock<Entry>]>,
    /// What a tag leaves out of each entry's hash; the writer's own.
    hashes: Box<[AtomicU32]>,
    /// How many entries were written; the writer's own.
    used: AtomicU32,
    /// How many of them have died; the writer's own.
    dead: AtomicU32,
}

impl Segment {
    /// One with room for `capacity` entries, a power of two, for readers from epoch
    /// `made` on.
    pub(crate) fn new(capacity: usize, made: Epoch) -> Self {
        // Two slots an entry.
        let buckets = (2 * capacity).div_ceil(SLOTS).next_power_of_two();
        Self {
            made,
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            entries: (0..capacity).map(|_| OnceLock::new()).collect(),
            hashes: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
            used: AtomicU32::new(0),
            dead: AtomicU32::new(0),
        }
    }

    /// How many entries there can be.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// The bytes it takes, besides the rules.
    pub(crate) fn bytes(&self) -> usize {
        let of_entries = size_of_val(&*self.entries) + size_of_val(&*self.hashes);
        size_of::<Self>() + size_of_val(&*self.buckets) + of_entries
    }

    /// Whether most of what was written has died.
    pub(crate) fn is_mostly_dead(&self) -> bool {
        let dead = self.dead.load(Ordering::Relaxed);
        dead > 8 && 2 * dead > self.used.load(Ordering::Relaxed)
    }

    /// Whether so many publications have been since it was made that it must be remade
    /// before it is written to: at the fastest that is half a minute's.
    pub(crate) const fn is_old(&self, epoch: Epoch) -> bool {
        self.age(epoch) >= NEVER as u64
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
        self.entries.get(usize::from(number))?.get()
    }

    /// The rule that a frame of these words and this hash finds among those that are
    /// wanted, as `epoch` saw it.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: Hash,
        lanes: &Lanes,
        epoch: Epoch,
        wanted: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let age = self.age_to_read(epoch);
        let first = self.first(hash, |_, entry| lanes.fit(entry.rule.matching()))?;
        let is_it = |entry: &Entry| entry.is_seen(age) && wanted(&entry.rule);
        let mut best = is_it(first).then_some(&first.rule);
        let mut next = first.next.load(Ordering::Acquire);
        while let Some(this) = self.entry(next) {
            if best.is_none_or(|best| this.rule.is_tried_before(best)) && is_it(this) {
                best = Some(&this.rule);
            }
            next = this.next.load(Ordering::Acquire);
        }
        best
    }

    /// The rule that a frame of this hash finds, if all goes as it mostly does.
    #[inline]
    pub(crate) fn likely(&self, hash: Hash) -> Option<&Arc<Rule>> {
        let first = self.first(hash, |_, _| true);
        first.map(|entry| &entry.rule)
    }

    /// The first entry with the hash's tag that it is.
    #[inline]
    fn first(&self, hash: Hash, is_it: impl Fn(u16, &Entry) -> bool) -> Option<&Entry> {
        let [mut bucket, last] = self.places(hash);
        loop {
            for slot in &self.buckets[bucket].0 {
                let [tag, number] = split(slot.load(Ordering::Acquire));
                let Some(number) = number.checked_sub(1) else {
                    // They are filled from the front.
                    break;
                };
                if tag == hash.tag
                    && let Some(entry) = self.entry(number)
                    && is_it(number, entry)
                {
                    return Some(entry);
                }
            }
            if bucket == last {
                return None;
            }
            bucket = last;
        }
    }

    /// The first entry that wants the same as `rule`, whose shape is that of all.
    fn first_like(&self, hash: Hash, rule: &Rule) -> Option<&Entry> {
        let rest = rest_of(hash);
        self.first(hash, |number, entry| {
            self.hashes[usize::from(number)].load(Ordering::Relaxed) == rest
                && wants_same(rule, &entry.rule)
        })
    }

    /// The two buckets that what has the hash may be in; the tag and one tell the other.
    #[inline]
    fn places(&self, hash: Hash) -> [usize; 2] {
        let mask = self.buckets.len() - 1;
        let one = usize::from(hash.bucket);
        [one & mask, (one ^ usize::from(hash.tag)) & mask]
    }

    /// Writes an entry that is there from `epoch` on. By the one writer only.
    pub(crate) fn insert(&self, hash: Hash, rule: &Arc<Rule>, epoch: Epoch) -> Result<(), Full> {
        let link = self.link_for(hash, rule).ok_or(Full)?;
        self.write(link, hash, rule, epoch)
    }

    /// A segment of `capacity` with these entries, made in `epoch`.
    pub(crate) fn of<'a>(
        living: impl Iterator<Item = &'a Living<'a>>,
        capacity: usize,
        epoch: Epoch,
    ) -> Result<Self, Full> {
        let segment = Self::new(capacity, epoch);
        for Living { hash, rule, again } in living {
            let last = segment.entries[..segment.written()].last();
            let link = match last.and_then(OnceLock::get).filter(|_| *again) {
                Some(last) => Link::After(last),
                None => Link::Slot(segment.free_slot(*hash).ok_or(Full)?),
            };
            segment.write(link, *hash, rule, epoch)?;
        }
        Ok(segment)
    }

    /// Looks at what comes before any entry.
    pub(crate) fn glance(&self) -> usize {
        self.written()
    }

    /// Looks at where an entry of this hash would be written.
    pub(crate) fn glance_at(&self, hash: Hash) -> usize {
        let place = self.written();
        let filled = |bucket: usize| self.buckets[bucket].0[0].load(Ordering::Relaxed) != 0;
        let filled = self.places(hash).map(filled);
        let entry = self.entries.get(place).and_then(OnceLock::get);
        let hashed = self.hashes.get(place);
        let hashed = hashed.map(|hash| hash.load(Ordering::Relaxed) != 0);
        let seen = filled.into_iter().chain(hashed).chain([entry.is_some()]);
        seen.filter(|seen| *seen).count()
    }

    fn write(
        &self,
        link: Link<'_>,
        hash: Hash,
        rule: &Arc<Rule>,
        epoch: Epoch,
    ) -> Result<(), Full> {
        let place = self.written();
        let entry = self.entries.get(place).ok_or(Full)?;
        let number = u16::try_from(place).expect("the capacity is less");
        self.hashes[place].store(rest_of(hash), Ordering::Relaxed);
        let fresh = entry.set(Entry {
            rule: Arc::clone(rule),
            born: self.age_to_write(epoch),
            died: AtomicU16::new(NEVER),
            next: AtomicU16::new(NONE),
        });
        fresh.expect("an entry is written once");
        match link {
            Link::After(last) => last.next.store(number, Ordering::Release),
            Link::Slot(slot) => {
                let value = u32::from(hash.tag) << 16 | u32::from(number + 1);
                slot.store(value, Ordering::Release);
            }
        }
        self.used.store(u32::from(number) + 1, Ordering::Relaxed);
        Ok(())
    }

    /// From where a new entry is to be found.
    fn link_for(&self, hash: Hash, rule: &Rule) -> Option<Link<'_>> {
        if let Some(mut last) = self.first_like(hash, rule) {
            while let Some(next) = self.entry(last.next.load(Ordering::Relaxed)) {
                last = next;
            }
            return Some(Link::After(last));
        }
        self.free_slot(hash).map(Link::Slot)
    }

    /// The first free slot of the emptier of the two buckets.
    fn free_slot(&self, hash: Hash) -> Option<&AtomicU32> {
        let buckets = self.places(hash).map(|bucket| &self.buckets[bucket].0);
        let is_free = |slot: &AtomicU32| slot.load(Ordering::Relaxed) == 0;
        let free = buckets.map(|slots| Some((slots.iter().position(is_free)?, slots)));
        let least = free.into_iter().flatten().min_by_key(|(used, _)| *used);
        least.map(|(used, slots)| &slots[used])
    }

    /// Lets the entry of `rule` die in `epoch`. Answers whether there was one. By
    /// the one writer only.
    pub(crate) fn remove(&self, hash: Hash, rule: &Arc<Rule>, epoch: Epoch) -> bool {
        let mut entry = self.first_like(hash, rule);
        while let Some(this) = entry {
            if this.is_alive() && Arc::ptr_eq(&this.rule, rule) {
                this.died.store(self.age_to_write(epoch), Ordering::Relaxed);
                self.dead.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            entry = self.entry(this.next.load(Ordering::Relaxed));
        }
        false
    }

    /// Whether as many entries were written as there can be.
    pub(crate) fn is_used_up(&self) -> bool {
        self.written() == self.capacity()
    }

    fn written(&self) -> usize {
        usize::try_from(self.used.load(Ordering::Relaxed)).expect("an index")
    }

    /// What has not died; of those that want the same, in their order.
    pub(crate) fn living(&self) -> Vec<Living<'_>> {
        let mut living = Vec::with_capacity(self.written());
        for slot in self.buckets.iter().flat_map(|bucket| &bucket.0) {
            let [tag, number] = split(slot.load(Ordering::Relaxed));
            let Some(number) = number.checked_sub(1) else {
                continue;
            };
            let hash = hash_of(
                tag,
                self.hashes[usize::from(number)].load(Ordering::Relaxed),
            );
            let (mut entry, mut again) = (self.entry(number), false);
            while let Some(this) = entry {
                if this.is_alive() {
                    let rule = &this.rule;
                    living.push(Living { hash, rule, again });
                    again = true;
                }
                entry = self.entry(this.next.load(Ordering::Relaxed));
            }
        }
        living
    }
}

/// An entry that has not died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Living<'a> {
    pub(crate) hash: Hash,
    pub(crate) rule: &'a Arc<Rule>,
    /// Whether it wants the same as the one before it.
    again: bool,
}

/// From where an entry is found.
enum Link<'a> {
    /// From the last one that wants the same.
    After(&'a Entry),
    /// From this free slot.
    Slot(&'a AtomicU32),
}

/// Whether two rules of one shape want the same.
fn wants_same(one: &Rule, other: &Rule) -> bool {
    let wanted = Conditions::of(one.matching()).values;
    wanted.fit(other.matching())
}

/// What is left of a hash without its tag.
fn rest_of(hash: Hash) -> u32 {
    u32::from(hash.segment) << 16 | u32::from(hash.bucket)
}

/// The hash with this tag and this rest.
fn hash_of(tag: u16, rest: u32) -> Hash {
    let [segment, bucket] = split(rest);
    Hash {
        segment,
        tag,
        bucket,
    }
}

#[inline]
const fn split(slot: u32) -> [u16; 2] {
    let [a, b, c, d] = slot.to_be_bytes();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<OnceLock<Entry>>(), 24);
    }

    #[test]
    fn a_hash_is_put_together_again() {
        let hash = Hash {
            segment: 0x1234,
            tag: 0x5678,
            bucket: 0x9abc,
        };
        assert_eq!(hash_of(hash.tag, rest_of(hash)), hash);
    }
}

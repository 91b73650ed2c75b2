//! Live entries of a segment, listed to build its replacement. The entries of a large table are
//! not in the cache, and are read only if one has died or is in a list.

use std::sync::Arc;

use base::sync::atomic::Ordering;
use pipeline::Rule;

use super::block::NO_ENTRY;
use super::hash_parts::with_tag;
use super::{SLOTS, Segment, TagBucket};
use crate::key_hash::KeyHash;

/// An entry that has not died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveEntry {
    pub(crate) hash: KeyHash,
    pub(super) number: u16,
    /// True if it has the same match as the one before it.
    pub(super) is_chained: bool,
    /// True if no other entry has the same match, so that it has no link to another.
    pub(super) is_alone: bool,
}

impl LiveEntry {
    const fn alone(hash: KeyHash, number: u16) -> Self {
        Self {
            hash,
            number,
            is_chained: false,
            is_alone: true,
        }
    }
}

impl Segment {
    /// Live entries; those with the same match in the order of their list.
    pub(crate) fn live_entries(&self) -> Vec<LiveEntry> {
        let mut live = Vec::with_capacity(self.capacity);
        let counts = [&self.dead, &self.chained].map(|count| count.load(Ordering::Relaxed));
        let numbers = |bucket| (0..SLOTS).map_while(move |slot| TagBucket::number(bucket, slot));
        for bucket in &self.buckets {
            for (slot, number) in numbers(bucket).enumerate() {
                let hash = with_tag(bucket.tag(slot), self.hash_without_tag(number));
                match counts {
                    // None has died or is in a list: the entries need not be read.
                    [0, 0] => live.push(LiveEntry::alone(hash, number)),
                    _ => self.append_list(&mut live, hash, number),
                }
            }
        }
        live
    }

    /// Appends the live entries of the list that starts with this number.
    fn append_list(&self, live: &mut Vec<LiveEntry>, hash: KeyHash, mut number: u16) {
        let mut is_chained = false;
        while let Some(entry) = self.entry(number) {
            let next = entry.next.load(Ordering::Relaxed);
            if entry.is_live() {
                live.push(LiveEntry {
                    hash,
                    number,
                    is_chained,
                    is_alone: !is_chained && next == NO_ENTRY,
                });
                is_chained = true;
            }
            number = next;
        }
    }

    /// The rule of a live entry of this segment.
    pub(crate) fn rule_of(&self, live: &LiveEntry) -> &Arc<Rule> {
        let entry = self.entry(live.number);
        &entry
            .expect("the entry was listed, and entries are never removed")
            .rule
    }
}

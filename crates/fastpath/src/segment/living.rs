//! What of a segment has not died, told so that another can be made of it. The entries
//! themselves lie far away in a large table, and are looked at only where one has died or stands
//! behind another.

use std::sync::Arc;

use base::sync::atomic::Ordering;
use pipeline::Rule;

use super::block::NONE;
use super::slot::hash_of;
use super::{Bucket, SLOTS, Segment};
use crate::shape::Hash;

/// An entry of a segment that has not died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Living {
    pub(crate) hash: Hash,
    pub(super) number: u16,
    /// Whether it wants the same as the one before it.
    pub(super) again: bool,
    /// Whether none that lives wants the same, and it does not say that one did.
    pub(super) is_alone: bool,
}

impl Living {
    /// One of its own.
    const fn alone(hash: Hash, number: u16) -> Self {
        Self {
            hash,
            number,
            again: false,
            is_alone: true,
        }
    }
}

impl Segment {
    /// What has not died; of those that want the same, in their order.
    pub(crate) fn living(&self) -> Vec<Living> {
        let mut living = Vec::with_capacity(self.capacity);
        let changed = [&self.dead, &self.behind].map(|count| count.load(Ordering::Relaxed));
        let numbers = |bucket| (0..SLOTS).map_while(move |slot| Bucket::number(bucket, slot));
        for bucket in &self.buckets {
            for (slot, number) in numbers(bucket).enumerate() {
                let hash = hash_of(bucket.tag(slot), self.rest(number));
                match changed {
                    // Entries are not asked, for they are far away.
                    [0, 0] => living.push(Living::alone(hash, number)),
                    _ => self.extend_living(&mut living, hash, number),
                }
            }
        }
        living
    }

    /// Appends what has not died of this entry and those behind it.
    fn extend_living(&self, living: &mut Vec<Living>, hash: Hash, mut number: u16) {
        let mut again = false;
        while let Some(this) = self.entry(number) {
            let next = this.next.load(Ordering::Relaxed);
            if this.is_alive() {
                living.push(Living {
                    hash,
                    number,
                    again,
                    is_alone: !again && next == NONE,
                });
                again = true;
            }
            number = next;
        }
    }

    /// The rule of an entry of this segment.
    pub(crate) fn rule_of(&self, living: &Living) -> &Arc<Rule> {
        let entry = self.entry(living.number);
        &entry
            .expect("it was found here, and none is taken away")
            .rule
    }
}

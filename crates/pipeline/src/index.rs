//! The rules by what makes each the one it is, so that a flow-mod finds the one it
//! replaces, changes or deletes, however many there are.
//!
//! It is for the one who writes, and no part of the value that tables are: a clone has
//! none, and makes it when it is written to. Frames are not looked up in it.
//!
//! A hash table that is full is made twice as large, which takes a tenth of a second at a
//! million rules. So there are many, and no two are for quite as many rules: they
//! grow one after the other, and of all of them as much is empty at any size.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::rule::{Identity, Rule};

/// How many tables: the largest of a million rules grows in less than two milliseconds.
const PARTS: usize = 64;

/// Every rule, or nothing yet. The hash is keyed by chance, lest a controller choose a
/// million matches of one hash; nothing else depends on it.
#[derive(Debug, Default)]
pub(crate) struct Index {
    hasher: RandomState,
    /// As many as there are parts, once it is made.
    parts: Vec<HashTable<Entry>>,
}

/// A rule, and the hash of its identity: a table that grows does not ask each of its
/// rules, which lie all over the memory.
#[derive(Debug)]
struct Entry {
    hash: u64,
    rule: Arc<Rule>,
}

impl Entry {
    fn is(&self, hash: u64, identity: &Identity) -> bool {
        self.hash == hash && self.rule.identity == *identity
    }
}

impl Clone for Index {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Index {
    /// Whether it is there.
    pub(crate) const fn is_made(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Makes it, of all rules there are.
    pub(crate) fn make(&mut self, rules: impl Iterator<Item = Arc<Rule>>) {
        self.clear();
        rules.for_each(|rule| self.insert(&rule));
    }

    /// The rule of this identity. Only if it is made: elsewhere there is another way.
    pub(crate) fn get(&self, identity: &Identity) -> Option<&Arc<Rule>> {
        let hash = self.hasher.hash_one(identity);
        let part = self.parts.get(part_of(hash))?;
        let entry = part.find(hash, |entry| entry.is(hash, identity))?;
        Some(&entry.rule)
    }

    /// Takes a rule in, in place of one of the same identity.
    pub(crate) fn insert(&mut self, rule: &Arc<Rule>) {
        let hash = self.hasher.hash_one(&rule.identity);
        let Some(part) = self.parts.get_mut(part_of(hash)) else {
            return;
        };
        let is_same = |entry: &Entry| entry.is(hash, &rule.identity);
        let rule = Arc::clone(rule);
        part.entry(hash, is_same, |entry| entry.hash)
            .insert(Entry { hash, rule });
    }

    /// Forgets a rule.
    pub(crate) fn remove(&mut self, identity: &Identity) {
        let hash = self.hasher.hash_one(identity);
        if let Some(part) = self.parts.get_mut(part_of(hash))
            && let Ok(entry) = part.find_entry(hash, |entry| entry.is(hash, identity))
        {
            entry.remove();
        }
    }

    /// Forgets all rules, and gives back the room for them.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.parts.resize_with(PARTS, HashTable::new);
    }
}

/// Bits of a hash that choose a part. A table looks at those below and at the seven
/// uppermost.
const BITS: u32 = 10;

/// Which part each value of those bits is for: the last part for twice as many as the first.
static PART_OF: [u8; 1 << BITS] = {
    let mut parts = [0; 1 << BITS];
    let (mut value, mut part, mut shares) = (0, 0_u8, PARTS);
    // Part by part, one share more than the one before; all of them are three halves
    // of the square.
    let all = PARTS * (3 * PARTS - 1) / 2;
    while value < parts.len() {
        while shares * parts.len() <= value * all {
            part += 1;
            shares += PARTS + part as usize;
        }
        parts[value] = part;
        value += 1;
    }
    parts
};

fn part_of(hash: u64) -> usize {
    let bits = hash >> 40 & ((1 << BITS) - 1);
    let bits = usize::try_from(bits).expect("there are not so many bits");
    PART_OF[bits].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_for_twice_as_many_as_the_first() {
        let count = |part| {
            PART_OF
                .iter()
                .filter(|of| usize::from(**of) == part)
                .count()
        };
        let counts: Vec<_> = (0..PARTS).map(count).collect();
        assert_eq!(counts.iter().sum::<usize>(), PART_OF.len());
        let [first, .., last] = counts[..] else {
            panic!("there are many parts");
        };
        assert!((10..=12).contains(&first) && (20..=22).contains(&last));
        assert!(counts.windows(2).all(|two| two[0] <= two[1] + 1));
    }
}

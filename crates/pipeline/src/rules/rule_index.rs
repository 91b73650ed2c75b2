//! The index of rules by identity: a flow-mod finds the rule that it replaces, modifies or deletes,
//! at any number of rules. Packets are not looked up in it.
//!
//! ```text
//!   hash(identity) -- 10 bits --> partition 0 ... 63 -- 32 bits --> number --> slab of rules
//!                                 (open addressing, sizes differ)
//! ```
//!
//! A hash table that is full is rebuilt at twice the size, which takes many milliseconds at a
//! million rules. So there are 64 partitions of different sizes, which are rebuilt at different
//! times: the largest rebuild takes less than a millisecond, and at any size about the same share
//! of all partitions is free. (Linear hashing, Litwin 1980, and the incremental rehash of Redis
//! have the same purpose.) The hash is keyed at random, so that a controller cannot choose matches
//! with equal hashes.
//!
//! The index belongs to the writer and is no part of the pipeline's value: a clone has none, and
//! builds it when it is written to. A lookup costs one or two cache lines beside the rule.

mod partition;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::{Rule, RuleIdentity};
use partition::IndexPartition;

/// Number of partitions.
const PARTITIONS: usize = 64;

/// Rules per slab chunk. Chunks are never moved.
const CHUNK: usize = 4096;

/// The index, or nothing if it is not built.
#[derive(Debug, Default)]
pub(crate) struct RuleIndex {
    hasher: RandomState,
    /// The partitions; empty if the index is not built.
    partitions: Vec<IndexPartition>,
    rules: RuleSlab,
    /// Prefetched identities and their hashes, in the order of the lookups.
    prefetched: VecDeque<(IdentityHash, RuleIdentity)>,
}

/// The hash of an identity: the partition, and the bits that the partition stores, so that its
/// growth need not read every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdentityHash {
    partition: u16,
    stored: u32,
}

impl IdentityHash {
    fn of(hash: u64) -> Self {
        let [a, b, c, d, e, f, ..] = hash.to_le_bytes();
        Self {
            partition: u16::from_le_bytes([e, f]),
            stored: u32::from_le_bytes([a, b, c, d]),
        }
    }

    fn partition(self) -> usize {
        PARTITION_OF[usize::from(self.partition) % PARTITION_OF.len()].into()
    }
}

/// Rules by number.
#[derive(Debug, Default)]
struct RuleSlab {
    chunks: Vec<Vec<Option<Arc<Rule>>>>,
    /// Free numbers.
    free: Vec<u32>,
}

impl RuleSlab {
    fn get(&self, number: u32) -> Option<&Arc<Rule>> {
        let number = number as usize;
        self.chunks
            .get(number / CHUNK)?
            .get(number % CHUNK)?
            .as_ref()
    }

    fn put(&mut self, number: u32, rule: Option<Arc<Rule>>) {
        let number = number as usize;
        self.chunks[number / CHUNK][number % CHUNK] = rule;
    }

    /// Adds a rule. Returns its number.
    fn add(&mut self, rule: Arc<Rule>) -> u32 {
        if let Some(number) = self.free.pop() {
            self.put(number, Some(rule));
            return number;
        }
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let last = self.chunks.last_mut().expect("there is one with room");
        last.push(Some(rule));
        u32::try_from(before + last.len() - 1).expect("there are not so many rules")
    }
}

/// Returns a predicate: the number belongs to the rule with this identity.
fn has_identity<'a>(rules: &'a RuleSlab, identity: &'a RuleIdentity) -> impl Fn(u32) -> bool + 'a {
    move |number| {
        let rule = rules.get(number);
        rule.is_some_and(|rule| rule.identity == *identity)
    }
}

impl Clone for RuleIndex {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl RuleIndex {
    /// True if the index is built.
    pub(crate) const fn is_built(&self) -> bool {
        !self.partitions.is_empty()
    }

    /// Builds the index of these rules.
    pub(crate) fn build(&mut self, rules: impl Iterator<Item = Arc<Rule>>) {
        self.clear();
        for rule in rules {
            let hash = self.hash(&rule.identity);
            self.insert(hash, &rule);
        }
    }

    /// Returns the hash of an identity.
    pub(crate) fn hash(&self, identity: &RuleIdentity) -> IdentityHash {
        IdentityHash::of(self.hasher.hash_one(identity))
    }

    /// Prefetches the entries of these identities, so that their memory latencies overlap. The
    /// lookups must follow in this order, by [`RuleIndex::next_prefetched`].
    pub(crate) fn prefetch(&mut self, identities: impl Iterator<Item = RuleIdentity>) {
        let hasher = &self.hasher;
        let hashed =
            identities.map(|identity| (IdentityHash::of(hasher.hash_one(&identity)), identity));
        self.prefetched.clear();
        self.prefetched.extend(hashed);
        let seen = self.prefetched.iter().map(|(hash, _)| {
            let partition = self.partitions.get(hash.partition());
            partition.map_or(0, |partition| partition.touch(hash.stored))
        });
        black_box(seen.fold(0, u32::wrapping_add));
    }

    /// Returns the next prefetched identity and its hash, if it is the requested one; otherwise
    /// discards all of them.
    pub(crate) fn next_prefetched(
        &mut self,
        is_number: impl Fn(&RuleIdentity) -> bool,
    ) -> Option<(IdentityHash, RuleIdentity)> {
        let next = self.prefetched.pop_front()?;
        if !is_number(&next.1) {
            self.prefetched.clear();
            return None;
        }
        Some(next)
    }

    /// Returns the rule with this identity and hash. The index must be built.
    pub(crate) fn get(&self, hash: IdentityHash, identity: &RuleIdentity) -> Option<&Arc<Rule>> {
        let partition = self.partitions.get(hash.partition())?;
        let number = partition.find(hash.stored, has_identity(&self.rules, identity))?;
        self.rules.get(number)
    }

    /// Adds a rule with a new identity.
    pub(crate) fn insert(&mut self, hash: IdentityHash, rule: &Arc<Rule>) {
        if let Some(partition) = self.partitions.get_mut(hash.partition()) {
            partition.insert(hash.stored, self.rules.add(Arc::clone(rule)));
        }
    }

    /// Replaces the rule with the same identity.
    pub(crate) fn replace(&mut self, hash: IdentityHash, rule: &Arc<Rule>) {
        let same = has_identity(&self.rules, &rule.identity);
        let partition = self.partitions.get(hash.partition());
        if let Some(number) = partition.and_then(|partition| partition.find(hash.stored, same)) {
            self.rules.put(number, Some(Arc::clone(rule)));
        }
    }

    /// Removes a rule.
    pub(crate) fn remove(&mut self, identity: &RuleIdentity) {
        let hash = self.hash(identity);
        let is_number = has_identity(&self.rules, identity);
        let partition = self.partitions.get_mut(hash.partition());
        if let Some(number) =
            partition.and_then(|partition| partition.remove(hash.stored, is_number))
        {
            self.rules.put(number, None);
            self.rules.free.push(number);
        }
    }

    /// Removes all rules and frees their memory.
    pub(crate) fn clear(&mut self) {
        self.partitions.clear();
        self.partitions
            .resize_with(PARTITIONS, IndexPartition::default);
        self.rules = RuleSlab::default();
    }
}

/// Bits of the hash that select a partition.
const BITS: u32 = 10;

/// The partition of each value of these bits. The last partition has twice the share of the first.
static PARTITION_OF: [u8; 1 << BITS] = {
    let mut partitions = [0; 1 << BITS];
    let (mut value, mut partition, mut shares) = (0, 0_u8, PARTITIONS);
    // Each partition has one share more than the one before; the sum is three halves of the square.
    let all = PARTITIONS * (3 * PARTITIONS - 1) / 2;
    while value < partitions.len() {
        while shares * partitions.len() <= value * all {
            partition += 1;
            shares += PARTITIONS + partition as usize;
        }
        partitions[value] = partition;
        value += 1;
    }
    partitions
};

#[cfg(test)]
mod tests {
    use base::TableId;

    use super::*;
    use crate::testing::pipeline;

    #[test]
    fn rules_are_found_whatever_others_come_and_go() {
        let flows: Vec<_> = (0..200)
            .map(|port| format!("udp,tp_dst={port},actions=drop"))
            .collect();
        let flows: Vec<_> = flows.iter().map(String::as_str).collect();
        let pipeline = pipeline(&flows);
        let rules: Vec<_> = pipeline.rules(TableId::FIRST).cloned().collect();
        let mut index = RuleIndex::default();
        index.build(rules[..100].iter().cloned());
        for (old, new) in rules.iter().zip(&rules[100..]) {
            let hash = index.hash(&new.identity);
            assert!(index.get(hash, &new.identity).is_none());
            index.remove(&old.identity);
            index.insert(hash, new);
            index.replace(hash, new);
        }
        for (number, rule) in rules.iter().enumerate() {
            let found = index.get(index.hash(&rule.identity), &rule.identity);
            assert_eq!(
                found.is_some_and(|found| Arc::ptr_eq(found, rule)),
                number >= 100
            );
        }
        // A hundred rules at a time, and as many numbers.
        assert_eq!(index.rules.chunks.iter().map(Vec::len).sum::<usize>(), 100);
    }

    #[test]
    fn last_partition_has_twice_the_share_of_the_first() {
        let count = |partition| {
            PARTITION_OF
                .iter()
                .filter(|of| usize::from(**of) == partition)
                .count()
        };
        let counts: Vec<_> = (0..PARTITIONS).map(count).collect();
        assert_eq!(counts.iter().sum::<usize>(), PARTITION_OF.len());
        let [first, .., last] = counts[..] else {
            panic!("there are many partitions");
        };
        assert!((10..=12).contains(&first) && (20..=22).contains(&last));
        assert!(counts.windows(2).all(|two| two[0] <= two[1] + 1));
    }
}

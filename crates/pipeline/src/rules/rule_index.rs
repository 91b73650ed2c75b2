//! The rules by what makes each the one it is, so that a flow-mod finds the one it
//! replaces, changes or deletes, however many there are.
//!
//! It is for the one who writes, and no part of the value that tables are: a clone has
//! none, and makes it when it is written to. Frames are not looked up in it.
//!
//! A hash table that is full is made larger, which takes many milliseconds at a
//! million rules. So there are many, and no two are for quite as many rules: they
//! grow one after the other, and of all of them as much is empty at any size.

mod partition;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::{Rule, RuleIdentity};
use partition::IndexPartition;

/// How many tables: the largest of a million rules grows in less than a millisecond.
const PARTS: usize = 64;

/// Rules for which there is room at once. None is moved when more come.
const CHUNK: usize = 4096;

/// Every rule, or nothing yet. The hash is keyed by chance, lest a controller choose a
/// million matches of one hash; nothing else depends on it.
#[derive(Debug, Default)]
pub(crate) struct RuleIndex {
    hasher: RandomState,
    /// As many as there are parts, once it is made.
    parts: Vec<IndexPartition>,
    rules: RuleSlab,
    /// Identities that will be asked for, in this order, and their hashes.
    coming: VecDeque<(IdentityHash, RuleIdentity)>,
}

/// The hash of an identity: which part, and what is kept of it, since a table that grows
/// does not ask each of its rules, which lie all over the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdentityHash {
    part: u16,
    kept: u32,
}

impl IdentityHash {
    fn of(hash: u64) -> Self {
        let [a, b, c, d, e, f, ..] = hash.to_le_bytes();
        Self {
            part: u16::from_le_bytes([e, f]),
            kept: u32::from_le_bytes([a, b, c, d]),
        }
    }

    fn part(self) -> usize {
        PART_OF[usize::from(self.part) % PART_OF.len()].into()
    }
}

/// Rules by number, in the order in which they came.
#[derive(Debug, Default)]
struct RuleSlab {
    chunks: Vec<Vec<Option<Arc<Rule>>>>,
    /// Numbers that are free again.
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

    /// Takes a rule in. Answers its number.
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

/// Whether a number is that of the rule of this identity.
fn is_of<'a>(rules: &'a RuleSlab, identity: &'a RuleIdentity) -> impl Fn(u32) -> bool + 'a {
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
    /// Whether it is there.
    pub(crate) const fn is_built(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Makes it, of all rules there are.
    pub(crate) fn build(&mut self, rules: impl Iterator<Item = Arc<Rule>>) {
        self.clear();
        for rule in rules {
            let hash = self.hash(&rule.identity);
            self.insert(hash, &rule);
        }
    }

    /// The hash of an identity.
    pub(crate) fn hash(&self, identity: &RuleIdentity) -> IdentityHash {
        IdentityHash::of(self.hasher.hash_one(identity))
    }

    /// Looks at the memory in which these are looked for, which of a large index is far
    /// away: what is asked for together comes together. They are to be asked for in this
    /// order, by [`RuleIndex::next_prefetched`].
    pub(crate) fn prefetch(&mut self, identities: impl Iterator<Item = RuleIdentity>) {
        let hasher = &self.hasher;
        let hashed =
            identities.map(|identity| (IdentityHash::of(hasher.hash_one(&identity)), identity));
        self.coming.clear();
        self.coming.extend(hashed);
        let seen = self.coming.iter().map(|(hash, _)| {
            let part = self.parts.get(hash.part());
            part.map_or(0, |part| part.glance_at(hash.kept))
        });
        black_box(seen.fold(0, u32::wrapping_add));
    }

    /// The next identity that was foreseen, and its hash, if it is the one. If it is not,
    /// nothing was foreseen.
    pub(crate) fn next_prefetched(
        &mut self,
        is_it: impl Fn(&RuleIdentity) -> bool,
    ) -> Option<(IdentityHash, RuleIdentity)> {
        let next = self.coming.pop_front()?;
        if !is_it(&next.1) {
            self.coming.clear();
            return None;
        }
        Some(next)
    }

    /// The rule of this identity, whose hash that is. Only if it is made: elsewhere there is
    /// another way.
    pub(crate) fn get(&self, hash: IdentityHash, identity: &RuleIdentity) -> Option<&Arc<Rule>> {
        let part = self.parts.get(hash.part())?;
        let number = part.find(hash.kept, is_of(&self.rules, identity))?;
        self.rules.get(number)
    }

    /// Takes a rule in. There is none of its identity.
    pub(crate) fn insert(&mut self, hash: IdentityHash, rule: &Arc<Rule>) {
        if let Some(part) = self.parts.get_mut(hash.part()) {
            part.insert(hash.kept, self.rules.add(Arc::clone(rule)));
        }
    }

    /// Takes a rule in, in place of the one of the same identity.
    pub(crate) fn replace(&mut self, hash: IdentityHash, rule: &Arc<Rule>) {
        let same = is_of(&self.rules, &rule.identity);
        let part = self.parts.get(hash.part());
        if let Some(number) = part.and_then(|part| part.find(hash.kept, same)) {
            self.rules.put(number, Some(Arc::clone(rule)));
        }
    }

    /// Forgets a rule.
    pub(crate) fn remove(&mut self, identity: &RuleIdentity) {
        let hash = self.hash(identity);
        let is_it = is_of(&self.rules, identity);
        let part = self.parts.get_mut(hash.part());
        if let Some(number) = part.and_then(|part| part.remove(hash.kept, is_it)) {
            self.rules.put(number, None);
            self.rules.free.push(number);
        }
    }

    /// Forgets all rules, and gives back the room for them.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.parts.resize_with(PARTS, IndexPartition::default);
        self.rules = RuleSlab::default();
    }
}

/// Bits of a hash that choose a part, above those that are kept.
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
        // A hundred at once, and so as many numbers.
        assert_eq!(index.rules.chunks.iter().map(Vec::len).sum::<usize>(), 100);
    }

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

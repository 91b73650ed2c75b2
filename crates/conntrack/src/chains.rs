//! A hash table with separate chaining (Knuth, "The art of computer programming", 6.4) whose chains
//! have a greatest length.
//!
//! ```text
//!  heads        links               items, in blocks of 32
//!  [ . ]
//!  [ 3 ] -----> 3: hash, next 70    3: item
//!  [ . ]       70: hash            70: item
//!  [ 1 ] -----> 1: hash             1: item
//! ```
//!
//! A lookup reads the links of a chain, eight to a cache line, and only the item whose 32 bits of
//! hash are equal. So a key that is absent, as that of each new connection, is found to be absent
//! without a read of any item. Items do not move when the table grows; when they outnumber the heads,
//! the heads are doubled and the links distributed, which reads no item. Indices are stable.
//!
//! Cost: a lookup reads the head, each link of the chain and one item; with at most one item per head
//! the expected chain has 1.5 links. With a keyed hash a chain of [`CHAIN_MAX`] items has a
//! probability below 10^-16, so a chain that is full is an attack or a bug.

use sys::cache::prefetch;

use crate::timer_wheel::TIMERS_MAX;

/// No item.
const NIL: u32 = u32::MAX;
/// Items of a block.
const BLOCK: usize = 32;
/// Heads of an empty table.
const HEADS_MIN: usize = 16;
/// Items of a chain.
const CHAIN_MAX: usize = 24;
/// Links grow by this part of their number, so that at most as much memory is unused.
const GROWTH: usize = 8;

/// Hash of an item, and the next item of its chain, or of the free list.
#[derive(Clone, Copy, Debug)]
struct ChainLink {
    hash: u32,
    next: u32,
}

/// The table.
#[derive(Debug)]
pub(crate) struct HashChains<T> {
    heads: Box<[u32]>,
    links: Vec<ChainLink>,
    blocks: Vec<Box<[Option<T>]>>,
    free: u32,
    len: usize,
}

impl<T> HashChains<T> {
    pub(crate) fn new() -> Self {
        Self {
            heads: vec![NIL; HEADS_MIN].into_boxed_slice(),
            links: Vec::new(),
            blocks: Vec::new(),
            free: NIL,
            len: 0,
        }
    }

    /// Number of items.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Number of indices that were ever used: each is below it.
    pub(crate) fn index_end(&self) -> u32 {
        u32::try_from(self.links.len()).unwrap_or(NIL)
    }

    /// Returns the item with this index, if there is one.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (block, at) = position(index);
        self.blocks.get(block)?.get(at)?.as_ref()
    }

    /// Returns the item with this index, if there is one.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (block, at) = position(index);
        self.blocks.get_mut(block)?.get_mut(at)?.as_mut()
    }

    /// Returns the index of the first item with this hash that matches.
    #[inline]
    pub(crate) fn find(&self, hash: u32, matches: impl Fn(&T) -> bool) -> Option<u32> {
        let mut index = self.heads[self.head_of(hash)];
        while let Some(link) = self.links.get(index as usize) {
            if link.hash == hash && self.get(index).is_some_and(&matches) {
                return Some(index);
            }
            index = link.next;
        }
        None
    }

    /// True if an item may have this hash.
    #[inline]
    pub(crate) fn has_hash(&self, hash: u32) -> bool {
        self.find(hash, |_| true).is_some()
    }

    /// Prefetches the memory that a lookup of this hash reads first, and the memory in which an
    /// insertion stores its item.
    #[inline]
    pub(crate) fn prefetch_head(&self, hash: u32) {
        prefetch(&self.heads[self.head_of(hash)]);
        let index = match self.free {
            NIL => self.links.len(),
            free => free as usize,
        };
        let block = self.blocks.get(index / BLOCK);
        if let Some(item) = block.and_then(|block| block.get(index % BLOCK)) {
            prefetch(item);
        }
        if let Some(item) = block.and_then(|block| block.get(index % BLOCK + 1)) {
            // Items take more than a cache line.
            prefetch(item);
        }
        if let Some(link) = self.links.get(index.saturating_sub(1)) {
            prefetch(link);
        }
    }

    /// Prefetches an item and its link.
    #[inline]
    pub(crate) fn prefetch_item(&self, index: u32) {
        let (block, at) = position(index);
        let item = self.blocks.get(block).and_then(|block| block.get(at));
        item.into_iter().for_each(prefetch);
        let link = self.links.get(index as usize);
        link.into_iter().for_each(prefetch);
    }

    /// Prefetches the head of the chain of an item.
    #[inline]
    pub(crate) fn prefetch_chain_of(&self, index: u32) {
        if let Some(link) = self.links.get(index as usize) {
            prefetch(&self.heads[self.head_of(link.hash)]);
        }
    }

    /// Prefetches the memory that a lookup of this hash reads after the head.
    #[inline]
    pub(crate) fn prefetch_link(&self, hash: u32) {
        let first = self.heads[self.head_of(hash)];
        self.links
            .get(first as usize)
            .into_iter()
            .for_each(prefetch);
    }

    /// Returns the indices of the chain of this hash; at most [`CHAIN_MAX`].
    pub(crate) fn chain(&self, hash: u32) -> impl Iterator<Item = u32> {
        let first = self.heads[self.head_of(hash)];
        std::iter::successors((first != NIL).then_some(first), move |index| {
            let next = self.links[*index as usize].next;
            (next != NIL).then_some(next)
        })
    }

    /// Inserts an item and returns its index, or the item if its chain is full.
    pub(crate) fn insert(&mut self, hash: u32, item: T) -> Result<u32, T> {
        if self.chain(hash).count() >= CHAIN_MAX {
            return Err(item);
        }
        if self.len >= self.heads.len() {
            self.grow_heads();
        }
        let index = self.store(item)?;
        let head = self.head_of(hash);
        let next = std::mem::replace(&mut self.heads[head], index);
        self.links[index as usize] = ChainLink { hash, next };
        self.len += 1;
        Ok(index)
    }

    /// Removes and returns the item with this index, if there is one.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        self.get(index)?;
        let ChainLink { hash, next } = self.links[index as usize];
        let head = self.head_of(hash);
        if self.heads[head] == index {
            self.heads[head] = next;
        } else {
            let previous = self
                .chain(hash)
                .find(|previous| self.links[*previous as usize].next == index)?;
            self.links[previous as usize].next = next;
        }
        self.links[index as usize].next = std::mem::replace(&mut self.free, index);
        self.len -= 1;
        let (block, at) = position(index);
        self.blocks[block][at].take()
    }

    /// Distributes the links over twice as many chains.
    fn grow_heads(&mut self) {
        let heads = vec![NIL; self.heads.len() * 2].into_boxed_slice();
        for first in std::mem::replace(&mut self.heads, heads) {
            let mut index = first;
            while index != NIL {
                let ChainLink { hash, next } = self.links[index as usize];
                let head = self.head_of(hash);
                self.links[index as usize].next = std::mem::replace(&mut self.heads[head], index);
                index = next;
            }
        }
    }

    /// Stores an item at an index of the free list, or at a new one. Returns the item if there are
    /// no more indices.
    fn store(&mut self, item: T) -> Result<u32, T> {
        let index = self.free;
        if let Some(link) = self.links.get(index as usize) {
            self.free = link.next;
            let (block, at) = position(index);
            self.blocks[block][at] = Some(item);
            return Ok(index);
        }
        let index = self.index_end();
        if index >= TIMERS_MAX {
            return Err(item);
        }
        let (block, at) = position(index);
        if at == 0 {
            self.blocks.push((0..BLOCK).map(|_| None).collect());
        }
        self.blocks[block][at] = Some(item);
        if self.links.len() == self.links.capacity() {
            let more = (self.links.len() / GROWTH).max(HEADS_MIN);
            self.links.reserve_exact(more);
        }
        self.links.push(ChainLink { hash: 0, next: NIL });
        Ok(index)
    }

    #[inline]
    fn head_of(&self, hash: u32) -> usize {
        hash as usize & (self.heads.len() - 1)
    }
}

#[inline]
const fn position(index: u32) -> (usize, usize) {
    (index as usize / BLOCK, index as usize % BLOCK)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chains_hold_the_items_of_a_map(
            steps in prop::collection::vec((any::<bool>(), 0_u32..300), 1..600),
        ) {
            let mut chains = HashChains::new();
            let mut map = BTreeMap::new();
            for (is_insert, key) in steps {
                // Equal hashes for several keys: chains with different items.
                let hash = key / 3 * 7;
                let index = chains.find(hash, |item| *item == key);
                prop_assert_eq!(index, map.get(&key).copied());
                match index {
                    None if is_insert => {
                        let index = chains.insert(hash, key).expect("short chains");
                        map.insert(key, index);
                    }
                    Some(index) if !is_insert => {
                        prop_assert_eq!(chains.remove(index), Some(key));
                        map.remove(&key);
                    }
                    _ => {}
                }
                prop_assert_eq!(chains.len(), map.len());
            }
            for (key, index) in map {
                prop_assert_eq!(chains.get(index), Some(&key));
            }
        }
    }

    #[test]
    fn full_chain_refuses_an_item() {
        let mut chains = HashChains::new();
        for item in 0..CHAIN_MAX {
            assert!(chains.insert(5, item).is_ok());
        }
        assert_eq!(chains.insert(5, 99), Err(99));
        assert!(chains.insert(6, 99).is_ok());
        assert_eq!(chains.chain(5).count(), CHAIN_MAX);
    }

    #[test]
    fn indices_stay_when_the_table_grows() {
        let mut chains = HashChains::new();
        let first = chains.insert(1, 1_u32).expect("an empty table");
        for item in 2..1_000 {
            chains.insert(item, item).expect("short chains");
        }
        assert_eq!(chains.get(first), Some(&1));
        assert_eq!(chains.remove(first), Some(1));
        assert_eq!(chains.remove(first), None);
        assert_eq!(chains.get_mut(first), None);
        assert_eq!(chains.index_end(), 999);
    }
}

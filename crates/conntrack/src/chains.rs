//! A hash table with separate chaining (Knuth, "The art of computer programming", 6.4) whose chains
//! have a greatest length.
//!
//! ```text
//!  heads                 nodes, in blocks of 64
//!  [ . ]
//!  [ 3 ] --------------> 3: item, hash --> 70: item, hash
//!  [ . ]
//!  [ 1 ] --------------> 1: item, hash
//! ```
//!
//! Blocks do not move when the table grows, so growth copies no item; when the nodes outnumber the
//! heads, the heads are doubled and the nodes linked again. Indices of nodes are stable.
//!
//! Cost: a lookup reads the head, and each node of the chain until the hash and the item match; with
//! at most one node per head the expected chain has 1.5 nodes. With a keyed hash a chain of
//! [`CHAIN_MAX`] nodes has a probability below 10^-16, so a chain that is full is an attack or a bug.

/// No node.
const NIL: u32 = u32::MAX;
/// Nodes of a block.
const BLOCK: usize = 64;
/// Heads of an empty table.
const HEADS_MIN: usize = 16;
/// Nodes of a chain.
pub(crate) const CHAIN_MAX: usize = 24;

#[derive(Debug)]
struct ChainNode<T> {
    item: Option<T>,
    hash: u32,
    /// Next node of the chain, or of the free list.
    next: u32,
}

/// The table.
#[derive(Debug)]
pub(crate) struct HashChains<T> {
    heads: Box<[u32]>,
    blocks: Vec<Box<[ChainNode<T>]>>,
    free: u32,
    len: usize,
}

impl<T> HashChains<T> {
    pub(crate) fn new() -> Self {
        Self {
            heads: vec![NIL; HEADS_MIN].into_boxed_slice(),
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
        u32::try_from(self.blocks.len() * BLOCK).unwrap_or(NIL)
    }

    /// Returns the item with this index, if there is one.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (block, at) = position(index);
        self.blocks.get(block)?.get(at)?.item.as_ref()
    }

    /// Returns the item with this index, if there is one.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (block, at) = position(index);
        self.blocks.get_mut(block)?.get_mut(at)?.item.as_mut()
    }

    /// Returns the index of the first item with this hash that matches.
    #[inline]
    pub(crate) fn find(&self, hash: u32, matches: impl Fn(&T) -> bool) -> Option<u32> {
        let mut index = self.heads[self.head_of(hash)];
        while index != NIL {
            let node = self.node(index);
            let is_match = node.hash == hash && node.item.as_ref().is_some_and(&matches);
            if is_match {
                return Some(index);
            }
            index = node.next;
        }
        None
    }

    /// Returns the indices of the chain of this hash; at most [`CHAIN_MAX`].
    pub(crate) fn chain(&self, hash: u32) -> impl Iterator<Item = u32> {
        let first = self.heads[self.head_of(hash)];
        std::iter::successors((first != NIL).then_some(first), move |index| {
            let next = self.node(*index).next;
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
        let Some(index) = self.take_free() else {
            return Err(item);
        };
        let head = self.head_of(hash);
        let next = std::mem::replace(&mut self.heads[head], index);
        *self.node_mut(index) = ChainNode {
            item: Some(item),
            hash,
            next,
        };
        self.len += 1;
        Ok(index)
    }

    /// Removes and returns the item with this index, if there is one.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        self.get(index)?;
        let (hash, next) = {
            let node = self.node(index);
            (node.hash, node.next)
        };
        let head = self.head_of(hash);
        if self.heads[head] == index {
            self.heads[head] = next;
        } else {
            let previous = self
                .chain(hash)
                .find(|previous| self.node(*previous).next == index)?;
            self.node_mut(previous).next = next;
        }
        let free = std::mem::replace(&mut self.free, index);
        let node = self.node_mut(index);
        node.next = free;
        self.len -= 1;
        self.node_mut(index).item.take()
    }

    /// Links all nodes again, into twice as many chains.
    fn grow_heads(&mut self) {
        self.heads = vec![NIL; self.heads.len() * 2].into_boxed_slice();
        for index in 0..self.index_end() {
            if self.get(index).is_none() {
                continue;
            }
            let head = self.head_of(self.node(index).hash);
            let next = std::mem::replace(&mut self.heads[head], index);
            self.node_mut(index).next = next;
        }
    }

    /// Takes a node from the free list, or from a new block.
    fn take_free(&mut self) -> Option<u32> {
        if self.free == NIL {
            let first = self.index_end();
            let end = first.checked_add(u32::try_from(BLOCK).ok()?)?;
            let nodes = (first..end).map(|index| ChainNode {
                item: None,
                hash: 0,
                next: if index + 1 == end { NIL } else { index + 1 },
            });
            self.blocks.push(nodes.collect());
            self.free = first;
        }
        let index = self.free;
        self.free = self.node(index).next;
        Some(index)
    }

    #[inline]
    fn head_of(&self, hash: u32) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn node(&self, index: u32) -> &ChainNode<T> {
        let (block, at) = position(index);
        &self.blocks[block][at]
    }

    #[inline]
    fn node_mut(&mut self, index: u32) -> &mut ChainNode<T> {
        let (block, at) = position(index);
        &mut self.blocks[block][at]
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
        assert_eq!(chains.index_end(), 1_024);
    }
}

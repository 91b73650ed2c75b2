//! A shard of the table: the entries whose original key has the shard's hash, the reverse keys whose
//! reply key has it, and the timers of the entries.
//!
//! Each operation takes a bounded number of steps, apart from doubling the heads of the chains: its
//! time is proportional to the shard, about 100 microseconds for 4,000 connections.

use std::sync::Arc;

use base::Instant;

use crate::chains::HashChains;
use crate::entry::{ConnectionEntry, ReverseKey};
use crate::key::{ConnectionKey, CtZone, TrafficDirection};
use crate::protocol::ProtocolState;
use crate::steady::{FreeSlots, KeyWords, SteadyState, SteadyTable, SteadyWriter, is_wide};
use crate::timer_wheel::TimerWheel;

/// Entries that are examined for an embryonic one when the table is full. In a flood nearly each
/// entry is embryonic; without one, a new connection is refused after this many steps.
const EVICTION_STEPS: u32 = 64;

/// Shard of the table.
#[derive(Debug)]
pub(crate) struct Shard {
    entries: HashChains<ConnectionEntry>,
    reverse_keys: HashChains<ReverseKey>,
    timers: TimerWheel,
    steady: Arc<SteadyTable>,
    free_slots: FreeSlots,
    /// Index of the entry that is examined next for eviction.
    hand: u32,
    /// Entries that were ever inserted.
    inserted: u64,
}

/// Result of a lookup in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardMatch {
    /// An entry of this shard.
    Entry(u32, TrafficDirection),
    /// A reverse key: the entry is in the shard of its original key.
    Elsewhere(ConnectionKey),
    None,
}

impl Shard {
    pub(crate) fn new(steady: Arc<SteadyTable>) -> Self {
        Self {
            steady,
            free_slots: FreeSlots::default(),
            entries: HashChains::new(),
            reverse_keys: HashChains::new(),
            timers: TimerWheel::new(),
            hand: 0,
            inserted: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn index_end(&self) -> u32 {
        self.entries.index_end()
    }

    pub(crate) fn entry(&self, index: u32) -> Option<&ConnectionEntry> {
        self.entries.get(index)
    }

    pub(crate) fn entry_mut(&mut self, index: u32) -> Option<&mut ConnectionEntry> {
        self.entries.get_mut(index)
    }

    /// Finds the connection of a key that has not expired.
    #[inline]
    pub(crate) fn find(&self, hash: u32, key: &ConnectionKey, now: Instant) -> ShardMatch {
        let found = self.entries.find(hash, |entry| {
            entry.direction_of(key).is_some() && !self.is_expired(entry, now)
        });
        if let Some(index) = found {
            let direction = self.entry(index).and_then(|entry| entry.direction_of(key));
            return direction.map_or(ShardMatch::None, |direction| {
                ShardMatch::Entry(index, direction)
            });
        }
        if self.reverse_keys.len() == 0 {
            return ShardMatch::None;
        }
        self.reverse_keys
            .find(hash, |reverse| reverse.reply == *key)
            .and_then(|index| self.reverse_keys.get(index))
            .map_or(ShardMatch::None, |reverse| {
                ShardMatch::Elsewhere(reverse.original)
            })
    }

    /// Prefetches the memory that a lookup of this hash reads first, and that an insertion writes.
    #[inline]
    pub(crate) fn prefetch_head(&self, hash: u32) {
        self.entries.prefetch_head(hash);
        self.timers.prefetch_last();
        if self.reverse_keys.len() != 0 {
            self.reverse_keys.prefetch_head(hash);
        }
    }

    /// Prefetches the entry that is examined next for eviction, with its timer.
    #[inline]
    pub(crate) fn prefetch_victim(&self) {
        self.entries.prefetch_item(self.hand);
        self.timers.prefetch_timer(self.hand);
    }

    /// Prefetches the memory that the removal of this entry changes.
    #[inline]
    pub(crate) fn prefetch_links_of_victim(&self) {
        self.entries.prefetch_chain_of(self.hand);
        self.timers.prefetch_neighbors(self.hand);
    }

    /// Prefetches the memory that a lookup of this hash reads then.
    #[inline]
    pub(crate) fn prefetch_link(&self, hash: u32) {
        self.entries.prefetch_link(hash);
        if self.reverse_keys.len() != 0 {
            self.reverse_keys.prefetch_link(hash);
        }
    }

    /// Finds an entry by one of its keys, expired or not.
    pub(crate) fn find_any(&self, hash: u32, key: &ConnectionKey) -> Option<u32> {
        self.entries
            .find(hash, |entry| entry.direction_of(key).is_some())
    }

    /// Finds an entry by its original key, expired or not.
    pub(crate) fn find_original(&self, hash: u32, original: &ConnectionKey) -> Option<u32> {
        self.entries.find(hash, |entry| entry.is_original(original))
    }

    /// True if no entry and no reverse key has this hash.
    #[inline]
    pub(crate) fn is_hash_absent(&self, hash: u32) -> bool {
        !self.entries.has_hash(hash)
            && (self.reverse_keys.len() == 0 || !self.reverse_keys.has_hash(hash))
    }

    /// Inserts an entry and sets its timer; returns the entry if its chain is full.
    pub(crate) fn insert(
        &mut self,
        hash: u32,
        entry: ConnectionEntry,
    ) -> Result<(), ConnectionEntry> {
        let expires = entry.expires;
        let index = self.entries.insert(hash, entry)?;
        self.timers.set(index, expires);
        self.inserted += 1;
        Ok(())
    }

    /// Number of entries that were ever inserted.
    pub(crate) const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Changes the end of an entry's life.
    #[inline]
    pub(crate) fn set_expiry(&mut self, index: u32, expires: Instant) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        let is_earlier = expires < entry.expires;
        entry.expires = expires;
        // A later expiry leaves the timer where it is; it is set again when it fires.
        if is_earlier {
            self.timers.set(index, expires);
        }
    }

    /// The end of an entry's life.
    fn expiry(&self, entry: &ConnectionEntry) -> Instant {
        let steady = self.steady.entry(entry.steady_slot());
        let steady = steady.filter(|_| entry.steady_slot() != 0);
        // Packets of a steady state only prolong it.
        steady.map_or(entry.expires, |steady| steady.expires().max(entry.expires))
    }

    /// True if an entry's life has ended.
    #[inline]
    pub(crate) fn is_expired(&self, entry: &ConnectionEntry, now: Instant) -> bool {
        entry.is_expired(now) && self.expiry(entry) <= now
    }

    /// Copies the numbers of an entry's steady state to the entry. Until the writer is dropped, no
    /// packet changes them. `steady` is the table of all shards.
    pub(crate) fn check_out<'a>(
        &mut self,
        index: u32,
        steady: &'a SteadyTable,
    ) -> Option<SteadyWriter<'a>> {
        let entry = self.entries.get_mut(index)?;
        if entry.steady_slot() == 0 {
            return None;
        }
        let writer = steady.entry(entry.steady_slot())?.write();
        entry.expires = writer.expires();
        if let ProtocolState::Tcp(connection) = &mut entry.state {
            *connection = writer.tcp();
        }
        Some(writer)
    }

    /// Ends a change of an entry: if it is in a steady state now, packets find it there.
    pub(crate) fn check_in(
        &mut self,
        index: u32,
        steady: &SteadyTable,
        writer: Option<SteadyWriter<'_>>,
    ) {
        let state = self.entry(index).and_then(ConnectionEntry::steady_state);
        let slot = self.entry(index).map_or(0, |entry| entry.steady_slot());
        let fits = |state: &SteadyState| slot != 0 && (is_wide(slot) || !state.is_wide());
        let writer = match state.is_some_and(|state| fits(&state)) {
            true => writer,
            false => {
                // Packets that have read the numbers before must not write them any more.
                writer.iter().for_each(SteadyWriter::clear);
                drop(writer);
                self.end_steady_state(index);
                None
            }
        };
        let (Some(state), Some(entry)) = (state, self.entries.get_mut(index)) else {
            return;
        };
        if entry.steady_slot() == 0 {
            let slot = steady.take(state.is_wide(), &mut self.free_slots);
            entry.set_steady_slot(slot.unwrap_or(0));
        }
        let slot = entry.steady_slot();
        let Some(entry) = steady.entry(slot).filter(|_| slot != 0) else {
            return;
        };
        writer.unwrap_or_else(|| entry.write()).fill(&state);
        steady.link(&state, slot);
    }

    /// Takes the steady state from an entry. Its numbers must have been copied, or be of no use.
    fn end_steady_state(&mut self, index: u32) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        let slot = entry.steady_slot();
        entry.set_steady_slot(0);
        if slot == 0 {
            return;
        }
        let keys = KeyWords::of(&entry.original()).zip(KeyWords::of(&entry.reply()));
        if let Some((original, reply)) = keys {
            let free = &mut self.free_slots;
            self.steady.release([original, reply], slot, free);
        }
    }

    /// Removes an entry with its timer.
    pub(crate) fn remove(&mut self, index: u32) -> Option<ConnectionEntry> {
        self.timers.remove(index);
        self.end_steady_state(index);
        self.entries.remove(index)
    }

    /// Removes and returns an entry that has expired, after at most `steps` timers, which are
    /// subtracted.
    pub(crate) fn pop_expired(
        &mut self,
        now: Instant,
        steps: &mut usize,
    ) -> Option<ConnectionEntry> {
        while *steps > 0 {
            let index = self.timers.pop(now)?;
            *steps -= 1;
            let Some(entry) = self.entries.get(index) else {
                continue;
            };
            if self.is_expired(entry, now) {
                return self.remove(index);
            }
            let expires = self.expiry(entry);
            self.timers.set(index, expires);
        }
        None
    }

    /// Removes and returns an embryonic entry after the hand, of this zone if one is given.
    pub(crate) fn evict(&mut self, zone: Option<CtZone>) -> Option<ConnectionEntry> {
        let end = self.index_end();
        for _ in 0..EVICTION_STEPS.min(end) {
            let index = self.hand;
            self.hand = (self.hand + 1) % end;
            let is_victim = self.entry(index).is_some_and(|entry| {
                entry.state.is_embryonic() && zone.is_none_or(|zone| entry.zone() == zone)
            });
            if is_victim {
                return self.remove(index);
            }
        }
        None
    }

    /// Removes and returns an embryonic entry of a chain.
    pub(crate) fn evict_of_chain(&mut self, hash: u32) -> Option<ConnectionEntry> {
        let victim = self.entries.chain(hash).find(|index| {
            self.entry(*index)
                .is_some_and(|entry| entry.state.is_embryonic())
        })?;
        self.remove(victim)
    }

    /// Inserts a reverse key; returns false if its chain is full.
    pub(crate) fn insert_reverse(&mut self, hash: u32, reverse: ReverseKey) -> bool {
        self.reverse_keys.insert(hash, reverse).is_ok()
    }

    /// Removes the reverse key of a connection.
    pub(crate) fn remove_reverse(&mut self, hash: u32, reply: &ConnectionKey, serial: u64) {
        let found = self.reverse_keys.find(hash, |reverse| {
            reverse.serial == serial && reverse.reply == *reply
        });
        if let Some(index) = found {
            self.reverse_keys.remove(index);
        }
    }

    /// Number of reverse keys.
    #[cfg(test)]
    pub(crate) const fn reverse_len(&self) -> usize {
        self.reverse_keys.len()
    }
}

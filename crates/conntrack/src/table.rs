//! The connection table: shards with a short lock each.
//!
//! ```text
//!  key --SipHash--> upper bits: shard        lower bits: chain
//!                   [ lock | entries, reverse keys, timers ]   x 256
//! ```
//!
//! The hash of a key and of its reversed key are equal, so both directions of a connection without
//! NAT are found in one chain of one shard. The reply key of a translated connection has another
//! hash: its shard holds a reverse key with the original key, with which the entry is found.
//!
//! **No two locks are held at once**, so there is no order of locks and no deadlock. A lock protects
//! a bounded number of steps. New connections of a flood spread over all shards by a keyed hash, so
//! a packet meets another worker's lock in one of some hundred cases, and then waits for less than a
//! microsecond; nothing is held while memory of other shards, limits or helpers is read.
//!
//! Consequences of separate locks, each with its remedy:
//!
//! - A reverse key exists before its entry. A reply that finds the reverse key but no entry has no
//!   connection, as if it had arrived earlier.
//! - A reverse key exists after its entry was removed. It is compared with the entry's reply key at
//!   each use, and removed by the connection's number, so a newer connection keeps its own.
//! - Two workers commit the same key at once. The second one finds the entry when it inserts, takes
//!   its reverse key back, and uses the first one's connection.
//!
//! Cost of a packet: one hash (12 rounds), one lock without contention, a chain of 1.5 nodes; with
//! NAT, twice that for replies.

use std::sync::{Arc, PoisonError, TryLockError};

use base::Instant;
use base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use base::sync::{Mutex, MutexGuard};
use sys::cache::prefetch;

use crate::alg::ExpectationTable;
use crate::counters::{CtCounter, CtCounters, OwnLine};
use crate::entry::{ConnectionEntry, ReverseKey};
use crate::key::{ConnectionKey, CtZone, TrafficDirection};
use crate::limits::{ConnectionLimits, LimitReached};
use crate::shard::{Shard, ShardMatch};
use crate::siphash::{HashSeed, siphash};
use crate::steady::SteadyTable;

/// Shards: many more than workers, so that two rarely meet, and few enough that the memory in which
/// each of them inserts next stays in the second level of a cache. Models have few.
const SHARDS: usize = if cfg!(feature = "model") { 2 } else { 256 };
/// Shards that one call of [`ConnectionTable::expire`] visits.
const SHARDS_PER_TURN: usize = 4;

/// Shards that are searched for an embryonic connection.
const EVICTION_SHARDS: usize = 8;

/// A connection that is not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InsertError {
    /// Another worker has inserted the same key.
    Present,
    /// The reply key belongs to a translated connection.
    ReplyInUse,
    TableFull,
    ZoneFull,
    ChainFull,
}

impl InsertError {
    /// Returns the counter of the refusal.
    pub(crate) const fn counter(self) -> Option<CtCounter> {
        match self {
            Self::Present => None,
            Self::ReplyInUse => Some(CtCounter::ReplyInUse),
            Self::TableFull => Some(CtCounter::TableFull),
            Self::ZoneFull => Some(CtCounter::ZoneFull),
            Self::ChainFull => Some(CtCounter::ChainFull),
        }
    }
}

impl From<LimitReached> for InsertError {
    fn from(limit: LimitReached) -> Self {
        match limit {
            LimitReached::Table => Self::TableFull,
            LimitReached::Zone => Self::ZoneFull,
        }
    }
}

/// Position of a key: the number of its shard, and the hash within it. That of the reversed key is
/// the same.
pub(crate) type KeyPosition = (usize, u32);

/// The table.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    shards: Box<[Mutex<Shard>]>,
    seed: HashSeed,
    pub(crate) limits: ConnectionLimits,
    pub(crate) counters: CtCounters,
    pub(crate) expectations: ExpectationTable,
    pub(crate) steady: Arc<SteadyTable>,
    serials: OwnLine<AtomicU64>,
    /// Shard that the next call of `expire` visits first.
    turn: OwnLine<AtomicUsize>,
}

impl ConnectionTable {
    pub(crate) fn new(seed: HashSeed, connections_max: u32) -> Self {
        let steady = Arc::new(SteadyTable::new(seed));
        let shard = || Mutex::new(Shard::new(Arc::clone(&steady)));
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            steady,
            seed,
            limits: ConnectionLimits::new(connections_max),
            counters: CtCounters::default(),
            expectations: ExpectationTable::new(),
            serials: OwnLine(AtomicU64::new(1)),
            turn: OwnLine(AtomicUsize::new(0)),
        }
    }

    pub(crate) const fn seed(&self) -> HashSeed {
        self.seed
    }

    /// Returns a number that no other connection has.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serials.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs `action` on the shard and index of the connection of a key, if there is one.
    #[inline]
    pub(crate) fn with_entry<R>(
        &self,
        key: &ConnectionKey,
        (at, hash): KeyPosition,
        now: Instant,
        action: impl FnOnce(&mut Shard, u32, TrafficDirection) -> R,
    ) -> Option<R> {
        let mut shard = self.lock(at);
        let original = match shard.find(hash, key, now) {
            ShardMatch::Entry(index, direction) => {
                return Some(action(&mut shard, index, direction));
            }
            ShardMatch::Elsewhere(original) => original,
            ShardMatch::None => return None,
        };
        drop(shard);
        let (at, hash) = self.position(&original);
        let mut shard = self.lock(at);
        let index = shard.find_original(hash, &original)?;
        let entry = shard.entry(index);
        let entry = entry.filter(|entry| !shard.is_expired(entry, now))?;
        let direction = entry.direction_of(key)?;
        Some(action(&mut shard, index, direction))
    }

    /// True if a key has a connection, or a reverse key that another worker has reserved.
    fn is_present(&self, key: &ConnectionKey, now: Instant) -> bool {
        let (at, hash) = self.position(key);
        self.lock(at).find(hash, key, now) != ShardMatch::None
    }

    /// Reserves the reply key of a new translated connection. Returns false if it is in use.
    pub(crate) fn reserve_reply(&self, reverse: &ReverseKey, now: Instant) -> bool {
        if reverse.reply == reverse.original.reversed() {
            // The entry itself is found with this key.
            return !self.is_present(&reverse.reply, now);
        }
        let (at, hash) = self.position(&reverse.reply);
        let mut shard = self.lock(at);
        shard.find(hash, &reverse.reply, now) == ShardMatch::None
            && shard.insert_reverse(hash, reverse.clone())
    }

    /// Takes a reserved reply key back.
    pub(crate) fn release_reply(&self, reply: &ConnectionKey, serial: u64) {
        let (at, hash) = self.position(reply);
        self.lock(at).remove_reverse(hash, reply, serial);
    }

    /// Inserts a connection at the position of its original key. If the table, its zone or the chain
    /// is full, an embryonic connection is given up for it.
    pub(crate) fn insert(
        &self,
        entry: ConnectionEntry,
        (at, hash): KeyPosition,
        now: Instant,
    ) -> Result<(), InsertError> {
        let zone = entry.zone();
        self.reserve_place(zone, at)?;
        let mut shard = self.lock(at);
        let result = if shard.is_hash_absent(hash) {
            shard.insert(hash, entry)
        } else {
            drop(shard);
            if let Err(error) = self.free_keys(&entry, (at, hash), now) {
                self.limits.release(zone);
                return Err(error);
            }
            shard = self.lock(at);
            // Another worker may have inserted them in the meantime.
            if let Err(error) = check_keys(&shard, hash, &entry, now) {
                drop(shard);
                self.limits.release(zone);
                return Err(error);
            }
            shard.insert(hash, entry)
        };
        let Err(entry) = result else {
            return Ok(());
        };
        let victim = shard.evict_of_chain(hash);
        let is_inserted = shard.insert(hash, entry).is_ok();
        drop(shard);
        self.finish(victim, CtCounter::EmbryonicEvicted);
        if !is_inserted {
            self.limits.release(zone);
            return Err(InsertError::ChainFull);
        }
        Ok(())
    }

    /// Removes expired connections that have the keys of a new one.
    fn free_keys(
        &self,
        entry: &ConnectionEntry,
        (at, hash): KeyPosition,
        now: Instant,
    ) -> Result<(), InsertError> {
        let key = entry.original();
        if check_keys(&self.lock(at), hash, entry, now).is_err() {
            self.collect_expired(&key, now);
            self.collect_expired(&entry.reply(), now);
        }
        let mut shard = self.lock(at);
        check_keys(&shard, hash, entry, now)?;
        let mut expired = Vec::new();
        while let Some(index) = shard.find_any(hash, &key) {
            expired.extend(shard.remove(index));
        }
        drop(shard);
        for entry in expired {
            self.finish(Some(entry), CtCounter::Expired);
        }
        Ok(())
    }

    /// Removes the expired connection that a reverse key with this key leads to, so that the key is
    /// free.
    fn collect_expired(&self, key: &ConnectionKey, now: Instant) {
        let (at, hash) = self.position(key);
        let found = self.lock(at).find(hash, key, now);
        let ShardMatch::Elsewhere(original) = found else {
            return;
        };
        let (at, hash) = self.position(&original);
        let expired = self.with_shard(at, |shard| {
            let index = shard.find_original(hash, &original)?;
            shard
                .entry(index)
                .filter(|entry| shard.is_expired(entry, now))?;
            shard.remove(index)
        });
        self.finish(expired, CtCounter::Expired);
    }

    /// Reserves a place in table and zone, if need be that of an embryonic connection.
    pub(crate) fn reserve_place(&self, zone: CtZone, at: usize) -> Result<(), InsertError> {
        let Err(limit) = self.limits.reserve(zone) else {
            return Ok(());
        };
        let filter = (limit == LimitReached::Zone).then_some(zone);
        // A shard of few connections may have no embryonic one: its neighbours are tried too.
        let victim = (0..EVICTION_SHARDS).find_map(|step| {
            let at = (at + step) % self.shards.len();
            self.with_shard(at, |shard| shard.evict(filter))
        });
        let Some(victim) = victim else {
            return Err(limit.into());
        };
        let is_full_only = limit == LimitReached::Table
            && victim.zone() == zone
            && self.limits.held() <= self.limits.held_max();
        if is_full_only {
            // The new connection has the victim's place.
            self.finish_keys(&victim, CtCounter::EmbryonicEvicted);
            return Ok(());
        }
        self.finish(Some(victim), CtCounter::EmbryonicEvicted);
        Ok(self.limits.reserve(zone)?)
    }

    /// Removes the connection of a key. Returns false if there is none.
    pub(crate) fn remove(&self, key: &ConnectionKey, now: Instant) -> bool {
        let position = self.position(key);
        let removed = self
            .with_entry(key, position, now, |shard, index, _| shard.remove(index))
            .flatten();
        let is_removed = removed.is_some();
        self.finish(removed, CtCounter::Removed);
        is_removed
    }

    /// Removes connections that have expired, after at most `steps` timers and a few shards. Shards
    /// that are in use are left for another turn. Returns the number of removed connections.
    pub(crate) fn expire(&self, now: Instant, steps: usize) -> usize {
        self.steady.grow();
        let mut steps = steps;
        let mut removed = 0;
        for _ in 0..SHARDS_PER_TURN {
            if steps == 0 {
                break;
            }
            let at = self.turn.0.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            while steps > 0 {
                let mut shard = match self.shards[at].try_lock() {
                    Ok(shard) => shard,
                    Err(TryLockError::Poisoned(error)) => error.into_inner(),
                    Err(TryLockError::WouldBlock) => break,
                };
                let expired = shard.pop_expired(now, &mut steps);
                drop(shard);
                if expired.is_none() {
                    break;
                }
                removed += 1;
                self.finish(expired, CtCounter::Expired);
            }
        }
        removed
    }

    /// Prefetches the lock of a shard, and what follows it.
    #[inline]
    pub(crate) fn prefetch_shard(&self, at: usize) {
        self.shards.get(at).into_iter().for_each(prefetch);
    }

    /// Number of shards.
    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Runs `read` with a locked shard.
    pub(crate) fn with_shard<R>(&self, at: usize, read: impl FnOnce(&mut Shard) -> R) -> R {
        read(&mut self.lock(at))
    }

    /// Completes the removal of an entry, whose shard is not locked any more.
    pub(crate) fn finish(&self, entry: Option<ConnectionEntry>, counter: CtCounter) {
        if let Some(entry) = entry {
            self.finish_keys(&entry, counter);
            self.limits.release(entry.zone());
        }
    }

    /// Completes the removal of an entry, apart from its place.
    fn finish_keys(&self, entry: &ConnectionEntry, counter: CtCounter) {
        if entry.serial() != 0 {
            self.release_reply(&entry.reply(), entry.serial());
        }
        if entry.helper().is_some() {
            self.expectations.remove_children(&entry.original());
        }
        self.counters.add(counter, 1);
    }

    #[inline]
    pub(crate) fn position(&self, key: &ConnectionKey) -> KeyPosition {
        self.position_of(&key.symmetric_words())
    }

    /// Returns the position of a key with these symmetric words.
    #[inline]
    pub(crate) fn position_of(&self, words: &[u64; 5]) -> KeyPosition {
        let hash = siphash::<1, 3>(self.seed, words);
        let [a, b, c, d, e, f, g, h] = hash.to_be_bytes();
        let shard = u32::from_be_bytes([a, b, c, d]) as usize % SHARDS;
        (shard, u32::from_be_bytes([e, f, g, h]))
    }

    /// Locks a shard. Each operation leaves the shard consistent, so a panic of another thread does
    /// not make it unusable.
    #[inline]
    fn lock(&self, at: usize) -> MutexGuard<'_, Shard> {
        self.shards[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that no connection has the keys of a new one. A reply key that differs from the reversed
/// original key was reserved before.
fn check_keys(
    shard: &Shard,
    hash: u32,
    entry: &ConnectionEntry,
    now: Instant,
) -> Result<(), InsertError> {
    if shard.find(hash, &entry.original(), now) != ShardMatch::None {
        return Err(InsertError::Present);
    }
    // Both keys have the same hash.
    if entry.is_reply_plain() && shard.find(hash, &entry.reply(), now) != ShardMatch::None {
        return Err(InsertError::ReplyInUse);
    }
    Ok(())
}

#[cfg(all(test, feature = "model"))]
mod model;
#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::test_packets::{endpoint, udp};

    #[test]
    fn keys_that_collide_with_one_seed_spread_with_another() {
        let [first, second] = [1, 2].map(|seed| ConnectionTable::new(HashSeed([seed, 3]), 16));
        let key = |port| {
            let facts = udp(endpoint(1, port), endpoint(2, 53));
            facts.tuple.in_zone(CtZone(0))
        };
        let shard_of = |table: &ConnectionTable, key: &ConnectionKey| table.position(key).0;
        let mut colliding: Vec<_> = (1..=u16::MAX).map(key).collect();
        colliding.retain(|key| shard_of(&first, key) == 0);
        assert!(colliding.len() > 20, "one key in 1,024");
        let mut counts = BTreeMap::new();
        for key in &colliding {
            *counts.entry(shard_of(&second, key)).or_insert(0_u32) += 1;
        }
        assert!(counts.values().all(|count| *count < 8), "{counts:?}");
    }
}

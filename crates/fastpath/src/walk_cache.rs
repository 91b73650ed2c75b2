//! Walk cache: exact-match cache of a worker, from the headers of a packet to all that its rules do
//! to it (Open vSwitch: megaflows and recirculation; "memoization" of a walk through the tables).
//!
//! Controllers like OVN make each packet visit dozens of tables, of which most only write registers.
//! A *walk* is what remains of such a visit: the effects on the frame, and the rules to count.
//!
//! ```text
//!   tables          0 -> 8 -> 9 -> ... -> 27 ct(table=28)  28 -> ... -> 42 ct(table=43)  43 -> ... -> 65
//!   walks           [ ct ]                                 [ ct ]                        [ dec_ttl, output:2 ]
//!   found by        headers                                headers, walk, connection     the same
//! ```
//!
//! The result of `ct` depends on the connection and not on the headers alone, so a walk ends there,
//! and another begins: it is found by the headers, the walk before, and the fields of the
//! connection.
//!
//! **A walk depends on nothing but its key.** The key has all headers of an IP packet, except bits of
//! addresses and ports that show nothing: for each rule of a higher priority that a packet does not
//! match, some bit of the key differs from the rule. So one walk serves many flows. All walks with
//! one start have the same bits in their keys, except a few that need more, so that one lookup finds
//! nearly all. All pipeline fields follow
//! from the walk before. A walk is recorded while the executor runs a packet, and is discarded when
//! it meets what depends on more, or has other effects than rewrites and outputs: meters, groups,
//! packet-ins, `learn`, a table without a match, an error. All walks belong to one [view](crate::View) of the
//! tables; a new view empties the cache. Ports are examined when the walk is replayed.
//!
//! **The cache is used where it pays**, decided by the same [policy](crate::cache_policy) as that of
//! the flow cache: it is tried when packets are looked up in four tables on average, and
//! disabled for a while when less than half of the packets hit, unless the number of hits grows from
//! window to window.
//!
//! A walk that only sends the packet, or rewrites it as a router does and sends it, leaves with its
//! batch; the executor replays others.
//!
//! **Statistics are deferred**: a hit adds to the totals of its walk, which are added to the
//! counters of its rules and tables some walks at a time, or all together when exact counts are
//! required.
//!
//! Cost of a hit: one hash of 96 bytes, or 160 with IPv6, four cache lines, and the effects.
//! Memory: five megabytes for each worker that has enabled the cache, and for each walk one or two
//! kilobytes, at most some twenty.

use base::Instant;
use conntrack::CtZone;
use pipeline::{Pipeline, Totals};

use crate::batch_mask::BatchMask;
use crate::cache_policy::{CachePolicy, WindowHits};
use crate::classifier::View;
use crate::packed_key::PackedKey;

mod rewrites;
mod walk;
mod walk_entries;
mod walk_key;
mod walk_recorder;

pub(crate) use walk::{ResumeState, ShortWalk, TrackEffect, TrackedWalk, WalkEffect};
use walk_entries::WalkEntries;
pub(crate) use walk_entries::WalkSearch;
pub(crate) use walk_key::{FROM_PORT, WalkKey};
pub(crate) use walk_recorder::WalkRecorder;

/// Lookup batches of a window, after which the worker decides whether the cache is used.
const WINDOW: u32 = 512;

/// Average number of lookups in tables for each packet, for the cache to be tried.
const LOOKUPS_MIN: u64 = 4;

/// Windows with so many lookups, for the cache to be tried. In the first, the flow cache learns to
/// avoid lookups; it is preferred, since it costs less.
const BUSY_WINDOWS_MIN: u32 = 3;

/// Most windows for which the cache is disabled: one million packets, so that it is soon tried again
/// when new connections have become known ones.
const DISABLED_MAX: u32 = 64;

/// Table changes in a window that the cache tolerates; each empties it.
const CHANGES_MAX: u32 = 8;

/// Connections from which on their memory is prefetched: so many exceed a second-level cache.
const FAR_CONNECTIONS: u32 = 8192;

/// The walk cache of a worker.
#[derive(Debug)]
pub(crate) struct WalkCache {
    writer: usize,
    policy: CachePolicy,
    /// True if the current batch uses the cache.
    is_active: bool,
    /// Allocated on first use.
    entries: Option<WalkEntries>,
    pub(crate) recorder: WalkRecorder,
    window: WalkWindow,
    /// Windows with many lookups until now.
    busy_windows: u32,
    /// Connections from which on their memory is prefetched.
    far_connections: u32,
    /// Hits of all windows before the current one.
    hits_before: u64,
}

/// Events of a window.
#[derive(Clone, Copy, Debug, Default)]
struct WalkWindow {
    batches: u32,
    packets: u64,
    /// Lookups in tables.
    lookups: u64,
    /// Packets that were looked up in the cache, and hits.
    candidates: u64,
    hits: u64,
    /// Continuations of hits by a walk, and in the tables.
    continued: u64,
    left: u64,
    changes: u32,
}

impl WalkCache {
    /// An unused cache of a worker that counts as `writer`.
    pub(crate) fn new(writer: usize) -> Self {
        Self {
            writer,
            policy: CachePolicy::new(DISABLED_MAX),
            is_active: false,
            entries: None,
            recorder: WalkRecorder::new(),
            window: WalkWindow::default(),
            busy_windows: 0,
            far_connections: FAR_CONNECTIONS,
            hits_before: 0,
        }
    }

    /// Uses the cache in any case, with all that it does for many connections.
    pub(crate) const fn force(&mut self) {
        self.policy.force();
        self.far_connections = 0;
    }

    /// True if the memory of so many connections is prefetched.
    #[inline]
    pub(crate) const fn is_far(&self, connections: u32) -> bool {
        connections >= self.far_connections
    }

    /// Begins a batch. Returns true if it uses the cache, which `is_usable` permits.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        view: &View,
        pipeline: &Pipeline,
        now: Instant,
        is_usable: bool,
    ) -> bool {
        if self.window.batches >= WINDOW {
            self.end_window();
        }
        let is_clean = match &mut self.entries {
            None => true,
            Some(entries) => {
                entries.begin(now);
                !entries.release_next()
            }
        };
        self.is_active = self.policy.is_used() && is_usable;
        if is_clean && !self.is_active {
            return false;
        }
        if self.is_active && !self.entries.as_ref().is_some_and(|all| all.is_of(view)) {
            self.reset(view, pipeline);
        }
        self.is_active
    }

    /// Begins a lookup batch of so many packets.
    #[inline]
    pub(crate) fn begin_lookups(&mut self, packets: BatchMask) {
        self.window.batches += 1;
        self.window.packets += packets.len() as u64;
        if self.is_active {
            self.insert_recorded();
        }
    }

    /// Counts lookups in tables.
    #[inline]
    pub(crate) const fn count_lookups(&mut self, packets: u32) {
        self.window.lookups += packets as u64;
    }

    /// True if the current batch uses the cache.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        self.is_active
    }

    /// Counts packets that were looked up, and hits.
    pub(crate) const fn count_candidates(&mut self, packets: u64, hits: u64) {
        self.window.candidates += packets;
        self.window.hits += hits;
    }

    /// Counts a packet that has hit and continues by another walk after `ct`.
    #[inline]
    pub(crate) const fn count_continued(&mut self) {
        self.window.continued += 1;
    }

    /// Counts a packet that has hit and continues in the tables after `ct`.
    pub(crate) const fn count_left(&mut self) {
        self.window.left += 1;
    }

    /// Returns the number of packets that have hit so far.
    #[inline]
    pub(crate) const fn hits(&self) -> u64 {
        self.hits_before + self.window.hits
    }

    /// Starts to record the walk of a packet within the current one; it is not cached if `key` is
    /// `None`.
    pub(crate) fn begin_recording(&mut self, key: Option<&PackedKey>, start: u64) {
        let entries = self.entries.as_ref().filter(|_| self.is_active);
        let words = entries
            .zip(key)
            .and_then(|(all, key)| all.words_of(key, start));
        let known = entries
            .zip(words.as_ref())
            .and_then(|(all, words)| all.bits_of(words));
        self.recorder.begin(words, known.unwrap_or_default());
    }

    /// Prefetches a walk.
    #[inline]
    pub(crate) fn prefetch_walk(&self, walk: u16) {
        if let Some(entries) = &self.entries {
            entries.prefetch_walk(walk);
        }
    }

    /// Searches the walk of a packet that begins at `start`.
    #[inline]
    pub(crate) fn find(&self, key: &PackedKey, start: u64) -> WalkSearch {
        match self.entries.as_ref().filter(|_| self.is_active) {
            Some(entries) => entries.find(key, start),
            None => WalkSearch::NoKey,
        }
    }

    /// Returns the first key of a packet whose walk begins at `start`.
    pub(crate) fn first_key_of(&self, key: &PackedKey, start: u64) -> Option<WalkKey> {
        let entries = self.entries.as_ref();
        entries.and_then(|all| all.first_key_of(key, start))
    }

    /// Returns the effects of a walk, if it needs no executor.
    #[inline]
    pub(crate) fn short_walk(&self, walk: u16) -> Option<&ShortWalk> {
        self.entries.as_ref().and_then(|all| all.short_walk(walk))
    }

    /// Returns the zones in which a packet of a walk is tracked first, and is likely tracked next.
    #[inline]
    pub(crate) fn zones(&self, walk: u16) -> [Option<CtZone>; 2] {
        let entries = self.entries.as_ref();
        let track = entries.and_then(|all| all.first_track(walk));
        let later = track.and_then(|track| track.next.as_ref()?.later_zone.get());
        [track.map(|track| track.request.zone), later]
    }

    /// Counts a packet of a walk whose effects are done.
    #[inline]
    pub(crate) fn count(&mut self, walk: u16, weight: Totals, now: Instant) {
        if let Some(entries) = &mut self.entries {
            entries.count(walk, weight, now);
        }
    }

    /// Takes the effects of a walk, and counts a packet. They are returned by
    /// [`WalkCache::return_effects`] before the next lookup batch.
    #[inline]
    pub(crate) fn take_effects(
        &mut self,
        walk: u16,
        weight: Totals,
        now: Instant,
    ) -> Box<[WalkEffect]> {
        match &mut self.entries {
            Some(entries) => entries.take_effects(walk, weight, now),
            None => Box::default(),
        }
    }

    /// Returns the effects of a walk.
    #[inline]
    pub(crate) fn return_effects(&mut self, walk: u16, effects: Box<[WalkEffect]>) {
        if let Some(entries) = &mut self.entries {
            entries.return_effects(walk, effects);
        }
    }

    /// Adds all pending statistics to the counters of rules and tables.
    #[inline]
    pub(crate) fn flush_stats(&mut self) {
        if let Some(entries) = &mut self.entries {
            entries.flush_all();
        }
    }

    /// True if statistics are pending.
    #[inline]
    pub(crate) fn has_pending_stats(&self) -> bool {
        self.entries
            .as_ref()
            .is_some_and(WalkEntries::has_pending_stats)
    }

    #[inline]
    fn insert_recorded(&mut self) {
        self.recorder.begin_batch();
        if let Some(entries) = &mut self.entries {
            for walk in self.recorder.take_finished() {
                entries.insert(walk);
            }
        }
    }

    /// Decides the state for the next window.
    #[cold]
    fn end_window(&mut self) {
        let window = std::mem::take(&mut self.window);
        self.hits_before += window.hits;
        self.busy_windows = match window.lookups >= LOOKUPS_MIN * window.packets {
            true => self.busy_windows + 1,
            false => 0,
        };
        let is_promising = self.busy_windows >= BUSY_WINDOWS_MIN;
        let hits = WindowHits {
            packets: window.candidates,
            full: window.hits.saturating_sub(window.left),
            found: window.hits + window.continued,
        };
        if self.policy.end_window(is_promising, hits) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.is_active = false;
        self.recorder.discard();
        if let Some(entries) = &mut self.entries {
            entries.clear();
        }
    }

    /// Empties the cache and prepares it for a view.
    #[cold]
    fn reset(&mut self, view: &View, pipeline: &Pipeline) {
        self.window.changes += 1;
        self.policy.restart_learning();
        self.recorder.discard();
        if self.window.changes > CHANGES_MAX && !self.policy.is_forced() {
            self.policy.disable();
            self.clear();
            return;
        }
        let entries = self
            .entries
            .get_or_insert_with(|| WalkEntries::new(self.writer));
        entries.reset(view, pipeline);
    }
}

impl Drop for WalkCache {
    /// Adds pending statistics, so that none are lost.
    fn drop(&mut self) {
        self.flush_stats();
    }
}

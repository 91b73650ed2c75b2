//! Flow cache: exact-match cache of a worker, from the header words that any table reads to the
//! rules that the packet matches and the port by which it leaves (Open vSwitch: the exact match
//! cache, EMC, of `dpif-netdev`).
//!
//! A packet with the same key as an earlier one matches the same rule in each table. So with many
//! tables, the packets of a few flows are looked up once instead of once in each table:
//!
//! ```text
//!   key                 up to 8 words: the union of the masks of all tables
//!   hash                bucket -> set of 8 entries, tag (8 bits)
//!
//!   512 sets   tags     [ t t t t t t t t ]       compared together
//!              words    [ 8 words ] x 8           one cache line each, compared completely
//!              egress   [ totals | time | port ]  half a cache line each
//!              rules    counters and tables of up to 10 rules, not read by a hit
//! ```
//!
//! **Results never depend on the cache**, only cost does: keys are compared completely, and all
//! entries belong to one [view](crate::View) of the tables; a new view empties the cache. Only
//! packets that leave unmodified by one port are cached, and only if the tables read at most eight
//! header words. Packets of tunnels are not looked up in the cache.
//!
//! **The cache is used where it pays.** After each window of 512 lookup batches the worker decides:
//!
//! ```text
//!            4 tables a batch on average                  1 window
//!  Disabled -----------------------------> Learning -----------------> Enabled
//!     ^                                                                   |
//!     +-- for 32 windows, doubled up to 1,024, if less than half hit  ----+
//!     +-- likewise if the tables change more than 8 times in a window
//! ```
//!
//! So traffic that the cache does not help (every packet a new flow) costs an attempt now and then,
//! and one or two tables are never cached.
//!
//! **Statistics are deferred.** A hit adds to the totals of its entry. These [pending
//! statistics](pending_stats) are added to the counters of the rules and tables within some
//! milliseconds, some entries for each batch, or all together when exact counts are required.
//!
//! Cost of a hit: the hash of the key and two cache lines, whatever the number of tables. Memory: one
//! megabyte for each worker that has enabled the cache.
//!
//! **Insertion.** Of each lookup batch with misses up to four packets are recorded; each that leaves by
//! a port becomes an entry. A full set replaces an entry selected by the hash.
//!
//! ```
//! use base::{Instant, PortNo};
//! use fastpath::{BatchContext, Classifier, Runner};
//! use flow::PortDesc;
//! use flow::text::parse_flow_line;
//! use packet::Frame;
//! use packet::build::Stack;
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for port in 1..=2 {
//!     pipeline.set_port(&PortDesc::new(PortNo(port)));
//! }
//! for table in 0..5 {
//!     let line = format!("table={table},udp,actions=goto_table:{}", table + 1);
//!     let command = parse_flow_line(&line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! let command = parse_flow_line("table=5,udp,actions=output:2").expect("a flow");
//! let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//! classifier.queue_changes(&changes);
//! let view = classifier.publish(&pipeline);
//!
//! // The first batch is looked up and recorded, the second hits the cache: its packets are not yet
//! // counted by the rules.
//! let mut runner = Runner::with_flow_cache(0);
//! let context = BatchContext { pipeline: &pipeline, view: &view, in_port: PortNo(1), now: Instant::START };
//! let stack: Stack = "eth / ipv4 / udp".parse().expect("a frame");
//! let mut frames: Vec<Frame> = (0..32).map(|_| stack.build()).collect();
//! let packets = || changes.added[0].statistics(Instant::START).packets;
//! assert_eq!(runner.begin(context, &mut frames).forward_all(), Some(PortNo(2)));
//! assert_eq!((packets(), runner.has_pending_stats()), (32, false));
//! assert_eq!(runner.begin(context, &mut frames).forward_all(), Some(PortNo(2)));
//! assert_eq!((packets(), runner.has_pending_stats()), (32, true));
//! runner.flush_stats();
//! assert_eq!((packets(), runner.has_pending_stats()), (64, false));
//! ```

use base::Instant;
use pipeline::Pipeline;

use crate::batch_mask::BatchMask;
use crate::cache_policy::{CachePolicy, WindowHits};
use crate::classifier::View;

mod cache_key;
mod entries;
mod pending_stats;
mod recorder;

pub(crate) use cache_key::CacheKeyMask;
pub(crate) use entries::{CacheEntries, WAYS, boxed_array, equal_tags};
pub(crate) use recorder::FlowRecorder;

/// Lookup batches of a window, after which the worker decides whether the cache is used.
const WINDOW: u32 = 512;

/// Average number of tables that a batch must visit for the cache to be tried.
const TABLES_MIN: u32 = 4;

/// Table changes in a window that the cache tolerates; each empties it.
const CHANGES_MAX: u32 = 8;

/// Most windows for which the cache is disabled.
const DISABLED_MAX: u32 = 1024;

/// The flow cache of a worker.
#[derive(Debug)]
pub(crate) struct FlowCache {
    writer: usize,
    policy: CachePolicy,
    /// `None` if the cache is not used, or the tables read too many words.
    mask: Option<CacheKeyMask>,
    /// Allocated on first use.
    entries: Option<CacheEntries>,
    window: CacheWindow,
    /// Hits of all windows before the current one.
    hits_before: u64,
}

/// Events of a window.
#[derive(Clone, Copy, Debug, Default)]
struct CacheWindow {
    /// Lookup batches, and the tables that they visited.
    batches: u32,
    tables: u32,
    packets: u64,
    hits: u64,
    changes: u32,
}

impl FlowCache {
    /// An unused cache of a worker that counts as `writer`.
    pub(crate) fn new(writer: usize) -> Self {
        Self {
            writer,
            policy: CachePolicy::new(DISABLED_MAX),
            mask: None,
            entries: None,
            window: CacheWindow::default(),
            hits_before: 0,
        }
    }

    /// Uses the cache in any case.
    pub(crate) const fn force(&mut self) {
        self.policy.force();
    }

    /// Returns the key mask and the entries if the cache is used for this batch.
    #[inline]
    pub(crate) fn enabled(&mut self) -> Option<(&CacheKeyMask, &mut CacheEntries)> {
        self.mask.as_ref().zip(self.entries.as_mut())
    }

    /// Begins a batch.
    #[inline]
    pub(crate) fn begin(&mut self, view: &View, pipeline: &Pipeline, now: Instant) {
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
        if is_clean && !self.policy.is_used() {
            return;
        }
        let is_stale = !self.mask.as_ref().is_some_and(|mask| mask.is_of(view));
        if is_stale && self.policy.is_used() {
            self.reset(view, pipeline);
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
            .is_some_and(CacheEntries::has_pending_stats)
    }

    /// Counts a lookup batch that visited so many tables.
    #[inline]
    pub(crate) const fn count_batch(&mut self, tables: u32) {
        self.window.batches += 1;
        self.window.tables += tables;
    }

    /// Counts packets that were looked up in the cache, and those that missed.
    #[inline]
    pub(crate) const fn count_lookups(&mut self, packets: BatchMask, missed: BatchMask) {
        self.window.packets += packets.len() as u64;
        self.window.hits += packets.difference(missed).len() as u64;
    }

    /// Returns the number of lookups that have hit so far.
    #[inline]
    pub(crate) const fn hits(&self) -> u64 {
        self.hits_before + self.window.hits
    }

    /// Decides the state for the next window.
    #[cold]
    fn end_window(&mut self) {
        let window = std::mem::take(&mut self.window);
        self.hits_before += window.hits;
        let has_many_tables = window.tables >= TABLES_MIN * window.batches;
        let hits = WindowHits {
            packets: window.packets,
            full: window.hits,
            found: window.hits,
        };
        if self.policy.end_window(has_many_tables, hits) {
            self.clear();
        }
    }

    fn disable(&mut self) {
        if self.policy.disable() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.mask = None;
        if let Some(entries) = &mut self.entries {
            entries.clear();
        }
    }

    /// Empties the cache and prepares it for a view.
    #[cold]
    fn reset(&mut self, view: &View, pipeline: &Pipeline) {
        self.window.changes += 1;
        if self.window.changes > CHANGES_MAX && !self.policy.is_forced() {
            self.disable();
            return;
        }
        let entries = self
            .entries
            .get_or_insert_with(|| CacheEntries::new(self.writer));
        entries.reset(view, pipeline);
        self.mask = CacheKeyMask::of(view);
        if self.mask.is_none() && !self.policy.is_forced() {
            self.disable();
        }
    }
}

impl Drop for FlowCache {
    /// Adds pending statistics, so that none are lost.
    fn drop(&mut self) {
        self.flush_stats();
    }
}

#[cfg(test)]
mod tests;

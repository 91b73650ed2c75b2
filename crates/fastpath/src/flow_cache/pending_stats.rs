//! Pending statistics of the flow cache: packets that hit an entry and are not yet counted by the
//! rules and tables of the entry (Open vSwitch: the statistics of megaflows before `revalidate`).
//! They are added some entries for each batch, within the time given here, or all together before
//! exact counts are required.

use std::time::Duration;

use base::{Instant, TableId};
use pipeline::{Counters, Pipeline, Totals};

use super::entries::{CACHED_RULES_MAX, CacheEntries, CachedEgress, CachedRules, ENTRIES};
use crate::batch_stats::{TableBatchStats, add};
use crate::classifier::View;

/// Interval after which pending statistics are due.
pub(super) const FLUSH_INTERVAL: Duration = Duration::from_millis(4);

/// Entries that are flushed before each batch, once they are due.
pub(super) const FLUSHED_PER_BATCH: usize = 32;

/// Lists of the entries with pending statistics.
#[derive(Debug)]
pub(super) struct PendingStats {
    writer: usize,
    /// Entries that were hit since the last interval began. No entry is in both lists, or twice
    /// in one.
    fresh: Vec<u16>,
    /// Entries that are due.
    due: Vec<u16>,
    /// End of the interval.
    next: Instant,
    /// Counters of lookups and of matches, by table number.
    tables: Vec<Option<(Counters, Counters)>>,
    table_stats: TableBatchStats,
}

impl PendingStats {
    /// Empty lists, without tables.
    pub(super) fn new(writer: usize) -> Self {
        Self {
            writer,
            fresh: Vec::with_capacity(ENTRIES),
            due: Vec::with_capacity(ENTRIES),
            next: Instant::START,
            tables: Vec::new(),
            table_stats: TableBatchStats::new(),
        }
    }

    /// Lists an entry.
    #[cold]
    pub(super) fn list(&mut self, index: usize) {
        let index = u16::try_from(index).expect("an entry has a number of 16 bits");
        self.fresh.push(index);
    }
}

const _: () = assert!(
    ENTRIES <= 1 << u16::BITS,
    "an entry has a number of 16 bits"
);

/// Sum of the rules with the same position in several entries: mostly the same rule, or a different
/// one in each.
#[derive(Clone, Copy)]
struct PendingSum<'t> {
    counters: &'t Counters,
    table: TableId,
    totals: Totals,
    used: Instant,
}

/// A flush in progress.
struct StatsFlush<'t> {
    writer: usize,
    /// By position of the rule.
    sums: [Option<PendingSum<'t>>; CACHED_RULES_MAX],
    /// Time of the last packet.
    used: Instant,
    tables: &'t mut TableBatchStats,
}

impl<'t> StatsFlush<'t> {
    fn add_sum(&mut self, sum: PendingSum<'_>) {
        let PendingSum { totals, used, .. } = sum;
        sum.counters.add_until(self.writer, totals, used);
        self.tables.count_lookups(sum.table, totals);
    }

    /// Takes the totals of an entry and adds them to the sums of its rules.
    fn take_entry(&mut self, egress: &mut CachedEgress, rules: &'t CachedRules) {
        let totals = std::mem::take(&mut egress.totals);
        egress.is_listed = false;
        self.used = self.used.max(egress.used);
        for (position, (counters, table)) in rules.counters().enumerate() {
            if let Some(sum) = &mut self.sums[position]
                && sum.counters.is_same_as(counters)
            {
                add(&mut sum.totals, totals);
                sum.used = sum.used.max(egress.used);
                continue;
            }
            let sum = PendingSum {
                counters,
                table,
                totals,
                used: egress.used,
            };
            if let Some(previous) = self.sums[position].replace(sum) {
                self.add_sum(previous);
            }
        }
    }

    /// Adds the remaining sums. Returns the time of the last packet.
    fn finish(mut self) -> Instant {
        let sums = std::mem::replace(&mut self.sums, [None; CACHED_RULES_MAX]);
        sums.into_iter().flatten().for_each(|sum| self.add_sum(sum));
        self.used
    }
}

impl CacheEntries {
    /// Removes all entries and takes the counters of the tables of a view.
    pub(super) fn reset(&mut self, view: &View, pipeline: &Pipeline) {
        self.clear();
        let tables = (0..).zip(view.tables.iter());
        let counters = tables.map(|(id, table)| {
            let (lookups, matches) = pipeline.table_counters(TableId(id));
            table.as_ref().map(|_| (lookups.clone(), matches.clone()))
        });
        self.pending.tables = counters.collect();
    }

    /// Begins a batch: flushes some of the entries that are due.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant) {
        let PendingStats { next, due, .. } = &self.pending;
        if now >= *next || !due.is_empty() {
            self.flush_some(now);
        }
    }

    #[inline(never)]
    fn flush_some(&mut self, now: Instant) {
        let PendingStats {
            next, due, fresh, ..
        } = &mut self.pending;
        if due.is_empty() {
            std::mem::swap(due, fresh);
            *next = now + FLUSH_INTERVAL;
        }
        let remaining = due.len().saturating_sub(FLUSHED_PER_BATCH);
        self.flush_due(remaining);
    }

    /// Flushes all entries.
    #[inline]
    pub(super) fn flush_all(&mut self) {
        if self.has_pending_stats() {
            let PendingStats { due, fresh, .. } = &mut self.pending;
            due.append(fresh);
            self.flush_due(0);
        }
    }

    /// True if statistics are pending.
    #[inline]
    pub(super) fn has_pending_stats(&self) -> bool {
        let PendingStats { due, fresh, .. } = &self.pending;
        !(due.is_empty() && fresh.is_empty())
    }

    /// Flushes the entries that are due, except the first `remaining`.
    fn flush_due(&mut self, remaining: usize) {
        let mut due = std::mem::take(&mut self.pending.due);
        self.flush(&due[remaining..]);
        due.truncate(remaining);
        self.pending.due = due;
    }

    /// Flushes one entry, which stays listed.
    pub(super) fn flush_entry(&mut self, index: usize) {
        if self.egress[index].is_listed {
            let index = u16::try_from(index).expect("an entry has a number of 16 bits");
            self.flush(&[index]);
            self.egress[usize::from(index)].is_listed = true;
        }
    }

    fn flush(&mut self, entries: &[u16]) {
        let PendingStats {
            writer,
            tables,
            table_stats,
            ..
        } = &mut self.pending;
        let mut flush = StatsFlush {
            writer: *writer,
            sums: [None; CACHED_RULES_MAX],
            used: Instant::START,
            tables: table_stats,
        };
        for index in entries {
            let index = usize::from(*index) % ENTRIES;
            flush.take_entry(&mut self.egress[index], &self.rules[index]);
        }
        let used = flush.finish();
        let counters = |table: TableId| {
            let counters = tables[usize::from(table.0)].as_ref();
            let (lookups, matches) = counters.expect("the table of a cached rule has counters");
            (lookups, matches)
        };
        table_stats.flush(counters, *writer, used);
    }
}

//! Statistics of a batch, before they are added to the counters of rules and tables. Packets that
//! match the same rule or table are summed first, since those of a batch often do.

use base::{Instant, TableId};
use pipeline::{Counters, Pipeline, Rule, Totals};

/// Rules that are summed at a time. A rule whose slot is taken flushes the other one, so no
/// traffic costs more than counting each packet by itself.
const SLOTS: usize = 32;

/// Table numbers, valid or not.
const TABLES: usize = 256;

/// Sums of one batch, by rule.
#[derive(Debug)]
pub(crate) struct BatchStats<'a> {
    /// Index of the worker's cell in every counter.
    writer: usize,
    now: Instant,
    rules: [Option<RuleSum<'a>>; SLOTS],
}

/// Sum of a rule, with the table in which it was found.
#[derive(Clone, Copy, Debug)]
struct RuleSum<'a> {
    counters: &'a Counters,
    table: TableId,
    totals: Totals,
}

impl<'a> BatchStats<'a> {
    pub(crate) const fn new(writer: usize, now: Instant) -> Self {
        Self {
            writer,
            now,
            rules: [None; SLOTS],
        }
    }

    /// Counts packets for a rule that was found in `table`. The lookups of the table are counted
    /// when the sum of the rule is flushed.
    #[inline]
    pub(crate) fn count_match(
        &mut self,
        table: TableId,
        rule: &'a Rule,
        weight: Totals,
        tables: &mut TableBatchStats,
    ) {
        /// Least distance of two rules in memory.
        const RULE_SIZE: usize = 128;
        let slot = std::ptr::from_ref(rule).addr() / RULE_SIZE % SLOTS;
        match &mut self.rules[slot] {
            Some(sum) if std::ptr::eq(sum.counters, &rule.counters) => {
                add(&mut sum.totals, weight);
            }
            _ => {
                let counters = &rule.counters;
                let totals = weight;
                self.replace(
                    slot,
                    RuleSum {
                        counters,
                        table,
                        totals,
                    },
                    tables,
                );
            }
        }
    }

    /// Stores a sum in a slot and flushes the one that was there.
    #[inline]
    fn replace(&mut self, slot: usize, sum: RuleSum<'a>, tables: &mut TableBatchStats) {
        if let Some(previous) = self.rules[slot].replace(sum) {
            self.flush_sum(previous, tables);
        }
    }

    #[inline]
    fn flush_sum(&self, sum: RuleSum<'_>, tables: &mut TableBatchStats) {
        sum.counters.add(self.writer, sum.totals, self.now);
        tables.count_lookups(sum.table, sum.totals);
    }

    /// Adds all sums to the counters of rules and tables.
    pub(crate) fn flush(&mut self, tables: &mut TableBatchStats, pipeline: &Pipeline) {
        for slot in 0..SLOTS {
            if let Some(sum) = self.rules[slot].take() {
                self.flush_sum(sum, tables);
            }
        }
        let counters = |table| pipeline.table_counters(table);
        tables.flush(counters, self.writer, self.now);
    }
}

/// Sums by table.
#[derive(Debug)]
pub(crate) struct TableBatchStats {
    /// Packets looked up, and those without a match.
    sums: Box<[(Totals, Totals); TABLES]>,
    /// Tables with packets, in the order of their first.
    used: Vec<TableId>,
}

impl TableBatchStats {
    pub(crate) fn new() -> Self {
        let zero = Totals {
            packets: 0,
            bytes: 0,
        };
        Self {
            sums: Box::new([(zero, zero); TABLES]),
            used: Vec::with_capacity(TABLES),
        }
    }

    /// Counts packets that were looked up in `table`, which may have no rules.
    #[inline]
    pub(crate) fn count_lookups(&mut self, table: TableId, weight: Totals) {
        let (lookups, _) = &mut self.sums[usize::from(table.0)];
        if lookups.packets == 0 {
            self.used.push(table);
        }
        add(lookups, weight);
    }

    /// Counts packets that found no rule in `table`; their lookup is counted separately.
    pub(crate) fn count_misses(&mut self, table: TableId, weight: Totals) {
        add(&mut self.sums[usize::from(table.0)].1, weight);
    }

    /// Adds all sums to the counters of lookups and matches of each table.
    #[inline]
    pub(crate) fn flush<'c>(
        &mut self,
        counters: impl Fn(TableId) -> (&'c Counters, &'c Counters),
        writer: usize,
        now: Instant,
    ) {
        for table in self.used.drain(..) {
            let sums = &mut self.sums[usize::from(table.0)];
            let (lookups, misses) = std::mem::take(sums);
            let matches = Totals {
                packets: lookups.packets.wrapping_sub(misses.packets),
                bytes: lookups.bytes.wrapping_sub(misses.bytes),
            };
            let counters = counters(table);
            counters.0.add(writer, lookups, now);
            if matches.packets > 0 {
                counters.1.add(writer, matches, now);
            }
        }
    }
}

#[inline]
pub(crate) const fn add(sum: &mut Totals, more: Totals) {
    sum.packets = sum.packets.wrapping_add(more.packets);
    sum.bytes = sum.bytes.wrapping_add(more.bytes);
}

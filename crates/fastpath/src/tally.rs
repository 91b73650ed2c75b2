//! What a batch has counted and not yet written down: frames that count for the same
//! rule or table are added up before, since a batch's frames often do.

use base::{Instant, TableId};
use pipeline::{Counters, Pipeline, Rule, Totals};

/// Rules that are added up at a time. One that finds its place taken has what stands
/// there written down: so no traffic costs more than to count each frame by itself.
const PLACES: usize = 32;

/// Numbers that tables can have, and those that none has.
const TABLES: usize = 256;

/// The counts of a batch.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    writer: usize,
    now: Instant,
    rules: [Option<Sum<'a>>; PLACES],
}

/// What a rule, found in a table, has counted.
#[derive(Clone, Copy, Debug)]
struct Sum<'a> {
    counters: &'a Counters,
    table: TableId,
    totals: Totals,
}

impl<'a> Tally<'a> {
    /// Nothing counted yet.
    pub(crate) const fn new(writer: usize, now: Instant) -> Self {
        Self {
            writer,
            now,
            rules: [None; PLACES],
        }
    }

    /// A frame for this rule, which was found in this table. Of the table it is noted when
    /// the rule's sum is.
    #[inline]
    pub(crate) fn found(
        &mut self,
        table: TableId,
        rule: &'a Rule,
        weight: Totals,
        tables: &mut TableTally,
    ) {
        /// A rule and what the allocator puts beside it take so many bytes at least.
        const APART: usize = 128;
        let place = std::ptr::from_ref(rule).addr() / APART % PLACES;
        match &mut self.rules[place] {
            Some(sum) if std::ptr::eq(sum.counters, &rule.counters) => {
                add(&mut sum.totals, weight);
            }
            _ => {
                let counters = &rule.counters;
                let totals = weight;
                self.replace(
                    place,
                    Sum {
                        counters,
                        table,
                        totals,
                    },
                    tables,
                );
            }
        }
    }

    /// Has what stands in a place written down, and puts this there.
    #[inline]
    fn replace(&mut self, place: usize, sum: Sum<'a>, tables: &mut TableTally) {
        if let Some(before) = self.rules[place].replace(sum) {
            self.note(before, tables);
        }
    }

    #[inline]
    fn note(&self, sum: Sum<'_>, tables: &mut TableTally) {
        sum.counters.add(self.writer, sum.totals, self.now);
        tables.looked_up(sum.table, sum.totals);
    }

    /// Writes all down.
    pub(crate) fn settle(&mut self, tables: &mut TableTally, pipeline: &Pipeline) {
        for place in 0..PLACES {
            if let Some(sum) = self.rules[place].take() {
                self.note(sum, tables);
            }
        }
        let counters = |table| pipeline.table_counters(table);
        tables.settle(counters, self.writer, self.now);
    }
}

/// The counts of tables.
#[derive(Debug)]
pub(crate) struct TableTally {
    /// Frames looked up, and those that found no rule.
    sums: Box<[(Totals, Totals); TABLES]>,
    /// Which tables have any, in the order in which they came.
    touched: Vec<TableId>,
}

impl TableTally {
    /// Nothing counted yet.
    pub(crate) fn new() -> Self {
        let nothing = Totals {
            packets: 0,
            bytes: 0,
        };
        Self {
            sums: Box::new([(nothing, nothing); TABLES]),
            touched: Vec::with_capacity(TABLES),
        }
    }

    /// A frame looked up in `table`, there or not.
    #[inline]
    pub(crate) fn looked_up(&mut self, table: TableId, weight: Totals) {
        let (looked_up, _) = &mut self.sums[usize::from(table.0)];
        if looked_up.packets == 0 {
            self.touched.push(table);
        }
        add(looked_up, weight);
    }

    /// It found no rule there.
    pub(crate) fn missed(&mut self, table: TableId, weight: Totals) {
        add(&mut self.sums[usize::from(table.0)].1, weight);
    }

    /// Writes down what was looked up, and what found a rule, in these counters of each table.
    #[inline]
    pub(crate) fn settle<'c>(
        &mut self,
        counters: impl Fn(TableId) -> (&'c Counters, &'c Counters),
        writer: usize,
        now: Instant,
    ) {
        for table in self.touched.drain(..) {
            let sums = &mut self.sums[usize::from(table.0)];
            let (looked_up, missed) = std::mem::take(sums);
            let matched = Totals {
                packets: looked_up.packets.wrapping_sub(missed.packets),
                bytes: looked_up.bytes.wrapping_sub(missed.bytes),
            };
            let counters = counters(table);
            counters.0.add(writer, looked_up, now);
            if matched.packets > 0 {
                counters.1.add(writer, matched, now);
            }
        }
    }
}

#[inline]
pub(crate) const fn add(sum: &mut Totals, more: Totals) {
    sum.packets = sum.packets.wrapping_add(more.packets);
    sum.bytes = sum.bytes.wrapping_add(more.bytes);
}

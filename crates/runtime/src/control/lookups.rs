//! Measured lookup times of tables: frames that match a table's rules are looked up in the workers'
//! current program, by the requesting thread. Neither the workers nor the control thread are
//! delayed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use base::TableId;
use fastpath::{LookupProbe, TableDescription};

use crate::clock::Clock;
use dataplane::program::{BridgeId, Program};

/// Groups of frames between two reads of the clock: a read takes as long as a lookup or two, which
/// must not matter.
const GROUPS_PER_SAMPLE: usize = 8;

/// Samples for each table: some thousand frames, so that most rules of a large table are not in the
/// L1 or L2 cache, and the deciles are meaningful.
const SAMPLES: usize = 64;

/// The time limit for all tables; those left have no measured cost.
const TIME_MAX: Duration = Duration::from_millis(100);

/// The time of a lookup, in tenths of a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LookupCost {
    median: u64,
    /// The first and the ninth decile.
    low: u64,
    high: u64,
}

impl LookupCost {
    /// Returns the cost for samples of `frames` frames each, in nanoseconds; none without samples.
    fn of(mut nanos: Vec<u64>, frames: usize) -> Option<Self> {
        nanos.sort_unstable();
        let tenth = |tenths: usize| {
            let nanos = nanos.get((nanos.len().checked_sub(1)? * tenths) / 10)?;
            Some(nanos * 10 / frames as u64)
        };
        Some(Self {
            median: tenth(5)?,
            low: tenth(1)?,
            high: tenth(9)?,
        })
    }
}

impl std::fmt::Display for LookupCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanos = |tenths: u64| format!("{}.{}", tenths / 10, tenths % 10);
        let (median, low, high) = (self.median, self.low, self.high);
        f.pad(&format!(
            "{} ({}-{})",
            nanos(median),
            nanos(low),
            nanos(high)
        ))
    }
}

/// The tables to measure.
pub(super) struct LookupReport {
    /// The workers' current program.
    pub(super) program: Arc<Program>,
    /// The bridge of the tables.
    pub(super) bridge: BridgeId,
    /// The lookup form of each table.
    pub(super) tables: Vec<TableDescription>,
    /// The clock.
    pub(super) clock: Clock,
}

impl LookupReport {
    /// Measures the tables and formats the report.
    pub(super) fn report(self) -> String {
        let costs = self.measure();
        let mut text =
            "table      rules      bytes   cost         ns a lookup  form, and why\n".to_owned();
        for table in self.tables {
            let or_none = |cost: Option<String>| cost.unwrap_or_else(|| "-".to_owned());
            let cost = or_none(table.cost.map(|cost| cost.to_string()));
            let nanos = or_none(costs.get(&table.table).map(LookupCost::to_string));
            let (id, rules, bytes) = (table.table.0, table.rules, table.bytes);
            let (form, why) = (table.form, table.why);
            writeln!(
                text,
                "{id:>5} {rules:>10} {bytes:>10} {cost:>6} {nanos:>19}  {form}: {why}"
            )
            .expect("a string has room");
        }
        text
    }

    fn measure(&self) -> BTreeMap<TableId, LookupCost> {
        let start = self.clock.now();
        let tables = self.tables.iter().map(|table| table.table);
        let timely = tables.take_while(|_| self.clock.now() - start < TIME_MAX);
        let costs = timely.filter_map(|table| Some((table, self.cost_of(table)?)));
        costs.collect()
    }

    /// Returns the lookup cost of a table, if it is published and has a lookup form.
    fn cost_of(&self, table: TableId) -> Option<LookupCost> {
        let bridge = self.program.bridge(self.bridge)?;
        let rules: Vec<_> = bridge.pipeline.rules(table).map(AsRef::as_ref).collect();
        let groups = SAMPLES * GROUPS_PER_SAMPLE;
        let probe = LookupProbe::new(&bridge.compiled, table, rules.into_iter(), groups)?;
        let time = |sample: usize| {
            let first = sample * GROUPS_PER_SAMPLE;
            let start = self.clock.now();
            black_box(probe.run(first..first + GROUPS_PER_SAMPLE));
            let elapsed = self.clock.now() - start;
            u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
        };
        // The first run warms the instruction cache.
        black_box(time(0));
        let nanos = (0..SAMPLES).map(time).collect();
        LookupCost::of(nanos, GROUPS_PER_SAMPLE * LookupProbe::BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_cost_is_median_and_outer_deciles() {
        let nanos: Vec<_> = (0..=10).rev().map(|place| 1000 + 100 * place).collect();
        let cost = LookupCost::of(nanos, 100).expect("there are times");
        assert_eq!(cost.to_string(), "15.0 (11.0-19.0)");
        assert_eq!(format!("{cost:>18}"), "  15.0 (11.0-19.0)");
        let one = LookupCost::of(vec![1234], 10).expect("there is one");
        assert_eq!(one.to_string(), "123.4 (123.4-123.4)");
        assert_eq!(LookupCost::of(Vec::new(), 10), None);
    }
}

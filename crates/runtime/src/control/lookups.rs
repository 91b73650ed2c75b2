//! What lookups in a table really take, for a person who asks: frames that its rules want are
//! looked up in what workers run now, by the thread of the one who asks. No worker is
//! slowed or asked, and the control thread goes on.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use base::TableId;
use fastpath::{LookupProbe, TableDescription};

use crate::clock::Clock;
use dataplane::program::{BridgeId, Program};

/// Groups of frames that are looked up between two looks at the clock: a look takes as long
/// as a lookup or two, and is to be nothing beside them.
const TOGETHER: usize = 8;

/// Times of so many groups together are taken of each table: some thousand frames, so that of
/// a large table most rules are not in a cache of the first levels, and their tenths mean something.
const SAMPLES: usize = 64;

/// How long all tables may take. Of what is left then none is told.
const TIME_MAX: Duration = Duration::from_millis(100);

/// What a lookup takes, in tenths of a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    median: u64,
    /// A tenth of the samples is below, and a tenth above.
    low: u64,
    high: u64,
}

impl Cost {
    /// Of the times of so many frames each, in nanoseconds; none without times.
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

impl std::fmt::Display for Cost {
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

/// Tables that are to be told of.
pub(super) struct Lookups {
    /// What workers run.
    pub(super) program: Arc<Program>,
    /// The bridge whose tables they are.
    pub(super) bridge: BridgeId,
    /// How they find their rules.
    pub(super) tables: Vec<TableDescription>,
    /// Tells the time.
    pub(super) clock: Clock,
}

impl Lookups {
    /// Measures, and tells all.
    pub(super) fn tell(self) -> String {
        let costs = self.measure();
        let mut text =
            "table      rules      bytes   cost         ns a lookup  form, and why\n".to_owned();
        for table in self.tables {
            let or_none = |cost: Option<String>| cost.unwrap_or_else(|| "-".to_owned());
            let cost = or_none(table.cost.map(|cost| cost.to_string()));
            let nanos = or_none(costs.get(&table.table).map(Cost::to_string));
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

    fn measure(&self) -> BTreeMap<TableId, Cost> {
        let start = self.clock.now();
        let tables = self.tables.iter().map(|table| table.table);
        let in_time = tables.take_while(|_| self.clock.now() - start < TIME_MAX);
        let costs = in_time.filter_map(|table| Some((table, self.cost_of(table)?)));
        costs.collect()
    }

    /// What a lookup in a table takes, if workers have it and find rules there by a form.
    fn cost_of(&self, table: TableId) -> Option<Cost> {
        let bridge = self.program.bridge(self.bridge)?;
        let rules: Vec<_> = bridge.pipeline.rules(table).map(AsRef::as_ref).collect();
        let groups = SAMPLES * TOGETHER;
        let probe = LookupProbe::new(&bridge.compiled, table, rules.into_iter(), groups)?;
        let time = |sample: usize| {
            let first = sample * TOGETHER;
            let start = self.clock.now();
            black_box(probe.run(first..first + TOGETHER));
            let took = self.clock.now() - start;
            u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
        };
        // The first is for the code to be near.
        black_box(time(0));
        let nanos = (0..SAMPLES).map(time).collect();
        Cost::of(nanos, TOGETHER * LookupProbe::BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_median_and_the_tenths_of_its_times() {
        let nanos: Vec<_> = (0..=10).rev().map(|place| 1000 + 100 * place).collect();
        let cost = Cost::of(nanos, 100).expect("there are times");
        assert_eq!(cost.to_string(), "15.0 (11.0-19.0)");
        assert_eq!(format!("{cost:>18}"), "  15.0 (11.0-19.0)");
        let one = Cost::of(vec![1234], 10).expect("there is one");
        assert_eq!(one.to_string(), "123.4 (123.4-123.4)");
        assert_eq!(Cost::of(Vec::new(), 10), None);
    }
}

//! A telemetry snapshot of the switch. The control thread takes it of its own state; counters and
//! tables, which may be large, are read by the requesting thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use base::{Instant, TableId};
use conntrack::{Conntrack, CtCounter, CtZone};
use control_api::telemetry::{
    ConntrackTelemetry, Counts, RuleTelemetry, TableTelemetry, Telemetry, WorkerTelemetry,
};
use dataplane::counters::WorkerCounters;
use l2::fdb::FdbView;
use pipeline::{Pipeline, Rule};

use super::process;

/// A rule without frames for this time is not among the busiest: several of the usual refresh
/// intervals.
const RECENT: Duration = Duration::from_secs(10);

/// A snapshot of the switch; the rest is read by `finish`.
pub(crate) struct TelemetrySnapshot {
    /// The part that is the control thread's own state.
    pub(crate) telemetry: Telemetry,
    /// The core and the counters of each worker.
    pub(crate) workers: Vec<(usize, Arc<WorkerCounters>)>,
    /// The tables and the forwarding database of each bridge.
    pub(crate) bridges: Vec<(Pipeline, FdbView)>,
    /// The connection trackers.
    pub(crate) trackers: Vec<Arc<Conntrack>>,
    /// The time of the snapshot.
    pub(crate) now: Instant,
    /// The number of busiest rules to report of each bridge.
    pub(crate) busiest: usize,
}

impl TelemetrySnapshot {
    /// Reads the counters and tables.
    pub(crate) fn finish(self) -> Telemetry {
        let mut telemetry = self.telemetry;
        telemetry.process = process::telemetry();
        telemetry.workers = self.workers.iter().map(worker).collect();
        telemetry.conntrack = conntrack(&self.trackers);
        let both = telemetry.bridges.iter_mut().zip(&self.bridges);
        for (bridge, (pipeline, stations)) in both {
            bridge.stations = stations.iter().count() as u64;
            bridge.rules = pipeline.len() as u64;
            bridge.tables = tables(pipeline);
            bridge.busiest = busiest(pipeline, self.busiest, self.now);
        }
        telemetry
    }
}

fn worker((core, counters): &(usize, Arc<WorkerCounters>)) -> WorkerTelemetry {
    let work = counters.usage();
    WorkerTelemetry {
        core: *core,
        busy_ns: u64::try_from(work.busy.as_nanos()).unwrap_or(u64::MAX),
        batches: work.batches,
        frames: work.frames,
        drops: not_zero(counters.drops()),
        interpreted: not_zero(counters.slow_path_by_reason()),
    }
}

/// Returns the sums of all trackers.
fn conntrack(trackers: &[Arc<Conntrack>]) -> ConntrackTelemetry {
    let sum = |read: &dyn Fn(&Conntrack) -> u64| -> u64 {
        trackers.iter().map(|tracker| read(tracker)).sum()
    };
    let counts = CtCounter::ALL.into_iter();
    let counts = counts.map(|(counter, name)| (name, sum(&|tracker| tracker.counter(counter))));
    let connections = sum(&|tracker| tracker.len().into());
    let zones = (0..=u16::MAX).filter(|_| connections > 0);
    let zones = zones.map(|zone| (zone, sum(&|tracker| tracker.zone_len(CtZone(zone)).into())));
    ConntrackTelemetry {
        connections,
        connections_max: sum(&|tracker| tracker.connections_max().into()),
        zones: zones.filter(|(_, count)| *count > 0).collect(),
        counts: not_zero(counts),
    }
}

fn tables(pipeline: &Pipeline) -> Vec<TableTelemetry> {
    let statistics = pipeline.table_stats().map(|table| TableTelemetry {
        table: table.table.0,
        rules: table.active.into(),
        lookups: table.lookups,
        matches: table.matched,
    });
    statistics
        .filter(|table| table.rules > 0 || table.lookups > 0)
        .collect()
}

/// Returns the recently used rules with the most frames.
fn busiest(pipeline: &Pipeline, count: usize, now: Instant) -> Vec<RuleTelemetry> {
    let rules = || pipeline.rules(TableId::ALL);
    let mut most = BinaryHeap::with_capacity(count + 1);
    for (index, rule) in rules().enumerate() {
        let packets = rule.totals().packets;
        if packets > 0 && now - rule.last_used() <= RECENT {
            most.push((Reverse(packets), index));
            if most.len() > count {
                most.pop();
            }
        }
    }
    let mut indices: Vec<_> = most.into_iter().map(|(_, index)| index).collect();
    indices.sort_unstable();
    let mut indices = indices.into_iter().peekable();
    let chosen = rules()
        .enumerate()
        .filter(|(index, _)| indices.next_if_eq(index).is_some());
    let mut statistics: Vec<_> = chosen.map(|(_, rule)| rule_telemetry(rule, now)).collect();
    statistics.sort_by_key(|rule| Reverse(rule.packets));
    statistics
}

fn rule_telemetry(rule: &Rule, now: Instant) -> RuleTelemetry {
    let statistics = rule.statistics(now);
    RuleTelemetry {
        table: statistics.table.0,
        priority: statistics.priority,
        cookie: statistics.cookie.0,
        matching: statistics.matching.to_string(),
        actions: statistics.instructions.to_string(),
        packets: statistics.packets,
        bytes: statistics.bytes,
    }
}

/// Returns the counters that are not zero, by name.
pub(crate) fn not_zero(counts: impl Iterator<Item = (&'static str, u64)>) -> Counts {
    let mut sums = Counts::new();
    for (name, count) in counts.filter(|(_, count)| *count > 0) {
        *sums.entry(name.to_owned()).or_default() += count;
    }
    sums
}

//! Telemetry of the switch. The control thread takes a snapshot of its own state; counters and
//! tables, which may be large, are read by the requesting thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use base::{Instant, TableId};
use flow::Role;
use pipeline::{Pipeline, Rule};
use ports::{Counter, QueueCounts};

use super::bridge_runtime::{BridgeRuntime, PortRuntime};
use super::commands::DeferredAnswer;
use super::{Control, bridge_counters};
use crate::process;
use control_api::telemetry::{
    BridgeTelemetry, ControllerTelemetry, PortTelemetry, RuleTelemetry, TableTelemetry, Telemetry,
    WorkerTelemetry,
};
use dataplane::counters::WorkerCounters;
use l2::fdb::FdbView;
use switch::bridge::PortEntry;

/// The limit of reported rules of a bridge: several terminal screens.
const BUSIEST_MAX: usize = 1000;

/// A rule without frames for this time is not among the busiest: several of the usual refresh
/// intervals.
const RECENT: Duration = Duration::from_secs(10);

/// A telemetry snapshot; the rest is read by `finish`.
pub(crate) struct TelemetrySnapshot {
    telemetry: Telemetry,
    workers: Vec<(usize, Arc<WorkerCounters>)>,
    /// The tables and the forwarding database of each bridge.
    bridges: Vec<(Pipeline, FdbView)>,
    now: Instant,
    busiest: usize,
}

impl Control {
    /// Takes a snapshot, with the `busiest` busiest rules of each bridge.
    pub(super) fn gather(&self, busiest: usize) -> TelemetrySnapshot {
        let now = self.now();
        let counts = self.counters.read().into_iter();
        let mut sites: Vec<_> = self.sites.values().collect();
        sites.sort_by_key(|site| site.bridge.name());
        let snapshot = |site: &&BridgeRuntime| (site.bridge.rules(), site.bridge.fdb().view());
        let workers = self.tools.workers.iter();
        TelemetrySnapshot {
            telemetry: Telemetry {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                uptime_ns: now.as_nanos(),
                control: not_zero(counts),
                bridges: sites.iter().map(|site| bridge(site)).collect(),
                ..Telemetry::default()
            },
            workers: workers
                .map(|worker| (worker.core, Arc::clone(&worker.counters)))
                .collect(),
            bridges: sites.iter().map(snapshot).collect(),
            now,
            busiest: busiest.min(BUSIEST_MAX),
        }
    }
}

/// Returns the telemetry as JSON; the argument is the number of busiest rules.
pub(super) fn telemetry(
    control: &mut Control,
    arguments: &[String],
) -> Result<DeferredAnswer, String> {
    let busiest = match arguments {
        [] => 0,
        [count, ..] => count
            .parse()
            .map_err(|_| format!("{count}: not a number of rules"))?,
    };
    let gathered = control.gather(busiest);
    Ok(Box::new(move || {
        serde_json::to_string(&gathered.finish()).expect("it is made of names and numbers")
    }))
}

impl TelemetrySnapshot {
    /// Reads the counters and tables.
    pub(crate) fn finish(self) -> Telemetry {
        let mut telemetry = self.telemetry;
        telemetry.process = process::telemetry();
        telemetry.workers = self.workers.iter().map(worker).collect();
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

fn bridge(site: &BridgeRuntime) -> BridgeTelemetry {
    let counts = bridge_counters(&site.bridge);
    let entries: Vec<_> = site.bridge.ports().collect();
    let entry = |number| entries.iter().find(|(of, _)| *of == number);
    let ports = site.ports.iter().map(|(number, of)| {
        let entry = entry(*number).map(|(_, entry)| *entry);
        PortTelemetry {
            number: number.to_string(),
            ..port(of, entry)
        }
    });
    let controllers = site.controllers.keys().map(|target| {
        let target = target.to_string();
        ControllerTelemetry {
            role: site
                .bridge
                .role_of(&target)
                .map(|role| word(role).to_owned()),
            target,
        }
    });
    BridgeTelemetry {
        name: site.bridge.name().to_owned(),
        datapath_id: format!("{:016x}", site.bridge.datapath_id().0),
        counts: not_zero(counts),
        ports: ports.collect(),
        controllers: controllers.collect(),
        ..BridgeTelemetry::default()
    }
}

/// Returns the telemetry of a port; `entry` exists only if the port is open.
fn port(site: &PortRuntime, entry: Option<&PortEntry>) -> PortTelemetry {
    const NAMED: [Counter; 4] = [
        Counter::RxPackets,
        Counter::RxBytes,
        Counter::TxPackets,
        Counter::TxBytes,
    ];
    let status = site.device.as_ref().map(|device| device.status());
    let counts = entry.map_or_else(QueueCounts::default, PortEntry::counts);
    let others = Counter::ALL
        .into_iter()
        .filter(|(counter, _)| !NAMED.contains(counter))
        .map(|(counter, name)| (name, counts[counter]));
    PortTelemetry {
        number: String::new(),
        name: site.spec.name.to_string(),
        up: status.as_ref().is_some_and(|status| status.up),
        carrier: status.as_ref().is_some_and(|status| status.carrier),
        rx_packets: counts[Counter::RxPackets],
        rx_bytes: counts[Counter::RxBytes],
        tx_packets: counts[Counter::TxPackets],
        tx_bytes: counts[Counter::TxBytes],
        rx_dropped: counts.rx_dropped(),
        tx_dropped: counts.tx_dropped(),
        counts: not_zero(others.chain(site.packet_in_counts())),
    }
}

const fn word(role: Role) -> &'static str {
    match role {
        Role::Equal => "other",
        Role::Master => "master",
        Role::Slave => "slave",
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

fn not_zero(counts: impl Iterator<Item = (&'static str, u64)>) -> control_api::telemetry::Counts {
    let mut sums = control_api::telemetry::Counts::new();
    for (name, count) in counts.filter(|(_, count)| *count > 0) {
        *sums.entry(name.to_owned()).or_default() += count;
    }
    sums
}

//! `dpif-netdev/*`: commands of the PMD threads (ovs-vswitchd(8), "DPIF-NETDEV COMMANDS"). Each
//! worker is one. Values that are not measured are omitted or marked.

use std::fmt::Write;

use ports::{Counter, QueueCounts};

use super::Answer::Immediate;
use super::datapath::sites_of;
use super::{Command, dpctl};
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 6] = [
    Command { name: "dpif-netdev/pmd-perf-log-set", usage: "on|off [-b before] [-a after] [-e|-ne] [-us usec] [-q qlen]", least: 0, most: 10, answer: Immediate(no_log) },
    Command { name: "dpif-netdev/pmd-perf-show", usage: "[-nh] [-it iter-history-len] [-ms ms-history-len] [-pmd core] [dp]", least: 0, most: 8, answer: Immediate(perf) },
    Command { name: "dpif-netdev/pmd-rxq-rebalance", usage: "[dp]", least: 0, most: 1, answer: Immediate(rebalance) },
    Command { name: "dpif-netdev/pmd-rxq-show", usage: "[-pmd core] [-secs secs] [dp]", least: 0, most: 5, answer: Immediate(queues) },
    Command { name: "dpif-netdev/pmd-stats-clear", usage: "[-pmd core] [dp]", least: 0, most: 3, answer: Immediate(clear) },
    Command { name: "dpif-netdev/pmd-stats-show", usage: "[-pmd core] [dp]", least: 0, most: 3, answer: Immediate(stats) },
];

/// The counters of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerTotals {
    received: u64,
    sent: u64,
    flow_cache_hits: u64,
    slow_path: u64,
}

impl WorkerTotals {
    const fn since(self, before: Self) -> Self {
        Self {
            received: self.received.saturating_sub(before.received),
            sent: self.sent.saturating_sub(before.sent),
            flow_cache_hits: self.flow_cache_hits.saturating_sub(before.flow_cache_hits),
            slow_path: self.slow_path.saturating_sub(before.slow_path),
        }
    }

    /// Returns the number of packets that the compiled tables handled without the flow cache. A
    /// packet of several bridges may hit the cache in each, so this may be too small.
    const fn megaflow_hits(self) -> u64 {
        let others = self.slow_path + self.flow_cache_hits;
        self.received.saturating_sub(others)
    }
}

/// Returns the requested core, if any. Of the other arguments only the datapath's name is checked:
/// single iterations are not recorded.
fn core_of(control: &Control, arguments: &[String]) -> Result<Option<usize>, String> {
    let mut core = None;
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-pmd" => {
                let read = words.next().and_then(|core| core.parse().ok());
                core = Some(read.ok_or("-pmd: name a core")?);
            }
            "-it" | "-ms" | "-secs" => drop(words.next()),
            "-nh" => {}
            name if dpctl::is_datapath(control, name) => {}
            _ => return Err("please specify an existing datapath".to_owned()),
        }
    }
    if control.sites.is_empty() {
        return Err("please specify an existing datapath".to_owned());
    }
    Ok(core)
}

/// Returns the counters of all workers since the start, in their order.
fn totals(control: &Control) -> Vec<WorkerTotals> {
    let workers = control.tools.workers.iter().enumerate();
    let count = |index: usize| {
        let ports = control.sites.values().flat_map(|site| site.ports.values());
        let queues_of_workers = ports.filter_map(|port| port.queues_of_workers.get(index));
        queues_of_workers.fold(QueueCounts::default(), |sum, worker_queue| {
            sum + worker_queue.counters.read()
        })
    };
    let totals = workers.map(|(index, worker)| {
        let counts = count(index);
        WorkerTotals {
            received: counts[Counter::RxPackets],
            sent: counts[Counter::TxPackets],
            flow_cache_hits: worker.counters.flow_cache_hits(),
            slow_path: worker.counters.slow_path_packets(),
        }
    });
    totals.collect()
}

/// Formats the counters of each requested worker since the last `pmd-stats-clear`.
fn format_workers(
    control: &Control,
    arguments: &[String],
    line: fn(&mut String, WorkerTotals) -> std::fmt::Result,
) -> Result<String, String> {
    let core = core_of(control, arguments)?;
    let mut text = String::new();
    for (index, totals) in totals(control).into_iter().enumerate() {
        let worker = &control.tools.workers[index];
        if core.is_some_and(|core| core != worker.core) {
            continue;
        }
        let before = control
            .commands
            .cleared
            .get(index)
            .copied()
            .unwrap_or_default();
        text += &title(worker.core);
        line(&mut text, totals.since(before)).expect("a string has room");
    }
    Ok(text)
}

fn title(core: usize) -> String {
    format!("pmd thread numa_id {} core_id {core}:\n", numa_of(core))
}

/// Returns the NUMA node of a core (sysfs-devices-system-cpu); the first if it has none.
fn numa_of(core: usize) -> usize {
    let entries = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{core}"));
    let names = entries.into_iter().flatten().flatten();
    let node = |name: std::ffi::OsString| name.to_str()?.strip_prefix("node")?.parse().ok();
    let mut nodes = names.filter_map(|entry| node(entry.file_name()));
    nodes.next().unwrap_or(0)
}

fn stats(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    format_workers(control, arguments, write_stats)
}

fn write_stats(text: &mut String, totals: WorkerTotals) -> std::fmt::Result {
    writeln!(
        text,
        "  packets received: {}\n  packet recirculations: 0\n  phwol hits: 0\n  mfex opt hits: 0\n  \
         simple match hits: 0\n  emc hits: {}\n  smc hits: 0\n  megaflow hits: {}\n  \
         miss with success upcall: {}\n  miss with failed upcall: 0",
        totals.received,
        totals.flow_cache_hits,
        totals.megaflow_hits(),
        totals.slow_path
    )
}

fn perf(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    format_workers(control, arguments, |text, totals| {
        let compiled = totals.received.saturating_sub(totals.slow_path);
        writeln!(
            text,
            "\n  Iterations: not counted\n  Rx packets:      {:>14}\n  - Megaflow hits: {compiled:>14}\n  \
             - Upcalls:       {:>14}\n  Tx packets:      {:>14}\n",
            totals.received, totals.slow_path, totals.sent
        )
    })
}

fn clear(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let core = core_of(control, arguments)?;
    let totals = totals(control);
    control
        .commands
        .cleared
        .resize(totals.len(), WorkerTotals::default());
    for (index, totals) in totals.into_iter().enumerate() {
        let is_selected = core.is_none_or(|core| core == control.tools.workers[index].core);
        if is_selected {
            control.commands.cleared[index] = totals;
        }
    }
    Ok(String::new())
}

/// Lists the ports of each worker. Their shares of its time are not measured.
fn queues(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let core = core_of(control, arguments)?;
    let mut text = "Displaying last 60 seconds pmd usage %\n".to_owned();
    let workers = control.tools.workers.iter().enumerate();
    for (index, worker) in workers.filter(|(_, worker)| core.is_none_or(|core| core == worker.core))
    {
        text += &title(worker.core);
        text += "  isolated : false\n";
        let mut lines = Vec::new();
        for (_, site) in sites_of(control) {
            for port in site.ports.values() {
                let before = port
                    .queues_of_workers
                    .iter()
                    .take(index)
                    .filter(|worker_queue| worker_queue.receives);
                let queue = before.count();
                if port
                    .queues_of_workers
                    .get(index)
                    .is_some_and(|worker_queue| worker_queue.receives)
                {
                    let name = &port.spec.name;
                    lines.push(format!(
                        "  port: {name:<16}  queue-id: {queue:>2} (enabled)   pmd usage: NOT AVAIL\n"
                    ));
                }
            }
        }
        lines.sort();
        text += &lines.concat();
        text += "  overhead: NOT AVAIL\n";
    }
    Ok(text)
}

/// Reassigns all ports according to the configuration.
fn rebalance(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    core_of(control, arguments)?;
    let bridges: Vec<_> = control.sites.keys().copied().collect();
    bridges
        .into_iter()
        .for_each(|bridge| control.assign_all(bridge));
    Ok("pmd rxq rebalance requested.\n".to_owned())
}

fn no_log(_: &mut Control, _: &[String]) -> Result<String, String> {
    Err("single iterations are not recorded".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_stats_split_compiled_packets_by_flow_cache_hits() {
        let before = WorkerTotals {
            received: 100,
            sent: 90,
            flow_cache_hits: 40,
            slow_path: 10,
        };
        let totals = WorkerTotals {
            received: 300,
            sent: 290,
            flow_cache_hits: 160,
            slow_path: 15,
        };
        let mut text = String::new();
        write_stats(&mut text, totals.since(before)).expect("a string has room");
        let expected = "  packets received: 200\n  packet recirculations: 0\n  phwol hits: 0\n  \
            mfex opt hits: 0\n  simple match hits: 0\n  emc hits: 120\n  smc hits: 0\n  \
            megaflow hits: 75\n  miss with success upcall: 5\n  miss with failed upcall: 0\n";
        assert_eq!(text, expected);
        let recirculated = WorkerTotals {
            received: 10,
            flow_cache_hits: 12,
            ..WorkerTotals::default()
        };
        assert_eq!(recirculated.megaflow_hits(), 0);
    }
}

//! `dpif-netdev/*`: commands of the PMD threads (ovs-vswitchd(8), "DPIF-NETDEV COMMANDS"). Each
//! worker is one. Values that are not measured are omitted or marked.

use std::fmt::Write;

use ports::{Counter, QueueCounts};

use super::Answer::Immediate;
use super::datapath::sites_of;
use super::{Command, dpctl};
use crate::control::Control;
use crate::control::pmd::ShownThread;
use config::PortKind;
use ports::dummy::DummyType;

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
    walk_cache_hits: u64,
    slow_path: u64,
}

impl WorkerTotals {
    const fn since(self, before: Self) -> Self {
        Self {
            received: self.received.saturating_sub(before.received),
            sent: self.sent.saturating_sub(before.sent),
            flow_cache_hits: self.flow_cache_hits.saturating_sub(before.flow_cache_hits),
            walk_cache_hits: self.walk_cache_hits.saturating_sub(before.walk_cache_hits),
            slow_path: self.slow_path.saturating_sub(before.slow_path),
        }
    }

    /// Returns the number of packets that the compiled tables handled without the caches. A packet of
    /// several bridges may hit a cache in each, so this may be too small.
    const fn megaflow_hits(self) -> u64 {
        let others = self.slow_path + self.flow_cache_hits + self.walk_cache_hits;
        self.received.saturating_sub(others)
    }
}

/// The longest time of `pmd-rxq-show`, and its steps, in seconds.
const SECS_MAX: u32 = 60;
const SECS_STEP: u32 = 5;

/// The arguments of these commands.
struct WorkerArguments {
    /// The requested core, if any.
    core: Option<usize>,
    /// The time of the load to show, in seconds.
    secs: u32,
}

impl WorkerArguments {
    /// Parses the arguments. The datapath's name is checked; single iterations are not recorded.
    fn parse(control: &Control, arguments: &[String]) -> Result<Self, String> {
        let (mut core, mut secs) = (None, SECS_MAX);
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "-pmd" => {
                    let read = words.next().and_then(|core| core.parse().ok());
                    core = Some(read.ok_or("-pmd: name a core")?);
                }
                "-secs" => {
                    let read = words.next().and_then(|secs| secs.parse().ok());
                    let read = read.filter(|secs| (1..=SECS_MAX).contains(secs));
                    secs = read.unwrap_or(SECS_MAX).next_multiple_of(SECS_STEP);
                }
                "-it" | "-ms" => drop(words.next()),
                "-nh" => {}
                name if dpctl::is_datapath(control, name) => {}
                _ => return Err("please specify an existing datapath".to_owned()),
            }
        }
        if control.sites.is_empty() {
            return Err("please specify an existing datapath".to_owned());
        }
        Ok(Self { core, secs })
    }

    fn selects(&self, core: Option<usize>) -> bool {
        self.core.is_none() || self.core == core
    }
}

/// A worker that the commands show.
struct ShownWorker {
    index: usize,
    /// The core; none for a main worker beside PMD threads.
    core: Option<usize>,
    title: String,
}

/// Returns the workers to show: the PMD threads, then the main workers. Without pretended cores,
/// each worker is a PMD thread.
fn shown_workers(control: &Control) -> Vec<ShownWorker> {
    let workers = control.tools.workers.iter().enumerate();
    let pmd = |(index, core, numa): (usize, usize, u32)| ShownWorker {
        index,
        core: Some(core),
        title: title(numa, core),
    };
    if control.has_own_pmds() {
        let threads = control.pmd.shown(0).into_iter();
        let threads = threads.map(|thread| (thread.worker, thread.core, thread.numa));
        let main = workers.filter(|(_, worker)| worker.numa.is_none());
        let main = main.map(|(index, _)| ShownWorker {
            index,
            core: None,
            title: "main thread:\n".to_owned(),
        });
        return threads.map(pmd).chain(main).collect();
    }
    let workers = workers.map(|(index, worker)| (index, worker.core, worker.numa.unwrap_or(0)));
    workers.map(pmd).collect()
}

fn title(numa: u32, core: usize) -> String {
    format!("pmd thread numa_id {numa} core_id {core}:\n")
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
            walk_cache_hits: worker.counters.walk_cache_hits(),
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
    let arguments = WorkerArguments::parse(control, arguments)?;
    let totals = totals(control);
    let mut text = String::new();
    for worker in shown_workers(control) {
        if !arguments.selects(worker.core) {
            continue;
        }
        let before = control.commands.cleared.get(worker.index).copied();
        text += &worker.title;
        let since = totals[worker.index].since(before.unwrap_or_default());
        line(&mut text, since).expect("a string has room");
    }
    Ok(text)
}

fn stats(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    format_workers(control, arguments, write_stats)
}

/// Writes the counters in Open vSwitch's words: hits of the flow cache are those of its exact-match
/// cache, and hits of the walk cache those of its signature-match cache. The lookups per hit are not counted, and are omitted
/// unless there are no hits.
fn write_stats(text: &mut String, totals: WorkerTotals) -> std::fmt::Result {
    let passes = if totals.received > 0 { 1.0 } else { 0.0 };
    let hits = totals.megaflow_hits();
    writeln!(
        text,
        "  packets received: {}\n  packet recirculations: 0\n  \
         avg. datapath passes per packet: {passes:.2}\n  phwol hits: 0\n  mfex opt hits: 0\n  \
         simple match hits: 0\n  emc hits: {}\n  smc hits: {}\n  megaflow hits: {hits}",
        totals.received, totals.flow_cache_hits, totals.walk_cache_hits,
    )?;
    if hits == 0 {
        writeln!(text, "  avg. subtable lookups per megaflow hit: 0.00")?;
    }
    writeln!(
        text,
        "  miss with success upcall: {}\n  miss with failed upcall: 0",
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
    let arguments = WorkerArguments::parse(control, arguments)?;
    let totals = totals(control);
    let cleared = &mut control.commands.cleared;
    cleared.resize(totals.len(), WorkerTotals::default());
    for worker in shown_workers(control) {
        if arguments.selects(worker.core) {
            control.commands.cleared[worker.index] = totals[worker.index];
        }
    }
    Ok(String::new())
}

/// Lists the receive queues of each thread. The share of the time that a queue takes is measured
/// for `dummy-pmd` ports only.
fn queues(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let arguments = WorkerArguments::parse(control, arguments)?;
    let mut text = format!("Displaying last {} seconds pmd usage %\n", arguments.secs);
    let intervals = arguments.secs.div_ceil(SECS_STEP) as usize;
    let threads = control.pmd.shown(intervals);
    for worker in shown_workers(control) {
        let Some(core) = worker.core.filter(|core| arguments.selects(Some(*core))) else {
            continue;
        };
        let thread = threads.iter().find(|thread| thread.core == core);
        let is_isolated = thread.is_some_and(|thread| thread.is_isolated);
        writeln!(text, "{}  isolated : {is_isolated}", worker.title).expect("a string has room");
        let mut lines = match control.has_own_pmds() {
            true => Vec::new(),
            false => worker_queues(control, worker.index),
        };
        lines.extend(thread.into_iter().flat_map(thread_queues));
        if !lines.is_empty() || thread.is_none() {
            lines.push(format!("  overhead: {}\n", overhead(thread)));
        }
        text += &lines.concat();
    }
    Ok(text)
}

/// Returns the lines of a thread's queues.
fn thread_queues<'a>(thread: &'a ShownThread<'_>) -> impl Iterator<Item = String> + 'a {
    let queues = thread.queues.iter();
    queues.map(|(port, queue, busy)| queue_line(port, *queue, &share(*busy, thread.total)))
}

fn queue_line(port: &str, queue: usize, usage: &str) -> String {
    format!("  port: {port:<16}  queue-id: {queue:>2} (enabled)   pmd usage: {usage}\n")
}

/// Returns the time that a thread spent on frames of no queue here.
fn overhead(thread: Option<&ShownThread<'_>>) -> String {
    let Some(thread) = thread else {
        return share(0, None);
    };
    let of_queues: u64 = thread.queues.iter().map(|(_, _, busy)| busy).sum();
    share(thread.busy.saturating_sub(of_queues), thread.total)
}

/// Returns a share in percent.
fn share(part: u64, total: Option<u64>) -> String {
    match total.filter(|total| *total > 0) {
        Some(total) => format!("{:2} %", part.min(total) * 100 / total),
        None => "NOT AVAIL".to_owned(),
    }
}

/// Returns the lines of the queues of a worker, apart from those of `dummy-pmd` ports.
fn worker_queues(control: &Control, index: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, site) in sites_of(control) {
        for port in site.ports.values() {
            let queues = &port.queues_of_workers;
            let receives = queues.get(index).is_some_and(|queue| queue.receives);
            if receives && port.spec.kind != PortKind::Dummy(DummyType::Pmd) {
                let before = queues.iter().take(index).filter(|queue| queue.receives);
                lines.push(queue_line(&port.spec.name, before.count(), "NOT AVAIL"));
            }
        }
    }
    lines.sort();
    lines
}

/// Assigns all queues anew, according to the configuration.
fn rebalance(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    WorkerArguments::parse(control, arguments)?;
    let bridges: Vec<_> = control.sites.keys().copied().collect();
    bridges
        .into_iter()
        .for_each(|bridge| control.assign_all(bridge));
    if control.tools.dummies.is_enabled() {
        control.assign_pmds();
    }
    Ok("pmd rxq rebalance requested.\n".to_owned())
}

fn no_log(_: &mut Control, _: &[String]) -> Result<String, String> {
    Err("single iterations are not recorded".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_stats_split_compiled_packets_by_cache_hits() {
        let before = WorkerTotals {
            received: 100,
            sent: 90,
            flow_cache_hits: 40,
            walk_cache_hits: 10,
            slow_path: 10,
        };
        let totals = WorkerTotals {
            received: 300,
            sent: 290,
            flow_cache_hits: 160,
            walk_cache_hits: 40,
            slow_path: 15,
        };
        let mut text = String::new();
        write_stats(&mut text, totals.since(before)).expect("a string has room");
        let expected = "  packets received: 200\n  packet recirculations: 0\n  \
            avg. datapath passes per packet: 1.00\n  phwol hits: 0\n  mfex opt hits: 0\n  simple match hits: 0\n  emc hits: 120\n  smc hits: 30\n  \
            megaflow hits: 45\n  miss with success upcall: 5\n  miss with failed upcall: 0\n";
        assert_eq!(text, expected);
        let recirculated = WorkerTotals {
            received: 10,
            flow_cache_hits: 12,
            ..WorkerTotals::default()
        };
        assert_eq!(recirculated.megaflow_hits(), 0);
    }
}

//! Time of a frame in nanoseconds, by three engines: the interpreter with a scan of the rules, the
//! interpreter with compiled lookups, and the runner in batches, as workers use it. The best of
//! several rounds, with the engines in turn. The interpreter copies each frame from a buffer; the
//! frames of the runner are received again as they left.
//!
//! Lists of rules are measured with several traffic patterns; the slowest should take little more
//! than the fastest. Arguments after `--` select rows by a part of their name:
//! `cargo bench -p fastpath`, `cargo bench -p fastpath -- list`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock and prints"
)]

use std::hint::black_box;
use std::time::Instant as Clock;

use base::Instant;
use fastpath::{Classifier, LookupScratch, View, ViewLookup};
use pipeline::LookupTables;
use testkit::workload::{BatchRunner, InterpreterRunner, LoadedWorkload, TrafficPattern, Workload};

const ROUNDS: usize = 10;

/// Calls of the control thread before a measurement.
const INDEX_GROWTHS: usize = 4;

fn measure(workload: &Workload) {
    let loaded = workload.load();
    let mut classifier = Classifier::new();
    loaded
        .changes
        .iter()
        .for_each(|changes| classifier.queue_changes(changes));
    let view = classifier.publish(&loaded.pipeline);
    let scratch = LookupScratch::new();
    let looker = ViewLookup::new(&view, &scratch);
    let walked = LookupTables::from(&loaded.pipeline);
    let compiled = LookupTables {
        pipeline: &loaded.pipeline,
        lookup: &looker,
    };
    let mut workers = workers(&loaded, &view);
    let count = if workload.flows() > 2000 { 500 } else { 50_000 };
    let mut best = [f64::MAX; 3];
    // The control thread grows the index of connections.
    for _ in 0..INDEX_GROWTHS {
        run(&loaded, &mut workers, 2 * loaded.frames.len());
        if let Some(tracker) = loaded.pipeline.tracker() {
            tracker.expire(Instant::START, 0);
        }
    }
    for _ in 0..ROUNDS {
        best[0] = best[0].min(round(walked, &loaded.frames, count));
        best[1] = best[1].min(round(compiled, &loaded.frames, 100_000));
        best[2] = best[2].min(run(&loaded, &mut workers, 400_000));
    }
    let [walked, compiled, run] = best;
    println!(
        "{:34} walk {walked:10.1} ns   compiled {compiled:7.1} ns   run {run:7.1} ns",
        workload.name
    );
}

/// A worker for each batch of frames.
fn workers(loaded: &LoadedWorkload, view: &View) -> Vec<BatchRunner> {
    let most = loaded.frames.len().max(BatchRunner::BATCH);
    let frames: Vec<_> = loaded.frames.iter().cycle().take(most).collect();
    let batches = frames.chunks_exact(BatchRunner::BATCH);
    let batch = |batch: &[&Vec<u8>]| BatchRunner::new(view.clone(), batch.iter().copied());
    batches.map(batch).collect()
}

fn run(loaded: &LoadedWorkload, workers: &mut [BatchRunner], count: usize) -> f64 {
    let batches = count / BatchRunner::BATCH;
    let turns = batches / workers.len() + 1;
    let start = Clock::now();
    for _ in 0..turns {
        for worker in &mut *workers {
            black_box(worker.run(&loaded.pipeline));
        }
    }
    let frames = turns * workers.len() * BatchRunner::BATCH;
    start.elapsed().as_secs_f64() * 1e9 / frames as f64
}

fn round(tables: LookupTables<'_>, frames: &[Vec<u8>], count: usize) -> f64 {
    let mut runner = InterpreterRunner::new();
    let start = Clock::now();
    for bytes in frames.iter().cycle().take(count) {
        let verdict = runner.run(tables, bytes);
        assert_eq!(black_box(verdict).egress.len(), 1);
    }
    start.elapsed().as_secs_f64() * 1e9 / count as f64
}

/// Time of a list of rules in batches for each traffic pattern, and the ratio of the slowest to the
/// fastest.
fn measure_traffic(workload: impl Fn(TrafficPattern) -> Workload) {
    let loaded = TrafficPattern::ALL.map(|traffic| workload(traffic).load());
    let mut classifier = Classifier::new();
    loaded[0]
        .changes
        .iter()
        .for_each(|changes| classifier.queue_changes(changes));
    let view = classifier.publish(&loaded[0].pipeline);
    let mut each = loaded.each_ref().map(|loaded| workers(loaded, &view));
    let mut best = [f64::MAX; TrafficPattern::ALL.len()];
    for _ in 0..ROUNDS {
        for (best, workers) in best.iter_mut().zip(&mut each) {
            *best = best.min(run(&loaded[0], workers, 100_000));
        }
    }
    print!("{:34}", workload(TrafficPattern::Same).name);
    for (traffic, cost) in TrafficPattern::ALL.iter().zip(best) {
        print!(" {} {cost:.0} ns  ", traffic.name());
    }
    let fastest = best.iter().copied().fold(f64::MAX, f64::min);
    let slowest = best.iter().copied().fold(0.0, f64::max);
    println!(" slowest by fastest rate {:.2}", fastest / slowest);
    for table in classifier.describe() {
        println!(
            "    {}, {} bytes, modelled {:?}: {}",
            table.form, table.bytes, table.cost, table.why
        );
    }
}

fn main() {
    // Cargo adds `--bench`.
    let selected = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let is_selected = |name: &str| selected.as_deref().is_none_or(|part| name.contains(part));
    let workloads = [
        Workload::one_rule(),
        Workload::tcp_port_rule(),
        Workload::twelve_fields(),
        Workload::mac_addresses("1,000 stations", 1000),
        Workload::exact("1,000 exact flows", 1000),
        Workload::exact("10,000 exact flows", 10_000),
        Workload::exact("100,000 exact flows", 100_000),
        Workload::networks("1,000 networks", 1000),
        Workload::networks("10,000 networks", 10_000),
        Workload::ten_masks(),
        Workload::ten_tables(),
        Workload::ten_tables_with_registers(),
        Workload::rewritten(),
        Workload::group(),
        Workload::stateless("1,000 connections, stateless", 1000),
        Workload::stateful("1,000 connections", 1000),
        Workload::stateful("100,000 connections", 100_000),
    ];
    for workload in workloads
        .iter()
        .filter(|workload| is_selected(workload.name))
    {
        measure(workload);
    }
    let lists = [
        ("an access list of 10", 10),
        ("an access list of 1,000", 1000),
        ("an access list of 10,000", 10_000),
    ];
    for (name, count) in lists.into_iter().filter(|(name, _)| is_selected(name)) {
        measure_traffic(|traffic| Workload::access_list(name, count, traffic));
    }
    if is_selected("a list of 3") {
        measure_traffic(|traffic| Workload::three_rules("a list of 3", traffic));
    }
}

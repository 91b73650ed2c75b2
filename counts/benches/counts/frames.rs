//! Frames: parsing, and the pipeline with linear and with compiled lookups.

use std::hint::black_box;

use fastpath::{Classifier, LookupScratch, View, ViewLookup};
use gungraun::{library_benchmark, library_benchmark_group};
use packet::{Depth, Frame, Headers};
use pipeline::LookupTables;
use testkit::workload::{
    BatchRunner, FRAME, InterpreterRunner, LoadedWorkload, TrafficPattern, Workload, frame,
};

fn frame_of(text: &str, depth: Depth) -> (Frame, Depth) {
    (Frame::from_bytes(&frame(text)), depth)
}

#[library_benchmark]
#[bench::link(frame_of(FRAME, Depth::Link))]
#[bench::tcp(frame_of(FRAME, Depth::Transport))]
#[bench::vlan_udp6(frame_of("eth / vlan(vid=5) / ipv6 / udp / data(6)", Depth::Transport))]
fn parse(frame: (Frame, Depth)) -> (Headers, Frame) {
    let (frame, depth) = frame;
    let headers = Headers::parse(black_box(&frame), depth).unwrap();
    (headers, frame)
}

/// A runner and its tables and frames. Boxed, so that passing it copies nothing.
struct Work {
    loaded: LoadedWorkload,
    view: View,
    scratch: LookupScratch,
    runner: InterpreterRunner,
}

/// The seed of all hashes.
pub(crate) const SEED: u64 = 0x243f_6a88_85a3_08d3;

fn work(workload: &Workload) -> Box<Work> {
    let loaded = workload.load();
    let mut classifier = Classifier::with_seed(SEED);
    for changes in &loaded.changes {
        classifier.queue_changes(changes);
    }
    let view = classifier.publish(&loaded.pipeline);
    let mut work = Box::new(Work {
        loaded,
        view,
        scratch: LookupScratch::new(),
        runner: InterpreterRunner::new(),
    });
    // The first frame grows the buffers.
    work.walk();
    work.compiled();
    work
}

impl Work {
    fn walk(&mut self) {
        let verdict = self
            .runner
            .run(&self.loaded.pipeline, &self.loaded.frames[0]);
        assert_eq!(black_box(verdict).egress.len(), 1);
    }

    fn compiled(&mut self) {
        let lookup = ViewLookup::new(&self.view, &self.scratch);
        let tables = LookupTables {
            pipeline: &self.loaded.pipeline,
            lookup: &lookup,
        };
        let verdict = self.runner.run(tables, &self.loaded.frames[0]);
        assert_eq!(black_box(verdict).egress.len(), 1);
    }
}

#[library_benchmark]
#[bench::one_rule(work(&Workload::one_rule()))]
#[bench::twelve_fields(work(&Workload::twelve_fields()))]
#[bench::ten_tables(work(&Workload::ten_tables()))]
#[bench::ten_tables_with_registers(work(&Workload::ten_tables_with_registers()))]
fn walk(mut work: Box<Work>) -> Box<Work> {
    work.walk();
    work
}

#[library_benchmark]
#[bench::one_rule(work(&Workload::one_rule()))]
#[bench::twelve_fields(work(&Workload::twelve_fields()))]
#[bench::normal(work(&Workload::normal()))]
#[bench::rewritten(work(&Workload::rewritten()))]
#[bench::ten_tables(work(&Workload::ten_tables()))]
#[bench::ten_tables_with_registers(work(&Workload::ten_tables_with_registers()))]
#[bench::group(work(&Workload::group()))]
#[bench::meter(work(&Workload::meter()))]
fn compiled(mut work: Box<Work>) -> Box<Work> {
    work.compiled();
    work
}

/// A worker with a batch of frames.
struct LoadedBatch {
    loaded: LoadedWorkload,
    worker: BatchRunner,
}

fn batch(workload: &Workload) -> Box<LoadedBatch> {
    let loaded = workload.load();
    let mut classifier = Classifier::with_seed(SEED);
    for changes in &loaded.changes {
        classifier.queue_changes(changes);
    }
    let view = classifier.publish(&loaded.pipeline);
    let frames = loaded.frames.iter().cycle().take(BatchRunner::BATCH);
    let worker = BatchRunner::new(view, frames);
    let mut batch = Box::new(LoadedBatch { loaded, worker });
    batch.worker.run(&batch.loaded.pipeline);
    batch
}

/// A batch of connections that are established.
fn tracked() -> Box<LoadedBatch> {
    let mut batch = batch(&Workload::stateful("32 connections", 32));
    for _ in 0..3 {
        batch.worker.run(&batch.loaded.pipeline);
    }
    batch
}

fn list(traffic: TrafficPattern) -> Workload {
    Workload::access_list("an access list of 1,000", 1000, traffic)
}

fn routed(traffic: TrafficPattern) -> Workload {
    Workload::routed("ten real tables", traffic, BatchRunner::BATCH as u64)
}

fn three(traffic: TrafficPattern) -> Workload {
    Workload::three_rules("three rules", traffic)
}

// Each bench runs 64 frames.
#[library_benchmark]
#[bench::one_rule(batch(&Workload::one_rule()))]
#[bench::one_port(batch(&Workload::tcp_port_rule()))]
#[bench::twelve_fields(batch(&Workload::twelve_fields()))]
#[bench::thousand_stations(batch(&Workload::mac_addresses("1,000 stations", 1000)))]
#[bench::thousand_flows(batch(&Workload::exact("1,000 exact flows", 1000)))]
#[bench::normal(batch(&Workload::normal()))]
#[bench::rewritten(batch(&Workload::rewritten()))]
#[bench::ten_tables(batch(&Workload::ten_tables()))]
#[bench::ten_tables_with_registers(batch(&Workload::ten_tables_with_registers()))]
#[bench::ten_real_tables(batch(&routed(TrafficPattern::Fitting)))]
#[bench::ten_real_tables_random(batch(&routed(TrafficPattern::Random)))]
#[bench::group(batch(&Workload::group()))]
#[bench::meter(batch(&Workload::meter()))]
#[bench::tracked(tracked())]
#[bench::not_tracked(batch(&Workload::stateless("32 connections", 32)))]
#[bench::list_same(batch(&list(TrafficPattern::Same)))]
#[bench::list_fitting(batch(&list(TrafficPattern::Fitting)))]
#[bench::list_random(batch(&list(TrafficPattern::Random)))]
#[bench::list_attack(batch(&list(TrafficPattern::Attack)))]
#[bench::three_rules_same(batch(&three(TrafficPattern::Same)))]
#[bench::three_rules_random(batch(&three(TrafficPattern::Random)))]
#[bench::three_rules_attack(batch(&three(TrafficPattern::Attack)))]
fn run(mut batch: Box<LoadedBatch>) -> Box<LoadedBatch> {
    black_box(batch.worker.run(&batch.loaded.pipeline));
    batch
}

library_benchmark_group!(name = traffic, benchmarks = [parse, walk, compiled, run]);

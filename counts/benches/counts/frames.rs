//! A frame: read, and run through tables by a walk along their rules or by compiled
//! lookups.

use std::hint::black_box;

use fastpath::{Classifier, LookupScratch, View, ViewLookup};
use gungraun::{library_benchmark, library_benchmark_group};
use packet::{Depth, Frame, Headers};
use pipeline::LookupTables;
use testkit::bed::{Bed, FRAME, Runner, Scene, Traffic, Worker, frame};

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

/// Frames that a worker is about to run. In a box, so that handing it over is no copy.
struct Work {
    bed: Bed,
    view: View,
    scratch: LookupScratch,
    runner: Runner,
}

/// The seed of all hashes.
pub(crate) const SEED: u64 = 0x243f_6a88_85a3_08d3;

fn work(scene: &Scene) -> Box<Work> {
    let bed = scene.lay();
    let mut classifier = Classifier::with_seed(SEED);
    for changes in &bed.changes {
        classifier.queue_changes(changes);
    }
    let view = classifier.publish(&bed.pipeline);
    let mut work = Box::new(Work {
        bed,
        view,
        scratch: LookupScratch::new(),
        runner: Runner::new(),
    });
    // The first frame finds buffers that have yet to grow.
    work.walk();
    work.compiled();
    work
}

impl Work {
    fn walk(&mut self) {
        let verdict = self.runner.run(&self.bed.pipeline, &self.bed.frames[0]);
        assert_eq!(black_box(verdict).egress.len(), 1);
    }

    fn compiled(&mut self) {
        let looker = ViewLookup::new(&self.view, &self.scratch);
        let tables = LookupTables {
            pipeline: &self.bed.pipeline,
            lookup: &looker,
        };
        let verdict = self.runner.run(tables, &self.bed.frames[0]);
        assert_eq!(black_box(verdict).egress.len(), 1);
    }
}

#[library_benchmark]
#[bench::one_rule(work(&Scene::one_rule()))]
#[bench::twelve_fields(work(&Scene::twelve_fields()))]
#[bench::ten_tables(work(&Scene::ten_tables()))]
#[bench::ten_tables_with_registers(work(&Scene::ten_tables_with_registers()))]
fn walk(mut work: Box<Work>) -> Box<Work> {
    work.walk();
    work
}

#[library_benchmark]
#[bench::one_rule(work(&Scene::one_rule()))]
#[bench::twelve_fields(work(&Scene::twelve_fields()))]
#[bench::normal(work(&Scene::normal()))]
#[bench::rewritten(work(&Scene::rewritten()))]
#[bench::ten_tables(work(&Scene::ten_tables()))]
#[bench::ten_tables_with_registers(work(&Scene::ten_tables_with_registers()))]
#[bench::group(work(&Scene::group()))]
#[bench::meter(work(&Scene::meter()))]
fn compiled(mut work: Box<Work>) -> Box<Work> {
    work.compiled();
    work
}

/// A worker with a batch of frames.
struct Batch {
    bed: Bed,
    worker: Worker,
}

fn batch(scene: &Scene) -> Box<Batch> {
    let bed = scene.lay();
    let mut classifier = Classifier::with_seed(SEED);
    for changes in &bed.changes {
        classifier.queue_changes(changes);
    }
    let view = classifier.publish(&bed.pipeline);
    let frames = bed.frames.iter().cycle().take(Worker::BATCH);
    let worker = Worker::new(view, frames);
    let mut batch = Box::new(Batch { bed, worker });
    batch.worker.run(&batch.bed.pipeline);
    batch
}

fn list(traffic: Traffic) -> Scene {
    Scene::access_list("an access list of 1,000", 1000, traffic)
}

fn routed(traffic: Traffic) -> Scene {
    Scene::routed("ten real tables", traffic, Worker::BATCH as u64)
}

fn three(traffic: Traffic) -> Scene {
    Scene::three_rules("three rules", traffic)
}

// 64 frames.
#[library_benchmark]
#[bench::one_rule(batch(&Scene::one_rule()))]
#[bench::one_port(batch(&Scene::one_port()))]
#[bench::twelve_fields(batch(&Scene::twelve_fields()))]
#[bench::thousand_stations(batch(&Scene::stations("1,000 stations", 1000)))]
#[bench::thousand_flows(batch(&Scene::exact("1,000 exact flows", 1000)))]
#[bench::normal(batch(&Scene::normal()))]
#[bench::rewritten(batch(&Scene::rewritten()))]
#[bench::ten_tables(batch(&Scene::ten_tables()))]
#[bench::ten_tables_with_registers(batch(&Scene::ten_tables_with_registers()))]
#[bench::ten_real_tables(batch(&routed(Traffic::Fitting)))]
#[bench::ten_real_tables_random(batch(&routed(Traffic::Random)))]
#[bench::group(batch(&Scene::group()))]
#[bench::meter(batch(&Scene::meter()))]
#[bench::list_same(batch(&list(Traffic::Same)))]
#[bench::list_fitting(batch(&list(Traffic::Fitting)))]
#[bench::list_random(batch(&list(Traffic::Random)))]
#[bench::list_attack(batch(&list(Traffic::Attack)))]
#[bench::three_rules_same(batch(&three(Traffic::Same)))]
#[bench::three_rules_random(batch(&three(Traffic::Random)))]
#[bench::three_rules_attack(batch(&three(Traffic::Attack)))]
fn run(mut batch: Box<Batch>) -> Box<Batch> {
    black_box(batch.worker.run(&batch.bed.pipeline));
    batch
}

library_benchmark_group!(name = traffic, benchmarks = [parse, walk, compiled, run]);

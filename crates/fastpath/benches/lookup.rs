//! What a frame costs when the interpreter walks along the lists, when its lookups are
//! compiled, and when compiled programs run it in batches, as workers do: nanoseconds a
//! frame, the best of several rounds, turn and turn about. The interpreter's rounds copy
//! each frame from elsewhere; the batches' come in again as they left.
//! `cargo bench -p fastpath`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock and prints"
)]

use std::hint::black_box;
use std::time::Instant as Clock;

use fastpath::{Classifier, Looker, Scratch, View};
use pipeline::Tables;
use testkit::bed::{Bed, Runner, Scene, Worker};

const ROUNDS: usize = 10;

fn measure(scene: &Scene) {
    let bed = scene.lay();
    let mut classifier = Classifier::new();
    bed.changes
        .iter()
        .for_each(|changes| classifier.note(changes));
    let view = classifier.publish(&bed.pipeline);
    let scratch = Scratch::new();
    let looker = Looker::new(&view, &scratch);
    let walked = Tables::from(&bed.pipeline);
    let compiled = Tables {
        pipeline: &bed.pipeline,
        lookup: &looker,
    };
    let mut workers = workers(&bed, &view);
    let count = if scene.flows() > 2000 { 500 } else { 50_000 };
    let mut best = [f64::MAX; 3];
    for _ in 0..ROUNDS {
        best[0] = best[0].min(round(walked, &bed.frames, count));
        best[1] = best[1].min(round(compiled, &bed.frames, 100_000));
        best[2] = best[2].min(run(&bed, &mut workers, 400_000));
    }
    let [walked, compiled, run] = best;
    println!(
        "{:34} walk {walked:10.1} ns   compiled {compiled:7.1} ns   run {run:7.1} ns",
        scene.name
    );
}

/// A worker for each batch of frames.
fn workers(bed: &Bed, view: &View) -> Vec<Worker> {
    let most = bed.frames.len().max(Worker::BATCH);
    let frames: Vec<_> = bed.frames.iter().cycle().take(most).collect();
    let batches = frames.chunks_exact(Worker::BATCH);
    let batch = |batch: &[&Vec<u8>]| Worker::new(view.clone(), batch.iter().copied());
    batches.map(batch).collect()
}

fn run(bed: &Bed, workers: &mut [Worker], count: usize) -> f64 {
    let batches = count / Worker::BATCH;
    let turns = batches / workers.len() + 1;
    let start = Clock::now();
    for _ in 0..turns {
        for worker in &mut *workers {
            black_box(worker.run(&bed.pipeline));
        }
    }
    let frames = turns * workers.len() * Worker::BATCH;
    start.elapsed().as_secs_f64() * 1e9 / frames as f64
}

fn round(tables: Tables<'_>, frames: &[Vec<u8>], count: usize) -> f64 {
    let mut runner = Runner::new();
    let start = Clock::now();
    for bytes in frames.iter().cycle().take(count) {
        let verdict = runner.run(tables, bytes);
        assert_eq!(black_box(verdict).egress.len(), 1);
    }
    start.elapsed().as_secs_f64() * 1e9 / count as f64
}

fn main() {
    measure(&Scene::one_rule());
    measure(&Scene::one_port());
    measure(&Scene::twelve_fields());
    measure(&Scene::stations("1,000 stations", 1000));
    measure(&Scene::exact("1,000 exact flows", 1000));
    measure(&Scene::exact("100,000 exact flows", 100_000));
    measure(&Scene::ten_shapes());
    measure(&Scene::ten_tables());
    measure(&Scene::ten_tables_with_registers());
    measure(&Scene::rewritten());
    measure(&Scene::group());
}

//! What a frame costs when the interpreter walks along the lists, and when its
//! lookups are compiled: nanoseconds a frame, the best of several rounds, turn
//! and turn about. `cargo bench -p fastpath`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock and prints"
)]

use std::hint::black_box;
use std::time::Instant as Clock;

use fastpath::{Classifier, Looker, Scratch};
use pipeline::Tables;
use testkit::bed::{Runner, Scene};

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
    let count = if scene.flows() > 2000 { 500 } else { 50_000 };
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        for (best, (tables, count)) in best.iter_mut().zip([(walked, count), (compiled, 100_000)]) {
            *best = best.min(round(tables, &bed.frames, count));
        }
    }
    let [walked, compiled] = best;
    println!(
        "{:40} walk {walked:10.1} ns   compiled {compiled:7.1} ns",
        scene.name
    );
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
    measure(&Scene::twelve_fields());
    measure(&Scene::exact("1,000 exact flows", 1000));
    measure(&Scene::exact("100,000 exact flows", 100_000));
    measure(&Scene::ten_shapes());
    measure(&Scene::ten_tables());
    measure(&Scene::ten_tables_with_registers());
}

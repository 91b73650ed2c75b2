//! What the interpreter costs a worker, in nanoseconds a frame: some set-ups, each the
//! best of several rounds. `cargo bench -p pipeline`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock and prints"
)]

use std::hint::black_box;
use std::time::Instant as Clock;

use testkit::bed::{Runner, Scene};

const ROUNDS: usize = 20;
const FRAMES: usize = 200_000;

fn measure(scene: &Scene) {
    let bed = scene.lay();
    let mut runner = Runner::new();
    let mut round = || {
        let start = Clock::now();
        for bytes in bed.frames.iter().cycle().take(FRAMES) {
            let verdict = runner.run(&bed.pipeline, bytes);
            assert_eq!(black_box(verdict).egress.len(), 1);
        }
        start.elapsed().as_secs_f64() * 1e9 / FRAMES as f64
    };
    let best = (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min);
    println!("{:32} {best:6.1} ns", scene.name);
}

fn main() {
    measure(&Scene::one_rule());
    measure(&Scene::twelve_fields());
    measure(&Scene::normal());
    measure(&Scene::rewritten());
    measure(&Scene::last_of_many());
    measure(&Scene::ten_tables());
    measure(&Scene::group());
    measure(&Scene::meter());
}

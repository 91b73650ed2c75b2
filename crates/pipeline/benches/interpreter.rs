//! Time of the interpreter per packet, in nanoseconds: the best of several rounds for each setup.
//! `cargo bench -p pipeline`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock and prints"
)]

use std::hint::black_box;
use std::time::Instant as Clock;

use testkit::workload::{InterpreterRunner, Workload};

const ROUNDS: usize = 20;
const FRAMES: usize = 200_000;

fn measure(workload: &Workload) {
    let loaded = workload.load();
    let mut runner = InterpreterRunner::new();
    let mut round = || {
        let start = Clock::now();
        for bytes in loaded.frames.iter().cycle().take(FRAMES) {
            let verdict = runner.run(&loaded.pipeline, bytes);
            assert_eq!(black_box(verdict).egress.len(), 1);
        }
        start.elapsed().as_secs_f64() * 1e9 / FRAMES as f64
    };
    let best = (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min);
    println!("{:32} {best:6.1} ns", workload.name);
}

fn main() {
    measure(&Workload::one_rule());
    measure(&Workload::twelve_fields());
    measure(&Workload::normal());
    measure(&Workload::rewritten());
    measure(&Workload::last_of_many());
    measure(&Workload::ten_tables());
    measure(&Workload::group());
    measure(&Workload::meter());
}

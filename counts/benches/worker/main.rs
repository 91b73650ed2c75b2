//! A worker: one turn with a full batch, from one memory port to others, counted by callgrind as
//! the benches of `counts` are.
//!
//! A program of its own, so that the other counts do not depend on what this one links.
#![expect(
    unused_qualifications,
    clippy::exit,
    clippy::unwrap_used,
    reason = "a bench may fail, and gungraun's macros write functions of their own"
)]

mod batch;

use gungraun::main;

use batch::turns;

main!(library_benchmark_groups = [turns]);

//! A worker: one turn with a full batch, from one memory port to others, counted by callgrind like
//! the benches of `counts`.
//!
//! It is a program of its own, so that the other counts do not depend on the code that it links.
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

//! How many instructions hot code takes, counted by callgrind: one frame, one message,
//! one rule at a time, after a first that warms what is warm in a switch that runs.
//!
//! Not a measurement of time: what waits for memory counts as much as what does not.
//! The counts come out the same each time, so that a step of one in a hundred is seen
//! where a clock would see noise. `cargo xtask counts` holds them against
//! `baseline.txt`.
//!
//! A bench is named group, function and case. What it returns is dropped after the
//! count, and so is what was made for it before.
#![expect(
    unused_qualifications,
    clippy::exit,
    clippy::unwrap_used,
    reason = "a bench may fail, and gungraun's macros write functions of their own"
)]

mod codec;
mod frames;
mod lookup;
mod text;

use gungraun::main;

use codec::messages;
use frames::traffic;
use lookup::tables;
use text::words;

main!(library_benchmark_groups = [messages, words, traffic, tables]);

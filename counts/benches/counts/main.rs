//! Instruction counts of hot code, measured by callgrind: one frame, one message, one rule at a
//! time, after a first one that warms the caches of a running switch.
//!
//! The counts do not measure time: an instruction that waits for memory counts as much as any
//! other. They are reproducible, so that a change of 1 % is visible, which a clock would hide in
//! noise. `cargo xtask counts` compares them with `baseline.txt`.
//!
//! A bench is named by group, function and case. Its return value is dropped after the count, and
//! so is its input.
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

//! Packets that read an entry while other workers write it, with plain threads. The models explore
//! orders of sequentially consistent steps; this test shows, under miri (`cargo xtask miri
//! conntrack`), readers the old values that weaker processors may show them, so it fails if one of
//! the two fences of the sequence lock is missing.

use std::thread;

use super::entry::{SteadyEntry, SteadyLine, SteadyState};
use crate::test_packets::steady_state;

/// Rounds of a writer, and the number of writers. Miri is slow.
const ROUNDS: u32 = if cfg!(miri) { 30 } else { 20_000 };
const WRITERS: u32 = 2;

/// Returns a connection whose numbers are all `number`. Those of the second client are even.
fn state(number: u32) -> SteadyState {
    steady_state(if number.is_multiple_of(2) { 2 } else { 1 }, number)
}

#[test]
fn packets_on_other_threads_read_the_numbers_of_one_writer() {
    let lines = [SteadyLine::default(), SteadyLine::default()];
    let entry = || SteadyEntry::new(&lines[0], lines.get(1));
    entry().write().fill(&state(1));
    thread::scope(|scope| {
        for writer in 1..=WRITERS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    entry().write().fill(&state(WRITERS * round + writer));
                }
            });
        }
        for client in [1, 2] {
            scope.spawn(move || {
                for _ in 0..WRITERS * ROUNDS {
                    let Some(read) = entry().read(&steady_state(client, 0).key) else {
                        continue;
                    };
                    let mark = u128::from(read.mark);
                    assert_eq!(read.label, mark << 64 | mark);
                    assert_eq!(read.expires.as_nanos(), u64::from(read.mark));
                    assert_eq!(read.mark.is_multiple_of(2), client == 2);
                    if let Some(writer) = entry().try_write(read.sequence) {
                        assert_eq!(writer.expires(), read.expires, "nothing was written since");
                    }
                }
            });
        }
    });
}

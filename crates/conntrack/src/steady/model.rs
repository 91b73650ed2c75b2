//! Concurrency models of entries in a steady state: packets that read an entry while other workers
//! write it, or give it to another connection.

use std::sync::Arc;

use base::sync::{explore, thread};

use super::entry::{SteadyEntry, SteadyLine};
use crate::test_packets::steady_state;

/// Orders that each scheduler explores.
const ORDERS: usize = 1_000;

#[test]
fn packets_read_the_numbers_of_one_writer() {
    explore(ORDERS, || {
        let lines = Arc::new([SteadyLine::default(), SteadyLine::default()]);
        let entry = SteadyEntry::new(&lines[0], lines.get(1));
        entry.write().fill(&steady_state(1, 1));
        let writers = [2, 3].map(|number| {
            let lines = Arc::clone(&lines);
            thread::spawn(move || {
                let entry = SteadyEntry::new(&lines[0], lines.get(1));
                entry.write().fill(&steady_state(1, number));
                entry.write().clear();
                // The slot belongs to another connection now.
                entry.write().fill(&steady_state(2, 10 + number));
            })
        });
        for client in [1, 2, 1] {
            let key = steady_state(client, 0).key;
            if let Some(read) = entry.read(&key) {
                let mark = u128::from(read.mark);
                assert_eq!(read.label, mark << 64 | mark);
                assert_eq!(read.expires.as_nanos(), u64::from(read.mark));
                assert_eq!(read.mark > 10, client == 2, "never another connection");
                if let Some(writer) = entry.try_write(read.sequence) {
                    assert_eq!(writer.expires(), read.expires, "nothing was written since");
                }
            }
        }
        for writer in writers {
            writer.join().expect("the worker ends");
        }
    });
}

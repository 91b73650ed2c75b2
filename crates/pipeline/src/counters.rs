//! Counts that several threads write and anybody reads, without a lock and
//! without an atomic read-modify-write: each writer has a cell of its own, and
//! whoever reads adds the cells up.
//!
//! A reader may see a frame in one cell's packets and not yet in its bytes; a
//! writer that has passed on (its next batch) has written both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Instant;

/// The counts of one writer.
#[derive(Debug, Default)]
struct Cell {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// When it was written last, in nanoseconds; zero for never.
    used: AtomicU64,
}

/// Cells from one writer's to the next where there are several workers: so far apart
/// that no two lie in one cache line of 64 bytes, and writers do not disturb each
/// other. The control thread, which counts for the frames that controllers send, may
/// share a line with one worker: it writes seldom, and a million rules would pay.
const APART: usize = 4;

/// How many writers have their cells side by side: one worker and the control thread.
const CLOSE: usize = 2;

/// The counts of a rule or a table. A clone is the same counts.
#[derive(Clone, Debug)]
pub struct Counters {
    cells: Arc<[Cell]>,
}

/// The number of one who looks on: what it counts is nobody's.
pub(crate) const OBSERVER: usize = usize::MAX;

/// What all writers have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames, as they are on the wire.
    pub packets: u64,
    /// Bytes of those frames.
    pub bytes: u64,
}

impl Counters {
    /// Zero, with a cell for each of `writers`.
    pub(crate) fn new(writers: usize) -> Self {
        let cells = if writers <= CLOSE {
            writers
        } else {
            (writers - 1) * APART + 1
        };
        Self {
            cells: (0..cells).map(|_| Cell::default()).collect(),
        }
    }

    /// Whether they are the same counts, not only equal ones.
    pub(crate) fn are(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.cells, &others.cells)
    }

    /// Takes note of a use that is not counted. Only the last writer, the one who
    /// changes the tables, may do so.
    pub(crate) fn touch(&self, now: Instant) {
        if let Some(last) = self.cells.last() {
            last.used.fetch_max(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// The cell of `writer`, if it has one.
    #[inline]
    fn cell(&self, writer: usize) -> Option<&Cell> {
        let place = if self.cells.len() <= CLOSE {
            writer
        } else {
            writer.saturating_mul(APART)
        };
        self.cells.get(place)
    }

    /// Adds to the cell of `writer`, if it has one. Only that writer may do so.
    #[inline]
    pub fn add(&self, writer: usize, more: Totals, now: Instant) {
        let Some(cell) = self.cell(writer) else {
            debug_assert_eq!(writer, OBSERVER, "a writer has a cell");
            return;
        };
        let add = |counter: &AtomicU64, more: u64| {
            let before = counter.load(Ordering::Relaxed);
            counter.store(before.wrapping_add(more), Ordering::Relaxed);
        };
        add(&cell.packets, more.packets);
        add(&cell.bytes, more.bytes);
        cell.used.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// The sums over all writers.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let sum = |counter: fn(&Cell) -> &AtomicU64| {
            let values = self.cells.iter().map(counter);
            values.fold(0, |sum: u64, value| {
                sum.wrapping_add(value.load(Ordering::Relaxed))
            })
        };
        Totals {
            packets: sum(|cell| &cell.packets),
            bytes: sum(|cell| &cell.bytes),
        }
    }

    /// When somebody counted last; the start of time if nobody has.
    #[must_use]
    pub fn last_used(&self) -> Instant {
        let used = self
            .cells
            .iter()
            .map(|cell| cell.used.load(Ordering::Relaxed));
        Instant::from_nanos(used.max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_writers_has_a_cache_line_to_itself() {
        let counters = Counters::new(5);
        let places = (0..5).map(|writer| counters.cell(writer).expect("a cell"));
        let places: Vec<_> = places.map(|cell| std::ptr::from_ref(cell).addr()).collect();
        let lines = |place: usize| (place / 64, (place + size_of::<Cell>() - 1) / 64);
        assert!(
            places
                .windows(2)
                .all(|two| lines(two[0]).1 < lines(two[1]).0)
        );
        assert!(counters.cell(5).is_none() && counters.cell(OBSERVER).is_none());
    }

    #[test]
    fn a_reader_adds_up_what_the_writers_counted() {
        let counters = Counters::new(2);
        assert_eq!(counters.totals(), Totals::default());
        let one = Totals {
            packets: 1,
            bytes: 60,
        };
        counters.add(0, one, Instant::from_secs(7));
        counters.add(1, one, Instant::from_secs(3));
        counters.add(1, one, Instant::from_secs(4));
        let three = Totals {
            packets: 3,
            bytes: 180,
        };
        assert_eq!(counters.totals(), three);
        assert_eq!(counters.last_used(), Instant::from_secs(7));
    }
}

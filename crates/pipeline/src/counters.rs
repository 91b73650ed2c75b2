//! Counts that several threads write and anybody reads, without a lock and
//! without an atomic read-modify-write: each writer has a cell of its own, and
//! whoever reads adds the cells up.
//!
//! A reader may see a frame in one cell's packets and not yet in its bytes; a
//! writer that has passed on (its next batch) has written both.
//!
//! Cells lie in sheets, which many counters share: there may be a million. A sheet goes
//! with the last of its counters, and none of its cells is used twice.

use std::sync::Arc;

use base::Instant;
use base::sync::atomic::{AtomicU64, Ordering};

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

/// Cells of a sheet: 3 kB, for 64 counters of one worker and the control thread. It is
/// what one counter can keep from being freed.
const SHEET: usize = 128;

/// Cells, side by side.
#[derive(Debug)]
struct Sheet {
    cells: [Cell; SHEET],
    /// Those of a counter with more writers than have room.
    rest: Box<[Cell]>,
}

impl Sheet {
    /// With room for a counter of so many cells, and for others if they are few.
    fn new(cells: usize) -> Self {
        let rest = SHEET..cells;
        Self {
            cells: std::array::from_fn(|_| Cell::default()),
            rest: rest.map(|_| Cell::default()).collect(),
        }
    }

    #[inline]
    fn cell(&self, place: usize) -> Option<&Cell> {
        let rest = || self.rest.get(place - SHEET);
        self.cells.get(place).or_else(rest)
    }
}

/// The counts of a rule or a table. A clone is the same counts.
#[derive(Clone, Debug)]
pub struct Counters {
    sheet: Arc<Sheet>,
    /// Where its cells begin, and how many they are.
    first: u16,
    cells: u16,
}

/// Where counters come from.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Cells that each counter has.
    cells: u16,
    /// The sheet that is not full, and how many of its cells are used.
    open: Option<(Arc<Sheet>, u16)>,
}

/// A clone gives other counters, of as many writers.
impl Clone for Ledger {
    fn clone(&self) -> Self {
        let cells = self.cells;
        Self { cells, open: None }
    }
}

impl Ledger {
    /// For counters of so many writers.
    ///
    /// # Panics
    /// If they are more than sixteen thousand.
    pub(crate) fn new(writers: usize) -> Self {
        let cells = if writers <= CLOSE {
            writers
        } else {
            (writers - 1) * APART + 1
        };
        Self {
            cells: u16::try_from(cells).expect("there are not so many cores"),
            open: None,
        }
    }

    /// Counters at zero.
    pub(crate) fn counters(&mut self) -> Counters {
        let cells = self.cells;
        let fits = |(_, used): &(_, u16)| usize::from(used + cells) <= SHEET;
        let open = self.open.take().filter(fits);
        let (sheet, first) = open.unwrap_or_else(|| (Arc::new(Sheet::new(cells.into())), 0));
        let counters = Counters {
            sheet: Arc::clone(&sheet),
            first,
            cells,
        };
        self.open = Some((sheet, first.saturating_add(cells)));
        counters
    }
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
    /// Whether they are the same counts, not only equal ones.
    #[inline]
    #[must_use]
    pub fn are(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.sheet, &others.sheet) && self.first == others.first
    }

    /// Takes note of a use that is not counted. Only the last writer, the one who
    /// changes the tables, may do so.
    pub(crate) fn touch(&self, now: Instant) {
        let last = usize::from(self.first + self.cells - 1);
        if let Some(last) = self.sheet.cell(last)
            && last.used.load(Ordering::Relaxed) < now.as_nanos()
        {
            last.used.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// All cells.
    fn cells(&self) -> impl Iterator<Item = &Cell> {
        let first = usize::from(self.first);
        let places = first..first + usize::from(self.cells);
        places.filter_map(|place| self.sheet.cell(place))
    }

    /// The cell of `writer`, if it has one.
    #[inline]
    fn cell(&self, writer: usize) -> Option<&Cell> {
        let cells = usize::from(self.cells);
        let place = if cells <= CLOSE {
            writer
        } else {
            writer.saturating_mul(APART)
        };
        (place < cells).then(|| self.sheet.cell(usize::from(self.first) + place))?
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

    /// Where `writer` counts, for those who want that memory near beforehand.
    #[inline]
    #[must_use]
    pub fn place(&self, writer: usize) -> Option<&impl Sized> {
        self.cell(writer)
    }

    /// The sums over all writers.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let sum = |counter: fn(&Cell) -> &AtomicU64| {
            let values = self.cells().map(counter);
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
        let used = self.cells().map(|cell| cell.used.load(Ordering::Relaxed));
        Instant::from_nanos(used.max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_writers_has_a_cache_line_to_itself() {
        let counters = Ledger::new(5).counters();
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
    fn no_two_counters_share_a_cell() {
        for writers in [1, 2, 3, 7, 31, 33, 200] {
            let mut ledger = Ledger::new(writers);
            let counters: Vec<_> = (0..300).map(|_| ledger.counters()).collect();
            for (number, counters) in (1..).zip(&counters) {
                let more = Totals {
                    packets: number,
                    bytes: 0,
                };
                (0..writers).for_each(|writer| counters.add(writer, more, Instant::START));
                assert!(counters.cell(writers).is_none());
            }
            for (number, counters) in (1..).zip(&counters) {
                assert_eq!(counters.totals().packets, number * writers as u64);
                assert!(counters.are(&counters.clone()));
            }
            assert!(!counters[0].are(&counters[1]));
            let other = ledger.clone().counters();
            assert!(counters.iter().all(|counters| !counters.are(&other)));
        }
    }

    #[test]
    fn a_reader_adds_up_what_the_writers_counted() {
        let counters = Ledger::new(2).counters();
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

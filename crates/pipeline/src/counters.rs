//! Counts that several threads write and anybody reads, without a lock and
//! without an atomic read-modify-write: each writer has a cell of its own, and
//! whoever reads adds the cells up.
//!
//! A reader may see a frame in one cell's packets and not yet in its bytes; a
//! writer that has passed on (its next batch) has written both.
//!
//! Cells lie in sheets, which many counters share: there may be a million. Of each writer
//! there is a row, so that its cells are side by side and in cache lines of their own: writers
//! do not disturb each other, and what one writes has room in its caches. A sheet goes with
//! the last of its counters, and none of its cells is used twice.

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

/// Counters of a sheet. Each takes 48 bytes of it where one worker and the control thread
/// count, and can keep all of it from being freed.
const SHEET: usize = 64;

/// The cells of one writer. It has its cache lines to itself.
#[derive(Debug)]
#[repr(align(64))]
struct Row([Cell; SHEET]);

impl Default for Row {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Cell::default()))
    }
}

/// Rows that are found at once: of one worker and the control thread, or of two workers.
const NEAR: usize = 2;

/// Rows, by writer.
#[derive(Debug)]
struct Sheet {
    near: [Row; NEAR],
    others: Box<[Row]>,
}

impl Sheet {
    /// With a row for each of so many writers.
    fn new(writers: usize) -> Self {
        Self {
            near: std::array::from_fn(|_| Row::default()),
            others: (NEAR..writers).map(|_| Row::default()).collect(),
        }
    }

    #[inline]
    fn cell(&self, writer: usize, place: u16) -> Option<&Cell> {
        let others = || self.others.get(writer - NEAR);
        let Row(cells) = self.near.get(writer).or_else(others)?;
        Some(&cells[usize::from(place) % SHEET])
    }
}

/// The counts of a rule or a table. A clone is the same counts.
#[derive(Clone, Debug)]
pub struct Counters {
    sheet: Arc<Sheet>,
    /// Where in each row its cell is.
    place: u16,
    writers: u16,
}

/// Where counters come from.
#[derive(Debug)]
pub(crate) struct Ledger {
    writers: u16,
    /// The sheet that is not full, and how many counters it has.
    open: Option<(Arc<Sheet>, u16)>,
}

/// A clone gives other counters, of as many writers.
impl Clone for Ledger {
    fn clone(&self) -> Self {
        let writers = self.writers;
        Self {
            writers,
            open: None,
        }
    }
}

impl Ledger {
    /// For counters of so many writers.
    ///
    /// # Panics
    /// If they are more than sixty thousand.
    pub(crate) fn new(writers: usize) -> Self {
        Self {
            writers: u16::try_from(writers).expect("there are not so many cores"),
            open: None,
        }
    }

    /// Counters at zero.
    pub(crate) fn counters(&mut self) -> Counters {
        let writers = self.writers;
        let has_room = |(_, used): &(_, u16)| usize::from(*used) < SHEET;
        let open = self.open.take().filter(has_room);
        let (sheet, place) = open.unwrap_or_else(|| (Arc::new(Sheet::new(writers.into())), 0));
        let counters = Counters {
            sheet: Arc::clone(&sheet),
            place,
            writers,
        };
        self.open = Some((sheet, place + 1));
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
        Arc::ptr_eq(&self.sheet, &others.sheet) && self.place == others.place
    }

    /// Takes note of a use that is not counted. Only the last writer, the one who
    /// changes the tables, may do so.
    pub(crate) fn touch(&self, now: Instant) {
        if let Some(last) = self.cell(usize::from(self.writers) - 1)
            && last.used.load(Ordering::Relaxed) < now.as_nanos()
        {
            last.used.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// All cells.
    fn cells(&self) -> impl Iterator<Item = &Cell> {
        let writers = 0..usize::from(self.writers);
        writers.filter_map(|writer| self.sheet.cell(writer, self.place))
    }

    /// The cell of `writer`, if it has one.
    #[inline]
    fn cell(&self, writer: usize) -> Option<&Cell> {
        (writer < usize::from(self.writers)).then(|| self.sheet.cell(writer, self.place))?
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
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_two_writers_share_a_cache_line() {
        let mut ledger = Ledger::new(5);
        let all: Vec<_> = (0..3 * SHEET).map(|_| ledger.counters()).collect();
        let mut writers_of = BTreeMap::new();
        for counters in &all {
            for writer in 0..5 {
                let cell = counters.cell(writer).expect("a cell");
                let start = std::ptr::from_ref(cell).addr();
                for line in [start / 64, (start + size_of::<Cell>() - 1) / 64] {
                    assert_eq!(*writers_of.entry(line).or_insert(writer), writer);
                }
            }
            assert!(counters.cell(5).is_none() && counters.cell(OBSERVER).is_none());
        }
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

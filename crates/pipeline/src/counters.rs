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
struct CounterCell {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// When it was written last, in nanoseconds; zero for never.
    used: AtomicU64,
}

impl CounterCell {
    #[inline]
    fn add(&self, more: Totals) {
        let add = |counter: &AtomicU64, more: u64| {
            let before = counter.load(Ordering::Relaxed);
            counter.store(before.wrapping_add(more), Ordering::Relaxed);
        };
        add(&self.packets, more.packets);
        add(&self.bytes, more.bytes);
    }
}

/// Cells that a sheet has in itself: 3 kB. It is what one counter can keep from being freed.
const SHEET: usize = 128;

/// Counters of a sheet at least: the cells of each of its writers are three cache lines of 64
/// bytes then.
const SIDE_MIN: usize = 8;

/// Cells of one writer that begin where a cache line does.
#[derive(Debug, Default)]
#[repr(align(64))]
struct CounterLine([CounterCell; SIDE_MIN]);

/// Cells of several counters. Those of one writer lie side by side, and in no cache line with
/// those of another: so writers do not disturb each other, and what one of them counts for
/// many rules takes few lines.
#[derive(Debug)]
#[repr(C, align(64))]
struct CounterBlock {
    cells: [CounterCell; SHEET],
    /// Those of more writers than have room.
    rest: Box<[CounterLine]>,
}

impl CounterBlock {
    /// With room for so many cells.
    fn new(cells: usize) -> Self {
        let rest = SHEET..cells;
        Self {
            cells: std::array::from_fn(|_| CounterCell::default()),
            rest: rest
                .step_by(SIDE_MIN)
                .map(|_| CounterLine::default())
                .collect(),
        }
    }

    #[inline]
    fn cell(&self, place: usize) -> Option<&CounterCell> {
        let rest = || {
            let CounterLine(cells) = self.rest.get((place - SHEET) / SIDE_MIN)?;
            cells.get(place % SIDE_MIN)
        };
        self.cells.get(place).or_else(rest)
    }
}

/// The counts of a rule or a table. A clone is the same counts.
#[derive(Clone, Debug)]
pub struct Counters {
    sheet: Arc<CounterBlock>,
    /// Where the cell of the first writer is, ...
    first: u8,
    /// ... how far it is from there to that of the next, ...
    side: u8,
    /// ... and how many writers there are.
    writers: u16,
}

/// Where counters come from.
#[derive(Debug)]
pub(crate) struct CounterAllocator {
    /// Counters that share a sheet.
    side: u8,
    writers: u16,
    /// The sheet that is not full, and how many counters have it.
    open: Option<(Arc<CounterBlock>, u8)>,
}

/// A clone gives other counters, of as many writers.
impl Clone for CounterAllocator {
    fn clone(&self) -> Self {
        Self {
            open: None,
            ..*self
        }
    }
}

impl CounterAllocator {
    /// For counters of so many writers.
    ///
    /// # Panics
    /// If they are more than 65,535.
    pub(crate) fn new(writers: usize) -> Self {
        let room = SHEET / writers.clamp(1, SHEET / SIDE_MIN);
        Self {
            side: u8::try_from(1_usize << room.ilog2()).expect("a sheet has not so many cells"),
            writers: u16::try_from(writers).expect("there are not so many cores"),
            open: None,
        }
    }

    /// Counters at zero.
    pub(crate) fn allocate(&mut self) -> Counters {
        let (side, writers) = (self.side, self.writers);
        let open = self.open.take().filter(|(_, used)| *used < side);
        let cells = || usize::from(side) * usize::from(writers);
        let (sheet, first) = open.unwrap_or_else(|| (Arc::new(CounterBlock::new(cells())), 0));
        self.open = Some((Arc::clone(&sheet), first + 1));
        Counters {
            sheet,
            first,
            side,
            writers,
        }
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
    pub fn is_same_as(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.sheet, &others.sheet) && self.first == others.first
    }

    /// Takes note of a use that is not counted. Only the last writer, the one who
    /// changes the tables, may do so.
    pub(crate) fn touch(&self, now: Instant) {
        if let Some(last) = self.cells().last()
            && last.used.load(Ordering::Relaxed) < now.as_nanos()
        {
            last.used.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// All cells, by writer.
    fn cells(&self) -> impl Iterator<Item = &CounterCell> {
        (0..usize::from(self.writers)).filter_map(|writer| self.cell(writer))
    }

    /// The cell of `writer`, if it has one.
    #[inline]
    fn cell(&self, writer: usize) -> Option<&CounterCell> {
        if writer >= usize::from(self.writers) {
            return None;
        }
        let place = usize::from(self.first) + writer * usize::from(self.side);
        self.sheet.cell(place)
    }

    /// Adds to the cell of `writer`, if it has one. Only that writer may do so.
    #[inline]
    pub fn add(&self, writer: usize, more: Totals, now: Instant) {
        if let Some(cell) = self.own_cell(writer) {
            cell.add(more);
            cell.used.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// The same of what was counted elsewhere, up to `used`: more may have been counted here
    /// since.
    #[inline]
    pub fn add_until(&self, writer: usize, more: Totals, used: Instant) {
        if let Some(cell) = self.own_cell(writer) {
            cell.add(more);
            let used = used.as_nanos().max(cell.used.load(Ordering::Relaxed));
            cell.used.store(used, Ordering::Relaxed);
        }
    }

    /// The cell of `writer`, if it counts.
    #[inline]
    fn own_cell(&self, writer: usize) -> Option<&CounterCell> {
        let cell = self.cell(writer);
        debug_assert!(cell.is_some() || writer == OBSERVER, "a writer has a cell");
        cell
    }

    /// Where `writer` counts, for those who want that memory near beforehand.
    #[inline]
    #[must_use]
    pub fn prefetch_target(&self, writer: usize) -> Option<&impl Sized> {
        self.cell(writer)
    }

    /// The sums over all writers.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let sum = |counter: fn(&CounterCell) -> &AtomicU64| {
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
        for writers in [1, 2, 3, 5, 16, 17, 40] {
            let mut allocator = CounterAllocator::new(writers);
            let mut owners = BTreeMap::new();
            for counters in (0..200).map(|_| allocator.allocate()).collect::<Vec<_>>() {
                for writer in 0..writers {
                    let cell = counters.cell(writer).expect("a cell");
                    let start = std::ptr::from_ref(cell).addr();
                    for line in [start, start + size_of::<CounterCell>() - 1].map(|byte| byte / 64)
                    {
                        assert_eq!(*owners.entry(line).or_insert(writer), writer);
                    }
                }
                let nobodys = [writers, OBSERVER].map(|writer| counters.cell(writer));
                assert!(nobodys.iter().all(Option::is_none));
            }
        }
    }

    #[test]
    fn what_rules_have_of_them_is_small() {
        assert_eq!(size_of::<Counters>(), 16);
        assert_eq!(CounterAllocator::new(2).side, 64);
        assert_eq!(CounterAllocator::new(3).side, 32);
        assert_eq!(CounterAllocator::new(100).side, 8);
    }

    #[test]
    fn no_two_counters_share_a_cell() {
        for writers in [1, 2, 3, 7, 31, 33, 200] {
            let mut allocator = CounterAllocator::new(writers);
            let counters: Vec<_> = (0..300).map(|_| allocator.allocate()).collect();
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
                assert!(counters.is_same_as(&counters.clone()));
            }
            assert!(!counters[0].is_same_as(&counters[1]));
            let other = allocator.clone().allocate();
            assert!(counters.iter().all(|counters| !counters.is_same_as(&other)));
        }
    }

    #[test]
    fn a_reader_adds_up_what_the_writers_counted() {
        let counters = CounterAllocator::new(2).allocate();
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

    #[test]
    fn what_was_counted_elsewhere_before_does_not_take_back_the_last_use() {
        let counters = CounterAllocator::new(1).allocate();
        let one = Totals {
            packets: 1,
            bytes: 60,
        };
        counters.add(0, one, Instant::from_secs(7));
        counters.add_until(0, one, Instant::from_secs(5));
        assert_eq!(counters.last_used(), Instant::from_secs(7));
        counters.add_until(0, one, Instant::from_secs(9));
        assert_eq!(counters.last_used(), Instant::from_secs(9));
        assert_eq!(counters.totals().packets, 3);
    }
}

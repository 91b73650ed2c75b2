//! Statistics counters that several threads write without a lock and without an atomic
//! read-modify-write: each writer has its own cell, and a reader adds the cells up.
//!
//! ```text
//!   block   | writer 0: rule 0, 1, 2, ... n | writer 1: rule 0, 1, 2, ... n | ...
//!             whole cache lines               whole cache lines
//! ```
//!
//! A reader may see a packet before its bytes. A writer that has begun its next batch has written
//! both.
//!
//! A million rules have counters, so the cells of many counters share one block, where the cells of
//! one writer are adjacent and share no cache line with those of another writer: writers do not
//! disturb each other, and a batch that hits many rules touches few lines. A block is freed with
//! the last of its counters, and no cell is reused. A counter costs 16 bytes in the rule and 24
//! bytes per writer. (Per-CPU counters in Linux and the per-PMD statistics of Open vSwitch follow
//! the same idea.)

use std::sync::Arc;

use base::Instant;
use base::sync::atomic::{AtomicU64, Ordering};

/// The counter of one writer.
#[derive(Debug, Default)]
struct CounterCell {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// Time of the last use, in nanoseconds; zero for never.
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

/// Number of cells in a block itself: 3 kB. One counter can keep as much from being freed.
const BLOCK_CELLS: usize = 128;

/// Minimum number of counters in a block: then the cells of each writer fill three cache lines of
/// 64 bytes.
const STRIDE_MIN: usize = 8;

/// Cells of one writer, aligned to cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
struct CounterLine([CounterCell; STRIDE_MIN]);

/// The cells of several counters: for each writer, one cell of each counter.
#[derive(Debug)]
#[repr(C, align(64))]
struct CounterBlock {
    cells: [CounterCell; BLOCK_CELLS],
    /// Cells of further writers, if they exceed the block.
    rest: Box<[CounterLine]>,
}

impl CounterBlock {
    /// Creates a block of at least this many cells.
    fn new(cells: usize) -> Self {
        let rest = BLOCK_CELLS..cells;
        Self {
            cells: std::array::from_fn(|_| CounterCell::default()),
            rest: rest
                .step_by(STRIDE_MIN)
                .map(|_| CounterLine::default())
                .collect(),
        }
    }

    #[inline]
    fn cell(&self, index: usize) -> Option<&CounterCell> {
        let rest = || {
            let CounterLine(cells) = self.rest.get((index - BLOCK_CELLS) / STRIDE_MIN)?;
            cells.get(index % STRIDE_MIN)
        };
        self.cells.get(index).or_else(rest)
    }
}

/// The counter of a rule, group, meter or table. A clone refers to the same cells.
#[derive(Clone, Debug)]
pub struct Counters {
    block: Arc<CounterBlock>,
    /// Index of the cell of writer 0.
    first: u8,
    /// Distance to the cell of the next writer.
    stride: u8,
    /// Number of writers.
    writers: u16,
}

/// Allocates counters.
#[derive(Debug)]
pub(crate) struct CounterAllocator {
    /// Number of counters that share a block.
    stride: u8,
    writers: u16,
    /// The block that has free cells, and how many of its counters are allocated.
    open: Option<(Arc<CounterBlock>, u8)>,
}

/// A clone allocates other counters, for as many writers.
impl Clone for CounterAllocator {
    fn clone(&self) -> Self {
        Self {
            open: None,
            ..*self
        }
    }
}

impl CounterAllocator {
    /// Creates an allocator for this number of writers.
    ///
    /// # Panics
    /// If there are more than 65,535.
    pub(crate) fn new(writers: usize) -> Self {
        let cells_per_writer = BLOCK_CELLS / writers.clamp(1, BLOCK_CELLS / STRIDE_MIN);
        Self {
            stride: u8::try_from(1_usize << cells_per_writer.ilog2())
                .expect("a block has not so many cells"),
            writers: u16::try_from(writers).expect("there are not so many cores"),
            open: None,
        }
    }

    /// Returns a counter at zero.
    pub(crate) fn allocate(&mut self) -> Counters {
        let (stride, writers) = (self.stride, self.writers);
        let open = self.open.take().filter(|(_, used)| *used < stride);
        let cells = || usize::from(stride) * usize::from(writers);
        let (block, first) = open.unwrap_or_else(|| (Arc::new(CounterBlock::new(cells())), 0));
        self.open = Some((Arc::clone(&block), first + 1));
        Counters {
            block,
            first,
            stride,
            writers,
        }
    }
}

/// The writer of a trace, whose packets are not counted.
pub(crate) const OBSERVER: usize = usize::MAX;

/// The sum over all writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets, counted as on the wire.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

impl Counters {
    /// True if both refer to the same cells.
    #[inline]
    #[must_use]
    pub fn is_same_as(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.block, &others.block) && self.first == others.first
    }

    /// Stores a use that is not counted. Only the last writer, which changes the tables, may call
    /// this.
    pub(crate) fn touch(&self, now: Instant) {
        if let Some(last) = self.cells().last()
            && last.used.load(Ordering::Relaxed) < now.as_nanos()
        {
            last.used.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Returns all cells, by writer.
    fn cells(&self) -> impl Iterator<Item = &CounterCell> {
        (0..usize::from(self.writers)).filter_map(|writer| self.cell(writer))
    }

    /// Returns the cell of `writer`.
    #[inline]
    fn cell(&self, writer: usize) -> Option<&CounterCell> {
        if writer >= usize::from(self.writers) {
            return None;
        }
        let index = usize::from(self.first) + writer * usize::from(self.stride);
        self.block.cell(index)
    }

    /// Adds to the cell of `writer`. Only that writer may call this.
    #[inline]
    pub fn add(&self, writer: usize, more: Totals, now: Instant) {
        if let Some(cell) = self.own_cell(writer) {
            cell.add(more);
            cell.used.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Adds counts that were deferred until `used`; the cell may have been used since.
    #[inline]
    pub fn add_until(&self, writer: usize, more: Totals, used: Instant) {
        if let Some(cell) = self.own_cell(writer) {
            cell.add(more);
            let used = used.as_nanos().max(cell.used.load(Ordering::Relaxed));
            cell.used.store(used, Ordering::Relaxed);
        }
    }

    /// Returns the cell of `writer`, which must exist unless it is [`OBSERVER`].
    #[inline]
    fn own_cell(&self, writer: usize) -> Option<&CounterCell> {
        let cell = self.cell(writer);
        debug_assert!(cell.is_some() || writer == OBSERVER, "a writer has a cell");
        cell
    }

    /// Returns the cell of `writer`, for a prefetch.
    #[inline]
    #[must_use]
    pub fn prefetch_target(&self, writer: usize) -> Option<&impl Sized> {
        self.cell(writer)
    }

    /// Returns the sums over all writers.
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

    /// Returns the time of the last use; the start of time if there was none.
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
    fn writers_share_no_cache_line() {
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
                let missing = [writers, OBSERVER].map(|writer| counters.cell(writer));
                assert!(missing.iter().all(Option::is_none));
            }
        }
    }

    #[test]
    fn counters_take_sixteen_bytes_of_a_rule() {
        assert_eq!(size_of::<Counters>(), 16);
        assert_eq!(CounterAllocator::new(2).stride, 64);
        assert_eq!(CounterAllocator::new(3).stride, 32);
        assert_eq!(CounterAllocator::new(100).stride, 8);
    }

    #[test]
    fn counters_share_no_cell() {
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
    fn totals_are_sums_over_all_writers() {
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
    fn deferred_counts_keep_a_later_last_use() {
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

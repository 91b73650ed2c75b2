//! Interval table: maps a value of up to 64 bits to the interval that contains it, in a number of
//! steps that hardly depends on the number of intervals.
//!
//! Related: DXR (Zec, Rizzo, Mikuc, "DXR: towards a billion routing lookups per second in
//! software", 2012), which finds the range of an IPv4 address by a table over its upper bits and
//! a binary search. Here the slots adapt to where the intervals start, for fields of any width.
//!
//! Conditions on the upper bits of a field are nested or disjoint, so `n` conditions make at most
//! `2n + 1` intervals. [`IntervalBuilder`] turns them into starts with a mark each; the mark of an
//! interval names the narrowest condition that contains it:
//!
//! ```text
//! conditions     0.0.0.0/1 = 1     10.0.0.0/8 = 2     10.1.0.0/16 = 3
//!
//! value     0        10.0     10.1     10.2      11.0     128.0
//!           |---1----|---2----|---3----|---2-----|---1----|---0----...
//!
//! search    divide [first start, last start] into 2^k equal slots:
//!
//!           slot      0      1      2      3      4      5      6      7
//!           intervals .  | 1 interval | 2 intervals |   9 intervals   |
//!                                                     \ divided again
//! ```
//!
//! A slot names the first interval that starts in it. With at most [`FEW`] starts in a slot, all
//! of them are compared, so that no branch has to be predicted; a slot with more is divided again,
//! since values come in clusters, at most [`DIVISIONS_MAX`] times. After that the intervals of the
//! slot are searched by halving: an adversary who chooses the values can put all starts but one
//! for each division into one slot.
//!
//! Cost of a search, in modelled instructions: about 20 for each division, and as many for the
//! intervals of the last slot; more for each halving of a slot with many.
//!
//! Used by the prefix tables and by the bit vectors, for fields of more than 16 bits.
//!
//! ```
//! use base::Instant;
//! use fastpath::Classifier;
//! use flow::text::parse_flow_line;
//! use pipeline::{Limits, Pipeline};
//!
//! // Nested networks: two fields of 32 bits, each searched in an interval table.
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for n in 0..60 {
//!     let bits = 8 + n % 24;
//!     let line = format!("priority={n},ip,nw_src=10.{n}.0.0/{bits},nw_dst=10.{n}.0.0/{bits},actions=drop");
//!     let command = parse_flow_line(&line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! classifier.publish(&pipeline);
//! let description = &classifier.describe()[0];
//! assert_eq!(description.form, "bits");
//! assert_eq!(
//!     description.why,
//!     "60 rules with many masks: 2 dimensions in 1 columns, 2 of them searched"
//! );
//! ```

use std::ops::Range;

use sys::cache::prefetch;

/// Intervals of a slot that are compared without a search.
const FEW: usize = 4;

/// Depth of nested divisions. Beyond it, intervals are searched by halving.
const DIVISIONS_MAX: usize = 4;

/// The slot is not divided: it has at most [`FEW`] intervals.
const UNDIVIDED: u32 = u32::MAX;

/// The slot is not divided although it has more: its intervals are searched by halving.
const HALVED: u32 = u32::MAX - 1;

/// Intervals of the values of one field.
#[derive(Debug)]
pub(crate) struct IntervalTable {
    /// In the order of their starts. The last is repeated [`FEW`] times.
    intervals: Box<[ValueInterval]>,
    /// The first covers all values.
    divisions: Vec<SlotDivision>,
    slots: Vec<DivisionSlot>,
}

/// Values from `start` to the start of the next interval.
#[derive(Clone, Copy, Debug)]
struct ValueInterval {
    start: u64,
    mark: u32,
    /// Result for the mark, set by [`IntervalTable::set_results`].
    result: u32,
}

/// A range of values in equal slots.
#[derive(Clone, Copy, Debug)]
struct SlotDivision {
    least: u64,
    /// Width of a slot, as a power of two.
    shift: u32,
    /// Number of its first slot.
    first: u32,
    /// Number of its last slot, counted from the first. One more slot holds the end of the
    /// intervals of the last.
    last: u32,
}

/// Values of one slot.
#[derive(Clone, Copy, Debug)]
struct DivisionSlot {
    /// First interval that starts in it.
    interval: u32,
    /// Division of the slot, [`UNDIVIDED`] or [`HALVED`].
    division: u32,
}

/// An index in 32 bits.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a table has fewer than 2^31 rules, and intervals twice as many")
}

impl SlotDivision {
    #[inline]
    fn slot(&self, value: u64) -> usize {
        let slot = value.saturating_sub(self.least) >> self.shift;
        let slot = slot.min(self.last.into());
        usize::try_from(slot).expect("the slot is at most the last")
    }
}

impl IntervalTable {
    /// Builds the table from starts and marks in ascending order; the first start is zero.
    fn of(starts: &[(u64, u32)]) -> Self {
        let interval = |&(start, mark): &(u64, u32)| ValueInterval {
            start,
            mark,
            result: 0,
        };
        let last = starts.last().into_iter().cycle().take(FEW);
        let mut table = Self {
            intervals: starts.iter().chain(last).map(interval).collect(),
            divisions: Vec::new(),
            slots: Vec::new(),
        };
        table.divide(0..starts.len(), DIVISIONS_MAX);
        table
    }

    /// Sets the result of each mark, which [`IntervalTable::result`] returns.
    pub(crate) fn set_results(&mut self, result_of: impl Fn(u32) -> u32) {
        let intervals = self.intervals.iter_mut();
        intervals.for_each(|interval| interval.result = result_of(interval.mark));
    }

    /// Divides these intervals, in at most `depth` levels. Returns the number of the division.
    fn divide(&mut self, intervals: Range<usize>, depth: usize) -> u32 {
        // The first of all intervals starts at zero, far from the others.
        let least = self.intervals[intervals.start.max(1).min(intervals.end - 1)].start;
        let span = self.intervals[intervals.end - 1]
            .start
            .saturating_sub(least);
        let bits = u64::BITS - span.leading_zeros();
        let shift = bits.saturating_sub(intervals.len().next_power_of_two().ilog2());
        let first = self.slots.len();
        let last = usize::try_from(span >> shift)
            .expect("there are at most twice as many slots as intervals");
        let division = SlotDivision {
            least,
            shift,
            first: number(first),
            last: number(last),
        };
        let mut next = intervals.start;
        for slot in 0..=last {
            self.slots.push(DivisionSlot {
                interval: number(next),
                division: UNDIVIDED,
            });
            let remaining = self.intervals[next..intervals.end].iter();
            next += remaining
                .take_while(|interval| division.slot(interval.start) == slot)
                .count();
        }
        self.slots.push(DivisionSlot {
            interval: number(intervals.end),
            division: UNDIVIDED,
        });
        self.divisions.push(division);
        let number_of_division = number(self.divisions.len() - 1);
        for slot in first..=first + last {
            let intervals = self.intervals_of(slot);
            if intervals.len() > FEW {
                self.slots[slot].division = match depth {
                    1 => HALVED,
                    _ => self.divide(intervals, depth - 1),
                };
            }
        }
        number_of_division
    }

    #[inline]
    fn intervals_of(&self, slot: usize) -> Range<usize> {
        self.slots[slot].interval as usize..self.slots[slot + 1].interval as usize
    }

    /// Mark of the interval that contains a value.
    #[inline]
    pub(crate) fn find(&self, value: u64) -> u32 {
        self.interval(value, self.first_candidate(value)).mark
    }

    /// Marks of the values from `first` up, one for each value.
    pub(crate) fn marks_from(&self, first: u64) -> impl Iterator<Item = u32> {
        let mut current = self
            .intervals
            .partition_point(|interval| interval.start <= first)
            - 1;
        (first..=u64::MAX).map(move |value| {
            let has_started = |next: &ValueInterval| next.start <= value;
            while self.intervals.get(current + 1).is_some_and(has_started) {
                current += 1;
            }
            self.intervals[current].mark
        })
    }

    /// Number of the first of the [`FEW`] intervals that are compared with a value; the interval
    /// of the value is one of them or the one before. First half of a search that prefetches.
    #[inline]
    pub(crate) fn first_candidate(&self, value: u64) -> u32 {
        let mut division = &self.divisions[0];
        loop {
            let number = division.first as usize + division.slot(value);
            let slot = self.slots[number];
            match self.divisions.get(slot.division as usize) {
                Some(nested) => division = nested,
                None if slot.division == HALVED => {
                    return self.first_candidate_by_halving(value, number);
                }
                None => return slot.interval,
            }
        }
    }

    #[cold]
    fn first_candidate_by_halving(&self, value: u64, slot: usize) -> u32 {
        let intervals = self.intervals_of(slot);
        let first = number(intervals.start);
        first
            + number(self.intervals[intervals].partition_point(|interval| interval.start <= value))
    }

    /// Prefetches the intervals from number `first`.
    #[inline]
    pub(crate) fn prefetch(&self, first: u32) {
        let interval = self.intervals.get(first as usize);
        interval.into_iter().for_each(prefetch);
    }

    /// Result of the interval that contains a value, with the number that
    /// [`IntervalTable::first_candidate`] returned for it.
    #[inline]
    pub(crate) fn result(&self, value: u64, first: u32) -> u32 {
        self.interval(value, first).result
    }

    /// The interval before the first that starts after the value. The first of all starts at
    /// zero; those of later slots start after the value too.
    #[inline]
    fn interval(&self, value: u64, first: u32) -> &ValueInterval {
        let first = first as usize;
        let candidates = self.intervals[first..].first_chunk::<FEW>();
        let candidates = candidates.expect("the last interval is repeated as often");
        let started = candidates.iter().fold(0, |started, interval| {
            started + usize::from(interval.start <= value)
        });
        &self.intervals[(first + started).saturating_sub(1)]
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of_slots = size_of_val(&*self.divisions) + size_of_val(&*self.slots);
        size_of_val(&*self.intervals) + of_slots
    }
}

/// Builder of an interval table from conditions in ascending order of their values, the wider
/// before those nested in them.
#[derive(Debug)]
pub(crate) struct IntervalBuilder {
    starts: Vec<(u64, u32)>,
    /// Last value and mark of the conditions that have started and not ended, the innermost last.
    open: Vec<(u64, u32)>,
    full_mask: u64,
}

impl IntervalBuilder {
    /// A builder for values up to `full_mask`, which no condition contains yet: their mark is
    /// zero.
    pub(crate) fn new(full_mask: u64) -> Self {
        Self {
            starts: vec![(0, 0)],
            open: Vec::new(),
            full_mask,
        }
    }

    /// Mark of the narrowest condition that contains a value, which is not less than those of all
    /// earlier calls.
    pub(crate) fn mark_at(&mut self, value: u64) -> u32 {
        while let Some((last, _)) = self.open.pop_if(|(last, _)| *last < value) {
            self.start(last + 1, self.mark());
        }
        self.mark()
    }

    /// Adds a condition with its mark.
    pub(crate) fn add(&mut self, value: u64, mask: u64, mark: u32) {
        self.mark_at(value);
        self.start(value, mark);
        self.open.push((value | !mask & self.full_mask, mark));
    }

    /// Builds the table.
    pub(crate) fn build(mut self) -> IntervalTable {
        while let Some((last, _)) = self.open.pop() {
            if last < self.full_mask {
                self.start(last + 1, self.mark());
            }
        }
        IntervalTable::of(&self.starts)
    }

    fn mark(&self) -> u32 {
        self.open.last().map_or(0, |(_, mark)| *mark)
    }

    fn start(&mut self, start: u64, mark: u32) {
        match self.starts.last_mut() {
            Some(last) if last.0 == start => last.1 = mark,
            _ => self.starts.push((start, mark)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_in_last_interval_that_starts_before_it() {
        let sets: &[&[u64]] = &[
            &[0],
            &[0, 1],
            &[0, 7, 8, 9],
            &[0, 10, 11, 1000, u64::MAX],
            &[0, u64::MAX - 3, u64::MAX - 1],
            &[0, 0x0a00_0000, 0x0a00_0100, 0x0a01_0000, 0x0b00_0000],
        ];
        // Clusters, the ends of the range, and starts at half the distance of the previous one.
        let clusters = (1..200).map(|n| ((n % 4) << 60) + n * n);
        let mut clusters: Vec<u64> = clusters.chain([0, u64::MAX]).collect();
        clusters.sort_unstable();
        let halves: Vec<u64> = [0].into_iter().chain((0..64).map(|bit| 1 << bit)).collect();
        let sets = sets.iter().copied().chain([&*clusters, &*halves]);
        for starts in sets {
            let marked: Vec<_> = starts.iter().copied().zip(100..).collect();
            let table = IntervalTable::of(&marked);
            let near = |start: &u64| [start.saturating_sub(1), *start, start.saturating_add(1)];
            for value in starts.iter().flat_map(near) {
                let expected = marked.iter().rev().find(|(start, _)| *start <= value);
                let found = [Some(table.find(value)), table.marks_from(value).next()];
                assert_eq!(found, [expected.map(|(_, mark)| *mark); 2]);
            }
        }
    }

    #[test]
    fn value_has_mark_of_narrowest_condition_that_contains_it() {
        let mut builder = IntervalBuilder::new(0xff);
        assert_eq!(builder.mark_at(0x00), 0);
        for (value, mask, mark) in [
            (0x00, 0x80, 1),
            (0x40, 0xf0, 2),
            (0x4f, 0xff, 3),
            (0xff, 0xff, 4),
        ] {
            builder.add(value, mask, mark);
        }
        let table = builder.build();
        let marks = [
            (0, 1),
            (0x3f, 1),
            (0x40, 2),
            (0x4e, 2),
            (0x4f, 3),
            (0x50, 1),
            (0x7f, 1),
            (0x80, 0),
            (0xfe, 0),
            (0xff, 4),
        ];
        for (value, mark) in marks {
            assert_eq!(table.find(value), mark, "{value:#x}");
        }
        let all = (0..=0xff).map(|value| table.find(value));
        assert!(table.marks_from(0).take(0x100).eq(all));
    }
}

//! Values of a field in rows: all values from where one row starts to where the next does
//! are alike. Conditions on upper bits lie within each other or apart, so there are at most
//! two rows for each.
//!
//! A search divides the values into equal slots, as many as there are rows; a slot with more
//! than a few rows is divided again, since values come in clusters, but not for ever.
//!
//! Cost of a search, in modelled instructions: some twenty for each division, and as many for
//! the rows that share the last slot; more for each doubling of those if they are many. Of a
//! few rows always as many are compared, so that no branch has to be foreseen.

use std::ops::Range;

use sys::cache::prefetch;

/// Rows that are looked at one by one.
const FEW: usize = 4;

/// How often values are divided at most. Behind that rows are halved: whoever chooses the
/// values can have one row left in each slot, and all others in one.
const DIVISIONS_MAX: usize = 4;

/// No further division: the slot has a few rows ...
const NONE: u32 = u32::MAX;

/// ... or many.
const MANY: u32 = u32::MAX - 1;

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Behind the last it comes again, as often as makes [`FEW`] of it.
    rows: Box<[Row]>,
    /// The first is of all values.
    divisions: Vec<Division>,
    slots: Vec<Slot>,
}

/// Values from where this row starts.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u64,
    mark: u32,
    /// What is told of the mark.
    told: u32,
}

/// Values in slots.
#[derive(Clone, Copy, Debug)]
struct Division {
    least: u64,
    shift: u32,
    /// Where its slots begin, and how many there are beyond the first. One more says where the
    /// rows of the last end.
    first: u32,
    more: u32,
}

/// Where the rows begin that start here.
#[derive(Clone, Copy, Debug)]
struct Slot {
    row: u32,
    /// How they are divided, if they are.
    division: u32,
}

/// There are fewer rows than twice the rules of a table.
fn number(of: usize) -> u32 {
    u32::try_from(of).expect("there are not so many")
}

impl Division {
    #[inline]
    fn slot(&self, value: u64) -> usize {
        let slot = value.saturating_sub(self.least) >> self.shift;
        let slot = slot.min(self.more.into());
        usize::try_from(slot).expect("no more than there are")
    }
}

impl Rows {
    /// Rows by their starts, in order, the first of which is zero.
    fn of(rows: &[(u64, u32)]) -> Self {
        let row = |&(start, mark): &(u64, u32)| Row {
            start,
            mark,
            told: 0,
        };
        let last = rows.last().into_iter().cycle().take(FEW);
        let mut made = Self {
            rows: rows.iter().chain(last).map(row).collect(),
            divisions: Vec::new(),
            slots: Vec::new(),
        };
        made.divide(0..rows.len(), DIVISIONS_MAX);
        made
    }

    /// Has this told of each mark, for [`Rows::told`].
    pub(crate) fn tell(&mut self, of: impl Fn(u32) -> u32) {
        self.rows.iter_mut().for_each(|row| row.told = of(row.mark));
    }

    /// Divides these rows, so many times at most. Answers the number of the division.
    fn divide(&mut self, rows: Range<usize>, times: usize) -> u32 {
        // The first row of all starts at zero, far from others.
        let least = self.rows[rows.start.max(1).min(rows.end - 1)].start;
        let span = self.rows[rows.end - 1].start.saturating_sub(least);
        let bits = u64::BITS - span.leading_zeros();
        let shift = bits.saturating_sub(rows.len().next_power_of_two().ilog2());
        let first = self.slots.len();
        let more = usize::try_from(span >> shift).expect("no more than rows, or twice as many");
        let division = Division {
            least,
            shift,
            first: number(first),
            more: number(more),
        };
        let mut row = rows.start;
        for slot in 0..=more {
            self.slots.push(Slot {
                row: number(row),
                division: NONE,
            });
            let here = self.rows[row..rows.end].iter();
            row += here
                .take_while(|row| division.slot(row.start) == slot)
                .count();
        }
        self.slots.push(Slot {
            row: number(rows.end),
            division: NONE,
        });
        self.divisions.push(division);
        let of_this = number(self.divisions.len() - 1);
        for slot in first..=first + more {
            let rows = self.rows_of(slot);
            if rows.len() > FEW {
                self.slots[slot].division = match times {
                    1 => MANY,
                    _ => self.divide(rows, times - 1),
                };
            }
        }
        of_this
    }

    #[inline]
    fn rows_of(&self, slot: usize) -> Range<usize> {
        self.slots[slot].row as usize..self.slots[slot + 1].row as usize
    }

    /// The mark of the row that a value is in.
    #[inline]
    pub(crate) fn find(&self, value: u64) -> u32 {
        self.row(value, self.first_of(value)).mark
    }

    /// The marks of this value and those behind it, one by one.
    pub(crate) fn marks_from(&self, first: u64) -> impl Iterator<Item = u32> {
        let mut here = self.rows.partition_point(|row| row.start <= first) - 1;
        (first..=u64::MAX).map(move |value| {
            let begins = |next: &Row| next.start <= value;
            while self.rows.get(here + 1).is_some_and(begins) {
                here += 1;
            }
            self.rows[here].mark
        })
    }

    /// The first of the few rows, and the one before, that a value may be in, for
    /// [`Rows::told`].
    #[inline]
    pub(crate) fn first_of(&self, value: u64) -> u32 {
        let mut division = &self.divisions[0];
        loop {
            let number = division.first as usize + division.slot(value);
            let slot = self.slots[number];
            match self.divisions.get(slot.division as usize) {
                Some(further) => division = further,
                None if slot.division == MANY => return self.first_of_many(value, number),
                None => return slot.row,
            }
        }
    }

    /// The same among all rows of a slot.
    #[cold]
    fn first_of_many(&self, value: u64, slot: usize) -> u32 {
        let rows = self.rows_of(slot);
        let first = number(rows.start);
        first + number(self.rows[rows].partition_point(|row| row.start <= value))
    }

    /// Asks for the memory of the rows from this one on.
    #[inline]
    pub(crate) fn prefetch(&self, first: u32) {
        self.rows.get(first as usize).into_iter().for_each(prefetch);
    }

    /// What is told of the mark of the row that a value is in, of those that begin with `first`.
    #[inline]
    pub(crate) fn told(&self, value: u64, first: u32) -> u32 {
        self.row(value, first).told
    }

    /// The row before the first that starts behind the value. The first of all starts at zero;
    /// those of slots behind the value's start behind it too.
    #[inline]
    fn row(&self, value: u64, first: u32) -> &Row {
        let first = first as usize;
        let few = self.rows[first..].first_chunk::<FEW>();
        let few = few.expect("the last comes again so often");
        let among = few
            .iter()
            .fold(0, |among, row| among + usize::from(row.start <= value));
        &self.rows[(first + among).saturating_sub(1)]
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let of_slots = size_of_val(&*self.divisions) + size_of_val(&*self.slots);
        size_of_val(&*self.rows) + of_slots
    }
}

/// Rows while they are made, of conditions that come by value, the wider before those
/// within them.
#[derive(Debug)]
pub(crate) struct Making {
    rows: Vec<(u64, u32)>,
    /// What has begun and not ended: the last value, and the mark.
    open: Vec<(u64, u32)>,
    full: u64,
}

impl Making {
    /// Rows of values up to `full`, none of which any condition has taken: their mark is
    /// zero.
    pub(crate) fn new(full: u64) -> Self {
        Self {
            rows: vec![(0, 0)],
            open: Vec::new(),
            full,
        }
    }

    /// The mark of the narrowest condition around a value, behind all that came before.
    pub(crate) fn around(&mut self, value: u64) -> u32 {
        while let Some((last, _)) = self.open.pop_if(|(last, _)| *last < value) {
            self.begin(last + 1, self.mark());
        }
        self.mark()
    }

    /// Values that are `value` in the bits of `mask` have this mark.
    pub(crate) fn add(&mut self, value: u64, mask: u64, mark: u32) {
        self.around(value);
        self.begin(value, mark);
        self.open.push((value | !mask & self.full, mark));
    }

    /// All rows.
    pub(crate) fn done(mut self) -> Rows {
        while let Some((last, _)) = self.open.pop() {
            if last < self.full {
                self.begin(last + 1, self.mark());
            }
        }
        Rows::of(&self.rows)
    }

    fn mark(&self) -> u32 {
        self.open.last().map_or(0, |(_, mark)| *mark)
    }

    fn begin(&mut self, start: u64, mark: u32) {
        match self.rows.last_mut() {
            Some(last) if last.0 == start => last.1 = mark,
            _ => self.rows.push((start, mark)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_of_the_row_that_starts_last_before_it() {
        let sets: &[&[u64]] = &[
            &[0],
            &[0, 1],
            &[0, 7, 8, 9],
            &[0, 10, 11, 1000, u64::MAX],
            &[0, u64::MAX - 3, u64::MAX - 1],
            &[0, 0x0a00_0000, 0x0a00_0100, 0x0a01_0000, 0x0b00_0000],
        ];
        // In clusters, at the ends of all values, and each half as far as the one before.
        let clusters = (1..200).map(|n| ((n % 4) << 60) + n * n);
        let mut clusters: Vec<u64> = clusters.chain([0, u64::MAX]).collect();
        clusters.sort_unstable();
        let halves: Vec<u64> = [0].into_iter().chain((0..64).map(|bit| 1 << bit)).collect();
        let sets = sets.iter().copied().chain([&*clusters, &*halves]);
        for starts in sets {
            let rows: Vec<_> = starts.iter().copied().zip(100..).collect();
            let made = Rows::of(&rows);
            let near = |start: &u64| [start.saturating_sub(1), *start, start.saturating_add(1)];
            for value in starts.iter().flat_map(near) {
                let wanted = rows.iter().rev().find(|(start, _)| *start <= value);
                let found = [Some(made.find(value)), made.marks_from(value).next()];
                assert_eq!(found, [wanted.map(|(_, mark)| *mark); 2]);
            }
        }
    }

    #[test]
    fn a_value_has_the_mark_of_the_narrowest_condition_around_it() {
        let mut making = Making::new(0xff);
        assert_eq!(making.around(0x00), 0);
        for (value, mask, mark) in [
            (0x00, 0x80, 1),
            (0x40, 0xf0, 2),
            (0x4f, 0xff, 3),
            (0xff, 0xff, 4),
        ] {
            making.add(value, mask, mark);
        }
        let rows = making.done();
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
            assert_eq!(rows.find(value), mark, "{value:#x}");
        }
        let all = (0..=0xff).map(|value| rows.find(value));
        assert!(rows.marks_from(0).take(0x100).eq(all));
    }
}

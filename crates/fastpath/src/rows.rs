//! Values of a field in rows: all values from where one row starts to where the next does
//! are alike. Conditions on upper bits lie within each other or apart, so there are at most
//! two rows for each.
//!
//! Cost of a search, in modelled instructions: some thirty, and a few for each doubling of
//! the rows that share a slot.

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Rows {
    starts: Box<[u64]>,
    /// What each row is marked with.
    marks: Box<[u32]>,
    least: u64,
    shift: u32,
    /// The first row of each slot, of which there are as many as rows, and how many
    /// rows there are.
    slots: Box<[u32]>,
}

impl Rows {
    /// Rows by their starts, in order, the first of which is zero.
    fn of(rows: &[(u64, u32)]) -> Self {
        let starts: Box<[u64]> = rows.iter().map(|(start, _)| *start).collect();
        let least = starts.get(1).copied().unwrap_or(0);
        let span = starts.last().copied().unwrap_or(0).saturating_sub(least);
        let wanted = rows.len().next_power_of_two();
        let bits = u64::BITS - span.leading_zeros();
        let shift = bits.saturating_sub(wanted.ilog2());
        let last = usize::try_from(span >> shift).expect("no more than rows, or twice as many");
        let mut made = Self {
            starts,
            marks: rows.iter().map(|(_, mark)| *mark).collect(),
            least,
            shift,
            slots: vec![0; last + 2].into(),
        };
        for (start, _) in rows {
            let slot = made.slot(*start);
            made.slots[slot + 1] += 1;
        }
        for slot in 1..made.slots.len() {
            made.slots[slot] += made.slots[slot - 1];
        }
        made
    }

    #[inline]
    fn slot(&self, value: u64) -> usize {
        let slot = value.saturating_sub(self.least) >> self.shift;
        let last = self.slots.len() - 2;
        usize::try_from(slot).map_or(last, |slot| slot.min(last))
    }

    /// The mark of the row that a value is in.
    #[inline]
    pub(crate) fn find(&self, value: u64) -> u32 {
        let slot = self.slot(value);
        let rows = self.slots[slot] as usize..self.slots[slot + 1] as usize;
        let before = rows.start;
        let among = self.starts[rows].partition_point(|start| *start <= value);
        // The row before the first that starts behind the value; the first starts at zero.
        self.marks[before + among - 1]
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        8 * self.starts.len() + 4 * (self.marks.len() + self.slots.len())
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
        for starts in sets {
            let rows: Vec<_> = starts.iter().copied().zip(100..).collect();
            let made = Rows::of(&rows);
            let near = |start: &u64| [start.saturating_sub(1), *start, start.saturating_add(1)];
            for value in starts.iter().flat_map(near) {
                let wanted = rows.iter().rev().find(|(start, _)| *start <= value);
                assert_eq!(Some(made.find(value)), wanted.map(|(_, mark)| *mark));
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
    }
}

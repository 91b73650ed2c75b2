//! One field of all rules: its classes of values, and which rules want each.

use crate::lanes::{Lanes, Spot};

use super::WORD;

/// A word of a class's summary, and where those words of its vector are that it names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    pub(super) words: u64,
    pub(super) first: u32,
}

/// See the top of this file.
#[derive(Debug)]
pub(super) struct Dimension {
    pub(super) spot: Spot,
    pub(super) full: u64,
    pub(super) classes: Classes,
    /// The rules that want nothing here, and their summary.
    pub(super) wild: Box<[u64]>,
    pub(super) wild_summary: Box<[u64]>,
    /// By class, as many as a summary has words.
    pub(super) summaries: Box<[Summary]>,
    /// The words that summaries name.
    pub(super) own: Box<[u64]>,
}

impl Dimension {
    /// Where the summary of the frame's class begins.
    #[inline]
    pub(super) fn class(&self, lanes: &Lanes) -> u32 {
        let value = lanes.word(self.spot.lane) >> self.spot.shift & self.full;
        match &self.classes {
            Classes::Octet(classes) => classes[value.to_le_bytes()[0] as usize],
            Classes::Nested(nested) => nested.find(value),
        }
    }

    /// A word of the summary of all rules that a class fits.
    #[inline]
    pub(super) fn summary(&self, class: u32, group: usize) -> u64 {
        self.summaries[class as usize + group].words | self.wild_summary[group]
    }

    /// A word of the vector of all rules that a class fits.
    #[inline]
    pub(super) fn word(&self, class: u32, group: usize, word: usize) -> u64 {
        let Summary { words, first } = self.summaries[class as usize + group];
        let bit = word % WORD;
        let own = match words >> bit & 1 {
            0 => 0,
            _ => {
                let before = (words & ((1 << bit) - 1)).count_ones();
                self.own[(first + before) as usize]
            }
        };
        self.wild[word] | own
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let words = self.wild.len() + self.wild_summary.len() + self.own.len();
        8 * words + size_of::<Summary>() * self.summaries.len() + self.classes.bytes()
    }
}

/// From a value to where its class's summary begins.
#[derive(Debug)]
pub(super) enum Classes {
    /// Of eight bits, of which rules may want any.
    Octet(Box<[u32; 256]>),
    /// Of a field of which rules want the upper bits.
    Nested(Nested),
}

impl Classes {
    fn bytes(&self) -> usize {
        match self {
            Self::Octet(classes) => size_of_val(&**classes),
            Self::Nested(nested) => {
                8 * nested.starts.len() + 4 * (nested.classes.len() + nested.slots.len())
            }
        }
    }
}

/// Values in a row are of one class, from where it starts. Which rows a value may be in is
/// told by the *slot* that it falls into, of as many as there are rows.
#[derive(Debug)]
pub(super) struct Nested {
    starts: Box<[u64]>,
    classes: Box<[u32]>,
    least: u64,
    shift: u32,
    /// The first row of each slot, and how many there are.
    slots: Box<[u32]>,
}

impl Nested {
    /// Rows by their starts, the first of which is zero.
    pub(super) fn of(rows: &[(u64, u32)]) -> Self {
        let starts: Box<[u64]> = rows.iter().map(|(start, _)| *start).collect();
        let least = starts.get(1).copied().unwrap_or(0);
        let span = starts.last().copied().unwrap_or(0) - least;
        let wanted = rows.len().next_power_of_two();
        let bits = u64::BITS - span.leading_zeros();
        let shift = bits.saturating_sub(wanted.ilog2());
        let last = usize::try_from(span >> shift).expect("as many as rows, twice at most");
        let mut nested = Self {
            starts,
            classes: rows.iter().map(|(_, class)| *class).collect(),
            least,
            shift,
            slots: vec![0; last + 2].into(),
        };
        for row in nested.starts.clone() {
            let slot = nested.slot(row);
            nested.slots[slot + 1] += 1;
        }
        for slot in 1..nested.slots.len() {
            nested.slots[slot] += nested.slots[slot - 1];
        }
        nested
    }

    #[inline]
    fn slot(&self, value: u64) -> usize {
        let slot = value.saturating_sub(self.least) >> self.shift;
        let last = self.slots.len() - 2;
        usize::try_from(slot).map_or(last, |slot| slot.min(last))
    }

    #[inline]
    fn find(&self, value: u64) -> u32 {
        let slot = self.slot(value);
        let rows = self.slots[slot] as usize..self.slots[slot + 1] as usize;
        let before = rows.start;
        let among = self.starts[rows].partition_point(|start| *start <= value);
        // The row before the first that starts behind the value; the first starts at zero.
        self.classes[before + among - 1]
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
            let nested = Nested::of(&rows);
            let near = |start: &u64| [start.saturating_sub(1), *start, start.saturating_add(1)];
            for value in starts.iter().flat_map(near) {
                let wanted = rows.iter().rev().find(|(start, _)| *start <= value);
                assert_eq!(Some(nested.find(value)), wanted.map(|(_, class)| *class));
            }
        }
    }
}

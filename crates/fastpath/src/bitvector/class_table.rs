//! Class table: maps a value of a field to its equivalence class, the set of values that the same
//! rules accept.

use crate::interval_table::IntervalTable;
use crate::packed_key::{BitRange, PackedKey};

/// Cost of a class that is searched in intervals, and of one that is looked up in a table, in
/// instructions as callgrind counts them.
pub(super) const SEARCH_COST: usize = 75;
pub(super) const TABLE_COST: usize = 22;

/// Values of a page: those of eight bits.
const PAGE: usize = 256;

/// A field, and the class of each of its values.
#[derive(Debug)]
pub(super) struct ClassTable {
    range: BitRange,
    full_mask: u64,
    form: ClassForm,
}

/// Mapping from values to classes, by width of the field.
#[derive(Debug)]
enum ClassForm {
    /// Up to 8 bits.
    Page(Box<[u16; PAGE]>),
    /// Up to 16 bits.
    Pages(ClassPages),
    /// More than 16 bits.
    Intervals(IntervalTable),
}

/// A page for each value of the upper eight bits, with the class of each value of the lower eight.
/// Equal pages are stored once: rules match few values, or ranges that start and end at a page.
#[derive(Debug)]
struct ClassPages {
    /// Page of each value of the upper bits.
    pages: Box<[u16; PAGE]>,
    classes: Box<[[u16; PAGE]]>,
}

impl ClassPages {
    /// Pages with the classes of `intervals`.
    fn of(intervals: &IntervalTable) -> Self {
        let mut classes: Vec<[u16; PAGE]> = Vec::new();
        let mut pages = Box::new([0; PAGE]);
        for (upper, number) in (0..).zip(pages.iter_mut()) {
            let page = page_at(intervals, upper * PAGE as u64);
            let equal = classes.iter().position(|other| *other == page);
            let index = equal.unwrap_or_else(|| {
                classes.push(page);
                classes.len() - 1
            });
            *number = index.try_into().expect("there are at most 256 pages");
        }
        let classes = classes.into();
        Self { pages, classes }
    }

    #[inline]
    fn find(&self, value: u64) -> u16 {
        let [lower, upper, ..] = value.to_le_bytes();
        let page = &self.classes[usize::from(self.pages[usize::from(upper)])];
        page[usize::from(lower)]
    }
}

/// Classes of the 256 values from `first`.
fn page_at(intervals: &IntervalTable, first: u64) -> [u16; PAGE] {
    let mut marks = intervals.marks_from(first);
    [0; PAGE].map(|_| marks.next().map_or(0, narrow))
}

/// The class that is stored as the mark of an interval.
#[inline]
fn narrow(mark: u32) -> u16 {
    let [a, b, ..] = mark.to_le_bytes();
    u16::from_le_bytes([a, b])
}

impl ClassTable {
    /// The table for classes below 65,536 that are the marks of `intervals`.
    pub(super) fn of_intervals(range: BitRange, intervals: IntervalTable) -> Self {
        let form = match range.bits {
            0..=8 => ClassForm::Page(Box::new(page_at(&intervals, 0))),
            9..=16 => ClassForm::Pages(ClassPages::of(&intervals)),
            _ => ClassForm::Intervals(intervals),
        };
        Self::with(range, form)
    }

    /// The table for a field of up to eight bits, with the class of each value.
    pub(super) fn of_octet(range: BitRange, classes: Box<[u16; PAGE]>) -> Self {
        Self::with(range, ClassForm::Page(classes))
    }

    /// The table of one class that contains all packets.
    pub(super) fn of_single_class() -> Self {
        let range = BitRange {
            word: 0,
            shift: 0,
            bits: 1,
        };
        Self::of_octet(range, Box::new([0; PAGE]))
    }

    fn with(range: BitRange, form: ClassForm) -> Self {
        let full_mask = range.full_mask();
        Self {
            range,
            full_mask,
            form,
        }
    }

    #[inline]
    fn value(&self, key: &PackedKey) -> u64 {
        key.word(self.range.word) >> self.range.shift & self.full_mask
    }

    /// Class of a packet.
    #[inline]
    pub(super) fn find(&self, key: &PackedKey) -> u16 {
        let value = self.value(key);
        match &self.form {
            ClassForm::Page(classes) => classes[usize::from(value.to_le_bytes()[0])],
            ClassForm::Pages(pages) => pages.find(value),
            ClassForm::Intervals(intervals) => narrow(intervals.find(value)),
        }
    }

    /// Calls `store` with the index and the class of each packet. The form is selected once, not
    /// for each packet.
    #[inline]
    pub(super) fn find_each<'k>(
        &self,
        keys: impl Iterator<Item = &'k PackedKey>,
        mut store: impl FnMut(usize, u16),
    ) {
        let values = keys.map(|key| self.value(key)).enumerate();
        match &self.form {
            ClassForm::Page(classes) => {
                for (index, value) in values {
                    store(index, classes[usize::from(value.to_le_bytes()[0])]);
                }
            }
            ClassForm::Pages(pages) => {
                for (index, value) in values {
                    store(index, pages.find(value));
                }
            }
            ClassForm::Intervals(intervals) => {
                for (index, value) in values {
                    store(index, narrow(intervals.find(value)));
                }
            }
        }
    }

    /// True if a class is found by a search and not by one or two table accesses.
    pub(super) const fn is_searched(&self) -> bool {
        matches!(self.form, ClassForm::Intervals(_))
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.form {
            ClassForm::Page(classes) => size_of_val(&**classes),
            ClassForm::Pages(ClassPages { pages, classes }) => {
                size_of_val(&**pages) + size_of_val(&**classes)
            }
            ClassForm::Intervals(intervals) => intervals.bytes(),
        }
    }
}

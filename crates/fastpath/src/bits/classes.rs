//! From a value of a field to its class: values that the same rules want. What the classes
//! mean is theirs who asked for them.

use crate::lanes::{Lanes, Spot};
use crate::rows::Rows;

/// What it takes to search a class, and to look one up that is not searched, in instructions as
/// callgrind counts them.
pub(super) const SEARCH: usize = 75;
pub(super) const LOOK: usize = 22;

/// Values of a page: as many as eight bits tell apart.
const PAGE: usize = 256;

/// A field, and the class of each of its values.
#[derive(Debug)]
pub(super) struct Classes {
    spot: Spot,
    full: u64,
    form: Form,
}

/// How a value's class is found.
#[derive(Debug)]
enum Form {
    /// Of eight bits at most.
    Octet(Box<[u16; PAGE]>),
    /// Of sixteen bits at most.
    Pages(Pages),
    /// Of more, in rows.
    Rows(Rows),
}

/// A page by the upper eight bits, and the class in it by the lower. Pages that are alike are
/// there once: rules want few values, or ranges that begin and end with pages.
#[derive(Debug)]
struct Pages {
    /// By upper bits, where the page begins.
    first: Box<[u16; PAGE]>,
    classes: Box<[[u16; PAGE]]>,
}

impl Pages {
    /// Pages in which each value has the class that it has in `rows`.
    fn of(rows: &Rows) -> Self {
        let mut classes: Vec<[u16; PAGE]> = Vec::new();
        let mut first = Box::new([0; PAGE]);
        for (upper, first) in (0..).zip(first.iter_mut()) {
            let page = page_of(rows, upper * PAGE as u64);
            let known = classes.iter().position(|known| *known == page);
            let number = known.unwrap_or_else(|| {
                classes.push(page);
                classes.len() - 1
            });
            *first = number.try_into().expect("there are 256 at most");
        }
        let classes = classes.into();
        Self { first, classes }
    }

    #[inline]
    fn find(&self, value: u64) -> u16 {
        let [lower, upper, ..] = value.to_le_bytes();
        let page = &self.classes[usize::from(self.first[usize::from(upper)])];
        page[usize::from(lower)]
    }
}

/// The classes of 256 values from `first` on.
fn page_of(rows: &Rows, first: u64) -> [u16; PAGE] {
    let mut marks = rows.marks_from(first);
    [0; PAGE].map(|_| marks.next().map_or(0, narrow))
}

/// A class's number, as it stands in rows.
#[inline]
fn narrow(mark: u32) -> u16 {
    let [a, b, ..] = mark.to_le_bytes();
    u16::from_le_bytes([a, b])
}

impl Classes {
    /// The class that `rows` tell of each value, which is below 65,536.
    pub(super) fn of_rows(spot: Spot, rows: Rows) -> Self {
        let form = match spot.bits {
            0..=8 => Form::Octet(Box::new(page_of(&rows, 0))),
            9..=16 => Form::Pages(Pages::of(&rows)),
            _ => Form::Rows(rows),
        };
        Self::with(spot, form)
    }

    /// The class of each value of eight bits at most.
    pub(super) fn of_octet(spot: Spot, each: Box<[u16; PAGE]>) -> Self {
        Self::with(spot, Form::Octet(each))
    }

    /// One class, of all frames.
    pub(super) fn of_one() -> Self {
        let spot = Spot {
            lane: 0,
            shift: 0,
            bits: 1,
        };
        Self::of_octet(spot, Box::new([0; PAGE]))
    }

    fn with(spot: Spot, form: Form) -> Self {
        let full = spot.full();
        Self { spot, full, form }
    }

    #[inline]
    fn value(&self, lanes: &Lanes) -> u64 {
        lanes.word(self.spot.lane) >> self.spot.shift & self.full
    }

    /// The class of a frame.
    #[inline]
    pub(super) fn find(&self, lanes: &Lanes) -> u16 {
        let value = self.value(lanes);
        match &self.form {
            Form::Octet(each) => each[usize::from(value.to_le_bytes()[0])],
            Form::Pages(pages) => pages.find(value),
            Form::Rows(rows) => narrow(rows.find(value)),
        }
    }

    /// Says of each of these frames what `find` says of one. What is told apart here is not
    /// told frame by frame.
    #[inline]
    pub(super) fn each<'l>(
        &self,
        frames: impl Iterator<Item = &'l Lanes>,
        mut say: impl FnMut(usize, u16),
    ) {
        let values = frames.map(|lanes| self.value(lanes)).enumerate();
        match &self.form {
            Form::Octet(classes) => {
                for (place, value) in values {
                    say(place, classes[usize::from(value.to_le_bytes()[0])]);
                }
            }
            Form::Pages(pages) => {
                for (place, value) in values {
                    say(place, pages.find(value));
                }
            }
            Form::Rows(rows) => {
                for (place, value) in values {
                    say(place, narrow(rows.find(value)));
                }
            }
        }
    }

    /// Whether a search is needed, and not only a look or two.
    pub(super) const fn are_searched(&self) -> bool {
        matches!(self.form, Form::Rows(_))
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.form {
            Form::Octet(each) => size_of_val(&**each),
            Form::Pages(Pages { first, classes }) => {
                size_of_val(&**first) + size_of_val(&**classes)
            }
            Form::Rows(rows) => rows.bytes(),
        }
    }
}

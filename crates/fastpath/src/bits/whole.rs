//! Vectors of few rules, kept whole and in the order in which rules are tried: the first bit
//! that all of a frame's vectors have is the rule that it finds.
//!
//! Fields that are joined have one *column* of vectors: an access list
//! has a column for each address, and one for all else.
//!
//! Cost of a lookup, in modelled instructions: so much for each field whose class is looked
//! up, more for one that is searched, so much for each field that is joined to others, and so
//! much for each word of each column. All words are looked at, whatever the frame: there is no
//! branch to be foreseen.

use sys::vectors::{self, Quad};

use crate::ahead::AHEAD;
use crate::lanes::Lanes;
use crate::places::Places;
use crate::prefix::NONE;

use super::WORD;
use super::classes::{LOOK, SEARCH};
use super::field::{Field, Words};
use super::joint::Joint;

/// Words of a quad.
const WORDS_OF_QUAD: usize = 4;

/// Most rules: a vector has sixteen words then, which are two cache lines.
pub(super) const RULES_MAX: usize = 16 * WORD;

/// Most columns: the classes of all frames of a group are looked up together.
const COLUMNS_MAX: usize = 8;

/// Fields, and by class which rules a frame of it may find.
#[derive(Debug)]
struct Column<const Q: usize> {
    joint: Joint,
    vectors: Box<[[Quad; Q]]>,
}

/// See the top of this file. Vectors have `Q` quads.
#[derive(Debug)]
pub(super) struct Whole<const Q: usize> {
    columns: Box<[Column<Q>]>,
}

/// The fields have too many columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooWide;

impl<const Q: usize> Column<Q> {
    fn of(field: Field) -> Self {
        let vector = |own: &Words| {
            let mut vector = [[0; 4]; Q];
            let words = field.vector(own);
            vector.as_flattened_mut()[..words.len()].copy_from_slice(&words);
            vector
        };
        Self {
            vectors: field.own.iter().map(vector).collect(),
            joint: field.joint,
        }
    }
}

impl<const Q: usize> Whole<Q> {
    /// The vectors of rules that ask for these fields, in the order in which they are tried.
    pub(super) fn of(ranks: &[u32], mut fields: Vec<Field>) -> Result<Self, TooWide> {
        if fields.is_empty() {
            fields.push(Field::of_none(ranks));
        }
        if fields.len() > COLUMNS_MAX {
            return Err(TooWide);
        }
        let columns = fields.into_iter().map(Column::of).collect();
        Ok(Self { columns })
    }

    /// The place of the rule that the frame finds, of those that are `seen`.
    #[inline]
    pub(super) fn find(&self, lanes: &Lanes, seen: impl Fn(usize) -> bool) -> Option<usize> {
        let mut classes = [[0]; COLUMNS_MAX];
        for (class, column) in classes.iter_mut().zip(&self.columns) {
            *class = [column.joint.find(lanes)];
        }
        let mut first = [NONE];
        self.first_of(&classes, &mut first);
        match first {
            [NONE] => None,
            [first] if seen(first as usize) => Some(first as usize),
            [first] => self.find_behind(first as usize, &classes, seen),
        }
    }

    /// The same, where it is known that the `first` of all is not the one.
    #[cold]
    fn find_behind(
        &self,
        first: usize,
        classes: &[[u16; 1]; COLUMNS_MAX],
        seen: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let fits = |place: &usize| {
            let mut both = self.columns.iter().zip(classes);
            both.all(|(column, [class])| {
                let row = column.vectors[usize::from(*class)].as_flattened();
                row[place / WORD] >> (place % WORD) & 1 == 1
            })
        };
        let mut behind = first + 1..Q * WORDS_OF_QUAD * WORD;
        behind.find(|place| fits(place) && seen(*place))
    }

    /// The place of the first rule that each of these frames fits; [`NONE`] of those that fit
    /// none.
    #[inline]
    pub(super) fn first_each(&self, lanes: &[Lanes; AHEAD], of: Places) -> [u32; AHEAD] {
        let mut each = [NONE; AHEAD];
        let mut classes = [[0; AHEAD]; COLUMNS_MAX];
        let lanes = &lanes[..of.end()];
        for (classes, column) in classes.iter_mut().zip(&self.columns) {
            column.joint.find_each(lanes, classes);
        }
        self.first_of(&classes, &mut each[..lanes.len()]);
        each
    }

    /// The first rule of each of as many frames, which have these classes, by column.
    #[inline]
    fn first_of<const N: usize>(&self, classes: &[[u16; N]; COLUMNS_MAX], first: &mut [u32]) {
        let mut columns = [vectors::BitmapColumn { rows: &[], of: &[] }; COLUMNS_MAX];
        let both = self.columns.iter().zip(classes);
        for (to, (column, of)) in columns.iter_mut().zip(both) {
            let rows = &column.vectors;
            *to = vectors::BitmapColumn { rows, of };
        }
        vectors::first_common_bit(&columns[..self.columns.len()], first);
    }

    /// How many fields are searched, how many others there are, and how many columns.
    pub(super) fn extent(&self) -> (usize, usize, usize) {
        let each = self.columns.iter().map(|column| column.joint.extent());
        let (searched, others) = each.fold((0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
        (searched, others, self.columns.len())
    }

    /// What a lookup takes, in modelled instructions.
    pub(super) fn cost(&self) -> usize {
        let (searched, others, columns) = self.extent();
        cost((searched, others), columns * Q)
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let columns = self.columns.iter();
        let columns = columns.map(|column| size_of_val(&*column.vectors) + column.joint.bytes());
        columns.sum()
    }
}

/// How many quads the vectors of so many rules have.
pub(super) const fn quads(rules: usize) -> usize {
    match rules.div_ceil(WORD) {
        ..=4 => 1,
        5..=8 => 2,
        _ => 4,
    }
}

/// What a lookup takes, in instructions as callgrind counts them, where so many fields are
/// searched, so many others looked up, and columns have so many quads.
pub(super) const fn cost((searched, others): (usize, usize), quads: usize) -> usize {
    const ALWAYS: usize = 45;
    const QUAD: usize = 4;
    ALWAYS + searched * SEARCH + others * LOOK + quads * QUAD
}

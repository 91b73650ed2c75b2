//! Dense vectors of few rules: all words are stored, with the bits in match order, so the first
//! common bit of a packet's vectors is the rule that it matches.
//!
//! Fields that are [cross-multiplied](super::cross_product) share a *column* of vectors: an access
//! list has a column for each address, and one for all other fields.
//!
//! ```text
//!             quad 0 (256 rules)            quad 1
//! column 0    [ w0   w1   w2   w3  ]       [ w4 ... ]      class of nw_src
//!             &                            &
//! column 1    [ w0   w1   w2   w3  ]       [ w4 ... ]      class of nw_dst
//!             &                            &
//! column 2    [ w0   w1   w2   w3  ]       [ w4 ... ]      class of all other fields
//!             =
//!             [ 0    0   ..1   .. ]  ->  first bit: rank of the rule
//! ```
//!
//! Cost of a lookup, in modelled instructions: `45 + 75 s + 22 t + 4 c q` for `s` fields that are
//! searched, `t` that are looked up, `c` columns and `q` quads. All words are read, whatever the
//! packet, so no branch depends on it.

use sys::vectors::{self, Quad};

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::packed_key::PackedKey;
use crate::rank::NO_RULE;

use super::WORD;
use super::class_table::{SEARCH_COST, TABLE_COST};
use super::cross_product::CrossProduct;
use super::field_vectors::{FieldVectors, SparseWords};

/// Words of a quad.
const WORDS_OF_QUAD: usize = 4;

/// Most rules: a vector has sixteen words then, which are two cache lines.
pub(super) const RULES_MAX: usize = 16 * WORD;

/// Most columns: the classes of all packets of a batch are found together.
const COLUMNS_MAX: usize = 8;

/// Vectors of one field or product, by class.
#[derive(Debug)]
struct DenseColumn<const Q: usize> {
    classes: CrossProduct,
    vectors: Box<[[Quad; Q]]>,
}

/// Dense vectors of `Q` quads.
#[derive(Debug)]
pub(super) struct DenseVectors<const Q: usize> {
    columns: Box<[DenseColumn<Q>]>,
}

/// The fields need more than [`COLUMNS_MAX`] columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnLimit;

impl<const Q: usize> DenseColumn<Q> {
    fn of(field: FieldVectors) -> Self {
        let vector = |accepting: &SparseWords| {
            let mut vector = [[0; 4]; Q];
            let words = field.vector(accepting);
            vector.as_flattened_mut()[..words.len()].copy_from_slice(&words);
            vector
        };
        Self {
            vectors: field.accepting.iter().map(vector).collect(),
            classes: field.classes,
        }
    }
}

impl<const Q: usize> DenseVectors<Q> {
    /// Builds the vectors of these fields; bits have these ranks, in ascending order.
    pub(super) fn of(ranks: &[u32], mut fields: Vec<FieldVectors>) -> Result<Self, ColumnLimit> {
        if fields.is_empty() {
            fields.push(FieldVectors::of_no_field(ranks));
        }
        if fields.len() > COLUMNS_MAX {
            return Err(ColumnLimit);
        }
        let columns = fields.into_iter().map(DenseColumn::of).collect();
        Ok(Self { columns })
    }

    /// Returns the rank of the first visible rule that the packet satisfies.
    #[inline]
    pub(super) fn find(
        &self,
        key: &PackedKey,
        is_visible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut classes = [[0]; COLUMNS_MAX];
        for (class, column) in classes.iter_mut().zip(&self.columns) {
            *class = [column.classes.find(key)];
        }
        let mut first = [NO_RULE];
        self.first_common(&classes, &mut first);
        match first {
            [NO_RULE] => None,
            [first] if is_visible(first as usize) => Some(first as usize),
            [first] => self.find_after(first as usize, &classes, is_visible),
        }
    }

    /// Returns the first visible rule after `first`, which is not visible.
    #[cold]
    fn find_after(
        &self,
        first: usize,
        classes: &[[u16; 1]; COLUMNS_MAX],
        is_visible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let is_match = |rank: &usize| {
            let mut columns = self.columns.iter().zip(classes);
            columns.all(|(column, [class])| {
                let vector = column.vectors[usize::from(*class)].as_flattened();
                vector[rank / WORD] >> (rank % WORD) & 1 == 1
            })
        };
        let mut later = first + 1..Q * WORDS_OF_QUAD * WORD;
        later.find(|rank| is_match(rank) && is_visible(*rank))
    }

    /// Rank of the first rule that each of these packets satisfies; [`NO_RULE`] for packets
    /// without a match.
    #[inline]
    pub(super) fn first_ranks(
        &self,
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
    ) -> [u32; LOOKUP_BATCH] {
        let mut ranks = [NO_RULE; LOOKUP_BATCH];
        let mut classes = [[0; LOOKUP_BATCH]; COLUMNS_MAX];
        let keys = &keys[..packets.end()];
        for (classes, column) in classes.iter_mut().zip(&self.columns) {
            column.classes.find_each(keys, classes);
        }
        self.first_common(&classes, &mut ranks[..keys.len()]);
        ranks
    }

    /// Writes the first common bit of each packet, with its classes by column.
    #[inline]
    fn first_common<const N: usize>(&self, classes: &[[u16; N]; COLUMNS_MAX], first: &mut [u32]) {
        let mut columns = [vectors::BitmapColumn { rows: &[], of: &[] }; COLUMNS_MAX];
        let own = self.columns.iter().zip(classes);
        for (to, (column, of)) in columns.iter_mut().zip(own) {
            let rows = &column.vectors;
            *to = vectors::BitmapColumn { rows, of };
        }
        vectors::first_common_bit(&columns[..self.columns.len()], first);
    }

    /// Number of fields that are searched, of other fields, and of columns.
    pub(super) fn extent(&self) -> (usize, usize, usize) {
        let columns = self.columns.iter().map(|column| column.classes.extent());
        let (searched, others) = columns.fold((0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
        (searched, others, self.columns.len())
    }

    /// Cost of a lookup in modelled instructions.
    pub(super) fn cost(&self) -> usize {
        let (searched, others, columns) = self.extent();
        cost((searched, others), columns * Q)
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let columns = self.columns.iter();
        let columns = columns.map(|column| size_of_val(&*column.vectors) + column.classes.bytes());
        columns.sum()
    }
}

/// Quads of a vector of so many rules.
pub(super) const fn quads(rules: usize) -> usize {
    match rules.div_ceil(WORD) {
        ..=4 => 1,
        5..=8 => 2,
        _ => 4,
    }
}

/// Cost of a lookup, in instructions as callgrind counts them: `searched` and `others` are numbers
/// of fields, `quads` is the number of quads of all columns.
pub(super) const fn cost((searched, others): (usize, usize), quads: usize) -> usize {
    const LOOKUP: usize = 45;
    const QUAD: usize = 4;
    LOOKUP + searched * SEARCH_COST + others * TABLE_COST + quads * QUAD
}

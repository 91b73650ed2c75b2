//! Vectors of one field while they are built, and the combination of fields with few classes.

use std::collections::BTreeMap;

use super::WORD;
use super::class_table::ClassTable;
use super::cross_product::CrossProduct;
use crate::rank::NO_RULE;

/// Most pairs of classes of a cross-product table, which then takes eight kilobytes.
const PAIRS_MAX: usize = 4096;

/// Most classes of a cross product: the vectors of a thousand rules take 64 kB then.
const PRODUCT_CLASSES_MAX: usize = 512;

/// The words of a vector that are not zero, with their indices.
pub(super) type SparseWords = Vec<(u32, u64)>;

/// Vectors of a field, or of several that are cross-multiplied.
#[derive(Debug)]
pub(super) struct FieldVectors {
    pub(super) classes: CrossProduct,
    /// The rules with a condition on the field that accepts the class, by class.
    pub(super) accepting: Vec<SparseWords>,
    /// The rules without a condition on the field.
    pub(super) wildcard: Vec<u64>,
}

impl FieldVectors {
    /// A field on which no rule has a condition; bits have these ranks.
    pub(super) fn of_no_field(ranks: &[u32]) -> Self {
        Self {
            classes: CrossProduct::of(ClassTable::of_single_class()),
            accepting: vec![SparseWords::new()],
            wildcard: all_rules(ranks),
        }
    }

    /// The complete vector of a class.
    pub(super) fn vector(&self, accepting: &SparseWords) -> Vec<u64> {
        let mut vector = self.wildcard.clone();
        for (word, bits) in accepting {
            vector[*word as usize] |= bits;
        }
        vector
    }

    /// Returns the product of both fields, or `None` if it would have too many classes, or more
    /// words than `words_left`, from which its words are subtracted.
    fn product(&self, other: &Self, words_left: &mut usize) -> Option<ClassProduct> {
        if self.accepting.len() * other.accepting.len() > PAIRS_MAX {
            return None;
        }
        let vectors = |field: &Self| -> Vec<_> {
            let accepting = field.accepting.iter();
            accepting.map(|words| field.vector(words)).collect()
        };
        let (ones, others) = (vectors(self), vectors(other));
        let wildcard = self.wildcard.iter().zip(&other.wildcard);
        let wildcard: Vec<u64> = wildcard.map(|(one, other)| one & other).collect();
        let (mut known, mut table) = (BTreeMap::new(), Vec::new());
        let (mut accepting, mut added) = (Vec::new(), 0);
        for one in &ones {
            for other in &others {
                let words = one.iter().zip(other).zip(&wildcard);
                let words = words.map(|((one, other), wildcard)| one & other & !wildcard);
                let words: SparseWords = (0..).zip(words).filter(|(_, bits)| *bits != 0).collect();
                let class = *known.entry(words).or_insert_with_key(|words| {
                    added += words.len() + 2;
                    accepting.push(words.clone());
                    accepting.len() - 1
                });
                table.push(u16::try_from(class).expect("a product has at most 4096 pairs"));
            }
        }
        let left = words_left.checked_sub(added);
        *words_left = left.filter(|_| accepting.len() <= PRODUCT_CLASSES_MAX)?;
        Some(ClassProduct {
            accepting,
            wildcard,
            table,
        })
    }

    /// Multiplies by another field, with the product of both.
    fn multiply(self, other: Self, product: ClassProduct) -> Self {
        let ClassProduct {
            accepting,
            wildcard,
            table,
        } = product;
        let classes = self
            .classes
            .multiply(other.classes, other.accepting.len(), table);
        Self {
            classes,
            accepting,
            wildcard,
        }
    }
}

/// The classes of two fields combined.
struct ClassProduct {
    accepting: Vec<SparseWords>,
    wildcard: Vec<u64>,
    /// Class of the product, by class of the first field and of the second.
    table: Vec<u16>,
}

/// A bit for each rule, where bits have these ranks.
pub(super) fn all_rules(ranks: &[u32]) -> Vec<u64> {
    let word = |ranks: &[u32]| {
        let ranks = ranks.iter().rev();
        ranks.fold(0, |bits, rank| bits << 1 | u64::from(*rank != NO_RULE))
    };
    ranks.chunks(WORD).map(word).collect()
}

/// Multiplies fields with few classes, in ascending order of their number, as long as the limits
/// allow.
pub(super) fn multiply_small(
    mut fields: Vec<FieldVectors>,
    words_left: &mut usize,
) -> Vec<FieldVectors> {
    fields.sort_by_key(|field| field.accepting.len());
    let mut products: Vec<FieldVectors> = Vec::new();
    for field in fields {
        let product = products.last().map(|last| last.product(&field, words_left));
        match (product.flatten(), products.pop()) {
            (Some(product), Some(last)) => products.push(last.multiply(field, product)),
            (_, last) => products.extend(last.into_iter().chain([field])),
        }
    }
    products
}

//! Conditions of a match field by field. The words of a [`PackedMatch`] hold several fields each;
//! the forms that treat one field after the other (bit vectors, prefix tables) need them apart.
//!
//! [`PackedMatch`]: super::PackedMatch

use flow::Match;

use super::{halves, position_of, word};

/// Bits of one word of a key: the position of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BitRange {
    /// Index of the word.
    pub(crate) word: u8,
    /// Distance of the lowest bit from bit 0.
    pub(crate) shift: u8,
    /// Number of bits, at least one.
    pub(crate) bits: u8,
}

impl BitRange {
    /// The presence bits.
    const PRESENCE: Self = Self {
        word: narrow(word::INGRESS),
        shift: 0,
        bits: 8,
    };

    /// Mask of all its bits, shifted down to bit 0.
    pub(crate) const fn full_mask(self) -> u64 {
        u64::MAX >> (64 - self.bits as u32)
    }
}

/// A condition on one field. `value` and `mask` are shifted down to bit 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldCondition {
    pub(crate) range: BitRange,
    pub(crate) value: u64,
    pub(crate) mask: u64,
}

/// Splits a match into conditions; a field of 128 bits becomes two. Each range occurs once.
pub(crate) fn field_conditions(matching: &Match) -> Vec<FieldCondition> {
    let (mut all, mut presence) = (Vec::new(), 0);
    for term in matching.terms() {
        let position = position_of(term.field);
        presence |= position.presence;
        let ((upper, lower), (upper_mask, lower_mask)) = (halves(term.value), halves(term.mask));
        if position.is_wide {
            all.push(whole_word(position.word, upper, upper_mask));
            all.push(whole_word(position.word + 1, lower, lower_mask));
        } else {
            let shift = u8::try_from(position.shift).expect("a word has 64 bits");
            let range = BitRange {
                word: narrow(position.word),
                shift,
                bits: u8::try_from(term.field.info().bits).expect("the field fits in one word"),
            };
            all.push(FieldCondition {
                range,
                value: lower,
                mask: lower_mask,
            });
        }
    }
    all.push(FieldCondition {
        range: BitRange::PRESENCE,
        value: presence,
        mask: presence,
    });
    all.retain(|condition| condition.mask != 0);
    all
}

fn whole_word(word: usize, value: u64, mask: u64) -> FieldCondition {
    let range = BitRange {
        word: narrow(word),
        shift: 0,
        bits: 64,
    };
    FieldCondition { range, value, mask }
}

/// Index of a word in eight bits.
const fn narrow(word: usize) -> u8 {
    word.to_le_bytes()[0]
}

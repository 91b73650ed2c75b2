//! Bits that all rules of a tuple have in common: a packet that differs in one of them matches none.

use std::sync::Arc;

use pipeline::Rule;

use crate::mask::{HOT_WORDS_MAX, MaskedKey, TupleMask};
use crate::packed_key::{KEY_WORDS, PackedMatch};

/// Bits of a word of the key that all rules have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommonWord {
    pub(crate) index: u8,
    pub(crate) mask: u64,
    pub(crate) value: u64,
}

/// The bits by word of the mask. Bits are only removed.
#[derive(Clone, Debug, Default)]
pub(super) struct CommonBits(Arc<[CommonWord]>);

impl CommonBits {
    /// All bits of the only rule.
    pub(super) fn of_rule(mask: &TupleMask, rule: &Rule) -> Self {
        let values = PackedMatch::of(rule.matching()).values;
        let word = |&(index, mask): &(u8, u64)| CommonWord {
            index,
            mask,
            value: values.word(index) & mask,
        };
        Self(mask.words().iter().map(word).collect())
    }

    /// Words of the mask.
    pub(super) fn words(&self) -> &[CommonWord] {
        &self.0
    }

    /// Removes the bits in which one more rule differs, whose masked key is given. Returns true if
    /// there are any.
    pub(super) fn narrow(&mut self, mask: &TupleMask, key: &MaskedKey, rule: &Rule) -> bool {
        if mask.hot_words() != 0 {
            return self.narrow_to::<HOT_WORDS_MAX>(&key.words);
        }
        let packed = PackedMatch::of(rule.matching());
        let mut values = [0; KEY_WORDS];
        for (value, common) in values.iter_mut().zip(self.words()) {
            *value = packed.values.word(common.index);
        }
        self.narrow_to(&values)
    }

    /// Removes the bits in which these values of the words differ.
    #[inline]
    fn narrow_to<const N: usize>(&mut self, values: &[u64; N]) -> bool {
        let pairs = || self.0.iter().zip(values);
        let differing = |(word, value): (&CommonWord, &u64)| (word.value ^ value) & word.mask;
        if pairs().all(|pair| differing(pair) == 0) {
            return false;
        }
        let narrowed = pairs().map(|(word, value)| {
            let same = !differing((word, value));
            CommonWord {
                mask: word.mask & same,
                value: word.value & same,
                ..*word
            }
        });
        self.0 = narrowed.collect();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_bits_are_those_in_which_no_rule_differs() {
        let word = |mask, value| CommonWord {
            index: 3,
            mask,
            value,
        };
        let mut common = CommonBits(Arc::new([word(0xff, 0x12), word(0xf, 5)]));
        assert!(!common.narrow_to(&[0x12, 5]));
        assert!(common.narrow_to(&[0x13, 5]));
        assert_eq!(common.words(), [word(0xfe, 0x12), word(0xf, 5)]);
        assert!(!common.narrow_to(&[0x12, 5]), "bits do not return");
        assert!(common.narrow_to(&[0xf2, 4]));
        assert_eq!(common.words(), [word(0x1e, 0x12), word(0xe, 4)]);
    }
}

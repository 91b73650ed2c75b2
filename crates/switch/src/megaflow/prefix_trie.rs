//! The set of prefixes of one field that a table's rules match, which tells a lookup the length up
//! to which a value must be examined to exclude all prefixes that do not contain it.
//!
//! ```text
//!   10.0.0.0/8 --+-- 10.1.0.0/16     the value 10.2.3.4 is inside 10.0.0.0/8, and differs from
//!                |                   10.1.0.0/16 at bit 15: prefixes of length 8 may match, and
//!                +-- 10.1.2.0/24     15 bits decide that no longer one does
//! ```
//!
//! Open vSwitch walks a compressed binary trie; its result depends only on the set, so the prefixes
//! are a list here. A lookup costs O(n) for n prefixes: it is cold code.

use std::collections::BTreeSet;

/// A set of prefixes of values with `bits` bits.
#[derive(Clone, Debug)]
pub(super) struct PrefixTrie {
    bits: u32,
    /// Value and length.
    prefixes: BTreeSet<(u128, u32)>,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrefixSearch {
    /// The number of leading bits that decide which prefixes contain the value.
    pub(super) examined: u32,
    /// Bit `n - 1` is set if a prefix of length `n` contains the value.
    pub(super) lengths: u128,
}

impl PrefixTrie {
    /// Returns an empty set for values with `bits` bits.
    pub(super) const fn new(bits: u32) -> Self {
        Self {
            bits,
            prefixes: BTreeSet::new(),
        }
    }

    /// Adds a prefix; `len` is not zero.
    pub(super) fn insert(&mut self, value: u128, len: u32) {
        self.prefixes.insert((value, len));
    }

    /// Returns the bits of `value` that decide which prefixes contain it, and their lengths.
    pub(super) fn search(&self, value: u128) -> PrefixSearch {
        let top = u128::BITS - self.bits;
        let common = |(prefix, len): &(u128, u32)| {
            let equal = ((prefix ^ value) << top).leading_zeros().min(self.bits);
            (equal.min(*len), *len)
        };
        let matched = self.prefixes.iter().map(common);
        let deepest = matched.clone().map(|(equal, _)| equal).max().unwrap_or(0);
        let has_longer = matched
            .clone()
            .any(|(equal, len)| equal == deepest && len > deepest);
        let complete = matched.filter(|(equal, len)| equal == len);
        PrefixSearch {
            examined: (deepest + u32::from(has_longer)).min(self.bits),
            lengths: complete.fold(0, |lengths, (_, len)| lengths | 1 << (len - 1)),
        }
    }
}

impl PrefixSearch {
    /// The result for a packet without the field: all prefixes may match.
    pub(super) const ALL: Self = Self {
        examined: 0,
        lengths: u128::MAX,
    };

    /// Returns true if a prefix of this length may contain the value.
    pub(super) const fn may_match(self, len: u32) -> bool {
        self.lengths >> (len - 1) & 1 == 1
    }
}

/// Returns the mask of the first `len` of `bits` bits.
pub(super) const fn prefix_mask(bits: u32, len: u32) -> u128 {
    match len {
        0 => 0,
        _ => (u128::MAX << (u128::BITS - len)) >> (u128::BITS - bits),
    }
}

/// Returns the length of a mask with `bits` bits that is a prefix; zero for other masks.
pub(super) const fn prefix_len(bits: u32, mask: u128) -> u32 {
    let len = mask.count_ones();
    if len == 0 || prefix_mask(bits, len) != mask {
        0
    } else {
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trie(prefixes: &[(u128, u32)]) -> PrefixTrie {
        let mut trie = PrefixTrie::new(32);
        for (value, len) in prefixes {
            trie.insert(*value, *len);
        }
        trie
    }

    #[test]
    fn empty_set_examines_nothing() {
        assert_eq!(
            trie(&[]).search(1),
            PrefixSearch {
                examined: 0,
                lengths: 0
            }
        );
    }

    #[test]
    fn search_examines_up_to_first_differing_bit() {
        let trie = trie(&[(0x0a00_0000, 8), (0x0a01_0000, 16), (0x0a01_0200, 24)]);
        let found = trie.search(0x0a02_0304);
        assert_eq!((found.examined, found.lengths), (15, 1 << 7));
        assert!(found.may_match(8) && !found.may_match(16));
        let found = trie.search(0x0a01_0203);
        assert_eq!(
            (found.examined, found.lengths),
            (24, 1 << 7 | 1 << 15 | 1 << 23)
        );
        assert_eq!(trie.search(0x0b00_0000).examined, 8);
    }

    #[test]
    fn masks_are_prefixes_if_their_ones_are_leading() {
        assert_eq!(prefix_mask(32, 30), 0xffff_fffc);
        assert_eq!(prefix_len(32, 0xffff_fffc), 30);
        assert_eq!(prefix_len(32, 0xff), 0);
        assert_eq!(prefix_len(128, u128::MAX), 128);
        assert_eq!((prefix_mask(16, 0), prefix_len(16, 0)), (0, 0));
    }
}

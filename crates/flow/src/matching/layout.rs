//! Layout of the terms in a match. Rules that are added one after the other mostly have terms on
//! the same fields; comparing all heads at once avoids reading from term to term, where each step
//! depends on the previous one.

use super::Match;
use super::packed::{INLINE, PackedTerms, TermHead};

/// Words that cover all bytes of an inline match; the last word ends where the bytes end.
const WORDS: usize = INLINE.div_ceil(8);

/// Layout of an inline match. Matches on the same fields, with masks on the same of them, have
/// equal layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermLayout {
    /// Positions of the heads and of the end.
    mask: [u64; WORDS],
    /// Values at these positions.
    heads: [u64; WORDS],
}

impl TermLayout {
    /// Returns the layout of a match, or `None` if it is not inline.
    #[must_use]
    pub fn of(matching: &Match) -> Option<Self> {
        let PackedTerms::Inline(bytes) = &matching.packed else {
            return None;
        };
        let (mut mask, mut at) = ([0; INLINE], 0);
        while let Some(here) = mask.get_mut(at) {
            *here = u8::MAX;
            let Some(term) = TermHead::of(bytes[at]) else {
                break;
            };
            at += 1 + (term.width << u32::from(term.is_masked));
        }
        let (mask, all) = (words(&mask), words(bytes));
        let heads = std::array::from_fn(|word| all[word] & mask[word]);
        Some(Self { mask, heads })
    }

    /// True if the match has this layout.
    #[inline]
    #[must_use]
    pub fn is_of(&self, matching: &Match) -> bool {
        let PackedTerms::Inline(bytes) = &matching.packed else {
            return false;
        };
        let words = words(bytes);
        let wrong = |word: usize| words[word] & self.mask[word] ^ self.heads[word];
        (0..WORDS).fold(0, |all, word| all | wrong(word)) == 0
    }
}

/// All bytes, some of them twice.
#[inline]
fn words(bytes: &[u8; INLINE]) -> [u64; WORDS] {
    std::array::from_fn(|word| {
        let at = (8 * word).min(INLINE - 8);
        let eight = bytes[at..].first_chunk();
        u64::from_be_bytes(*eight.expect("there are eight"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_of_the_same_heads_are_laid_out_alike() {
        let lines = [
            "",
            "in_port=1",
            "in_port=2",
            "tcp,tp_dst=80",
            "tcp,tp_dst=81",
            "udp,tp_dst=80",
            "tcp,tp_dst=80/0xfff0",
            "tcp,tp_src=80",
            "ip,nw_src=10.0.0.1,nw_dst=10.0.0.2",
            "ip,nw_src=10.0.0.0/8,nw_dst=10.0.0.2",
            "ip,nw_src=11.0.0.0/8,nw_dst=10.0.0.3",
            "tun_metadata0=5",
            "ipv6_src=::1,ipv6_dst=::2,ipv6",
        ];
        let matches = lines.map(|line| line.parse::<Match>().expect(line));
        let heads = |matching: &Match| -> Vec<_> {
            let terms = matching.terms();
            terms.map(|term| (term.field, term.is_exact())).collect()
        };
        for one in &matches {
            let Some(layout) = TermLayout::of(one) else {
                assert!(one.as_bytes().len() > INLINE);
                continue;
            };
            for other in &matches {
                let same = heads(one) == heads(other)
                    && one.options().count() == other.options().count()
                    && other.as_bytes().len() == INLINE;
                assert_eq!(layout.is_of(other), same, "{one:?} and {other:?}");
            }
        }
    }
}

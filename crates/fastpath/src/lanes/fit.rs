//! Whether the words of a frame are what a rule wants, and which words that would be: its
//! match is read as it is kept, term by term, and each term is turned to where its field
//! lies among the words.

use flow::{Match, TermHead};

use super::{Conditions, LANES, Lanes, halves, lane, place};

/// How a term with a certain head is compared.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Which bits of the word are the field's; of one of 128 bits, all of both words.
    mask: u64,
    /// Bits of the first word that must be set: the field is there.
    has: u8,
    kind: Kind,
    /// The word, or the first of two.
    lane: u8,
    /// The eight bytes behind the head, as a number, are turned right so far.
    turn: u8,
    /// Bytes behind the head.
    length: u8,
}

/// What stands behind a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// No term, nor anything behind.
    End,
    /// A value.
    Exact,
    /// A value and a mask.
    Masked,
    /// A value of 128 bits.
    Wide,
    /// A value and a mask of 128 bits.
    WideMasked,
}

/// By the head.
static ROWS: [Row; 256] = {
    let mut rows = [Row::END; 256];
    let mut head: u8 = 0;
    while head < u8::MAX {
        head += 1;
        rows[head as usize] = Row::of(head);
    }
    rows
};

impl Row {
    const END: Self = Self {
        mask: 0,
        has: 0,
        kind: Kind::End,
        lane: 0,
        turn: 0,
        length: 0,
    };

    #[expect(
        clippy::cast_possible_truncation,
        reason = "there is no other conversion in a constant, and the numbers are small"
    )]
    const fn of(head: u8) -> Self {
        let Some(term) = TermHead::of(head) else {
            return Self::END;
        };
        let Some(place) = place(term.field) else {
            return Self::END;
        };
        let kind = match (place.is_wide, term.is_masked) {
            (false, false) => Kind::Exact,
            (false, true) => Kind::Masked,
            (true, false) => Kind::Wide,
            (true, true) => Kind::WideMasked,
        };
        let mask = (term.field.full_mask() as u64) << place.shift;
        let uppermost = u64::BITS.saturating_sub(8 * term.width as u32);
        Self {
            mask,
            has: place.has as u8,
            kind,
            lane: place.lane as u8,
            turn: ((u64::BITS + uppermost - place.shift) % u64::BITS) as u8,
            length: (term.width as u8) << term.is_masked as u8,
        }
    }
}

impl Lanes {
    /// Whether the frame is one that `matching` accepts. As a rule's are those words
    /// that it wants, and so this tells too whether two rules of one shape want the same.
    ///
    /// Most terms have a value of up to 64 bits and no mask, and more bytes behind them.
    #[inline]
    pub(crate) fn fit(&self, matching: &Match) -> bool {
        let mut rest = matching.as_bytes();
        let (mut needed, mut wrong) = (0, 0);
        while let Some((head, behind)) = rest.split_first()
            && *head != 0
        {
            let row = &ROWS[usize::from(*head)];
            let (Kind::Exact, Some(word)) = (row.kind, behind.first_chunk()) else {
                let (behind_needed, behind_wrong) = self.fit_slowly(rest);
                needed |= behind_needed;
                wrong |= behind_wrong;
                break;
            };
            wrong |= self.differ(row, u64::from_be_bytes(*word), u64::MAX);
            needed |= row.has;
            rest = behind.get(usize::from(row.length)..).unwrap_or_default();
        }
        self.has(needed) && wrong == 0
    }

    /// What must be there for terms of all kinds, and bits in which the frame is not what
    /// they want.
    fn fit_slowly(&self, mut rest: &[u8]) -> (u8, u64) {
        let (mut needed, mut wrong) = (0, 0);
        while let Some((head, behind)) = rest.split_first() {
            let row = &ROWS[usize::from(*head)];
            let masks = &behind[usize::from(row.length / 2)..];
            wrong |= match row.kind {
                Kind::Exact => self.differ(row, first_word(behind), u64::MAX),
                Kind::Masked => self.differ(row, first_word(behind), first_word(masks)),
                Kind::Wide => self.differ_widely(row, first_wide(behind), u128::MAX),
                Kind::WideMasked => self.differ_widely(row, first_wide(behind), first_wide(masks)),
                Kind::End => break,
            };
            needed |= row.has;
            rest = &behind[usize::from(row.length)..];
        }
        (needed, wrong)
    }

    /// Bits in which a word is not what a term wants whose value and mask these eight
    /// bytes begin with.
    #[inline]
    fn differ(&self, row: &Row, value: u64, mask: u64) -> u64 {
        let [value, mask] = [value, mask].map(|word| word.rotate_right(row.turn.into()));
        (value ^ self.word(row.lane)) & mask & row.mask
    }

    /// The same of two words.
    fn differ_widely(&self, row: &Row, value: u128, mask: u128) -> u64 {
        let ((upper, lower), masks) = (halves(value), halves(mask));
        (upper ^ self.word(row.lane)) & masks.0 | (lower ^ self.word(row.lane + 1)) & masks.1
    }

    #[inline]
    fn has(&self, needed: u8) -> bool {
        !self.0[lane::ARRIVAL] & u64::from(needed) == 0
    }
}

impl Conditions {
    /// What `matching` asks; none if it asks for what words do not have: tunnel options are
    /// rare, and wider than all the rest.
    pub(crate) fn if_of_words(matching: &Match) -> Option<Self> {
        let (mut conditions, mut needed) = (Self::none(), 0);
        let mut rest = matching.as_bytes();
        while let Some((head, behind)) = rest.split_first()
            && *head != 0
        {
            let row = &ROWS[usize::from(*head)];
            let masks = || &behind[usize::from(row.length / 2)..];
            match row.kind {
                Kind::Exact => {
                    let value = first_word(behind).rotate_right(row.turn.into());
                    conditions.and(row.lane, value & row.mask, row.mask);
                }
                Kind::Masked => conditions.want(row, first_word(behind), first_word(masks())),
                Kind::Wide => conditions.want_widely(row, first_wide(behind), u128::MAX),
                Kind::WideMasked => {
                    conditions.want_widely(row, first_wide(behind), first_wide(masks()));
                }
                Kind::End => return None,
            }
            needed |= u64::from(row.has);
            rest = &behind[usize::from(row.length)..];
        }
        conditions.and(0, needed, needed);
        Some(conditions)
    }

    /// And what a term wants whose value and mask these eight bytes begin with.
    fn want(&mut self, row: &Row, value: u64, mask: u64) {
        let [value, mask] = [value, mask].map(|word| word.rotate_right(row.turn.into()));
        self.and(row.lane, value & mask & row.mask, mask & row.mask);
    }

    /// The same of two words.
    fn want_widely(&mut self, row: &Row, value: u128, mask: u128) {
        let ((upper, lower), masks) = (halves(value), halves(mask));
        self.and(row.lane, upper, masks.0);
        self.and(row.lane + 1, lower, masks.1);
    }
}

const _: () = assert!(
    lane::ARRIVAL == 0,
    "what is there is told in the first word"
);

/// The first eight bytes, and zeros if there are no more.
#[inline]
fn first_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk() {
        return u64::from_be_bytes(*word);
    }
    let mut word = [0; 8];
    let count = bytes.len().min(word.len());
    word[..count].copy_from_slice(&bytes[..count]);
    u64::from_be_bytes(word)
}

/// The first sixteen bytes.
fn first_wide(bytes: &[u8]) -> u128 {
    let wide = bytes.first_chunk();
    u128::from_be_bytes(*wide.expect("a term of 128 bits is whole"))
}

const _: () = assert!(
    LANES <= u8::MAX as usize,
    "a word has a number of eight bits"
);

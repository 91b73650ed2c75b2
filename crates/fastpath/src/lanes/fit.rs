//! Whether the words of a frame are what a rule wants, and which words that would be: its
//! match is read as it is kept, term by term, and each term is turned to where its field
//! lies among the words.

use flow::{Match, TermHead, TermLayout};

use super::{Conditions, LANES, Lanes, lane, place};

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
    /// It calls nothing, since every frame that finds a rule is compared with it so.
    #[inline]
    pub(crate) fn fit(&self, matching: &Match) -> bool {
        let mut bytes = matching.as_bytes();
        let (mut needed, mut wrong) = (0, 0);
        // Most terms are short and exact, and more bytes are behind them.
        while let Some([head, value @ ..]) = bytes.first_chunk::<9>() {
            let row = &ROWS[usize::from(*head)];
            if row.kind != Kind::Exact {
                break;
            }
            wrong |= self.differ(row, u64::from_be_bytes(*value), u64::MAX);
            needed |= row.has;
            bytes = &bytes[1 + usize::from(row.length)..];
        }
        let mut at = 0;
        while let Some(head) = bytes.get(at) {
            let row = &ROWS[usize::from(*head)];
            let value = at + 1;
            wrong |= match row.kind {
                Kind::Exact => self.differ(row, word_at(bytes, value), u64::MAX),
                Kind::Masked => {
                    let mask = value + usize::from(row.length / 2);
                    self.differ(row, word_at(bytes, value), word_at(bytes, mask))
                }
                Kind::Wide => self.differ_widely(row, bytes, value, None),
                Kind::WideMasked => self.differ_widely(row, bytes, value, Some(value + 16)),
                Kind::End => break,
            };
            needed |= row.has;
            at = value + usize::from(row.length);
        }
        let missing = !self.0[lane::ARRIVAL] & u64::from(needed);
        wrong | missing == 0
    }

    /// The words of a frame that has what `matching` wants, and nothing else; none unless
    /// it wants the whole of the same fields as `other`, whose shape is its own then.
    pub(crate) fn wanted(matching: &Match, other: &Match) -> Option<Self> {
        let (bytes, others) = (matching.as_bytes(), other.as_bytes());
        let (mut wanted, mut needed, mut at) = (Self::new(), 0, 0);
        while let Some(head) = bytes.get(at)
            && *head != 0
        {
            if others.get(at) != Some(head) {
                return None;
            }
            let row = &ROWS[usize::from(*head)];
            let (lane, value) = (usize::from(row.lane), at + 1);
            match row.kind {
                Kind::Exact => {
                    let value = word_at(bytes, value).rotate_right(row.turn.into());
                    wanted.0[lane % LANES] |= value & row.mask;
                }
                Kind::Wide => {
                    wanted.0[lane % LANES] |= word_at(bytes, value);
                    wanted.0[(lane + 1) % LANES] |= word_at(bytes, value + 8);
                }
                Kind::Masked | Kind::WideMasked | Kind::End => return None,
            }
            needed |= row.has;
            at = value + usize::from(row.length);
        }
        wanted.0[lane::ARRIVAL] |= u64::from(needed);
        let is_end = others.get(at).is_none_or(|head| *head == 0);
        is_end.then_some(wanted)
    }

    /// Bits in which a word is not what a term wants whose value and mask these eight
    /// bytes begin with.
    #[inline]
    fn differ(&self, row: &Row, value: u64, mask: u64) -> u64 {
        let [value, mask] = [value, mask].map(|word| word.rotate_right(row.turn.into()));
        (value ^ self.word(row.lane)) & mask & row.mask
    }

    /// The same of two words, whose values and masks are there in the bytes.
    #[inline]
    fn differ_widely(&self, row: &Row, bytes: &[u8], value: usize, mask: Option<usize>) -> u64 {
        let half = |half: u8| {
            let behind = 8 * usize::from(half);
            let mask = mask.map_or(u64::MAX, |mask| word_at(bytes, mask + behind));
            (word_at(bytes, value + behind) ^ self.word(row.lane + half)) & mask
        };
        half(0) | half(1)
    }
}

/// Terms of a short match at most: each has two bytes.
const TERMS_MAX: usize = 24;

/// Where the words of a rule are told by its match, for rules laid out alike which ask for the
/// whole of their fields.
#[derive(Debug)]
pub(crate) struct Reading {
    layout: TermLayout,
    /// Where each value begins, and how it is turned.
    terms: [(u8, Row); TERMS_MAX],
    count: usize,
    needed: u8,
}

impl Reading {
    /// Those of a match; none if it is long, or asks for a part of a field.
    pub(crate) fn of(matching: &Match) -> Option<Self> {
        let (layout, bytes) = (TermLayout::of(matching)?, matching.as_bytes());
        let mut reading = Self {
            layout,
            terms: [(0, Row::END); TERMS_MAX],
            count: 0,
            needed: 0,
        };
        let mut at = 0;
        while let Some(head) = bytes.get(at)
            && *head != 0
        {
            let row = ROWS[usize::from(*head)];
            if row.kind != Kind::Exact {
                return None;
            }
            *reading.terms.get_mut(reading.count)? = (u8::try_from(at + 1).ok()?, row);
            reading.count += 1;
            reading.needed |= row.has;
            at += 1 + usize::from(row.length);
        }
        Some(reading)
    }

    /// What `tell` tells of the words of a frame that has what `matching` wants, and nothing
    /// else; none unless it is laid out so.
    pub(crate) fn told<T>(&self, matching: &Match, tell: impl FnOnce(&Lanes) -> T) -> Option<T> {
        if !self.layout.is_of(matching) {
            return None;
        }
        let (bytes, mut wanted) = (matching.as_bytes(), Lanes::new());
        for (at, row) in &self.terms[..self.count] {
            let value = word_at(bytes, (*at).into()).rotate_right(row.turn.into());
            wanted.0[usize::from(row.lane) % LANES] |= value & row.mask;
        }
        wanted.0[lane::ARRIVAL] |= u64::from(self.needed);
        Some(tell(&wanted))
    }
}

impl Conditions {
    /// What `matching` asks; none if it asks for what words do not have: tunnel options are
    /// rare, and wider than all the rest.
    pub(crate) fn if_of_words(matching: &Match) -> Option<Self> {
        let bytes = matching.as_bytes();
        let (mut conditions, mut needed, mut at) = (Self::none(), 0, 0);
        while let Some(head) = bytes.get(at)
            && *head != 0
        {
            let row = &ROWS[usize::from(*head)];
            let value = at + 1;
            let mask = value + usize::from(row.length / 2);
            match row.kind {
                Kind::Exact => conditions.want(row, word_at(bytes, value), u64::MAX),
                Kind::Masked => conditions.want(row, word_at(bytes, value), word_at(bytes, mask)),
                Kind::Wide => conditions.want_widely(row, bytes, value, None),
                Kind::WideMasked => conditions.want_widely(row, bytes, value, Some(mask)),
                Kind::End => return None,
            }
            needed |= u64::from(row.has);
            at = value + usize::from(row.length);
        }
        conditions.and(PRESENCE, needed, needed);
        Some(conditions)
    }

    /// And what a term wants whose value and mask these eight bytes begin with.
    #[inline]
    fn want(&mut self, row: &Row, value: u64, mask: u64) {
        let [value, mask] = [value, mask].map(|word| word.rotate_right(row.turn.into()));
        self.and(row.lane, value & mask & row.mask, mask & row.mask);
    }

    /// The same of two words, whose values and masks are there in the bytes.
    fn want_widely(&mut self, row: &Row, bytes: &[u8], value: usize, mask: Option<usize>) {
        for (half, behind) in [(0, 0), (1, 8)] {
            let mask = mask.map_or(u64::MAX, |mask| word_at(bytes, mask + behind));
            self.and(row.lane + half, word_at(bytes, value + behind), mask);
        }
    }
}

/// The word in which is told what there is.
const PRESENCE: u8 = 0;

const _: () = assert!(lane::ARRIVAL == PRESENCE as usize, "it is the first word");

/// The eight bytes at `at`, and zeros behind the last of all.
#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    if let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        return u64::from_be_bytes(*word);
    }
    let rest = bytes.len().saturating_sub(at);
    if rest == 0 {
        return 0;
    }
    let last = match bytes.last_chunk() {
        Some(last) => u64::from_be_bytes(*last),
        None => bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    last << (8 * (8 - rest))
}

const _: () = assert!(
    LANES <= u8::MAX as usize,
    "a word has a number of eight bits"
);

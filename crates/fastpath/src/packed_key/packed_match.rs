//! Comparison of a packed key with a match, and conversion of matches to [`PackedMatch`]. A match
//! is read in its stored form, term by term; a table by term head holds where the field of the
//! term is in the key.

use flow::{Match, TermHead, TermLayout};

use super::{KEY_WORDS, PackedKey, PackedMatch, position, word};

/// Comparison of a term with a given head.
#[derive(Clone, Copy, Debug)]
struct KeyTerm {
    /// Bits of the field in its word; all bits for a field of 128 bits.
    mask: u64,
    /// Presence bit of the field.
    presence: u8,
    kind: KeyTermKind,
    /// Index of the word, or of the first of two.
    word: u8,
    /// Right rotation that moves the eight bytes after the head to the field's position.
    rotation: u8,
    /// Length of the bytes after the head.
    length: u8,
}

/// Contents of the bytes after a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyTermKind {
    /// No term: the end of the match.
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

/// Layouts by head.
static KEY_TERMS: [KeyTerm; 256] = {
    let mut layouts = [KeyTerm::END; 256];
    let mut head: u8 = 0;
    while head < u8::MAX {
        head += 1;
        layouts[head as usize] = KeyTerm::of(head);
    }
    layouts
};

impl KeyTerm {
    const END: Self = Self {
        mask: 0,
        presence: 0,
        kind: KeyTermKind::End,
        word: 0,
        rotation: 0,
        length: 0,
    };

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a constant has no other conversion, and the numbers are small"
    )]
    const fn of(head: u8) -> Self {
        let Some(term) = TermHead::of(head) else {
            return Self::END;
        };
        let Some(position) = position(term.field) else {
            return Self::END;
        };
        let kind = match (position.is_wide, term.is_masked) {
            (false, false) => KeyTermKind::Exact,
            (false, true) => KeyTermKind::Masked,
            (true, false) => KeyTermKind::Wide,
            (true, true) => KeyTermKind::WideMasked,
        };
        let mask = (term.field.full_mask() as u64) << position.shift;
        let uppermost = u64::BITS.saturating_sub(8 * term.width as u32);
        Self {
            mask,
            presence: position.presence as u8,
            kind,
            word: position.word as u8,
            rotation: ((u64::BITS + uppermost - position.shift) % u64::BITS) as u8,
            length: (term.width as u8) << term.is_masked as u8,
        }
    }
}

impl PackedKey {
    /// True if a packet with this key satisfies `matching`. Called with the values of a
    /// [`PackedMatch`], true if two rules of the same mask have the same match.
    ///
    /// It calls no other function: every packet that finds a rule through entries is compared
    /// here.
    #[inline]
    pub(crate) fn satisfies(&self, matching: &Match) -> bool {
        let mut bytes = matching.as_bytes();
        let (mut required, mut difference) = (0, 0);
        // Most terms are short and exact, and followed by at least eight bytes.
        while let Some([head, value @ ..]) = bytes.first_chunk::<9>() {
            let layout = &KEY_TERMS[usize::from(*head)];
            if layout.kind != KeyTermKind::Exact {
                break;
            }
            difference |= self.difference(layout, u64::from_be_bytes(*value), u64::MAX);
            required |= layout.presence;
            bytes = &bytes[1 + usize::from(layout.length)..];
        }
        let mut at = 0;
        while let Some(head) = bytes.get(at) {
            let layout = &KEY_TERMS[usize::from(*head)];
            let value = at + 1;
            difference |= match layout.kind {
                KeyTermKind::Exact => self.difference(layout, word_at(bytes, value), u64::MAX),
                KeyTermKind::Masked => {
                    let mask = value + usize::from(layout.length / 2);
                    self.difference(layout, word_at(bytes, value), word_at(bytes, mask))
                }
                KeyTermKind::Wide => self.wide_difference(layout, bytes, value, None),
                KeyTermKind::WideMasked => {
                    self.wide_difference(layout, bytes, value, Some(value + 16))
                }
                KeyTermKind::End => break,
            };
            required |= layout.presence;
            at = value + usize::from(layout.length);
        }
        let missing = !self.0[word::INGRESS] & u64::from(required);
        difference | missing == 0
    }

    /// Calls `report` with the word, the mask and the difference of each condition of a match.
    /// Returns false if the match is on a field without a position.
    pub(crate) fn compare_terms(
        &self,
        matching: &Match,
        mut report: impl FnMut(u8, u64, u64),
    ) -> bool {
        let bytes = matching.as_bytes();
        let (mut required, mut at) = (0, 0);
        while let Some(head) = bytes.get(at)
            && *head != 0
        {
            let layout = &KEY_TERMS[usize::from(*head)];
            let value = at + 1;
            let mask = value + usize::from(layout.length / 2);
            let mut compare = |index: u8, value: u64, mask: u64| {
                report(index, mask, (value ^ self.word(index)) & mask);
            };
            match layout.kind {
                KeyTermKind::Exact | KeyTermKind::Masked => {
                    let mask = match layout.kind {
                        KeyTermKind::Masked => word_at(bytes, mask),
                        _ => u64::MAX,
                    };
                    let [value, mask] = [word_at(bytes, value), mask]
                        .map(|word| word.rotate_right(layout.rotation.into()));
                    compare(layout.word, value, mask & layout.mask);
                }
                KeyTermKind::Wide | KeyTermKind::WideMasked => {
                    for (half, offset) in [(0, 0), (1, 8)] {
                        let mask = match layout.kind {
                            KeyTermKind::WideMasked => word_at(bytes, mask + offset),
                            _ => u64::MAX,
                        };
                        compare(layout.word + half, word_at(bytes, value + offset), mask);
                    }
                }
                KeyTermKind::End => return false,
            }
            required |= u64::from(layout.presence);
            at = value + usize::from(layout.length);
        }
        let missing = !self.0[word::INGRESS] & required;
        report(PRESENCE_WORD, required, missing);
        true
    }

    /// Returns the key that `matching` requires, or `None` unless `matching` has exactly the
    /// unmasked fields of `other`; the two rules then have the same mask.
    pub(crate) fn of_similar_match(matching: &Match, other: &Match) -> Option<Self> {
        let (bytes, others) = (matching.as_bytes(), other.as_bytes());
        let (mut key, mut required, mut at) = (Self::new(), 0, 0);
        while let Some(head) = bytes.get(at)
            && *head != 0
        {
            if others.get(at) != Some(head) {
                return None;
            }
            let layout = &KEY_TERMS[usize::from(*head)];
            let (word, value) = (usize::from(layout.word), at + 1);
            match layout.kind {
                KeyTermKind::Exact => {
                    let value = word_at(bytes, value).rotate_right(layout.rotation.into());
                    key.0[word % KEY_WORDS] |= value & layout.mask;
                }
                KeyTermKind::Wide => {
                    key.0[word % KEY_WORDS] |= word_at(bytes, value);
                    key.0[(word + 1) % KEY_WORDS] |= word_at(bytes, value + 8);
                }
                KeyTermKind::Masked | KeyTermKind::WideMasked | KeyTermKind::End => return None,
            }
            required |= layout.presence;
            at = value + usize::from(layout.length);
        }
        key.0[word::INGRESS] |= u64::from(required);
        let is_end = others.get(at).is_none_or(|head| *head == 0);
        is_end.then_some(key)
    }

    /// Bits in which a word differs from a term, whose value and mask are the first bytes of
    /// these eight.
    #[inline]
    fn difference(&self, layout: &KeyTerm, value: u64, mask: u64) -> u64 {
        let [value, mask] = [value, mask].map(|word| word.rotate_right(layout.rotation.into()));
        (value ^ self.word(layout.word)) & mask & layout.mask
    }

    /// Bits in which two words differ from a term of 128 bits, with the offsets of its value and
    /// its mask.
    #[inline]
    fn wide_difference(
        &self,
        layout: &KeyTerm,
        bytes: &[u8],
        value: usize,
        mask: Option<usize>,
    ) -> u64 {
        let half = |half: u8| {
            let offset = 8 * usize::from(half);
            let mask = mask.map_or(u64::MAX, |mask| word_at(bytes, mask + offset));
            (word_at(bytes, value + offset) ^ self.word(layout.word + half)) & mask
        };
        half(0) | half(1)
    }
}

/// Most terms of a short match: each has at least two bytes.
const TERMS_MAX: usize = 24;

/// Reader of matches that have the same layout and no masks: offset and position of each value.
/// Rules that are added one after the other mostly match on the same fields.
#[derive(Debug)]
pub(crate) struct MatchReader {
    layout: TermLayout,
    /// Offset of each value, and the layout of its term.
    terms: [(u8, KeyTerm); TERMS_MAX],
    count: usize,
    required: u8,
}

impl MatchReader {
    /// Returns the reader for the layout of a match, or `None` if it is long or has a mask.
    pub(crate) fn of(matching: &Match) -> Option<Self> {
        let (layout, bytes) = (TermLayout::of(matching)?, matching.as_bytes());
        let mut reader = Self {
            layout,
            terms: [(0, KeyTerm::END); TERMS_MAX],
            count: 0,
            required: 0,
        };
        let mut at = 0;
        while let Some(head) = bytes.get(at)
            && *head != 0
        {
            let layout = KEY_TERMS[usize::from(*head)];
            if layout.kind != KeyTermKind::Exact {
                return None;
            }
            *reader.terms.get_mut(reader.count)? = (u8::try_from(at + 1).ok()?, layout);
            reader.count += 1;
            reader.required |= layout.presence;
            at += 1 + usize::from(layout.length);
        }
        Some(reader)
    }

    /// Calls `use_key` with the key that `matching` requires and returns its result, or `None`
    /// if the match has another layout.
    pub(crate) fn read<T>(
        &self,
        matching: &Match,
        use_key: impl FnOnce(&PackedKey) -> T,
    ) -> Option<T> {
        if !self.layout.is_of(matching) {
            return None;
        }
        let (bytes, mut key) = (matching.as_bytes(), PackedKey::new());
        for (at, layout) in &self.terms[..self.count] {
            let value = word_at(bytes, (*at).into()).rotate_right(layout.rotation.into());
            key.0[usize::from(layout.word) % KEY_WORDS] |= value & layout.mask;
        }
        key.0[word::INGRESS] |= u64::from(self.required);
        Some(use_key(&key))
    }
}

impl PackedMatch {
    /// Packs a match, or returns `None` if it is on a field without a position: tunnel options
    /// are rare, and wider than all other fields together.
    pub(crate) fn try_of(matching: &Match) -> Option<Self> {
        let bytes = matching.as_bytes();
        let (mut packed, mut required, mut at) = (Self::wildcard(), 0, 0);
        while let Some(head) = bytes.get(at)
            && *head != 0
        {
            let layout = &KEY_TERMS[usize::from(*head)];
            let value = at + 1;
            let mask = value + usize::from(layout.length / 2);
            match layout.kind {
                KeyTermKind::Exact => packed.require_term(layout, word_at(bytes, value), u64::MAX),
                KeyTermKind::Masked => {
                    packed.require_term(layout, word_at(bytes, value), word_at(bytes, mask));
                }
                KeyTermKind::Wide => packed.require_wide_term(layout, bytes, value, None),
                KeyTermKind::WideMasked => {
                    packed.require_wide_term(layout, bytes, value, Some(mask))
                }
                KeyTermKind::End => return None,
            }
            required |= u64::from(layout.presence);
            at = value + usize::from(layout.length);
        }
        packed.require(PRESENCE_WORD, required, required);
        Some(packed)
    }

    /// Adds the condition of a term, whose value and mask are the first bytes of these eight.
    #[inline]
    fn require_term(&mut self, layout: &KeyTerm, value: u64, mask: u64) {
        let [value, mask] = [value, mask].map(|word| word.rotate_right(layout.rotation.into()));
        self.require(layout.word, value & mask & layout.mask, mask & layout.mask);
    }

    /// Adds the condition of a term of 128 bits, with the offsets of its value and its mask.
    fn require_wide_term(
        &mut self,
        layout: &KeyTerm,
        bytes: &[u8],
        value: usize,
        mask: Option<usize>,
    ) {
        for (half, offset) in [(0, 0), (1, 8)] {
            let mask = mask.map_or(u64::MAX, |mask| word_at(bytes, mask + offset));
            self.require(layout.word + half, word_at(bytes, value + offset), mask);
        }
    }
}

/// Index of the word with the presence bits.
const PRESENCE_WORD: u8 = 0;

const _: () = assert!(
    word::INGRESS == PRESENCE_WORD as usize,
    "the presence bits are in the first word"
);

/// The eight bytes at `at`, with zeros after the last byte.
#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    if let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        return u64::from_be_bytes(*word);
    }
    let remaining = bytes.len().saturating_sub(at);
    if remaining == 0 {
        return 0;
    }
    let last = match bytes.last_chunk() {
        Some(last) => u64::from_be_bytes(*last),
        None => bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    last << (8 * (8 - remaining))
}

const _: () = assert!(
    KEY_WORDS <= u8::MAX as usize,
    "the index of a word has eight bits"
);

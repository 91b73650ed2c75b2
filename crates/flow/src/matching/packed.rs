//! Encoded terms in the order of [`Field`]: a head, the value, and the mask unless all bits are
//! compared, both as wide as the field and big-endian. The head is the field's number plus one, so
//! that it is never zero, and a flag for the mask.
//!
//! Bytes sort like terms: by field, then by value. `builder` enforces which terms may be combined;
//! `options` encodes terms on tunnel options.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::{OptionTerms, Term};
use crate::field::{FIELDS, Field, FieldInfo};

/// Length of the inline bytes of a match. Twelve exact fields of IPv4 take 47: port, both Ethernet
/// addresses, EtherType, VLAN id and priority, DSCP, protocol, both addresses and both ports.
pub(super) const INLINE: usize = 47;

/// Length of the longest term: a head, and a value and a mask of 128 bits.
pub(super) const TERM_MAX: usize = 33;

/// Flag in a head: a mask is present.
const MASKED: u8 = 1;

/// Terms of a match. Zeros follow the terms in the inline form, so that each list of terms has one
/// encoding and equality compares bytes.
#[derive(Clone)]
pub(super) enum PackedTerms {
    Inline([u8; INLINE]),
    Boxed(Box<[u8]>),
}

impl PackedTerms {
    /// No terms.
    pub(super) const EMPTY: Self = Self::Inline([0; INLINE]);

    /// Encodes the terms, inline if they fit.
    pub(super) fn new(bytes: &[u8]) -> Self {
        if bytes.len() > INLINE {
            return Self::Boxed(bytes.into());
        }
        let mut inline = [0; INLINE];
        inline[..bytes.len()].copy_from_slice(bytes);
        Self::Inline(inline)
    }

    /// Encoded terms, followed by zeros in the inline form.
    #[inline]
    pub(super) const fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Boxed(bytes) => bytes,
        }
    }
}

impl Default for PackedTerms {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialEq for PackedTerms {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for PackedTerms {}

impl PartialOrd for PackedTerms {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PackedTerms {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for PackedTerms {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

/// The terms of a match, in order.
#[derive(Clone)]
pub struct Terms<'a> {
    rest: &'a [u8],
}

impl<'a> Terms<'a> {
    /// Returns the terms in `bytes`, up to the end or the first zero in place of a head.
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the remaining term on `field`, if any.
    #[must_use]
    pub fn on(&self, field: Field) -> Option<Term> {
        let mut rest = self.rest;
        loop {
            let (head, tail) = rest.split_first()?;
            let this = EncodedHead::of(*head)?;
            if this.field >= field {
                return (this.field == field).then(|| this.term(tail));
            }
            rest = &tail[this.length()..];
        }
    }

    /// Returns the fields of the remaining terms; much cheaper than the terms themselves.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<'a> {
        let mut rest = self.rest;
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_first()?;
            let field = FIELD_OF[usize::from(head >> 1)]?;
            rest = tail.get(usize::from(LENGTHS[usize::from(*head)])..)?;
            Some(field)
        })
    }

    /// Returns the value of `field` if all its bits are compared.
    #[must_use]
    pub fn exact(&self, field: Field) -> Option<u128> {
        self.on(field).filter(Term::is_exact).map(|term| term.value)
    }

    /// Returns the terms on tunnel options, which follow all terms. Cheaper after the last term has
    /// been read.
    #[inline]
    #[must_use]
    pub fn options(self) -> OptionTerms<'a> {
        OptionTerms::after_terms(self)
    }

    /// Returns the bytes after the last term.
    #[inline]
    pub(super) fn after_terms(mut self) -> &'a [u8] {
        while let Some((head, tail)) = self.rest.split_first()
            && let Some(this) = EncodedHead::of(*head)
        {
            self.rest = &tail[this.length()..];
        }
        self.rest
    }

    /// Returns the length of the terms on fields before `field`, in bytes.
    pub(super) fn bytes_before(&self, field: Field) -> usize {
        let mut at = 0;
        while let Some(this) = self.rest.get(at).and_then(|head| EncodedHead::of(*head))
            && this.field < field
        {
            at += 1 + this.length();
        }
        at
    }
}

impl Iterator for Terms<'_> {
    type Item = Term;

    #[inline]
    fn next(&mut self) -> Option<Term> {
        let (head, tail) = self.rest.split_first()?;
        let this = EncodedHead::of(*head)?;
        self.rest = &tail[this.length()..];
        Some(this.term(tail))
    }
}

impl fmt::Debug for Terms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Decoded head of a term, for readers of [`Match::as_bytes`](super::Match::as_bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermHead {
    /// Field of the term.
    pub field: Field,
    /// Length of the value in bytes; it follows the head, big-endian.
    pub width: usize,
    /// True if a mask of the same length follows the value; otherwise all bits of the field are
    /// compared.
    pub is_masked: bool,
}

impl TermHead {
    /// Decodes a head, or returns `None` at the end of the terms.
    #[must_use]
    pub const fn of(head: u8) -> Option<Self> {
        let Some(field) = FIELD_OF[(head >> 1) as usize] else {
            return None;
        };
        Some(Self {
            field,
            width: WIDTHS[field as usize] as usize,
            is_masked: head & MASKED != 0,
        })
    }
}

/// Head of a term and its field.
#[derive(Clone, Copy)]
struct EncodedHead {
    field: Field,
    head: u8,
}

impl EncodedHead {
    /// Decodes a head, or returns `None` at the end of the terms.
    #[inline]
    fn of(head: u8) -> Option<Self> {
        let field = FIELD_OF[usize::from(head >> 1)]?;
        Some(Self { field, head })
    }

    /// Length of the term after the head, in bytes.
    #[inline]
    fn length(self) -> usize {
        LENGTHS[usize::from(self.head)].into()
    }

    /// Decodes the term whose value is at the front of `bytes`.
    #[inline]
    fn term(self, bytes: &[u8]) -> Term {
        let width = usize::from(LENGTHS[usize::from(self.head & !MASKED)]);
        let mask = match self.head & MASKED {
            0 => self.field.full_mask(),
            _ => number(&bytes[width..], width),
        };
        Term {
            field: self.field,
            value: number(bytes, width),
            mask,
        }
    }
}

/// Bytes of each field's value.
static WIDTHS: [u8; Field::COUNT] = {
    let mut widths = [0; Field::COUNT];
    let mut index = 0;
    while index < Field::COUNT {
        widths[index] = width_of(&FIELDS[index]);
        index += 1;
    }
    widths
};

/// Bytes of a field's value.
#[expect(
    clippy::cast_possible_truncation,
    reason = "there is no other conversion in a constant, and 124 are the most"
)]
pub(super) const fn width_of(row: &FieldInfo) -> u8 {
    row.bits.div_ceil(8) as u8
}

/// Field of each head, indexed without its lowest bit; views and tunnel options have none.
static FIELD_OF: [Option<Field>; 128] = {
    let mut fields = [None; 128];
    let mut number = 0;
    while number < Field::FIRST_TUNNEL_OPTION as usize {
        fields[number + 1] = Some(Field::ALL[number]);
        number += 1;
    }
    fields
};

const _: () = assert!(
    Field::FIRST_TUNNEL_OPTION as usize + 1 < super::options::HEAD as usize >> 1,
    "no field has the head of the options"
);

/// Length of the term after each head, in bytes.
static LENGTHS: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut number = 0;
    while number < Field::FIRST_TUNNEL_OPTION as usize {
        let head = (number + 1) << 1;
        lengths[head] = WIDTHS[number];
        lengths[head | MASKED as usize] = 2 * WIDTHS[number];
        number += 1;
    }
    lengths
};

/// Encodes a term at `at`. Returns the offset of its end.
pub(super) fn put(bytes: &mut [u8], at: usize, term: &Term) -> usize {
    let width = usize::from(WIDTHS[term.field as usize]);
    bytes[at] = head_of(term.field, !term.is_exact());
    let mut end = at + 1;
    let mut put = |number: u128| {
        bytes[end..end + width].copy_from_slice(&number.to_be_bytes()[16 - width..]);
        end += width;
    };
    put(term.value);
    if !term.is_exact() {
        put(term.mask);
    }
    end
}

/// Encodes a term at `at`, where the following bytes may be overwritten. Returns the offset of its
/// end.
#[inline]
pub(super) fn append(bytes: &mut [u8], at: usize, term: &Term) -> usize {
    let number = term.value.try_into().ok().filter(|_| term.is_exact());
    let end = number.and_then(|number| append_short(bytes, at, term.field, number));
    end.unwrap_or_else(|| put(bytes, at, term))
}

/// Encodes an exact value of a field at `at`, where the following bytes may be overwritten. Returns
/// the offset of its end, or `None` if the field exceeds eight bytes or too few bytes follow.
#[inline]
fn append_short(bytes: &mut [u8], at: usize, field: Field, value: u64) -> Option<usize> {
    let width = usize::from(WIDTHS[field as usize]);
    let unused = usize::checked_sub(8, width)?;
    let begun = begin(bytes.get_mut(at..)?, field, value << (8 * unused));
    begun.then_some(at + 1 + width)
}

/// Writes the head of an exact term and eight bytes of value, which zeros pad. Returns false if
/// there are fewer than nine bytes.
#[inline]
pub(super) fn begin(bytes: &mut [u8], field: Field, value: u64) -> bool {
    let Some([head, room @ ..]) = bytes.first_chunk_mut::<9>() else {
        return false;
    };
    *head = head_of(field, false);
    *room = value.to_be_bytes();
    true
}

#[inline]
const fn head_of(field: Field, masked: bool) -> u8 {
    (field as u8 + 1) << 1 | masked as u8
}

/// Returns the length of a term in bytes.
pub(super) fn length_of(term: &Term) -> usize {
    let width = usize::from(WIDTHS[term.field as usize]);
    1 + (width << u32::from(!term.is_exact()))
}

/// Decodes the big-endian number in the first `width` bytes.
#[inline]
fn number(bytes: &[u8], width: usize) -> u128 {
    if let Some(word) = bytes.first_chunk()
        && let Some(after_terms) = word.len().checked_sub(width)
    {
        return u128::from(u64::from_be_bytes(*word) >> (8 * after_terms));
    }
    let bytes = bytes[..width].iter();
    bytes.fold(0, |number, byte| number << 8 | u128::from(*byte))
}

//! Terms as bytes, one behind the other in the order of [`Field`]: a head, the
//! value, and the mask if not every bit counts, both as wide as the field and
//! with the uppermost byte first. The head is the field's number and one, so that
//! it is never zero, and whether there is a mask.
//!
//! Bytes compare as the terms do: by field, and then by value. How terms come
//! together, and which of them may, is `builder`'s; what is asked of tunnel options stands
//! behind all others, in the bytes of `options`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::{OptionTerms, Term};
use crate::field::{FIELDS, Field, FieldInfo};

/// Bytes that have their place inside a match. Twelve exact fields of IPv4 take 47:
/// the port, both Ethernet addresses, the type, the tag's id and priority, the DSCP,
/// the protocol, both addresses and both ports.
pub(super) const INSIDE: usize = 47;

/// Bytes of the longest term: a head, and a value and a mask of 128 bits.
pub(super) const TERM_MAX: usize = 33;

/// The bit of a head that says that there is a mask.
const MASKED: u8 = 1;

/// A match's terms. Those that fit are inside, with zeros behind them; so each list
/// of terms is stored in one way only, and the bytes tell whether two are equal.
#[derive(Clone)]
pub(super) enum PackedTerms {
    Inside([u8; INSIDE]),
    Boxed(Box<[u8]>),
}

impl PackedTerms {
    /// No terms.
    pub(super) const EMPTY: Self = Self::Inside([0; INSIDE]);

    /// These terms.
    pub(super) fn new(bytes: &[u8]) -> Self {
        if bytes.len() > INSIDE {
            return Self::Boxed(bytes.into());
        }
        let mut inside = [0; INSIDE];
        inside[..bytes.len()].copy_from_slice(bytes);
        Self::Inside(inside)
    }

    /// The terms, and zeros perhaps.
    #[inline]
    pub(super) const fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inside(bytes) => bytes,
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
    /// Those in `bytes`, up to the end or the first zero in place of a head.
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The term on `field`, of those that are left.
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

    /// The fields of those that are left. To ask for no more is a good deal cheaper.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<'a> {
        let mut rest = self.rest;
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_first()?;
            let field = FIELD_OF[usize::from(head >> 1)]?;
            rest = tail.get(usize::from(LENGTHS[usize::from(*head)])..)?;
            Some(field)
        })
    }

    /// The value of `field`, if all of it is given.
    #[must_use]
    pub fn exact(&self, field: Field) -> Option<u128> {
        self.on(field).filter(Term::is_exact).map(|term| term.value)
    }

    /// What is asked of tunnel options, which stands behind all terms. One who has come to the
    /// last of these already need not walk along them again.
    #[inline]
    #[must_use]
    pub fn options(self) -> OptionTerms<'a> {
        OptionTerms::behind(self)
    }

    /// What is behind the last of them.
    #[inline]
    pub(super) fn behind(mut self) -> &'a [u8] {
        while let Some((head, tail)) = self.rest.split_first()
            && let Some(this) = EncodedHead::of(*head)
        {
            self.rest = &tail[this.length()..];
        }
        self.rest
    }

    /// Bytes of the terms on fields before `field`.
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

/// What the head of a term says, for one who reads the bytes of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermHead {
    /// The field that the term is on.
    pub field: Field,
    /// Bytes of its value, which stands behind the head, the uppermost byte first.
    pub width: usize,
    /// Whether a mask of as many bytes stands behind the value; if not, every bit of
    /// the field counts.
    pub is_masked: bool,
}

impl TermHead {
    /// What `head` says; none if it is none, as where the terms are at their end.
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

/// What the head of a term says.
#[derive(Clone, Copy)]
struct EncodedHead {
    field: Field,
    head: u8,
}

impl EncodedHead {
    /// What `head` says; none if there is no term.
    #[inline]
    fn of(head: u8) -> Option<Self> {
        let field = FIELD_OF[usize::from(head >> 1)]?;
        Some(Self { field, head })
    }

    /// Bytes behind the head.
    #[inline]
    fn length(self) -> usize {
        LENGTHS[usize::from(self.head)].into()
    }

    /// The term whose value `bytes` begin with.
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

/// The field of each head without its lowest bit; a match holds no views, and tunnel options
/// in another way.
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

/// Bytes behind each head.
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

/// Puts a term behind `bytes[..at]`, in its own form, before what may be there already.
/// Answers where it ends.
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

/// Puts a term behind `bytes[..at]`, in its own form, with nothing behind it that
/// matters. Answers where it ends.
#[inline]
pub(super) fn append(bytes: &mut [u8], at: usize, term: &Term) -> usize {
    let number = term.value.try_into().ok().filter(|_| term.is_exact());
    let end = number.and_then(|number| append_short(bytes, at, term.field, number));
    end.unwrap_or_else(|| put(bytes, at, term))
}

/// Puts the whole value of a field behind `bytes[..at]`, with nothing behind it that
/// matters. Answers where it ends; none if the field has more than eight bytes, or there
/// are not as many.
#[inline]
fn append_short(bytes: &mut [u8], at: usize, field: Field, value: u64) -> Option<usize> {
    let width = usize::from(WIDTHS[field as usize]);
    let unused = usize::checked_sub(8, width)?;
    let begun = begin(bytes.get_mut(at..)?, field, value << (8 * unused));
    begun.then_some(at + 1 + width)
}

/// Begins `bytes` with the head of a field without a mask, and these eight bytes behind it:
/// its value, and zeros if that is shorter. Answers whether there is room for them.
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

/// Bytes that a term takes.
pub(super) fn length_of(term: &Term) -> usize {
    let width = usize::from(WIDTHS[term.field as usize]);
    1 + (width << u32::from(!term.is_exact()))
}

/// The number that the first `width` of these bytes are, the uppermost first.
#[inline]
fn number(bytes: &[u8], width: usize) -> u128 {
    if let Some(word) = bytes.first_chunk()
        && let Some(behind) = word.len().checked_sub(width)
    {
        return u128::from(u64::from_be_bytes(*word) >> (8 * behind));
    }
    let bytes = bytes[..width].iter();
    bytes.fold(0, |number, byte| number << 8 | u128::from(*byte))
}

//! Encoding of the terms on tunnel options, after all other terms: a head that no field has, then
//! for each option its number plus one (never zero), the length of its value, a flag for a mask,
//! and value and mask. Lengths are minimal, so that each list has one encoding.
//!
//! They are separate from the other terms because of their number and width: a head distinguishes
//! 127 fields, and the value of a term fits into a `u128`.

use std::fmt;

use super::packed::Terms;
use crate::field::Field;
use crate::options::OptionTerm;
use crate::wide::Wide;

/// Head before the tunnel options.
pub(super) const HEAD: u8 = 0xfe;

/// Flag in the length: a mask of the same length follows the value.
const MASKED: u8 = 0x80;

/// Terms of a match on tunnel options, in order.
#[derive(Clone)]
pub struct OptionTerms<'a> {
    rest: &'a [u8],
}

impl<'a> OptionTerms<'a> {
    /// Returns the terms after the other terms.
    #[inline]
    pub(super) fn after_terms(terms: Terms<'a>) -> Self {
        match terms.after_terms() {
            [HEAD, rest @ ..] => Self { rest },
            _ => Self { rest: &[] },
        }
    }
}

impl Iterator for OptionTerms<'_> {
    type Item = OptionTerm;

    #[inline]
    fn next(&mut self) -> Option<OptionTerm> {
        match self.rest {
            [] => None,
            _ => self.take(),
        }
    }
}

impl OptionTerms<'_> {
    fn take(&mut self) -> Option<OptionTerm> {
        let [number, width, rest @ ..] = self.rest else {
            return None;
        };
        let field = Field::tunnel_options().get(usize::from(*number).checked_sub(1)?)?;
        let bytes = usize::from(width & !MASKED);
        let (value, rest) = rest.split_at_checked(bytes)?;
        let (mask, rest) = match width & MASKED {
            0 => (Wide::ONES, rest),
            _ => {
                let (mask, rest) = rest.split_at_checked(bytes)?;
                (Wide::from_be_bytes(mask)?, rest)
            }
        };
        self.rest = rest;
        Some(OptionTerm {
            field: *field,
            value: Wide::from_be_bytes(value)?,
            mask,
        })
    }
}

impl fmt::Debug for OptionTerms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Appends terms, which are in order.
pub(super) fn append(bytes: &mut Vec<u8>, terms: &[OptionTerm]) {
    if terms.is_empty() {
        return;
    }
    bytes.push(HEAD);
    for term in terms {
        let number = term.field.option().expect("it is an option's") + 1;
        let width = term.width();
        let is_masked = if term.is_exact() { 0 } else { MASKED };
        bytes.push(number.try_into().expect("there are not so many"));
        bytes.push(u8::try_from(width).expect("124 at most") | is_masked);
        let mut put = |number: Wide| {
            let whole = number.to_be_bytes();
            bytes.extend_from_slice(&whole[whole.len() - width..]);
        };
        put(term.value);
        if is_masked != 0 {
            put(term.mask);
        }
    }
}

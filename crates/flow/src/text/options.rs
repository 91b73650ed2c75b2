//! Reader and writer of tunnel options: numbers of up to 992 bits. In a match, a name alone tests
//! the presence of the option (`ovs-fields(7)`, "Tunnel Metadata").

use std::fmt;

use super::error::ParseError;
use super::lexer::Token;
use super::names::set_name;
use super::number::unsigned;
use crate::extension::Subfield;
use crate::options::OptionTerm;
use crate::wide::Wide;

/// A value and the bits of it that count.
pub(super) type WideMaskedValue = (Wide, Wide);

/// Parses a number: hexadecimal with 0x, or decimal up to 128 bits.
fn number(token: Token<'_>) -> Result<Wide, ParseError> {
    let text = token.text;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        None => unsigned(token, u128::MAX).map(Wide::from),
        Some(digits) => Wide::from_hex(digits)
            .ok_or_else(|| token.error("expected a number of at most 124 bytes")),
    }
}

/// Reads a number for the bits of `to`.
pub(super) fn number_of(to: Subfield, token: Token<'_>) -> Result<Wide, ParseError> {
    let read = number(token)?;
    if !(read & !to.wide_ones()).is_zero() {
        return Err(token.error(format!("expected a number of {} bits", to.bits())));
    }
    Ok(read)
}

/// Parses `value` or `value/mask`. Bits of the value outside the mask are dropped.
pub(super) fn masked(token: Token<'_>) -> Result<WideMaskedValue, ParseError> {
    match token.split_once("/") {
        None => Ok((number(token)?, Wide::ONES)),
        Some((value, mask)) => {
            let (value, mask) = (number(value)?, number(mask)?);
            Ok((value & mask, mask))
        }
    }
}

/// Parses a term of a match; without a value it tests the presence of the option.
pub(super) fn optional_term(token: Option<Token<'_>>) -> Result<WideMaskedValue, ParseError> {
    token.map_or(Ok((Wide::ZERO, Wide::ZERO)), masked)
}

/// Writes a term of a match.
pub(super) fn write_term(f: &mut fmt::Formatter<'_>, term: &OptionTerm) -> fmt::Result {
    f.write_str(term.field.info().ofctl)?;
    if term.mask.is_zero() {
        return Ok(());
    }
    f.write_str("=")?;
    write_bits(f, term)
}

/// Writes the action that writes these bits.
pub(super) fn write_set(f: &mut fmt::Formatter<'_>, term: &OptionTerm) -> fmt::Result {
    f.write_str("set_field:")?;
    write_bits(f, term)?;
    write!(f, "->{}", set_name(term.field))
}

/// Writes the value with the mask, unless it is all ones.
fn write_bits(f: &mut fmt::Formatter<'_>, term: &OptionTerm) -> fmt::Result {
    write!(f, "{:#x}", term.value)?;
    if term.is_exact() {
        return Ok(());
    }
    write!(f, "/{:#x}", term.mask)
}

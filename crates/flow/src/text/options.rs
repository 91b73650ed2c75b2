//! Tunnel options as text: numbers of up to 992 bits, and in a match a name alone, which asks
//! whether there is the option (`ovs-fields(7)`, "Tunnel Metadata").

use std::fmt;

use super::error::ParseError;
use super::names::set_name;
use super::number::unsigned;
use super::piece::Piece;
use crate::extension::Part;
use crate::options::OptionTerm;
use crate::wide::Wide;

/// A value and the bits of it that count.
pub(super) type WideMasked = (Wide, Wide);

/// Reads a number: hexadecimal with 0x, or decimal as far as other numbers go.
fn number(piece: Piece<'_>) -> Result<Wide, ParseError> {
    let text = piece.text;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        None => unsigned(piece, u128::MAX).map(Wide::from),
        Some(digits) => Wide::from_hex(digits)
            .ok_or_else(|| piece.wrong("a number of at most 124 bytes is wanted")),
    }
}

/// Reads a number for the bits of `to`.
pub(super) fn number_of(to: Part, piece: Piece<'_>) -> Result<Wide, ParseError> {
    let read = number(piece)?;
    if !(read & !to.wide_ones()).is_zero() {
        return Err(piece.wrong(format!("a number of {} bits is wanted", to.bits())));
    }
    Ok(read)
}

/// Reads `value` or `value/mask`. Bits of the value outside the mask are forgotten.
pub(super) fn masked(piece: Piece<'_>) -> Result<WideMasked, ParseError> {
    match piece.split_once("/") {
        None => Ok((number(piece)?, Wide::ONES)),
        Some((value, mask)) => {
            let (value, mask) = (number(value)?, number(mask)?);
            Ok((value & mask, mask))
        }
    }
}

/// Reads what a match asks: nothing behind the name is to ask whether there is the option.
pub(super) fn asked(piece: Option<Piece<'_>>) -> Result<WideMasked, ParseError> {
    piece.map_or(Ok((Wide::ZERO, Wide::ZERO)), masked)
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

/// Writes the value, and the mask unless it is all ones.
fn write_bits(f: &mut fmt::Formatter<'_>, term: &OptionTerm) -> fmt::Result {
    write!(f, "{:#x}", term.value)?;
    if term.is_exact() {
        return Ok(());
    }
    write!(f, "/{:#x}", term.mask)
}

//! Reader of subfields: `reg0`, `NXM_NX_REG0[]`, `NXM_NX_REG0[3..5]`, `NXM_NX_REG0[7]`.

use super::error::ParseError;
use super::lexer::Token;
use super::names;
use super::number::number;
use crate::extension::Subfield;
use crate::field::Field;

/// Parses a subfield.
pub(super) fn subfield(token: Token<'_>) -> Result<Subfield, ParseError> {
    let Some((name, range)) = token.split_once("[") else {
        return field(token).map(Subfield::whole);
    };
    let field = field(name)?;
    let Some((range, nothing)) = range.split_once("]") else {
        return Err(range.error("missing closing bracket"));
    };
    if !nothing.text.is_empty() {
        return Err(nothing.error("unexpected text after the bracket"));
    }
    if range.text.is_empty() {
        return Ok(Subfield::whole(field));
    }
    let (first, last) = match range.split_once("..") {
        Some((first, last)) => (number::<u16>(first.trim())?, number::<u16>(last.trim())?),
        None => (number::<u16>(range.trim())?, number::<u16>(range.trim())?),
    };
    let bits = last.checked_add(1).and_then(|end| end.checked_sub(first));
    bits.and_then(|bits| Subfield::new(field, first, bits))
        .ok_or_else(|| {
            let bits = field.info().bits;
            range.error(format!("expected bits from 0 to {}", bits - 1))
        })
}

/// True if `text` begins like a subfield.
pub(super) fn is_subfield(text: &str) -> bool {
    let name = text.split('[').next().unwrap_or(text);
    known(name).is_some() || names::is_unsupported_field(name)
}

/// Parses the name of a field, of its NXM header or as in a match.
pub(super) fn field(name: Token<'_>) -> Result<Field, ParseError> {
    known(name.text).ok_or_else(|| {
        name.error(match names::is_unsupported_field(name.text) {
            true => "not supported: this field",
            false => "expected a field name, such as eth_src or NXM_OF_ETH_SRC[]",
        })
    })
}

/// Returns the field with this name. Some names denote another field than in a match: Nicira's
/// field with the same bits.
fn known(name: &str) -> Option<Field> {
    match name {
        "in_port" => Some(Field::NxInPort),
        "in_port_oxm" => Some(Field::InPort),
        "nw_tos" => Some(Field::IpTos),
        "nw_src" => Some(Field::Ipv4Src),
        "nw_dst" => Some(Field::Ipv4Dst),
        "nw_proto" => Some(Field::IpProto),
        // The protocol in the match is unknown here.
        "tp_src" => Some(Field::TcpSrc),
        "tp_dst" => Some(Field::TcpDst),
        _ => names::settable(name).or_else(|| Field::from_nxm_name(name)),
    }
}

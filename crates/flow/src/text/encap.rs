//! Reader of `encap` and `decap`.

use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::number::number;
use crate::extension::{Encap, Extension, NshProperty, PacketType};

/// Reads the header of `encap`.
pub(super) fn encap(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let whole = item.required_value()?;
    let mut items = KeyValues::new(whole);
    let expected = "expected a header: ethernet, nsh, nsh(..), mpls or mpls_mc";
    let Some(header) = items.next_pair()? else {
        return Err(whole.error(expected));
    };
    let encap = match header.key.text {
        "ethernet" => header.reject_value().map(|()| Encap::Ethernet)?,
        "mpls" => header.reject_value().map(|()| Encap::Mpls)?,
        "mpls_mc" => header.reject_value().map(|()| Encap::MplsMulticast)?,
        "nsh" => Encap::Nsh(properties(header)?.into()),
        _ => return Err(header.key.error(expected)),
    };
    if let Some(more) = items.next_pair()? {
        return Err(more.key.error("expected a single header"));
    }
    if !encap.is_possible() {
        return Err(whole.error("the properties exceed the header"));
    }
    Ok(Extension::Encap(encap))
}

/// Parses `md_type=N,tlv(CLASS,TYPE,VALUE)` in any number.
fn properties(item: KeyValue<'_>) -> Result<Vec<NshProperty>, ParseError> {
    let mut properties = Vec::new();
    let Some(value) = item.value else {
        return Ok(properties);
    };
    let mut items = KeyValues::new(value);
    while let Some(property) = items.next_pair()? {
        let value = property.required_value()?;
        properties.push(match property.key.text {
            "md_type" => match number(value)? {
                kind @ 1..=2 => NshProperty::MdType(kind),
                _ => return Err(value.error("md_type must be 1 or 2")),
            },
            "tlv" => tlv(value)?,
            _ => return Err(property.key.error("expected md_type or tlv")),
        });
    }
    Ok(properties)
}

/// Reads `CLASS,TYPE,VALUE`.
fn tlv(token: Token<'_>) -> Result<NshProperty, ParseError> {
    let expected = "expected a class, a type and bytes: tlv(0x1000,10,0x12345678)";
    let parts = token.split_once(",");
    let parts = parts.and_then(|(class, rest)| Some((class, rest.split_once(",")?)));
    let (class, (kind, value)) = parts.ok_or_else(|| token.error(expected))?;
    let value = value.trim();
    let digits = match value.text.strip_prefix("0x") {
        Some(_) => value.split_at(2).1,
        None => return Err(value.error(expected)),
    };
    Ok(NshProperty::Tlv {
        class: number(class.trim())?,
        kind: number(kind.trim())?,
        value: super::extension_read::bytes(digits)?,
    })
}

/// Reads nothing, or `packet_type(ns=N,type=N)`.
pub(super) fn decap(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let mut left = None;
    if let Some(value) = item.value {
        let mut items = KeyValues::new(value);
        while let Some(argument) = items.next_pair()? {
            if argument.key.text != "packet_type" || left.is_some() {
                return Err(argument.key.error("expected packet_type(ns=N,type=N)"));
            }
            left = Some(packet_type(argument.required_value()?)?);
        }
    }
    // The header itself identifies the rest (`ofp_packet_type`, OFPHTO_USE_NEXT_PROTO).
    let left = left.filter(|left| *left != PacketType::NEXT);
    Ok(Extension::Decap { left })
}

fn packet_type(token: Token<'_>) -> Result<PacketType, ParseError> {
    let (mut space, mut kind) = (None, None);
    let mut items = KeyValues::new(token);
    while let Some(item) = items.next_pair()? {
        let place = match item.key.text {
            "ns" => &mut space,
            "type" => &mut kind,
            _ => return Err(item.key.error("expected ns or type")),
        };
        *place = Some(number::<u16>(item.required_value()?)?);
    }
    let both = space.zip(kind);
    let (space, kind) = both.ok_or_else(|| token.error("expected both ns and type"))?;
    Ok(PacketType(u32::from(space) << 16 | u32::from(kind)))
}

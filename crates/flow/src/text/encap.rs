//! Reading headers to be put around packets and to be taken off.

use super::error::ParseError;
use super::number::number;
use super::piece::{Item, Items, Piece};
use crate::extension::{Encap, Extension, NshProperty, PacketType};

/// Reads the header of `encap`.
pub(super) fn encap(item: Item<'_>) -> Result<Extension, ParseError> {
    let whole = item.required()?;
    let mut items = Items::new(whole);
    let wanted = "a header is wanted: ethernet, nsh, nsh(..), mpls or mpls_mc";
    let Some(header) = items.next_item()? else {
        return Err(whole.wrong(wanted));
    };
    let encap = match header.key.text {
        "ethernet" => header.bare().map(|()| Encap::Ethernet)?,
        "mpls" => header.bare().map(|()| Encap::Mpls)?,
        "mpls_mc" => header.bare().map(|()| Encap::MplsMulticast)?,
        "nsh" => Encap::Nsh(properties(header)?.into()),
        _ => return Err(header.key.wrong(wanted)),
    };
    if let Some(more) = items.next_item()? {
        return Err(more.key.wrong("one header is put around at a time"));
    }
    if !encap.is_possible() {
        return Err(whole.wrong("more than fits the header"));
    }
    Ok(Extension::Encap(encap))
}

/// Reads `md_type=N,tlv(CLASS,TYPE,VALUE)`, any of them or none.
fn properties(item: Item<'_>) -> Result<Vec<NshProperty>, ParseError> {
    let mut properties = Vec::new();
    let Some(value) = item.value else {
        return Ok(properties);
    };
    let mut items = Items::new(value);
    while let Some(property) = items.next_item()? {
        let value = property.required()?;
        properties.push(match property.key.text {
            "md_type" => match number(value)? {
                kind @ 1..=2 => NshProperty::MdType(kind),
                _ => return Err(value.wrong("metadata are of type 1 or 2")),
            },
            "tlv" => tlv(value)?,
            _ => return Err(property.key.wrong("md_type or tlv is wanted")),
        });
    }
    Ok(properties)
}

/// Reads `CLASS,TYPE,VALUE`.
fn tlv(piece: Piece<'_>) -> Result<NshProperty, ParseError> {
    let wanted = "a class, a type and bytes are wanted: tlv(0x1000,10,0x12345678)";
    let parts = piece.split_once(",");
    let parts = parts.and_then(|(class, rest)| Some((class, rest.split_once(",")?)));
    let (class, (kind, value)) = parts.ok_or_else(|| piece.wrong(wanted))?;
    let value = value.trim();
    let digits = match value.text.strip_prefix("0x") {
        Some(_) => value.cut(2).1,
        None => return Err(value.wrong(wanted)),
    };
    Ok(NshProperty::Tlv {
        class: number(class.trim())?,
        kind: number(kind.trim())?,
        value: super::extension_read::bytes(digits)?,
    })
}

/// Reads nothing, or `packet_type(ns=N,type=N)`.
pub(super) fn decap(item: Item<'_>) -> Result<Extension, ParseError> {
    let mut left = None;
    if let Some(value) = item.value {
        let mut items = Items::new(value);
        while let Some(argument) = items.next_item()? {
            if argument.key.text != "packet_type" || left.is_some() {
                return Err(argument.key.wrong("packet_type(ns=N,type=N) is wanted"));
            }
            left = Some(packet_type(argument.required()?)?);
        }
    }
    // What the header itself tells (`ofp_packet_type`, OFPHTO_USE_NEXT_PROTO).
    let left = left.filter(|left| *left != PacketType::NEXT);
    Ok(Extension::Decap { left })
}

fn packet_type(piece: Piece<'_>) -> Result<PacketType, ParseError> {
    let (mut space, mut kind) = (None, None);
    let mut items = Items::new(piece);
    while let Some(item) = items.next_item()? {
        let place = match item.key.text {
            "ns" => &mut space,
            "type" => &mut kind,
            _ => return Err(item.key.wrong("ns or type is wanted")),
        };
        *place = Some(number::<u16>(item.required()?)?);
    }
    let both = space.zip(kind);
    let (space, kind) = both.ok_or_else(|| piece.wrong("both ns and type are wanted"))?;
    Ok(PacketType(u32::from(space) << 16 | u32::from(kind)))
}

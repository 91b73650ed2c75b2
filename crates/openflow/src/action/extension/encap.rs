//! Encapsulation and decapsulation (`nx_action_encap`, `nx_action_decap` and `ofp_ed_prop_header`
//! of Open vSwitch 3.1).

use flow::{Encap, Extension, NshProperty, PacketType, Refusal};

use super::super::encode::put;
use super::super::{ActionKind, BodyError};
use crate::codec::{EncodeError, Reader, Writer};

/// The property class of the network service header.
const CLASS_NSH: u16 = 4;
/// The property type of its metadata type.
const NSH_MD_TYPE: u8 = 1;
/// The property type of a metadata TLV.
const NSH_TLV: u8 = 2;

/// Decodes the header to push: its size, which is ignored, its packet type, and properties, each
/// padded to eight bytes.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    r.skip(2)?;
    let kind = PacketType(r.u32()?);
    let mut properties = Vec::new();
    while !r.is_empty() {
        properties.push(decode_property(r)?);
    }
    let encap = match kind {
        PacketType::NSH => Encap::Nsh(properties.into()),
        _ if !properties.is_empty() => return Err(Refusal::ActionUnknownProperty.into()),
        PacketType::ETHERNET => Encap::Ethernet,
        PacketType::MPLS => Encap::Mpls,
        PacketType::MPLS_MULTICAST => Encap::MplsMulticast,
        _ => return Err(Refusal::ActionBadHeaderType.into()),
    };
    match encap.is_possible() {
        true => Ok(Extension::Encap(encap)),
        false => Err(Refusal::ActionBadProperty.into()),
    }
}

fn decode_property(r: &mut Reader<'_>) -> Result<NshProperty, BodyError> {
    let bad = Refusal::ActionBadProperty;
    let (class, kind, length) = (r.u16()?, r.u8()?, usize::from(r.u8()?));
    let inside = length.checked_sub(4).ok_or(bad)?;
    let padded = length.next_multiple_of(8) - length;
    if r.len() < inside + padded {
        return Err(bad.into());
    }
    let mut value = r.sub(inside)?.on_short(bad);
    r.skip(padded)?;
    match (class, kind) {
        (CLASS_NSH, NSH_MD_TYPE) => Ok(NshProperty::MdType(value.u8()?)),
        (CLASS_NSH, NSH_TLV) => {
            let (class, kind, length) = (value.u16()?, value.u8()?, value.u8()?);
            let value = value.bytes(length.into())?.to_vec();
            Ok(NshProperty::Tlv { class, kind, value })
        }
        _ => Err(Refusal::ActionUnknownProperty.into()),
    }
}

/// Appends the header to push.
pub(super) fn encode(encap: &Encap, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(ActionKind::Encap, w, |w| {
        w.zeros(2);
        w.u32(encap.makes().0);
        if let Encap::Nsh(properties) = encap {
            for property in &**properties {
                encode_property(property, w);
            }
        }
        Ok(())
    })
}

fn encode_property(property: &NshProperty, w: &mut Writer<'_>) {
    w.u16(CLASS_NSH);
    match property {
        NshProperty::MdType(kind) => {
            w.u8(NSH_MD_TYPE);
            w.u8(5);
            w.u8(*kind);
            w.zeros(3);
        }
        NshProperty::Tlv { class, kind, value } => {
            let padding = value.len().next_multiple_of(8) - value.len();
            w.u8(NSH_TLV);
            w.number(1, (8 + value.len() + padding) as u128);
            w.u16(*class);
            w.u8(*kind);
            w.number(1, value.len() as u128);
            w.bytes(value);
            w.zeros(padding);
        }
    }
}

/// Decodes the packet type that remains after the outermost header is popped.
pub(super) fn decode_decap(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    r.skip(2)?;
    let left = PacketType(r.u32()?);
    let left = (left != PacketType::NEXT).then_some(left);
    Ok(Extension::Decap { left })
}

/// Appends the packet type that remains after the outermost header is popped.
pub(super) fn encode_decap(
    left: Option<PacketType>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    put(ActionKind::Decap, w, |w| {
        w.zeros(2);
        w.u32(left.unwrap_or(PacketType::NEXT).0);
        Ok(())
    })
}

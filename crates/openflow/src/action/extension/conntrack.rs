//! `NXAST_CT` and `NXAST_NAT`: the actions of connection tracking.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::TableId;
use flow::{
    ConntrackAction, ConntrackFlags, ConntrackZone, Extension, Field, NatAction, NatAddresses,
    NatFlags, Refusal, Subfield,
};

use super::super::encode::{EncodeContext, put, short_header};
use super::{ActionKind, BodyError, has_length_of, ofs_nbits, split_ofs_nbits};
use crate::action;
use crate::codec::{EncodeError, Reader, Writer};
use crate::oxm::OxmHeader;

/// `NX_CT_RECIRC_NONE`: the packet does not continue in a table.
const NO_TABLE: u8 = 0xff;

/// `NX_NAT_RANGE_*`: the parameters that are present, in this order.
mod present {
    pub(super) const IPV4_MIN: u16 = 1 << 0;
    pub(super) const IPV4_MAX: u16 = 1 << 1;
    pub(super) const IPV6_MIN: u16 = 1 << 2;
    pub(super) const IPV6_MAX: u16 = 1 << 3;
    pub(super) const PROTO_MIN: u16 = 1 << 4;
    pub(super) const PROTO_MAX: u16 = 1 << 5;
}

/// Decodes `ct` and its inner actions. The nesting depth is checked before the recursion.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let flags = ConntrackFlags(r.u16()?);
    let zone = decode_zone(r)?;
    let table = match r.u8()? {
        NO_TABLE => None,
        table => Some(TableId(table)),
    };
    r.skip(3)?;
    let alg = r.u16()?;
    let mut inner = r.nested().ok_or(Refusal::ActionTooMany)?;
    let actions = action::decode(&mut inner)?;
    r.rest();
    let ct = ConntrackAction {
        flags,
        zone,
        table,
        alg,
        actions,
    };
    ct.check()?;
    Ok(Extension::Conntrack(Arc::new(ct)))
}

/// Decodes a constant, or sixteen bits of a field. There is no space for an experimenter id.
fn decode_zone(r: &mut Reader<'_>) -> Result<ConntrackZone, BodyError> {
    if r.clone().u32()? == 0 {
        r.skip(4)?;
        return Ok(ConntrackZone::Number(r.u16()?));
    }
    let header = OxmHeader::decode(r)?;
    let (offset, bits) = split_ofs_nbits(r.u16()?);
    let field = Field::from_nxm(header.id).or_else(|| Field::from_oxm(header.id));
    let field = field.filter(|field| !header.masked && has_length_of(*field, header));
    let field = field.ok_or(Refusal::ActionBadSetType)?;
    let zone = Subfield::new(field, offset, bits).ok_or(Refusal::ActionBadArgument)?;
    if zone.bits() != 16 {
        return Err(Refusal::ActionBadSetLength.into());
    }
    Ok(ConntrackZone::Subfield(zone))
}

/// Appends `ct` and its inner actions.
pub(super) fn encode(
    ct: &ConntrackAction,
    context: EncodeContext<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    put(ActionKind::Conntrack, w, |w| {
        w.u16(ct.flags.0);
        match ct.zone {
            ConntrackZone::Number(zone) => {
                w.zeros(4);
                w.u16(zone);
            }
            ConntrackZone::Subfield(zone) => {
                let header = short_header(zone.field());
                let header = header.ok_or_else(|| w.unsupported("a zone of this field"))?;
                header.encode(w);
                let ofs_nbits = ofs_nbits(zone, w)?;
                w.u16(ofs_nbits);
            }
        }
        w.u8(ct.table.map_or(NO_TABLE, |table| table.0));
        w.zeros(3);
        w.u16(ct.alg);
        action::encode(&ct.actions, context, w)
    })
}

/// Decodes `nat`.
pub(super) fn decode_nat(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let wrong = || BodyError::from(Refusal::ActionBadArgument);
    let flags = NatFlags(r.u16()?);
    let ranges = r.u16()?;
    let has = |bit: u16| ranges & bit != 0;
    let address = |r: &mut Reader<'_>, bit: u16, bytes: usize| match has(bit) {
        true => r.number(bytes).map(Some).map_err(|_| wrong()),
        false => Ok(None),
    };
    let v4 = |r: &mut Reader<'_>, bit| {
        let bits = address(r, bit, 4)?;
        let bits = bits.map(|bits| u32::try_from(bits).expect("four bytes"));
        Ok::<_, BodyError>(bits.map(Ipv4Addr::from_bits))
    };
    let v6 =
        |r: &mut Reader<'_>, bit| Ok::<_, BodyError>(address(r, bit, 16)?.map(Ipv6Addr::from_bits));
    let first = (v4(r, present::IPV4_MIN)?, v4(r, present::IPV4_MAX)?);
    let second = (v6(r, present::IPV6_MIN)?, v6(r, present::IPV6_MAX)?);
    let addresses = match (first, second) {
        ((None, None), (None, None)) => NatAddresses::Unspecified,
        ((Some(min), max), (None, None)) => NatAddresses::V4(min, max),
        ((None, None), (Some(min), max)) => NatAddresses::V6(min, max),
        _ => return Err(wrong()),
    };
    let port = |r: &mut Reader<'_>, bit| match has(bit) {
        true => r.u16().map(Some).map_err(|_| wrong()),
        false => Ok(None),
    };
    let ports = match (port(r, present::PROTO_MIN)?, port(r, present::PROTO_MAX)?) {
        (None, None) => None,
        (Some(min), max) => Some((min, max)),
        (None, Some(_)) => return Err(wrong()),
    };
    r.rest();
    let nat = NatAction {
        flags,
        addresses,
        ports,
    };
    nat.check()?;
    Ok(Extension::Nat(Arc::new(nat)))
}

/// Appends `nat`.
pub(super) fn encode_nat(nat: &NatAction, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(ActionKind::Nat, w, |w| {
        w.u16(nat.flags.0);
        let of_addresses = match nat.addresses {
            NatAddresses::Unspecified => 0,
            NatAddresses::V4(_, None) => present::IPV4_MIN,
            NatAddresses::V4(_, Some(_)) => present::IPV4_MIN | present::IPV4_MAX,
            NatAddresses::V6(_, None) => present::IPV6_MIN,
            NatAddresses::V6(_, Some(_)) => present::IPV6_MIN | present::IPV6_MAX,
        };
        let of_ports = match nat.ports {
            None => 0,
            Some((_, None)) => present::PROTO_MIN,
            Some((_, Some(_))) => present::PROTO_MIN | present::PROTO_MAX,
        };
        w.u16(of_addresses | of_ports);
        match nat.addresses {
            NatAddresses::Unspecified => {}
            NatAddresses::V4(min, max) => {
                w.bytes(&min.octets());
                max.iter().for_each(|max| w.bytes(&max.octets()));
            }
            NatAddresses::V6(min, max) => {
                w.bytes(&min.octets());
                max.iter().for_each(|max| w.bytes(&max.octets()));
            }
        }
        if let Some((min, max)) = nat.ports {
            w.u16(min);
            max.iter().for_each(|max| w.u16(*max));
        }
        Ok(())
    })
}

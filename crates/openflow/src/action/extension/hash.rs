//! `NXAST_MULTIPATH`, `NXAST_BUNDLE` and `NXAST_BUNDLE_LOAD`: selection by a hash.

use base::PortNo;
use flow::{BundleAction, BundleAlgorithm, HashFields, Multipath, MultipathAlgorithm, Refusal};

use super::{
    ActionKind, BodyError, decode_field, encode_subfield, encode_u16_port, ofs_nbits, part, put,
    split_ofs_nbits,
};
use crate::codec::{EncodeError, Reader, Writer};
use crate::port_no;

fn variant<T: Copy>(number: u16, names: &[(T, &str)]) -> Result<T, BodyError> {
    let known = names.get(usize::from(number));
    Ok(known
        .map(|(value, _)| *value)
        .ok_or(Refusal::ActionBadArgument)?)
}

fn index_of<T: PartialEq>(value: &T, names: &[(T, &str)]) -> u128 {
    let index = names.iter().position(|(known, _)| known == value);
    index.expect("every variant has its row") as u128
}

pub(super) fn decode_multipath(r: &mut Reader<'_>) -> Result<Multipath, BodyError> {
    let fields = variant(r.u16()?, &HashFields::ALL)?;
    let basis = r.u16()?;
    r.skip(2)?;
    let algorithm = variant(r.u16()?, &MultipathAlgorithm::ALL)?;
    let (link_max, argument) = (r.u16()?, r.u32()?);
    r.skip(2)?;
    let (offset, bits) = split_ofs_nbits(r.u16()?);
    let to = part(decode_field(r)?, offset, bits)?;
    if u128::from(link_max) > to.ones() {
        return Err(Refusal::ActionBadArgument.into());
    }
    Ok(Multipath {
        fields,
        basis,
        algorithm,
        link_max,
        argument,
        to,
    })
}

pub(super) fn encode_multipath(
    multipath: &Multipath,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let ofs_nbits = ofs_nbits(multipath.to, w)?;
    put(ActionKind::Multipath, w, |w| {
        w.number(2, index_of(&multipath.fields, &HashFields::ALL));
        w.u16(multipath.basis);
        w.zeros(2);
        w.number(2, index_of(&multipath.algorithm, &MultipathAlgorithm::ALL));
        w.u16(multipath.link_max);
        w.u32(multipath.argument);
        w.zeros(2);
        w.u16(ofs_nbits);
        encode_subfield(multipath.to, w)
    })
}

/// The header of `NXM_OF_IN_PORT`: the members are ports.
const MEMBERS_ARE_PORTS: u32 = 0x0000_0002;

pub(super) fn decode_bundle(loads: bool, r: &mut Reader<'_>) -> Result<BundleAction, BodyError> {
    let algorithm = variant(r.u16()?, &BundleAlgorithm::ALL)?;
    let fields = variant(r.u16()?, &HashFields::ALL)?;
    let basis = r.u16()?;
    if r.u32()? != MEMBERS_ARE_PORTS {
        return Err(Refusal::ActionBadArgument.into());
    }
    let count = usize::from(r.u16()?);
    if count > BundleAction::MEMBERS_MAX {
        return Err(Refusal::ActionBadArgument.into());
    }
    let ofs_nbits = r.u16()?;
    let (offset, bits) = split_ofs_nbits(ofs_nbits);
    let to = if loads {
        let to = part(decode_field(r)?, offset, bits)?;
        r.zeros(4, Refusal::ActionBadArgument)?;
        Some(to)
    } else {
        if ofs_nbits != 0 {
            return Err(Refusal::ActionBadArgument.into());
        }
        r.zeros(8, Refusal::ActionBadArgument)?;
        None
    };
    if r.len() < 2 * count {
        return Err(Refusal::ActionBadLength.into());
    }
    let members: Result<Vec<PortNo>, _> =
        (0..count).map(|_| r.u16().map(port_no::from_u16)).collect();
    Ok(BundleAction {
        fields,
        basis,
        algorithm,
        to,
        members: members?,
    })
}

pub(super) fn encode_bundle(bundle: &BundleAction, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let kind = match bundle.to {
        Some(_) => ActionKind::BundleLoad,
        None => ActionKind::Bundle,
    };
    let ofs_nbits = bundle.to.map_or(Ok(0), |to| ofs_nbits(to, w))?;
    put(kind, w, |w| {
        w.number(2, index_of(&bundle.algorithm, &BundleAlgorithm::ALL));
        w.number(2, index_of(&bundle.fields, &HashFields::ALL));
        w.u16(bundle.basis);
        w.u32(MEMBERS_ARE_PORTS);
        w.number(2, bundle.members.len() as u128);
        w.u16(ofs_nbits);
        match bundle.to {
            Some(to) => {
                encode_subfield(to, w)?;
                w.zeros(4);
            }
            None => w.zeros(8),
        }
        let mut members = bundle.members.iter();
        members.try_for_each(|port| encode_u16_port(*port, w))
    })
}

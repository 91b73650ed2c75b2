//! The encoding of Nicira's actions, the same in every version except for the width of ports
//! (`openflow/nicira-ext.h` and `ofp-actions.c` of Open vSwitch 3.1; their numbers are in the table
//! of [`super`]). Hashes are in [`hash`], `learn` is in [`learn`], and `sample` in [`sample`].

mod conntrack;
mod controller;
mod encap;
mod hash;
mod learn;
mod sample;

use std::sync::Arc;

use base::{PortNo, TableId};
use flow::{Extension, Field, MaxLen, OptionTerm, Refusal, Subfield, Wide};

use super::encode::{EncodeContext, put, reg_load2, set_field, set_option, short_header};
use super::{ActionKind, BodyError};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::oxm::{self, HeaderFamily, OxmHeader};
use crate::port_no;
use crate::version::Version;

/// Decodes the arguments of a Nicira action.
pub(super) fn decode(kind: ActionKind, r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    Ok(match kind {
        ActionKind::Resubmit | ActionKind::ResubmitTable | ActionKind::ResubmitConnection => {
            decode_resubmit(kind, r)?
        }
        ActionKind::RegLoad => decode_load(r)?,
        ActionKind::RegMove => decode_move(r)?,
        ActionKind::CopyField => decode_copy_field(r)?,
        ActionKind::StackPush => Extension::Push(decode_stack(r)?),
        ActionKind::StackPop => Extension::Pop(decode_stack(r)?),
        ActionKind::OutputReg | ActionKind::OutputReg2 => decode_output(kind, r)?,
        ActionKind::OutputTruncated => Extension::OutputTruncated {
            port: port_no::from_u16(r.u16()?),
            max_len: r.u32()?,
        },
        ActionKind::Controller => Extension::Controller(Arc::new(controller::decode(r)?)),
        ActionKind::Controller2 => {
            Extension::Controller(Arc::new(controller::decode_properties(r)?))
        }
        ActionKind::DecTtlIds => decode_dec_ttl(r)?,
        ActionKind::Note => Extension::Note(r.rest().into()),
        ActionKind::Exit => Extension::Exit,
        ActionKind::Clone => decode_clone(r)?,
        ActionKind::Learn | ActionKind::Learn2 => {
            Extension::Learn(Arc::new(learn::decode(kind == ActionKind::Learn2, r)?))
        }
        ActionKind::FinTimeout => Extension::FinTimeout {
            idle_s: r.u16()?,
            hard_s: r.u16()?,
        },
        ActionKind::Multipath => Extension::Multipath(hash::decode_multipath(r)?),
        ActionKind::Bundle | ActionKind::BundleLoad => Extension::Bundle(Arc::new(
            hash::decode_bundle(kind == ActionKind::BundleLoad, r)?,
        )),
        ActionKind::Conjunction => decode_conjunction(r)?,
        ActionKind::CheckPacketLarger => decode_check_packet_larger(r)?,
        ActionKind::Encap => encap::decode(r)?,
        ActionKind::Decap => encap::decode_decap(r)?,
        ActionKind::DecNshTtl => Extension::DecNshTtl,
        ActionKind::DeleteField => Extension::DeleteField(decode_deleted(r)?),
        ActionKind::Sample | ActionKind::Sample2 | ActionKind::Sample3 | ActionKind::Sample4 => {
            sample::decode(kind, r)?
        }
        ActionKind::Conntrack => conntrack::decode(r)?,
        ActionKind::Nat => conntrack::decode_nat(r)?,
        ActionKind::ConntrackClear => Extension::ConntrackClear,
        ActionKind::DebugSlow if r.dialect().debug_actions => Extension::DebugSlow,
        ActionKind::DebugRecirc if r.dialect().debug_actions => Extension::DebugRecirc,
        _ => return Err(Refusal::ActionBadExperimenterType.into()),
    })
}

/// Appends a Nicira action.
pub(super) fn encode(
    extension: &Extension,
    context: EncodeContext<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match extension {
        Extension::Resubmit { port, table } => {
            encode_resubmit(ActionKind::ResubmitTable, *port, *table, w)
        }
        Extension::ResubmitConnection { port, table } => {
            encode_resubmit(ActionKind::ResubmitConnection, *port, *table, w)
        }
        Extension::Load { to, value } => encode_load(*to, *value, w),
        Extension::Move { from, to } => encode_move(*from, *to, w),
        Extension::Push(from) => encode_stack(ActionKind::StackPush, *from, w),
        Extension::Pop(to) => encode_stack(ActionKind::StackPop, *to, w),
        Extension::OutputReg { from, max_len } => encode_output(*from, *max_len, w),
        Extension::OutputTruncated { port, max_len } => encode_truncated(*port, *max_len, w),
        Extension::Controller(to_controller) => controller::encode(to_controller, w),
        Extension::DecTtl(ids) => encode_dec_ttl(ids, w),
        Extension::Note(bytes) => put(ActionKind::Note, w, |w| {
            w.bytes(bytes);
            Ok(())
        }),
        Extension::PopQueue => put(ActionKind::PopQueue, w, |_| Ok(())),
        Extension::Exit => put(ActionKind::Exit, w, |_| Ok(())),
        Extension::Clone(actions) => {
            put(ActionKind::Clone, w, |w| super::encode(actions, context, w))
        }
        Extension::Learn(learn) => learn::encode(learn, w),
        Extension::FinTimeout { idle_s, hard_s } => encode_fin_timeout(*idle_s, *hard_s, w),
        Extension::Multipath(multipath) => hash::encode_multipath(multipath, w),
        Extension::Bundle(bundle) => hash::encode_bundle(bundle, w),
        Extension::Conjunction {
            id,
            clause,
            clauses,
        } => encode_conjunction(*id, (*clause, *clauses), w),
        Extension::CheckPacketLarger { bytes, to } => encode_check_packet_larger(*bytes, *to, w),
        Extension::Encap(header) => encap::encode(header, w),
        Extension::Decap { left } => encap::encode_decap(*left, w),
        Extension::DecNshTtl => put(ActionKind::DecNshTtl, w, |_| Ok(())),
        Extension::SetOption(term) => set_option(term, w),
        Extension::DeleteField(field) => {
            put(ActionKind::DeleteField, w, |w| encode_field(*field, w))
        }
        Extension::Sample(sample) => sample::encode(sample, w),
        Extension::Conntrack(ct) => conntrack::encode(ct, context, w),
        Extension::Nat(nat) => conntrack::encode_nat(nat, w),
        Extension::ConntrackClear => put(ActionKind::ConntrackClear, w, |_| Ok(())),
        Extension::DebugSlow => put(ActionKind::DebugSlow, w, |_| Ok(())),
        Extension::DebugRecirc => put(ActionKind::DebugRecirc, w, |_| Ok(())),
    }
}

fn encode_resubmit(
    kind: ActionKind,
    port: PortNo,
    table: Option<TableId>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    put(kind, w, |w| {
        encode_u16_port(port, w)?;
        w.u8(table.unwrap_or(TableId::ALL).0);
        Ok(())
    })
}

fn encode_truncated(port: PortNo, max_len: u32, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(ActionKind::OutputTruncated, w, |w| {
        encode_u16_port(port, w)?;
        w.u32(max_len);
        Ok(())
    })
}

fn encode_dec_ttl(ids: &[u16], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(ActionKind::DecTtlIds, w, |w| {
        w.number(2, ids.len() as u128);
        w.zeros(4);
        ids.iter().for_each(|id| w.u16(*id));
        Ok(())
    })
}

fn encode_fin_timeout(idle_s: u16, hard_s: u16, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(ActionKind::FinTimeout, w, |w| {
        w.u16(idle_s);
        w.u16(hard_s);
        Ok(())
    })
}

fn encode_conjunction(
    id: u32,
    (clause, clauses): (u8, u8),
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    put(ActionKind::Conjunction, w, |w| {
        w.u8(clause);
        w.u8(clauses);
        w.u32(id);
        Ok(())
    })
}

fn encode_check_packet_larger(
    bytes: u16,
    to: Subfield,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    put(ActionKind::CheckPacketLarger, w, |w| {
        w.u16(bytes);
        w.u16(to.offset());
        encode_subfield(to, w)
    })
}

/// Decodes the header of a field, with the experimenter id if there is one.
fn decode_field(r: &mut Reader<'_>) -> Result<Field, BodyError> {
    let header = OxmHeader::decode(r)?;
    let known = header.field(r)?;
    match known {
        Some(field) if !header.masked && has_length_of(field, header) => Ok(field),
        _ => Err(Refusal::ActionBadSetType.into()),
    }
}

/// Returns true if a header without payload has the length of its field. A tunnel option may have
/// any length.
fn has_length_of(field: Field, header: OxmHeader) -> bool {
    field.option().is_some() || header.length == oxm::length_of(field, header.id)
}

fn encode_field(field: Field, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let header = oxm::header_of(field, HeaderFamily::Nxm, false)
        .ok_or_else(|| w.unsupported("a part of a field without header"))?;
    header.encode(w);
    Ok(())
}

/// Appends the header of the field of a subfield.
fn encode_subfield(part: Subfield, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    encode_subfield_header(part, HeaderFamily::Nxm, w)
}

/// Appends the header of the field of a subfield. That of a mapped tunnel option has the length of
/// the option.
fn encode_subfield_header(
    part: Subfield,
    family: HeaderFamily,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let header = oxm::header_of(part.field(), family, false);
    let mut header = header.ok_or_else(|| w.unsupported("a part of a field without header"))?;
    if let Some(bytes) = part.option_bytes() {
        header.length = usize::from(bytes);
    }
    header.encode(w);
    Ok(())
}

/// Decodes the field to delete, and the padding.
fn decode_deleted(r: &mut Reader<'_>) -> Result<Field, BodyError> {
    let field = decode_field(r)?;
    r.rest();
    Ok(field)
}

/// A part of a field. Bits beyond the field's width are an action error.
fn part(field: Field, offset: u16, bits: u16) -> Result<Subfield, BodyError> {
    Ok(Subfield::new(field, offset, bits).ok_or(Refusal::ActionBadArgument)?)
}

/// Splits Nicira's `ofs_nbits` into the offset and the width.
fn split_ofs_nbits(ofs_nbits: u16) -> (u16, u16) {
    (ofs_nbits >> 6, (ofs_nbits & 0x3f) + 1)
}

fn ofs_nbits(part: Subfield, w: &Writer<'_>) -> Result<u16, EncodeError> {
    match part.bits() {
        bits @ 1..=64 => Ok(part.offset() << 6 | (bits - 1)),
        _ => Err(w.unsupported("a part of more than 64 bits")),
    }
}

fn encode_u16_port(port: PortNo, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let number =
        port_no::to_u16(port).ok_or_else(|| w.unsupported("a port number beyond 0xff00"))?;
    w.u16(number);
    Ok(())
}

/// `NXAST_RESUBMIT` has no table; its table byte is padding.
fn decode_resubmit(kind: ActionKind, r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let port = port_no::from_u16(r.u16()?);
    let table = match (kind, TableId(r.u8()?)) {
        (ActionKind::Resubmit, _) | (_, TableId::ALL) => None,
        (_, table) => Some(table),
    };
    Ok(match kind {
        ActionKind::ResubmitConnection => Extension::ResubmitConnection { port, table },
        _ => Extension::Resubmit { port, table },
    })
}

/// Decodes a load of up to 64 bits into consecutive bits of a field.
fn decode_load(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let (offset, bits) = split_ofs_nbits(r.u16()?);
    let header = OxmHeader::decode(r)?;
    let value = r.u64()?;
    // The action has no space for an experimenter id.
    let field = Field::from_oxm(header.id).or_else(|| Field::from_nxm(header.id));
    let field = match field {
        Some(field) if field.info().writable && !header.masked => field,
        _ => return Err(Refusal::ActionBadSetType.into()),
    };
    let to = Subfield::new(field, offset, bits).filter(|_| has_length_of(field, header));
    let to = to.ok_or(Refusal::ActionBadSetLength)?;
    if u128::from(value) > to.ones() {
        return Err(Refusal::ActionBadSetArgument.into());
    }
    Ok(Extension::Load { to, value })
}

/// 1.5 writes parts of fields with `set_field`.
fn encode_load(to: Subfield, value: u64, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    if to.is_tunnel_option() && w.version() == Version::V15 {
        let (field, mask) = (to.field(), to.wide_mask());
        let value = to.wide_place(Wide::from(u128::from(value)));
        return set_option(&OptionTerm { field, value, mask }, w);
    }
    if w.version() == Version::V15 {
        return set_field(to.field(), to.place(u128::from(value)), to.mask(), w);
    }
    let Some(mut header) = short_header(to.field()) else {
        return reg_load2(to.field(), to.place(u128::from(value)), to.mask(), w);
    };
    if let Some(bytes) = to.option_bytes() {
        header.length = usize::from(bytes);
    }
    let ofs_nbits = ofs_nbits(to, w)?;
    put(ActionKind::RegLoad, w, |w| {
        w.u16(ofs_nbits);
        header.encode(w);
        w.u64(value);
        Ok(())
    })
}

fn decode_move(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let (bits, from_offset, to_offset) = (r.u16()?, r.u16()?, r.u16()?);
    let from = part(decode_field(r)?, from_offset, bits)?;
    let to = part(decode_field(r)?, to_offset, bits)?;
    Ok(Extension::Move { from, to })
}

/// `OFPAT_COPY_FIELD` (OF 1.5.1, 7.2.6.8), and the Open Networking Foundation's extension of 1.3,
/// `ONFACT_COPY_FIELD` (EXT-320).
fn decode_copy_field(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let (bits, from_offset, to_offset) = (r.u16()?, r.u16()?, r.u16()?);
    r.skip(2)?;
    let from = part(decode_field(r)?, from_offset, bits)?;
    let to = part(decode_field(r)?, to_offset, bits)?;
    Ok(Extension::Move { from, to })
}

/// 1.5 has an action of its own, `copy_field`.
fn encode_move(from: Subfield, to: Subfield, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let offsets = |w: &mut Writer<'_>| {
        w.u16(from.bits());
        w.u16(from.offset());
        w.u16(to.offset());
    };
    if w.version() == Version::V15 {
        return put(ActionKind::CopyField, w, |w| {
            offsets(w);
            w.zeros(2);
            encode_subfield_header(from, HeaderFamily::Oxm, w)?;
            encode_subfield_header(to, HeaderFamily::Oxm, w)
        });
    }
    put(ActionKind::RegMove, w, |w| {
        offsets(w);
        encode_subfield(from, w)?;
        encode_subfield(to, w)
    })
}

fn decode_stack(r: &mut Reader<'_>) -> Result<Subfield, BodyError> {
    let offset = r.u16()?;
    let field = decode_field(r)?;
    part(field, offset, r.u16()?)
}

fn encode_stack(kind: ActionKind, part: Subfield, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(kind, w, |w| {
        w.u16(part.offset());
        encode_subfield(part, w)?;
        w.u16(part.bits());
        Ok(())
    })
}

/// The second form has the field last, so that it has space for an experimenter id.
fn decode_output(kind: ActionKind, r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let (offset, bits) = split_ofs_nbits(r.u16()?);
    let (field, max_len) = if kind == ActionKind::OutputReg {
        (decode_field(r)?, MaxLen(r.u16()?))
    } else {
        let max_len = MaxLen(r.u16()?);
        (decode_field(r)?, max_len)
    };
    let from = part(field, offset, bits)?;
    Ok(Extension::OutputReg { from, max_len })
}

fn encode_output(from: Subfield, max_len: MaxLen, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let ofs_nbits = ofs_nbits(from, w)?;
    let header = oxm::header_of(from.field(), HeaderFamily::Nxm, false);
    let own = header.is_some_and(|header| header.length == from.field().bytes());
    if own {
        return put(ActionKind::OutputReg, w, |w| {
            w.u16(ofs_nbits);
            encode_subfield(from, w)?;
            w.u16(max_len.0);
            Ok(())
        });
    }
    put(ActionKind::OutputReg2, w, |w| {
        w.u16(ofs_nbits);
        w.u16(max_len.0);
        encode_subfield(from, w)
    })
}

fn decode_dec_ttl(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let count = usize::from(r.u16()?);
    r.zeros(4, Refusal::RequestMustBeZero)?;
    if r.len() < 2 * count {
        return Err(Refusal::ActionBadLength.into());
    }
    let ids: Result<Vec<u16>, _> = (0..count).map(|_| r.u16()).collect();
    Ok(Extension::DecTtl(ids?.into()))
}

/// Decodes nested actions. The nesting depth is checked before the recursion.
fn decode_clone(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let mut inner = r.nested().ok_or(Refusal::ActionTooMany)?;
    let actions = super::decode(&mut inner)?;
    r.rest();
    Ok(Extension::Clone(actions.into()))
}

fn decode_conjunction(r: &mut Reader<'_>) -> Result<Extension, Malformed> {
    Ok(Extension::Conjunction {
        clause: r.u8()?,
        clauses: r.u8()?,
        id: r.u32()?,
    })
}

fn decode_check_packet_larger(r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let (bytes, offset) = (r.u16()?, r.u16()?);
    let to = part(decode_field(r)?, offset, 1)?;
    Ok(Extension::CheckPacketLarger { bytes, to })
}

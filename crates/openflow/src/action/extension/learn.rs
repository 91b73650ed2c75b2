//! `NXAST_LEARN` and `NXAST_LEARN2`: a rule to learn, with packed flow-mod specs.

use base::{Cookie, TableId};
use flow::{Learn, LearnFlags, LearnSource, LearnSpec, Refusal, Subfield, Wide};

use super::{ActionKind, BodyError, decode_field, encode_subfield, part, put};
use crate::codec::{EncodeError, Reader, Writer};

/// The flag, in addition to [`LearnFlags`], that a field for the result follows.
const WRITES_RESULT: u16 = 4;

/// In the header of a spec: the source is an immediate value, not a field.
const IMMEDIATE: u16 = 1 << 13;
/// In the header of a spec: the destination type.
const DESTINATION: u16 = 3 << 11;
const MATCH: u16 = 0;
const LOAD: u16 = 1 << 11;
const OUTPUT: u16 = 2 << 11;
/// In the header of a spec: the number of bits.
const BITS: u16 = 0x3ff;

pub(super) fn decode(second: bool, r: &mut Reader<'_>) -> Result<Learn, BodyError> {
    let (idle_timeout_s, hard_timeout_s, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let (cookie, flags, table) = (Cookie(r.u64()?), r.u16()?, TableId(r.u8()?));
    r.zeros(1, Refusal::ActionBadArgument)?;
    let (fin_idle_timeout_s, fin_hard_timeout_s) = (r.u16()?, r.u16()?);
    let known = LearnFlags::SEND_FLOW_REMOVED.0 | LearnFlags::DELETE_LEARNED.0;
    let result_flag = if second { WRITES_RESULT } else { 0 };
    if flags & !(known | result_flag) != 0 || table == TableId::ALL {
        return Err(Refusal::ActionBadArgument.into());
    }
    let (mut limit, mut result) = (0, None);
    if second {
        let offset;
        (limit, offset) = (r.u32()?, r.u16()?);
        r.zeros(2, Refusal::ActionMustBeZero)?;
        if flags & WRITES_RESULT != 0 {
            result = Some(part(decode_field(r)?, offset, 1)?);
        }
    }
    let mut specs = Vec::new();
    while r.len() >= 2 {
        match r.u16()? {
            // Padding.
            0 => break,
            header => specs.push(decode_spec(header, r)?),
        }
    }
    Ok(Learn {
        table,
        priority,
        cookie,
        idle_timeout_s,
        hard_timeout_s,
        fin_idle_timeout_s,
        fin_hard_timeout_s,
        flags: LearnFlags(flags & known),
        limit,
        result,
        specs,
    })
}

fn decode_spec(header: u16, r: &mut Reader<'_>) -> Result<LearnSpec, BodyError> {
    let bits = header & BITS;
    if bits == 0 || header & !(IMMEDIATE | DESTINATION | BITS) != 0 {
        return Err(Refusal::ActionBadArgument.into());
    }
    let from = if header & IMMEDIATE == 0 {
        LearnSource::Subfield(decode_part(bits, r)?)
    } else {
        LearnSource::Value(decode_immediate(bits, r)?)
    };
    match (header & DESTINATION, from) {
        (MATCH, from) => Ok(LearnSpec::Match {
            to: decode_part(bits, r)?,
            from,
        }),
        (LOAD, from) => Ok(LearnSpec::Load {
            to: decode_part(bits, r)?,
            from,
        }),
        (OUTPUT, LearnSource::Subfield(from)) => Ok(LearnSpec::Output(from)),
        _ => Err(Refusal::ActionBadArgument.into()),
    }
}

fn decode_part(bits: u16, r: &mut Reader<'_>) -> Result<Subfield, BodyError> {
    let field = decode_field(r)?;
    part(field, r.u16()?, bits)
}

/// Decodes an immediate value: right-aligned in 16-bit words.
fn decode_immediate(bits: u16, r: &mut Reader<'_>) -> Result<Wide, BodyError> {
    let value = Wide::from_be_bytes(r.bytes(immediate_bytes(bits))?);
    let value = value.filter(|value| (*value & !Wide::ones(bits.into())).is_zero());
    Ok(value.ok_or(Refusal::ActionBadArgument)?)
}

/// The length in bytes of an immediate value of `bits` bits.
const fn immediate_bytes(bits: u16) -> usize {
    2 * bits.div_ceil(16) as usize
}

pub(super) fn encode(learn: &Learn, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let second = learn.limit != 0 || learn.result.is_some();
    let kind = if second {
        ActionKind::Learn2
    } else {
        ActionKind::Learn
    };
    put(kind, w, |w| {
        w.u16(learn.idle_timeout_s);
        w.u16(learn.hard_timeout_s);
        w.u16(learn.priority);
        w.u64(learn.cookie.0);
        w.u16(learn.flags.0 | learn.result.map_or(0, |_| WRITES_RESULT));
        w.u8(learn.table.0);
        w.zeros(1);
        w.u16(learn.fin_idle_timeout_s);
        w.u16(learn.fin_hard_timeout_s);
        if second {
            w.u32(learn.limit);
            w.u16(learn.result.map_or(0, Subfield::offset));
            w.zeros(2);
        }
        if let Some(result) = learn.result {
            encode_subfield(result, w)?;
        }
        let mut specs = learn.specs.iter();
        specs.try_for_each(|spec| encode_spec(spec, w))
    })
}

fn encode_spec(spec: &LearnSpec, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let (kind, from, to) = match *spec {
        LearnSpec::Match { to, from } => (MATCH, from, Some(to)),
        LearnSpec::Load { to, from } => (LOAD, from, Some(to)),
        LearnSpec::Output(from) => (OUTPUT, LearnSource::Subfield(from), None),
    };
    match (from, to) {
        (LearnSource::Subfield(from), _) => {
            w.u16(kind | from.bits());
            encode_part(from, w)?;
        }
        (LearnSource::Value(value), to) => {
            let bits = to.map_or(1, Subfield::bits);
            w.u16(kind | IMMEDIATE | bits);
            let bytes = value.to_be_bytes();
            w.bytes(&bytes[bytes.len() - immediate_bytes(bits)..]);
        }
    }
    to.map_or(Ok(()), |to| encode_part(to, w))
}

fn encode_part(part: Subfield, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    encode_subfield(part, w)?;
    w.u16(part.offset());
    Ok(())
}

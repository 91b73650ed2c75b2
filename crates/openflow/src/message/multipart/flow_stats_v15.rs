//! Rules and their counts in OpenFlow 1.5, which tells what a rule is
//! (`OFPMP_FLOW_DESC`) and what it counted (`OFPMP_FLOW_STATS`) apart, and both
//! counts as OXS fields (OF 1.5.1, 7.3.5.2 and 7.3.5.3).
//!
//! The lengths of entries and the forms of all other versions are in `flow_stats`.

use base::{Cookie, TableId};
use flow::{FlowFlags, FlowStats, Instructions};

use super::flow_stats::blank;
use crate::action::Context;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::FlowFormat;
use crate::instruction;
use crate::oxm;
use crate::oxs::{self, Counts};

/// `OFPFSR_STATS_REQUEST`: the counts were asked for.
const ASKED: u8 = 0;

/// Reads a rule's description, behind its length.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<FlowStats, Malformed> {
    r.skip(2)?;
    let mut told = blank(TableId(r.u8()?));
    r.skip(1)?;
    told.priority = r.u16()?;
    (told.idle_timeout_s, told.hard_timeout_s) = (r.u16()?, r.u16()?);
    told.flags = FlowFlags(r.u16()?);
    told.importance = r.u16()?;
    told.cookie = Cookie(r.u64()?);
    told.matching = oxm::decode_structure(r)?;
    take_counts(&mut told, oxs::decode(r)?);
    told.instructions = instruction::decode(r)?;
    Ok(told)
}

/// Reads a rule's counts, behind their length.
pub(super) fn decode_counts(r: &mut Reader<'_>) -> Result<FlowStats, Malformed> {
    r.skip(2)?;
    let mut told = blank(TableId(r.u8()?));
    // Why they are told: this end has asked.
    r.skip(1)?;
    told.priority = r.u16()?;
    told.matching = oxm::decode_structure(r)?;
    take_counts(&mut told, oxs::decode(r)?);
    r.end()?;
    Ok(told)
}

fn take_counts(told: &mut FlowStats, counts: Counts) {
    told.duration = counts.duration.unwrap_or_default();
    told.idle_age = counts.idle.unwrap_or_default();
    told.packets = counts.packets.unwrap_or(0);
    told.bytes = counts.bytes.unwrap_or(0);
}

/// Appends an entry behind its length, in full or the counts alone.
pub(super) fn encode(
    told: &FlowStats,
    instructions: &Instructions,
    context: Context<'_>,
    form: FlowFormat,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let counts = Counts {
        duration: Some(told.duration),
        idle: Some(told.idle_age),
        flows: None,
        packets: Some(told.packets),
        bytes: Some(told.bytes),
    };
    w.zeros(2);
    w.u8(told.table.0);
    match form {
        FlowFormat::Counts => {
            w.u8(ASKED);
            w.u16(told.priority);
            oxm::encode_structure(&told.matching, w)?;
            oxs::encode(&counts, w)
        }
        FlowFormat::Standard | FlowFormat::Nicira => {
            w.zeros(1);
            w.u16(told.priority);
            w.u16(told.idle_timeout_s);
            w.u16(told.hard_timeout_s);
            w.u16(told.flags.0);
            w.u16(told.importance);
            w.u64(told.cookie.0);
            oxm::encode_structure(&told.matching, w)?;
            oxs::encode(&counts, w)?;
            instruction::encode(instructions, context, w)
        }
    }
}

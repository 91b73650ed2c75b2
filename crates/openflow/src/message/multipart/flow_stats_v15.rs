//! Rules and their counters in OpenFlow 1.5, which has separate messages for descriptions
//! (`OFPMP_FLOW_DESC`) and counters (`OFPMP_FLOW_STATS`), both with OXS fields (OF 1.5.1, 7.3.5.2
//! and 7.3.5.3).
//!
//! `flow_stats` has the lengths of entries and the formats of all other versions.

use base::{Cookie, TableId};
use flow::{FlowFlags, FlowStats, Instructions};

use super::flow_stats::empty;
use crate::action::EncodeContext;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::FlowFormat;
use crate::instruction;
use crate::oxm;
use crate::oxs::{self, OxsCounts};

/// `OFPFSR_STATS_REQUEST`: the reply to a request.
const STATS_REQUEST: u8 = 0;

/// Decodes a rule's description, after its length.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<FlowStats, Malformed> {
    r.skip(2)?;
    let mut stats = empty(TableId(r.u8()?));
    r.skip(1)?;
    stats.priority = r.u16()?;
    (stats.idle_timeout_s, stats.hard_timeout_s) = (r.u16()?, r.u16()?);
    stats.flags = FlowFlags(r.u16()?);
    stats.importance = r.u16()?;
    stats.cookie = Cookie(r.u64()?);
    stats.matching = oxm::decode_structure(r)?;
    set_counts(&mut stats, oxs::decode(r)?);
    stats.instructions = instruction::decode(r)?;
    Ok(stats)
}

/// Decodes a rule's counters, after their length.
pub(super) fn decode_counts(r: &mut Reader<'_>) -> Result<FlowStats, Malformed> {
    r.skip(2)?;
    let mut stats = empty(TableId(r.u8()?));
    // The reason of the message: a request.
    r.skip(1)?;
    stats.priority = r.u16()?;
    stats.matching = oxm::decode_structure(r)?;
    set_counts(&mut stats, oxs::decode(r)?);
    r.end()?;
    Ok(stats)
}

fn set_counts(stats: &mut FlowStats, counts: OxsCounts) {
    stats.duration = counts.duration.unwrap_or_default();
    stats.idle_age = counts.idle.unwrap_or_default();
    stats.packets = counts.packets.unwrap_or(0);
    stats.bytes = counts.bytes.unwrap_or(0);
}

/// Appends an entry after its length, complete or with counters only.
pub(super) fn encode(
    stats: &FlowStats,
    instructions: &Instructions,
    context: EncodeContext<'_>,
    format: FlowFormat,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let counts = OxsCounts {
        duration: Some(stats.duration),
        idle: Some(stats.idle_age),
        flows: None,
        packets: Some(stats.packets),
        bytes: Some(stats.bytes),
    };
    w.zeros(2);
    w.u8(stats.table.0);
    match format {
        FlowFormat::Counts => {
            w.u8(STATS_REQUEST);
            w.u16(stats.priority);
            oxm::encode_structure(&stats.matching, w)?;
            oxs::encode(&counts, w)
        }
        FlowFormat::Standard | FlowFormat::Nicira => {
            w.zeros(1);
            w.u16(stats.priority);
            w.u16(stats.idle_timeout_s);
            w.u16(stats.hard_timeout_s);
            w.u16(stats.flags.0);
            w.u16(stats.importance);
            w.u64(stats.cookie.0);
            oxm::encode_structure(&stats.matching, w)?;
            oxs::encode(&counts, w)?;
            instruction::encode(instructions, context, w)
        }
    }
}

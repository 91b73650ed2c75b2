//! Flow-removed: the end of a rule (OF 1.0.1, 5.4.2; OF 1.3.5, 7.4.2; Nicira's
//! `nx_flow_removed`).
//!
//! OpenFlow 1.0 tells no table and, as Nicira, no hard timeout: read from them,
//! they are "every table" and none.

use base::{Cookie, TableId};
use flow::{FlowRemoved, FlowRemovedReason, Match, Refusal};

use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::dialect::Dialect;
use crate::duration;
use crate::faith::Faith;
use crate::kinds::Kind;
use crate::match10;
use crate::oxm::{self, Filter};
use crate::version::Version;

const REASONS: [FlowRemovedReason; 4] = [
    FlowRemovedReason::IdleTimeout,
    FlowRemovedReason::HardTimeout,
    FlowRemovedReason::Delete,
    FlowRemovedReason::GroupDelete,
];

/// The number of a reason, also in the masks of asynchronous messages.
pub(crate) const fn reason_number(reason: FlowRemovedReason) -> u8 {
    match reason {
        FlowRemovedReason::IdleTimeout => 0,
        FlowRemovedReason::HardTimeout => 1,
        // Only OpenFlow 1.4 and later have a word for the end of a meter.
        FlowRemovedReason::Delete | FlowRemovedReason::MeterDelete => 2,
        FlowRemovedReason::GroupDelete => 3,
    }
}

/// Which message tells it.
pub(crate) const fn kind(dialect: Dialect) -> Kind {
    match dialect.version {
        Version::V10 if dialect.nxm => Kind::NxFlowRemoved,
        Version::V10 | Version::V13 => Kind::FlowRemoved,
    }
}

/// Reads the specification's message.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<FlowRemoved, Malformed> {
    match r.version() {
        Version::V10 => {
            let matching = match10::decode(r)?.matching;
            let mut told = decode_head(r)?;
            // In 1.0 a byte of padding stands for the table.
            told.table = TableId::ALL;
            told.idle_timeout_s = r.u16()?;
            r.skip(2)?;
            decode_counts(r, &mut told)?;
            told.matching = matching;
            Ok(told)
        }
        Version::V13 => {
            let mut told = decode_head(r)?;
            (told.idle_timeout_s, told.hard_timeout_s) = (r.u16()?, r.u16()?);
            decode_counts(r, &mut told)?;
            told.matching = oxm::decode_structure(r)?;
            Ok(told)
        }
    }
}

/// Reads Nicira's message.
pub(crate) fn decode_nicira(r: &mut Reader<'_>) -> Result<FlowRemoved, Malformed> {
    let mut told = decode_head(r)?;
    // One more than the table, and zero where it is not known.
    told.table = TableId(told.table.0.wrapping_sub(1));
    told.idle_timeout_s = r.u16()?;
    let match_len = usize::from(r.u16()?);
    decode_counts(r, &mut told)?;
    told.matching = oxm::decode_nxm(r, match_len)?.matching;
    Ok(told)
}

/// Cookie, priority, reason, table and duration.
fn decode_head(r: &mut Reader<'_>) -> Result<FlowRemoved, Malformed> {
    let (cookie, priority) = (Cookie(r.u64()?), r.u16()?);
    let unknown = r.fail(Refusal::RequestBadType);
    let known = match r.version() {
        // It has no groups.
        Version::V10 => &REASONS[..3],
        Version::V13 => &REASONS[..],
    };
    let reason = *known.get(usize::from(r.u8()?)).ok_or(unknown)?;
    Ok(FlowRemoved {
        matching: Match::any(),
        cookie,
        priority,
        reason,
        table: TableId(r.u8()?),
        duration: duration::decode(r)?,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        packets: 0,
        bytes: 0,
    })
}

fn decode_counts(r: &mut Reader<'_>, told: &mut FlowRemoved) -> Result<(), Malformed> {
    (told.packets, told.bytes) = (r.u64()?, r.u64()?);
    Ok(())
}

/// Appends the message that the dialect wants. A match that 1.0 has no place for
/// comes out wider.
pub(crate) fn encode(told: &FlowRemoved, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
    match (w.version(), w.dialect().nxm) {
        (Version::V10, false) => {
            match10::encode(&told.matching, Faith::Good, w)?;
            encode_head(told, 0, w);
            w.u16(told.idle_timeout_s);
            w.zeros(2);
            encode_counts(told, w);
            Ok(())
        }
        (Version::V10, true) => {
            encode_head(told, told.table.0.wrapping_add(1), w);
            w.u16(told.idle_timeout_s);
            let filter = Filter::of(told.matching.clone());
            oxm::encode_nxm_around(&filter, w, |w| encode_counts(told, w))
        }
        (Version::V13, _) => {
            encode_head(told, told.table.0, w);
            w.u16(told.idle_timeout_s);
            w.u16(told.hard_timeout_s);
            encode_counts(told, w);
            oxm::encode_structure(&told.matching, w)
        }
    }
}

fn encode_head(told: &FlowRemoved, table: u8, w: &mut Writer<'_>) {
    w.u64(told.cookie.0);
    w.u16(told.priority);
    w.u8(match (w.version(), told.reason) {
        // To 1.0, which knows no groups, it is a deletion.
        (Version::V10, FlowRemovedReason::GroupDelete) => reason_number(FlowRemovedReason::Delete),
        (_, reason) => reason_number(reason),
    });
    w.u8(table);
    duration::encode(told.duration, w);
}

fn encode_counts(told: &FlowRemoved, w: &mut Writer<'_>) {
    w.u64(told.packets);
    w.u64(told.bytes);
}

//! Flow-removed: the removal of a rule (OF 1.0.1, 5.4.2; OF 1.1.0, A.4.2; OF 1.3.5, 7.4.2;
//! OF 1.5.1, 7.4.2; Nicira's `nx_flow_removed`).
//!
//! OpenFlow 1.0 has no table and, like 1.1 and Nicira's form, no hard timeout: the decoder returns
//! [`TableId::ALL`] and zero. In 1.5 the counters are OXS fields.

use std::time::Duration;

use base::{Cookie, TableId};
use flow::{FlowRemoved, FlowRemovedReason, Match, Refusal};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::Dialect;
use crate::duration;
use crate::fidelity::Fidelity;
use crate::kinds::MessageKind;
use crate::match10;
use crate::oxm::{self, NxmMatch};
use crate::oxs::{self, OxsCounts};
use crate::version::Version;

const REASONS: [FlowRemovedReason; 6] = [
    FlowRemovedReason::IdleTimeout,
    FlowRemovedReason::HardTimeout,
    FlowRemovedReason::Delete,
    FlowRemovedReason::GroupDelete,
    FlowRemovedReason::MeterDelete,
    FlowRemovedReason::Eviction,
];

/// The number of reasons in a version: 1.0 has no groups, and 1.4 added the last two.
const fn reasons(version: Version) -> usize {
    match version {
        Version::V10 => 3,
        Version::V11 | Version::V12 | Version::V13 => 4,
        Version::V14 | Version::V15 => REASONS.len(),
    }
}

/// The number of a reason, also used in the masks of asynchronous messages. A version without the
/// reason uses the number of a deletion.
pub(crate) const fn reason_number(reason: FlowRemovedReason, version: Version) -> u8 {
    let number = match reason {
        FlowRemovedReason::IdleTimeout => 0,
        FlowRemovedReason::HardTimeout => 1,
        FlowRemovedReason::Delete => 2,
        FlowRemovedReason::GroupDelete => 3,
        FlowRemovedReason::MeterDelete => 4,
        FlowRemovedReason::Eviction => 5,
    };
    if (number as usize) < reasons(version) {
        number
    } else {
        2
    }
}

/// The reason with this number, in the version that has all of them.
pub(crate) fn reason_numbered(number: u16) -> Option<FlowRemovedReason> {
    REASONS.get(usize::from(number)).copied()
}

/// The message type.
pub(crate) const fn kind(dialect: Dialect) -> MessageKind {
    match dialect.version {
        Version::V10 if dialect.nxm => MessageKind::NxFlowRemoved,
        Version::V10 | Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            MessageKind::FlowRemoved
        }
    }
}

/// Decodes the specification's message.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<FlowRemoved, Malformed> {
    match r.version() {
        Version::V10 => {
            let matching = match10::decode(r)?.matching;
            let mut removed = decode_head(r)?;
            // 1.0 has padding in place of the table.
            removed.table = TableId::ALL;
            removed.idle_timeout_s = r.u16()?;
            r.skip(2)?;
            decode_counts(r, &mut removed)?;
            removed.matching = matching;
            Ok(removed)
        }
        Version::V15 if r.dialect().uses_oxs() => decode_v15(r),
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            let mut removed = decode_head(r)?;
            (removed.idle_timeout_s, removed.hard_timeout_s) = (r.u16()?, r.u16()?);
            if r.version() == Version::V11 {
                // The bytes are padding there.
                removed.hard_timeout_s = 0;
            }
            decode_counts(r, &mut removed)?;
            removed.matching = oxm::decode_structure(r)?;
            Ok(removed)
        }
    }
}

/// Decodes Nicira's message.
pub(crate) fn decode_nicira(r: &mut Reader<'_>) -> Result<FlowRemoved, Malformed> {
    let mut removed = decode_head(r)?;
    // The table id plus one; zero if it is unknown.
    removed.table = TableId(removed.table.0.wrapping_sub(1));
    removed.idle_timeout_s = r.u16()?;
    let match_len = usize::from(r.u16()?);
    decode_counts(r, &mut removed)?;
    removed.matching = oxm::decode_nxm(r, match_len)?.matching;
    Ok(removed)
}

/// Decodes cookie, priority, reason, table and duration.
fn decode_head(r: &mut Reader<'_>) -> Result<FlowRemoved, Malformed> {
    let (cookie, priority) = (Cookie(r.u64()?), r.u16()?);
    let reason = decode_reason(r)?;
    Ok(FlowRemoved {
        cookie,
        priority,
        table: TableId(r.u8()?),
        duration: duration::decode(r)?,
        ..empty(reason)
    })
}

fn decode_reason(r: &mut Reader<'_>) -> Result<FlowRemovedReason, Malformed> {
    let unknown = r.fail(Refusal::RequestBadType);
    let known = &REASONS[..reasons(r.version())];
    known.get(usize::from(r.u8()?)).copied().ok_or(unknown)
}

/// A flow-removed with a reason and no other members.
const fn empty(reason: FlowRemovedReason) -> FlowRemoved {
    FlowRemoved {
        matching: Match::any(),
        cookie: Cookie(0),
        priority: 0,
        reason,
        table: TableId::ALL,
        duration: Duration::ZERO,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        packets: 0,
        bytes: 0,
    }
}

fn decode_v15(r: &mut Reader<'_>) -> Result<FlowRemoved, Malformed> {
    let table = TableId(r.u8()?);
    let reason = decode_reason(r)?;
    let priority = r.u16()?;
    let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
    let cookie = Cookie(r.u64()?);
    let matching = oxm::decode_structure(r)?;
    let counts = oxs::decode(r)?;
    Ok(FlowRemoved {
        table,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        cookie,
        matching,
        duration: counts.duration.unwrap_or_default(),
        packets: counts.packets.unwrap_or(0),
        bytes: counts.bytes.unwrap_or(0),
        ..empty(reason)
    })
}

fn encode_v15(removed: &FlowRemoved, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.u8(removed.table.0);
    w.u8(reason_number(removed.reason, w.version()));
    w.u16(removed.priority);
    w.u16(removed.idle_timeout_s);
    w.u16(removed.hard_timeout_s);
    w.u64(removed.cookie.0);
    oxm::encode_structure(&removed.matching, w)?;
    let counts = OxsCounts {
        duration: Some(removed.duration),
        packets: Some(removed.packets),
        bytes: Some(removed.bytes),
        ..OxsCounts::default()
    };
    oxs::encode(&counts, w)
}

fn decode_counts(r: &mut Reader<'_>, removed: &mut FlowRemoved) -> Result<(), Malformed> {
    (removed.packets, removed.bytes) = (r.u64()?, r.u64()?);
    Ok(())
}

/// Appends the message in the dialect's format. A match that 1.0 or 1.1 cannot express becomes
/// wider.
pub(crate) fn encode(removed: &FlowRemoved, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match (w.version(), w.dialect().nxm) {
        (Version::V10, false) => {
            match10::encode(&removed.matching, Fidelity::BestEffort, w)?;
            encode_head(removed, 0, w);
            w.u16(removed.idle_timeout_s);
            w.zeros(2);
            encode_counts(removed, w);
            Ok(())
        }
        (Version::V10, true) => {
            encode_head(removed, removed.table.0.wrapping_add(1), w);
            w.u16(removed.idle_timeout_s);
            let nxm_match = NxmMatch::of(removed.matching.clone());
            oxm::encode_nxm_with_length(&nxm_match, w, |w| encode_counts(removed, w))
        }
        (Version::V15, _) if w.dialect().uses_oxs() => encode_v15(removed, w),
        (Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15, _) => {
            encode_head(removed, removed.table.0, w);
            w.u16(removed.idle_timeout_s);
            w.u16(match w.version() {
                Version::V11 => 0,
                _ => removed.hard_timeout_s,
            });
            encode_counts(removed, w);
            oxm::encode_structure_with(&removed.matching, Fidelity::BestEffort, w)
        }
    }
}

fn encode_head(removed: &FlowRemoved, table: u8, w: &mut Writer<'_>) {
    w.u64(removed.cookie.0);
    w.u16(removed.priority);
    w.u8(reason_number(removed.reason, w.version()));
    w.u8(table);
    duration::encode(removed.duration, w);
}

fn encode_counts(removed: &FlowRemoved, w: &mut Writer<'_>) {
    w.u64(removed.packets);
    w.u64(removed.bytes);
}

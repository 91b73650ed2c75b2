//! Rules and their counters, individually or summed (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5.2 and
//! 7.3.5.3; OF 1.5.1, 7.3.5.2 to 7.3.5.4; Nicira's `nx_flow_stats`). `flow_stats_v15` has the
//! differing formats of OpenFlow 1.5.
//!
//! Rules are encoded with [`Fidelity::BestEffort`], so that one unusual rule never hides all others
//! from the controller. In the formats of OpenFlow 1.0 and 1.1 the match may become wider (they
//! have no IPv6 addresses), and 1.0 omits an action set; Nicira's format has every match.

use std::time::Duration;

use base::{Cookie, GroupId, TableId};
use flow::{AggregateStats, FlowFlags, FlowStats, FlowStatsRequest, Instructions, Match, Refusal};

use super::flow_stats_v15;
use crate::action::EncodeContext;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::FlowFormat;
use crate::duration;
use crate::fidelity::Fidelity;
use crate::instruction;
use crate::match10;
use crate::message::WireFormat;
use crate::oxm::{self, CookieFilter, NxmMatch};
use crate::oxs::{self, OxsCounts};
use crate::port_no;
use crate::version::Version;

/// The maximum length of an entry: the payload of a message with the longest reply header,
/// Nicira's.
pub(super) const ENTRY_MAX: usize = u16::MAX as usize - 24;

impl WireFormat for FlowStatsRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.version() {
            Version::V10 => {
                let matching = match10::decode(r)?.matching;
                let table = TableId(r.u8()?);
                r.skip(1)?;
                Ok(Self {
                    table,
                    out_port: port_no::decode(r)?,
                    matching,
                    ..Self::all()
                })
            }
            Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
                let table = TableId(r.u8()?);
                r.skip(3)?;
                let (out_port, out_group) = (port_no::decode(r)?, GroupId(r.u32()?));
                r.skip(4)?;
                Ok(Self {
                    table,
                    out_port,
                    out_group,
                    cookie: Cookie(r.u64()?),
                    cookie_mask: r.u64()?,
                    matching: oxm::decode_structure(r)?,
                })
            }
        }
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match w.version() {
            Version::V10 => {
                match10::encode(&self.matching, Fidelity::Lossless, w)?;
                if self.cookie_mask != 0 || self.out_group != GroupId::ANY {
                    return Err(w.unsupported("a request filtered by cookie or group"));
                }
                w.u8(self.table.0);
                w.zeros(1);
                port_no::encode(self.out_port, w)
            }
            Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
                w.u8(self.table.0);
                w.zeros(3);
                port_no::encode(self.out_port, w)?;
                w.u32(self.out_group.0);
                w.zeros(4);
                w.u64(self.cookie.0);
                w.u64(self.cookie_mask);
                oxm::encode_structure(&self.matching, w)
            }
        }
    }
}

/// Decodes Nicira's request.
pub(super) fn decode_nx_request(r: &mut Reader<'_>) -> Result<FlowStatsRequest, Malformed> {
    let out_port = port_no::decode(r)?;
    let match_len = usize::from(r.u16()?);
    let table = TableId(r.u8()?);
    r.skip(3)?;
    let NxmMatch { matching, cookies } = oxm::decode_nxm(r, match_len)?;
    Ok(FlowStatsRequest {
        table,
        out_port,
        out_group: GroupId::ANY,
        cookie: cookies.cookie,
        cookie_mask: cookies.mask,
        matching,
    })
}

/// Appends Nicira's request.
pub(super) fn encode_nx_request(
    request: &FlowStatsRequest,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    if request.out_group != GroupId::ANY {
        return Err(w.unsupported("a request filtered by group"));
    }
    port_no::encode(request.out_port, w)?;
    let nxm_match = NxmMatch {
        matching: request.matching.clone(),
        cookies: CookieFilter {
            cookie: request.cookie,
            mask: request.cookie_mask,
        },
    };
    oxm::encode_nxm_with_length(&nxm_match, w, |w| {
        w.u8(request.table.0);
        w.zeros(3);
    })
}

impl WireFormat for FlowStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut r = next_entry(r)?;
        if r.dialect().uses_oxs() {
            return flow_stats_v15::decode(&mut r);
        }
        let r = &mut r;
        let table = TableId(r.u8()?);
        r.skip(1)?;
        let mut stats = empty(table);
        match r.version() {
            Version::V10 => {
                stats.matching = match10::decode(r)?.matching;
                decode_times(r, &mut stats)?;
                r.skip(6)?;
                decode_counts(r, &mut stats)?;
            }
            Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
                decode_times(r, &mut stats)?;
                decode_flags(r, &mut stats)?;
                decode_counts(r, &mut stats)?;
                stats.matching = oxm::decode_structure(r)?;
            }
        }
        stats.instructions = instruction::decode(r)?;
        Ok(stats)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        encode_bounded(self, FlowFormat::Standard, w)
    }
}

/// Decodes Nicira's entry.
pub(super) fn decode_nx(r: &mut Reader<'_>) -> Result<FlowStats, Malformed> {
    let mut r = next_entry(r)?;
    let r = &mut r;
    let table = TableId(r.u8()?);
    r.skip(1)?;
    let mut stats = empty(table);
    decode_times(r, &mut stats)?;
    let match_len = usize::from(r.u16()?);
    (stats.idle_age, stats.hard_age) = (decode_age(r)?, decode_age(r)?);
    decode_counts(r, &mut stats)?;
    stats.matching = oxm::decode_nxm(r, match_len)?.matching;
    stats.instructions = instruction::decode(r)?;
    Ok(stats)
}

/// Appends Nicira's entry.
pub(super) fn encode_nx(stats: &FlowStats, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    encode_bounded(stats, FlowFormat::Nicira, w)
}

/// Decodes an entry with counters only (1.5).
pub(super) fn decode_counts_only(r: &mut Reader<'_>) -> Result<FlowStats, Malformed> {
    flow_stats_v15::decode_counts(&mut next_entry(r)?)
}

/// Appends an entry with counters only (1.5).
pub(super) fn encode_counts_only(stats: &FlowStats, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    encode_bounded(stats, FlowFormat::Counts, w)
}

/// Appends an entry, or refuses it if the translation exceeds the maximum length.
fn encode_bounded(
    stats: &FlowStats,
    format: FlowFormat,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let length = encode_entry(stats, &stats.instructions, format, w)?;
    match length <= ENTRY_MAX {
        true => Ok(()),
        false => Err(w.unsupported("a rule beyond the maximum length of a reply")),
    }
}

fn encode_entry(
    stats: &FlowStats,
    instructions: &Instructions,
    format: FlowFormat,
    w: &mut Writer<'_>,
) -> Result<usize, EncodeError> {
    let context = EncodeContext {
        matching: &stats.matching,
        fidelity: Fidelity::BestEffort,
    };
    w.nested(0, |w| {
        w.u16(0);
        if w.dialect().uses_oxs() {
            return flow_stats_v15::encode(stats, instructions, context, format, w);
        }
        w.u8(stats.table.0);
        w.zeros(1);
        match (w.version(), format) {
            (Version::V10, FlowFormat::Standard | FlowFormat::Counts) => {
                match10::encode(&stats.matching, Fidelity::BestEffort, w)?;
                encode_times(stats, w);
                w.zeros(6);
                encode_counts(stats, w);
            }
            (_, FlowFormat::Standard | FlowFormat::Counts) => {
                encode_times(stats, w);
                encode_flags(stats, w);
                encode_counts(stats, w);
                oxm::encode_structure_with(&stats.matching, Fidelity::BestEffort, w)?;
            }
            (_, FlowFormat::Nicira) => {
                encode_times(stats, w);
                let nxm_match = NxmMatch::of(stats.matching.clone());
                oxm::encode_nxm_with_length(&nxm_match, w, |w| {
                    encode_age(stats.idle_age, w);
                    encode_age(stats.hard_age, w);
                    encode_counts(stats, w);
                })?;
            }
        }
        instruction::encode(instructions, context, w)
    })
}

/// Splits off the next entry and skips its length.
fn next_entry<'a>(r: &mut Reader<'a>) -> Result<Reader<'a>, Malformed> {
    let length = usize::from(r.clone().u16()?);
    if length < 2 {
        return Err(r.fail(Refusal::RequestBadLength));
    }
    let mut entry = r.sub(length)?;
    entry.skip(2)?;
    Ok(entry)
}

/// An empty rule entry.
pub(super) fn empty(table: TableId) -> FlowStats {
    FlowStats {
        table,
        priority: 0,
        cookie: Cookie(0),
        matching: Match::any(),
        instructions: Instructions::default(),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        importance: 0,
        flags: FlowFlags::default(),
        duration: Duration::ZERO,
        idle_age: Duration::ZERO,
        hard_age: Duration::ZERO,
        packets: 0,
        bytes: 0,
    }
}

/// Decodes the times that all formats share: duration, priority and timeouts.
fn decode_times(r: &mut Reader<'_>, stats: &mut FlowStats) -> Result<(), Malformed> {
    stats.duration = duration::decode(r)?;
    stats.priority = r.u16()?;
    (stats.idle_timeout_s, stats.hard_timeout_s) = (r.u16()?, r.u16()?);
    Ok(())
}

fn encode_times(stats: &FlowStats, w: &mut Writer<'_>) {
    duration::encode(stats.duration, w);
    w.u16(stats.priority);
    w.u16(stats.idle_timeout_s);
    w.u16(stats.hard_timeout_s);
}

/// Decodes flags and importance, if the version has them.
fn decode_flags(r: &mut Reader<'_>, stats: &mut FlowStats) -> Result<(), Malformed> {
    let (flags, importance) = (r.u16()?, r.u16()?);
    if r.version() >= Version::V13 {
        stats.flags = FlowFlags(flags);
    }
    if r.version() >= Version::V14 {
        stats.importance = importance;
    }
    r.skip(2)
}

fn encode_flags(stats: &FlowStats, w: &mut Writer<'_>) {
    let or_zero = |has: bool, value: u16| if has { value } else { 0 };
    w.u16(or_zero(w.version() >= Version::V13, stats.flags.0));
    w.u16(or_zero(w.version() >= Version::V14, stats.importance));
    w.zeros(2);
}

/// Decodes the members that all formats share: cookie, packets and bytes.
fn decode_counts(r: &mut Reader<'_>, stats: &mut FlowStats) -> Result<(), Malformed> {
    stats.cookie = Cookie(r.u64()?);
    (stats.packets, stats.bytes) = (r.u64()?, r.u64()?);
    Ok(())
}

fn encode_counts(stats: &FlowStats, w: &mut Writer<'_>) {
    w.u64(stats.cookie.0);
    w.u64(stats.packets);
    w.u64(stats.bytes);
}

/// Decodes Nicira's age: seconds plus one; zero if it is unknown.
fn decode_age(r: &mut Reader<'_>) -> Result<Duration, Malformed> {
    r.u16()
        .map(|age| Duration::from_secs(age.saturating_sub(1).into()))
}

fn encode_age(age: Duration, w: &mut Writer<'_>) {
    let seconds = age.as_secs().saturating_add(1);
    w.u16(u16::try_from(seconds).unwrap_or(u16::MAX));
}

impl WireFormat for AggregateStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.dialect().uses_oxs() {
            let counts = oxs::decode(r)?;
            return Ok(Self {
                packets: counts.packets.unwrap_or(0),
                bytes: counts.bytes.unwrap_or(0),
                flows: counts.flows.unwrap_or(0),
            });
        }
        let (packets, bytes, flows) = (r.u64()?, r.u64()?, r.u32()?);
        r.skip(4)?;
        Ok(Self {
            packets,
            bytes,
            flows,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if w.dialect().uses_oxs() {
            let counts = OxsCounts {
                flows: Some(self.flows),
                packets: Some(self.packets),
                bytes: Some(self.bytes),
                ..OxsCounts::default()
            };
            return oxs::encode(&counts, w);
        }
        w.u64(self.packets);
        w.u64(self.bytes);
        w.u32(self.flows);
        w.zeros(4);
        Ok(())
    }
}

//! Rules and their counts, one by one or summed (OF 1.0.1, 5.3.5; OF 1.3.5,
//! 7.3.5.2 and 7.3.5.3; OF 1.5.1, 7.3.5.2 to 7.3.5.4; Nicira's `nx_flow_stats`).
//! What OpenFlow 1.5 asks and tells otherwise is in `flow_stats_v15`.
//!
//! A rule is told in good faith: as far as the version has words for it, so that
//! one rule never costs the controller all others. In the own forms of OpenFlow
//! 1.0 and 1.1 the match may come out wider (an IPv6 address has no place in it) and in
//! 1.0 an action set is not told; Nicira's form tells every match.

use std::time::Duration;

use base::{Cookie, GroupId, TableId};
use flow::{AggregateStats, FlowFlags, FlowStats, FlowStatsRequest, Instructions, Match, Refusal};

use super::flow_stats_v15;
use crate::action::Context;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::FlowFormat;
use crate::duration;
use crate::faith::Faith;
use crate::instruction;
use crate::match10;
use crate::message::Body;
use crate::oxm::{self, CookieFilter, Filter};
use crate::oxs::{self, Counts};
use crate::port_no;
use crate::version::Version;

/// The longest that an entry may be: what a message holds behind the longest
/// header of replies, Nicira's.
pub(super) const ENTRY_MAX: usize = u16::MAX as usize - 24;

impl Body for FlowStatsRequest {
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
                match10::encode(&self.matching, Faith::Exact, w)?;
                if self.cookie_mask != 0 || self.out_group != GroupId::ANY {
                    return Err(w.cannot("a question by cookie or group"));
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

/// Reads Nicira's request.
pub(super) fn decode_nx_request(r: &mut Reader<'_>) -> Result<FlowStatsRequest, Malformed> {
    let out_port = port_no::decode(r)?;
    let match_len = usize::from(r.u16()?);
    let table = TableId(r.u8()?);
    r.skip(3)?;
    let Filter { matching, cookies } = oxm::decode_nxm(r, match_len)?;
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
        return Err(w.cannot("a question by group"));
    }
    port_no::encode(request.out_port, w)?;
    let filter = Filter {
        matching: request.matching.clone(),
        cookies: CookieFilter {
            cookie: request.cookie,
            mask: request.cookie_mask,
        },
    };
    oxm::encode_nxm_around(&filter, w, |w| {
        w.u8(request.table.0);
        w.zeros(3);
    })
}

impl Body for FlowStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut r = entry(r)?;
        if r.dialect().oxs() {
            return flow_stats_v15::decode(&mut r);
        }
        let r = &mut r;
        let table = TableId(r.u8()?);
        r.skip(1)?;
        let mut told = blank(table);
        match r.version() {
            Version::V10 => {
                told.matching = match10::decode(r)?.matching;
                decode_times(r, &mut told)?;
                r.skip(6)?;
                decode_counts(r, &mut told)?;
            }
            Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
                decode_times(r, &mut told)?;
                decode_flags(r, &mut told)?;
                decode_counts(r, &mut told)?;
                told.matching = oxm::decode_structure(r)?;
            }
        }
        told.instructions = instruction::decode(r)?;
        Ok(told)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        encode_either(self, FlowFormat::Standard, w)
    }
}

/// Reads Nicira's entry.
pub(super) fn decode_nx(r: &mut Reader<'_>) -> Result<FlowStats, Malformed> {
    let mut r = entry(r)?;
    let r = &mut r;
    let table = TableId(r.u8()?);
    r.skip(1)?;
    let mut told = blank(table);
    decode_times(r, &mut told)?;
    let match_len = usize::from(r.u16()?);
    (told.idle_age, told.hard_age) = (decode_age(r)?, decode_age(r)?);
    decode_counts(r, &mut told)?;
    told.matching = oxm::decode_nxm(r, match_len)?.matching;
    told.instructions = instruction::decode(r)?;
    Ok(told)
}

/// Appends Nicira's entry.
pub(super) fn encode_nx(told: &FlowStats, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    encode_either(told, FlowFormat::Nicira, w)
}

/// Reads an entry of counts alone (1.5).
pub(super) fn decode_counts_alone(r: &mut Reader<'_>) -> Result<FlowStats, Malformed> {
    flow_stats_v15::decode_counts(&mut entry(r)?)
}

/// Appends an entry of counts alone (1.5).
pub(super) fn encode_counts_alone(told: &FlowStats, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    encode_either(told, FlowFormat::Counts, w)
}

/// Appends an entry. One that is too long for any message, which translation can
/// make it, is told without what it does.
fn encode_either(
    told: &FlowStats,
    form: FlowFormat,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let before = w.len();
    let written = encode_entry(told, &told.instructions, form, w);
    if written.is_ok_and(|length| length <= ENTRY_MAX) {
        return Ok(());
    }
    w.truncate(before);
    encode_entry(told, &Instructions::default(), form, w).map(drop)
}

fn encode_entry(
    told: &FlowStats,
    instructions: &Instructions,
    form: FlowFormat,
    w: &mut Writer<'_>,
) -> Result<usize, EncodeError> {
    let context = Context {
        matching: &told.matching,
        faith: Faith::Good,
    };
    w.nested(0, |w| {
        w.u16(0);
        if w.dialect().oxs() {
            return flow_stats_v15::encode(told, instructions, context, form, w);
        }
        w.u8(told.table.0);
        w.zeros(1);
        match (w.version(), form) {
            (Version::V10, FlowFormat::Standard | FlowFormat::Counts) => {
                match10::encode(&told.matching, Faith::Good, w)?;
                encode_times(told, w);
                w.zeros(6);
                encode_counts(told, w);
            }
            (_, FlowFormat::Standard | FlowFormat::Counts) => {
                encode_times(told, w);
                encode_flags(told, w);
                encode_counts(told, w);
                oxm::encode_structure_with(&told.matching, Faith::Good, w)?;
            }
            (_, FlowFormat::Nicira) => {
                encode_times(told, w);
                let filter = Filter::of(told.matching.clone());
                oxm::encode_nxm_around(&filter, w, |w| {
                    encode_age(told.idle_age, w);
                    encode_age(told.hard_age, w);
                    encode_counts(told, w);
                })?;
            }
        }
        instruction::encode(instructions, context, w)
    })
}

/// The entry at hand, behind its length.
fn entry<'a>(r: &mut Reader<'a>) -> Result<Reader<'a>, Malformed> {
    let length = usize::from(r.clone().u16()?);
    if length < 2 {
        return Err(r.fail(Refusal::RequestBadLength));
    }
    let mut entry = r.sub(length)?;
    entry.skip(2)?;
    Ok(entry)
}

/// A rule of which nothing is known yet.
pub(super) fn blank(table: TableId) -> FlowStats {
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

/// What all forms share: duration, priority and timeouts.
fn decode_times(r: &mut Reader<'_>, told: &mut FlowStats) -> Result<(), Malformed> {
    told.duration = duration::decode(r)?;
    told.priority = r.u16()?;
    (told.idle_timeout_s, told.hard_timeout_s) = (r.u16()?, r.u16()?);
    Ok(())
}

fn encode_times(told: &FlowStats, w: &mut Writer<'_>) {
    duration::encode(told.duration, w);
    w.u16(told.priority);
    w.u16(told.idle_timeout_s);
    w.u16(told.hard_timeout_s);
}

/// Flags and importance, where a version has a place for them.
fn decode_flags(r: &mut Reader<'_>, told: &mut FlowStats) -> Result<(), Malformed> {
    let (flags, importance) = (r.u16()?, r.u16()?);
    if r.version() >= Version::V13 {
        told.flags = FlowFlags(flags);
    }
    if r.version() >= Version::V14 {
        told.importance = importance;
    }
    r.skip(2)
}

fn encode_flags(told: &FlowStats, w: &mut Writer<'_>) {
    let or_zero = |has: bool, value: u16| if has { value } else { 0 };
    w.u16(or_zero(w.version() >= Version::V13, told.flags.0));
    w.u16(or_zero(w.version() >= Version::V14, told.importance));
    w.zeros(2);
}

/// What all forms share: cookie, frames and bytes.
fn decode_counts(r: &mut Reader<'_>, told: &mut FlowStats) -> Result<(), Malformed> {
    told.cookie = Cookie(r.u64()?);
    (told.packets, told.bytes) = (r.u64()?, r.u64()?);
    Ok(())
}

fn encode_counts(told: &FlowStats, w: &mut Writer<'_>) {
    w.u64(told.cookie.0);
    w.u64(told.packets);
    w.u64(told.bytes);
}

/// Nicira's ages: whole seconds and one, zero where it is not known.
fn decode_age(r: &mut Reader<'_>) -> Result<Duration, Malformed> {
    r.u16()
        .map(|age| Duration::from_secs(age.saturating_sub(1).into()))
}

fn encode_age(age: Duration, w: &mut Writer<'_>) {
    let seconds = age.as_secs().saturating_add(1);
    w.u16(u16::try_from(seconds).unwrap_or(u16::MAX));
}

impl Body for AggregateStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.dialect().oxs() {
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
        if w.dialect().oxs() {
            let counts = Counts {
                flows: Some(self.flows),
                packets: Some(self.packets),
                bytes: Some(self.bytes),
                ..Counts::default()
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

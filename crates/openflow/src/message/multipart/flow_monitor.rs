//! Flow monitors (OF 1.4.1, 7.3.5.17; `nicira-ext.h` and, for 1.3, ONF's extension 187, as in Open
//! vSwitch 3.1). Wire formats:
//!
//! ```text
//! request  Nicira:  id flags out_port match_len table zeros(5) nxm
//!          1.3:     id flags match_len out_port table zeros(3) match
//!          1.4 on:  id out_port out_group flags table command match
//! update   before:  length event reason priority idle hard match_len table pad cookie match instructions
//!          1.4 on:  length event table reason idle hard priority zeros(4) cookie match instructions
//!          abbrev:  length event xid
//!          1.4 on:  length event zeros(4)              (paused, resumed)
//! ```
//!
//! Before 1.3 the match is NXM and the rule has a list of actions. The reason of a removal has
//! 1.5's number in every version, as in Open vSwitch.
//!
//! Rules are encoded with [`Fidelity::BestEffort`], as in statistics.

use base::{Cookie, GroupId, TableId, Xid};
use flow::{
    FlowChange, FlowEvent, FlowStatsRequest, FlowUpdate, Instructions, Monitor, MonitorFlags,
    MonitorId, MonitorRequest, Refusal,
};

use crate::action::EncodeContext;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::fidelity::Fidelity;
use crate::instruction;
use crate::message::{WireFormat, flow_removed};
use crate::oxm::{self, NxmMatch};
use crate::port_no;
use crate::version::Version;

/// The flags that 1.4 added. Nicira's `NXFMF_OWN` is 1.4's `OFPFMF_NO_ABBREV`, the same bit.
const FLAGS_V14: u16 = MonitorFlags::ONLY_OWN.0;

/// A request before 1.4 must have one of these flags.
const EVENT_FLAGS: u16 = MonitorFlags::ADD.0 | MonitorFlags::REMOVED.0 | MonitorFlags::MODIFY.0;

/// `OFPFMC_*`.
mod command {
    pub(super) const ADD: u8 = 0;
    pub(super) const MODIFY: u8 = 1;
    pub(super) const DELETE: u8 = 2;
}

/// `OFPFME_*`. Nicira's numbers are one less, and there are four.
mod event {
    pub(super) const INITIAL: u16 = 0;
    pub(super) const ADDED: u16 = 1;
    pub(super) const REMOVED: u16 = 2;
    pub(super) const MODIFIED: u16 = 3;
    pub(super) const ABBREV: u16 = 4;
    pub(super) const PAUSED: u16 = 5;
    pub(super) const RESUMED: u16 = 6;
}

/// The format of monitors in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MonitorFormat {
    Nicira,
    Onf,
    Standard,
}

const fn monitor_format(version: Version) -> MonitorFormat {
    match version {
        Version::V10 | Version::V11 | Version::V12 => MonitorFormat::Nicira,
        Version::V13 => MonitorFormat::Onf,
        Version::V14 | Version::V15 => MonitorFormat::Standard,
    }
}

impl WireFormat for MonitorRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match monitor_format(r.version()) {
            MonitorFormat::Nicira => decode_nicira(r).map(Self::Add),
            MonitorFormat::Onf => decode_onf(r).map(Self::Add),
            MonitorFormat::Standard => decode_standard(r),
        }
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match (monitor_format(w.version()), self) {
            (MonitorFormat::Standard, request) => encode_standard(request, w),
            (MonitorFormat::Nicira, Self::Add(monitor)) => encode_nicira(monitor, w),
            (MonitorFormat::Onf, Self::Add(monitor)) => encode_onf(monitor, w),
            (_, Self::Modify(_) | Self::Delete(_)) => {
                Err(w.unsupported("the modification of a monitor"))
            }
        }
    }
}

fn decode_nicira(r: &mut Reader<'_>) -> Result<Monitor, Malformed> {
    let id = MonitorId(r.u32()?);
    let flags = decode_flags_before(r)?;
    let mut filter = FlowStatsRequest::all();
    // Nicira's port numbers have two bytes in every version.
    filter.out_port = port_no::decode_u16(r)?;
    let match_len = usize::from(r.u16()?);
    filter.table = TableId(r.u8()?);
    r.skip(5)?;
    filter.matching = oxm::decode_nxm(r, match_len)?.matching;
    Ok(Monitor {
        id,
        flags,
        request: filter,
    })
}

fn decode_onf(r: &mut Reader<'_>) -> Result<Monitor, Malformed> {
    let id = MonitorId(r.u32()?);
    let flags = decode_flags_before(r)?;
    // The match includes its length.
    r.skip(2)?;
    let mut filter = FlowStatsRequest::all();
    filter.out_port = port_no::decode(r)?;
    filter.table = TableId(r.u8()?);
    r.skip(3)?;
    filter.matching = oxm::decode_structure(r)?;
    Ok(Monitor {
        id,
        flags,
        request: filter,
    })
}

fn decode_flags_before(r: &mut Reader<'_>) -> Result<MonitorFlags, Malformed> {
    let bad = r.fail(Refusal::MonitorBadFlags);
    let flags = r.u16()?;
    let known = MonitorFlags::ALL.0 & !FLAGS_V14;
    if flags & !known != 0 || flags & EVENT_FLAGS == 0 {
        return Err(bad);
    }
    Ok(MonitorFlags(flags))
}

fn decode_standard(r: &mut Reader<'_>) -> Result<MonitorRequest, Malformed> {
    let id = MonitorId(r.u32()?);
    let mut filter = FlowStatsRequest::all();
    (filter.out_port, filter.out_group) = (port_no::decode(r)?, GroupId(r.u32()?));
    let bad_flags = r.fail(Refusal::MonitorBadFlags);
    let flags = MonitorFlags(r.u16()?);
    filter.table = TableId(r.u8()?);
    let bad_command = r.fail(Refusal::MonitorBadCommand);
    let command = r.u8()?;
    if command == command::DELETE {
        // Only the id matters; `ovs-ofctl` omits the match.
        r.rest();
        return Ok(MonitorRequest::Delete(id));
    }
    if flags.0 & !MonitorFlags::ALL.0 != 0 {
        return Err(bad_flags);
    }
    filter.matching = oxm::decode_structure(r)?;
    let monitor = Monitor {
        id,
        flags,
        request: filter,
    };
    match command {
        command::ADD => Ok(MonitorRequest::Add(monitor)),
        command::MODIFY => Ok(MonitorRequest::Modify(monitor)),
        _ => Err(bad_command),
    }
}

fn encode_nicira(monitor: &Monitor, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let filter = &monitor.request;
    w.u32(monitor.id.0);
    w.u16(flags_pre_v14(monitor, w)?);
    port_no::encode_u16(filter.out_port, w)?;
    let nxm_match = NxmMatch::of(filter.matching.clone());
    oxm::encode_nxm_with_length(&nxm_match, w, |w| {
        w.u8(filter.table.0);
        w.zeros(5);
    })
}

fn encode_onf(monitor: &Monitor, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let filter = &monitor.request;
    w.u32(monitor.id.0);
    w.u16(flags_pre_v14(monitor, w)?);
    let between = |w: &mut Writer<'_>| {
        port_no::encode(filter.out_port, w)?;
        w.u8(filter.table.0);
        w.zeros(3);
        Ok(())
    };
    oxm::encode_structure_with_length(&filter.matching, w, between)
}

/// The flags before 1.4, which has no output group either.
fn flags_pre_v14(monitor: &Monitor, w: &Writer<'_>) -> Result<u16, EncodeError> {
    if monitor.flags.contains(MonitorFlags::ONLY_OWN) || monitor.request.out_group != GroupId::ANY {
        return Err(w.unsupported("a monitor filtered by group or by own changes"));
    }
    Ok(monitor.flags.0)
}

fn encode_standard(request: &MonitorRequest, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let (command, monitor) = match request {
        MonitorRequest::Add(monitor) => (command::ADD, monitor),
        MonitorRequest::Modify(monitor) => (command::MODIFY, monitor),
        MonitorRequest::Delete(id) => {
            w.u32(id.0);
            w.zeros(11);
            w.u8(command::DELETE);
            return oxm::encode_structure(&flow::Match::any(), w);
        }
    };
    let filter = &monitor.request;
    w.u32(monitor.id.0);
    port_no::encode(filter.out_port, w)?;
    w.u32(filter.out_group.0);
    w.u16(monitor.flags.0);
    w.u8(filter.table.0);
    w.u8(command);
    oxm::encode_structure(&filter.matching, w)
}

impl WireFormat for FlowUpdate {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad_length = r.fail(Refusal::RequestBadLength);
        let length = usize::from(r.clone().u16()?);
        if length < 4 || length % 8 != 0 {
            return Err(bad_length);
        }
        let mut r = r.sub(length)?;
        r.skip(2)?;
        let unknown = r.fail(Refusal::RequestBadType);
        let standard = monitor_format(r.version()) == MonitorFormat::Standard;
        let number = r.u16()?.saturating_add(u16::from(!standard));
        let update = match number {
            event::INITIAL => decode_full(&mut r, FlowEvent::Initial)?,
            event::ADDED => decode_full(&mut r, FlowEvent::Added)?,
            event::REMOVED => {
                decode_full(&mut r, FlowEvent::Removed(flow::FlowRemovedReason::Delete))?
            }
            event::MODIFIED => decode_full(&mut r, FlowEvent::Modified)?,
            event::ABBREV => Self::Abbrev(Xid(r.u32()?)),
            event::PAUSED if standard => Self::Paused,
            event::RESUMED if standard => Self::Resumed,
            _ => return Err(unknown),
        };
        r.rest();
        Ok(update)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let standard = monitor_format(w.version()) == MonitorFormat::Standard;
        let short = |number: u16, word: u32, w: &mut Writer<'_>| {
            w.u16(8);
            w.u16(number - u16::from(!standard));
            w.u32(word);
            Ok(())
        };
        match self {
            Self::Abbrev(xid) => short(event::ABBREV, xid.0, w),
            Self::Paused | Self::Resumed if !standard => {
                Err(w.unsupported("a pause in a multipart reply"))
            }
            Self::Paused => short(event::PAUSED, 0, w),
            Self::Resumed => short(event::RESUMED, 0, w),
            Self::Full(change) => encode_full(change, w),
        }
    }
}

/// Decodes the remainder of an update with a rule.
fn decode_full(r: &mut Reader<'_>, event: FlowEvent) -> Result<FlowUpdate, Malformed> {
    let mut change = match monitor_format(r.version()) {
        MonitorFormat::Nicira | MonitorFormat::Onf => decode_pre_v14(r, event)?,
        MonitorFormat::Standard => decode_v14(r, event)?,
    };
    change.instructions = match monitor_format(r.version()) {
        MonitorFormat::Nicira => instruction::decode_list(r)?,
        MonitorFormat::Onf | MonitorFormat::Standard => instruction::decode(r)?,
    };
    Ok(FlowUpdate::Full(Box::new(change)))
}

fn decode_pre_v14(r: &mut Reader<'_>, event: FlowEvent) -> Result<FlowChange, Malformed> {
    let event = with_reason(event, r.clone(), r.u16()?)?;
    let priority = r.u16()?;
    let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
    let match_len = usize::from(r.u16()?);
    let table = TableId(r.u8()?);
    r.skip(1)?;
    let cookie = Cookie(r.u64()?);
    Ok(FlowChange {
        event,
        table,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        cookie,
        matching: match monitor_format(r.version()) {
            MonitorFormat::Nicira => oxm::decode_nxm(r, match_len)?.matching,
            MonitorFormat::Onf | MonitorFormat::Standard => oxm::decode_structure(r)?,
        },
        instructions: Instructions::default(),
    })
}

fn decode_v14(r: &mut Reader<'_>, event: FlowEvent) -> Result<FlowChange, Malformed> {
    let table = TableId(r.u8()?);
    let event = with_reason(event, r.clone(), r.u8()?.into())?;
    let (idle_timeout_s, hard_timeout_s) = (r.u16()?, r.u16()?);
    let priority = r.u16()?;
    r.skip(4)?;
    Ok(FlowChange {
        event,
        table,
        priority,
        idle_timeout_s,
        hard_timeout_s,
        cookie: Cookie(r.u64()?),
        matching: oxm::decode_structure(r)?,
        instructions: Instructions::default(),
    })
}

/// Sets the reason of `event` if it has one.
fn with_reason(event: FlowEvent, start: Reader<'_>, number: u16) -> Result<FlowEvent, Malformed> {
    match event {
        FlowEvent::Removed(_) => {
            let reason = flow_removed::reason_numbered(number);
            let unknown = start.fail(Refusal::RequestBadType);
            reason.map(FlowEvent::Removed).ok_or(unknown)
        }
        FlowEvent::Initial | FlowEvent::Added | FlowEvent::Modified => Ok(event),
    }
}

/// Appends an update with a rule. If the translation exceeds the maximum length, it omits the
/// instructions.
fn encode_full(change: &FlowChange, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let before = w.len();
    let written = encode_entry(change, &change.instructions, w);
    if written.is_ok_and(|length| length <= super::flow_stats::ENTRY_MAX) {
        return Ok(());
    }
    w.truncate(before);
    encode_entry(change, &Instructions::default(), w).map(drop)
}

fn encode_entry(
    change: &FlowChange,
    instructions: &Instructions,
    w: &mut Writer<'_>,
) -> Result<usize, EncodeError> {
    let context = EncodeContext {
        matching: &change.matching,
        fidelity: Fidelity::BestEffort,
    };
    let number = match (change.event, monitor_format(w.version())) {
        (FlowEvent::Initial, MonitorFormat::Standard) => event::INITIAL,
        (FlowEvent::Initial | FlowEvent::Added, _) => event::ADDED,
        (FlowEvent::Removed(_), _) => event::REMOVED,
        (FlowEvent::Modified, _) => event::MODIFIED,
    };
    w.nested(0, |w| {
        w.u16(0);
        match monitor_format(w.version()) {
            MonitorFormat::Nicira | MonitorFormat::Onf => {
                w.u16(number - 1);
                encode_pre_v14(change, w)?;
            }
            MonitorFormat::Standard => {
                w.u16(number);
                encode_v14(change, w)?;
            }
        }
        match monitor_format(w.version()) {
            MonitorFormat::Nicira => instruction::encode_list(instructions, context, w),
            MonitorFormat::Onf | MonitorFormat::Standard => {
                instruction::encode(instructions, context, w)
            }
        }
    })
}

fn encode_pre_v14(change: &FlowChange, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.u16(reason_number(change.event).into());
    w.u16(change.priority);
    w.u16(change.idle_timeout_s);
    w.u16(change.hard_timeout_s);
    let between = |w: &mut Writer<'_>| {
        w.u8(change.table.0);
        w.zeros(1);
        w.u64(change.cookie.0);
    };
    if monitor_format(w.version()) == MonitorFormat::Nicira {
        let nxm_match = NxmMatch::of(change.matching.clone());
        return oxm::encode_nxm_with_length(&nxm_match, w, between);
    }
    oxm::encode_structure_with_length(&change.matching, w, |w| {
        between(w);
        Ok(())
    })
}

fn encode_v14(change: &FlowChange, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.u8(change.table.0);
    w.u8(reason_number(change.event));
    w.u16(change.idle_timeout_s);
    w.u16(change.hard_timeout_s);
    w.u16(change.priority);
    w.zeros(4);
    w.u64(change.cookie.0);
    oxm::encode_structure(&change.matching, w)
}

const fn reason_number(event: FlowEvent) -> u8 {
    match event {
        FlowEvent::Removed(reason) => flow_removed::reason_number(reason, Version::V15),
        FlowEvent::Initial | FlowEvent::Added | FlowEvent::Modified => 0,
    }
}

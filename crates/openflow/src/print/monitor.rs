//! Flow monitors: requests and updates. `message::multipart::flow_monitor` documents the layouts.

use ::flow::text::NameMap;
use ::flow::{Match, Refusal};
use base::{GroupId, PortNo, TableId};

use super::refusal_names::DecodeErrorName;
use super::text::{AlternateHex, PrintBuffer};
use super::{action, config, flow, port};
use crate::codec::Reader;
use crate::oxm;
use crate::port_no;
use crate::version::Version;

/// The flags of a monitor, from bit 0.
const FLAGS: [&str; 6] = ["initial", "add", "delete", "modify", "actions", "own"];

/// The same from 1.4 on. Open vSwitch has no name for the seventh.
const FLAGS_V14: [&str; 7] = [
    "initial",
    "add",
    "delete",
    "modify",
    "actions",
    "no_abbrev",
    "own",
];

/// The command that removes a monitor.
const DELETE: u8 = 2;

/// The events of rules by the number of 1.4; Nicira's are one less.
const EVENTS: [&str; 7] = [
    "INITIAL", "ADDED", "DELETED", "MODIFIED", "ABBREV", "PAUSED", "RESUMED",
];

/// The events with their own output format.
const DELETED: usize = 2;
const ABBREV: usize = 4;
const PAUSED: usize = 5;

/// Bytes of a request before its match.
const REQUEST: usize = 16;

/// Bytes of an update without a rule.
const SHORT: usize = 8;

/// Returns true if the specification of the version has monitors.
const fn is_standard(version: Version) -> bool {
    matches!(version, Version::V14 | Version::V15)
}

/// Writes the id of a canceled monitor.
pub(super) fn print_cancel(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    write!(text, " id={}", r.u32()?);
    Ok(())
}

/// The members of a monitor except its id.
struct MonitorMembers {
    flags: u16,
    out_port: PortNo,
    out_group: u32,
    table: u8,
    matching: Match,
}

/// Writes monitor requests.
pub(super) fn print_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        r.clone().skip(REQUEST)?;
        let id = r.u32()?;
        let monitor = match r.version() {
            Version::V10 | Version::V11 | Version::V12 => Some(read_nicira(r)?),
            Version::V13 => Some(read_onf(r)?),
            Version::V14 | Version::V15 => read_standard(r)?,
        };
        write!(text, "\n id={id}");
        match monitor {
            Some(monitor) => write_monitor(&monitor, r.version(), text),
            None => text.push(" command=delete"),
        }
    }
    Ok(())
}

fn read_nicira(r: &mut Reader<'_>) -> Result<MonitorMembers, DecodeErrorName> {
    let (flags, out_port) = (r.u16()?, port_no::decode_u16(r)?);
    let match_len = usize::from(r.u16()?);
    let table = r.u8()?;
    zeros::<5>(r)?;
    let matching = oxm::decode_nxm(r, match_len)?.matching;
    Ok(MonitorMembers {
        flags,
        out_port,
        out_group: 0,
        table,
        matching,
    })
}

fn read_onf(r: &mut Reader<'_>) -> Result<MonitorMembers, DecodeErrorName> {
    let flags = r.u16()?;
    // The match includes its length.
    r.skip(2)?;
    let (out_port, table) = (port::read_number(r)?, r.u8()?);
    zeros::<3>(r)?;
    let matching = oxm::decode_structure(r)?;
    Ok(MonitorMembers {
        flags,
        out_port,
        out_group: 0,
        table,
        matching,
    })
}

/// Reads a monitor of 1.4 or later; none for a removal, the other members of which are ignored.
fn read_standard(r: &mut Reader<'_>) -> Result<Option<MonitorMembers>, DecodeErrorName> {
    let mut number = r.clone();
    r.skip(4)?;
    let out_group = r.u32()?;
    let (flags, table, command) = (r.u16()?, r.u8()?, r.u8()?);
    if command == DELETE {
        oxm::decode_structure(r)?;
        return Ok(None);
    }
    Ok(Some(MonitorMembers {
        flags,
        out_port: port::read_number(&mut number)?,
        out_group,
        table,
        matching: oxm::decode_structure(r)?,
    }))
}

/// Reads bytes that must be zero.
fn zeros<const N: usize>(r: &mut Reader<'_>) -> Result<(), DecodeErrorName> {
    match r.take::<N>()? {
        zeros if zeros == [0; N] => Ok(()),
        _ => Err(DecodeErrorName("NXBRC_MUST_BE_ZERO")),
    }
}

fn write_monitor(monitor: &MonitorMembers, version: Version, text: &mut PrintBuffer<'_>) {
    let known: &[&str] = match is_standard(version) {
        false => &FLAGS,
        true => &FLAGS_V14,
    };
    let set = known.iter().enumerate();
    let set = set.filter(|(bit, _)| monitor.flags >> bit & 1 == 1);
    let mut names: Vec<_> = set.map(|(_, name)| (*name).to_owned()).collect();
    let rest = monitor.flags >> known.len() << known.len();
    if rest != 0 || names.is_empty() {
        names.push(AlternateHex(rest.into()).to_string());
    }
    write!(text, " flags={}", names.join(","));
    if monitor.out_port != PortNo::ANY {
        write!(text, " out_port={}", port::name(monitor.out_port));
    }
    // A group id is printed as a signed number.
    if monitor.out_group != 0 && monitor.out_group != GroupId::ANY.0 {
        write!(text, " out_group={}", monitor.out_group.cast_signed());
    }
    if monitor.table != TableId::ALL.0 {
        write!(text, " table={}", monitor.table);
    }
    write_match(&monitor.matching, text);
}

fn write_match(matching: &Match, text: &mut PrintBuffer<'_>) {
    match flow::without_default_packet_type(matching).to_string() {
        fields if fields.is_empty() => {}
        fields => write!(text, " {fields}"),
    }
}

/// Writes monitor updates.
pub(super) fn print_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        let bad_length = r.fail(Refusal::RequestBadLength);
        let length = usize::from(r.clone().u16()?);
        let mut update = r.sub_or(length, Refusal::RequestBadLength)?;
        if length < SHORT || length % 8 != 0 {
            return Err(bad_length.into());
        }
        update.skip(2)?;
        let number = usize::from(update.u16()?);
        let number = number + usize::from(!is_standard(r.version()));
        if (ABBREV..EVENTS.len()).contains(&number) && length != SHORT {
            return Err(bad_length.into());
        }
        let is_bare = print_update(number, &mut update, text)?;
        // Open vSwitch prints the space after the cookie even if nothing follows.
        if is_bare && !r.is_empty() {
            text.push(" ");
        }
    }
    Ok(())
}

/// Writes an update after its number. Returns true if the text ends with a rule's cookie.
fn print_update(
    number: usize,
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<bool, DecodeErrorName> {
    let known = number <= ABBREV || is_standard(r.version());
    let name = EVENTS.get(number).filter(|_| known);
    let name = name.ok_or(DecodeErrorName("NXBRC_FM_BAD_EVENT"))?;
    if number == ABBREV {
        write!(
            text,
            "\n event={name} xid={}",
            AlternateHex(r.u32()?.into())
        );
    } else if number >= PAUSED {
        write!(text, "\n event={name}");
    } else {
        let change = read_change(r)?;
        let actions = match r.version() {
            Version::V10 | Version::V11 | Version::V12 => {
                action::list(r.clone(), NameMap::empty())?
            }
            Version::V13 | Version::V14 | Version::V15 => action::instructions(r)?,
        };
        write!(text, "\n event={name}");
        if number == DELETED {
            let reason = config::reason_name(&flow::REASONS, change.reason.into());
            write!(text, " reason={reason}");
        }
        return Ok(write_change(&change, &actions, text));
    }
    Ok(false)
}

/// The members of a rule change except its instructions.
struct FlowChangeMembers {
    reason: u16,
    table: u8,
    idle_s: u16,
    hard_s: u16,
    cookie: u64,
    matching: Match,
}

fn read_change(r: &mut Reader<'_>) -> Result<FlowChangeMembers, DecodeErrorName> {
    if is_standard(r.version()) {
        let (table, reason) = (r.u8()?, r.u8()?.into());
        let (idle_s, hard_s) = (r.u16()?, r.u16()?);
        // The priority is not printed.
        r.skip(2 + 4)?;
        return Ok(FlowChangeMembers {
            reason,
            table,
            idle_s,
            hard_s,
            cookie: r.u64()?,
            matching: oxm::decode_structure(r)?,
        });
    }
    let reason = r.u16()?;
    r.skip(2)?;
    let (idle_s, hard_s) = (r.u16()?, r.u16()?);
    let match_len = usize::from(r.u16()?);
    let table = r.u8()?;
    r.skip(1)?;
    let cookie = r.u64()?;
    if match_len > r.len() {
        return Err(r.fail(Refusal::RequestBadLength).into());
    }
    Ok(FlowChangeMembers {
        reason,
        table,
        idle_s,
        hard_s,
        cookie,
        matching: match r.version() {
            Version::V13 => oxm::decode_structure(r)?,
            _ => oxm::decode_nxm(r, match_len)?.matching,
        },
    })
}

/// Writes a rule change. Returns true if the cookie is the last item.
fn write_change(change: &FlowChangeMembers, actions: &str, text: &mut PrintBuffer<'_>) -> bool {
    write!(text, " table={}", change.table);
    for (name, seconds) in [
        ("idle_timeout", change.idle_s),
        ("hard_timeout", change.hard_s),
    ] {
        if seconds != 0 {
            write!(text, " {name}={seconds}");
        }
    }
    write!(text, " cookie={}", AlternateHex(change.cookie));
    write_match(&change.matching, text);
    // A rule without actions is printed like a change without instructions.
    let is_idle = actions == "drop";
    if !is_idle {
        write!(text, " actions={actions}");
    }
    is_idle && change.matching == Match::any()
}

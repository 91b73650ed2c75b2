//! Flow-mod: a change to the flow tables (OF 1.0.1, 5.3.3; OF 1.3.5, 7.3.4.1). Wire formats:
//!
//! ```text
//! 1.0:    match(40) cookie command idle hard priority buffer out_port flags actions
//! Nicira: cookie command idle hard priority buffer out_port flags match_len nxm actions
//! 1.1 on: cookie cookie_mask table command idle hard priority buffer out_port out_group flags importance match instructions
//! ```
//!
//! The importance is padding before 1.4; the match is OXM from 1.2 on.
//!
//! The decoder ignores members that a command does not use, because controllers leave zeros there.

use base::{Cookie, GroupId, TableId};
use flow::{Consistency, FlowFlags, FlowMod, FlowModCommand, Match, MissingRule, Refusal};

use super::packet_out::{decode_buffer, encode_buffer};
use crate::action::EncodeContext;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::Dialect;
use crate::fidelity::Fidelity;
use crate::instruction;
use crate::kinds::MessageKind;
use crate::match10;
use crate::oxm::{self, CookieFilter, NxmMatch};
use crate::port_no;
use crate::version::Version;

const COMMANDS: [FlowModCommand; 5] = [
    FlowModCommand::Add,
    FlowModCommand::Modify,
    FlowModCommand::ModifyStrict,
    FlowModCommand::Delete,
    FlowModCommand::DeleteStrict,
];

/// `OFPFF_EMERG` of OpenFlow 1.0: a rule for the time without a controller.
const EMERGENCY_V10: u16 = 1 << 2;

/// The flags that 1.0 shares with later versions.
const FLAGS_V10: u16 = FlowFlags::SEND_FLOW_REMOVED.0 | FlowFlags::CHECK_OVERLAP.0;

/// The flags of a later version; in 1.1 an addition implies the reset of counters.
const fn flags(version: Version) -> u16 {
    match version {
        Version::V10 | Version::V11 => FLAGS_V10,
        Version::V12 => FLAGS_V10 | FlowFlags::RESET_COUNTS.0,
        Version::V13 | Version::V14 | Version::V15 => 0x1f,
    }
}

/// Nicira's cookie of a modification that does not change the cookie.
const COOKIE_UNCHANGED: u64 = u64::MAX;

/// The message type: in 1.0 the specification's if it can express the flow-mod, otherwise Nicira's.
pub(crate) fn kind(flow_mod: &FlowMod, dialect: Dialect) -> MessageKind {
    match dialect.version {
        Version::V10 if !fits_standard(flow_mod) => MessageKind::NxFlowMod,
        Version::V10 | Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            MessageKind::FlowMod
        }
    }
}

/// Returns true if OpenFlow 1.0's own message can express the flow-mod.
fn fits_standard(flow_mod: &FlowMod) -> bool {
    let leaves_cookies = is_modify(flow_mod.command) && flow_mod.new_cookie.is_none();
    // A match without wildcards would give the rule the highest priority.
    let fits_match = match10::lossless(&flow_mod.matching)
        .is_some_and(|structure| !structure.exact || flow_mod.priority == u16::MAX);
    fits_match && flow_mod.cookie_mask == 0 && !leaves_cookies
}

const fn is_modify(command: FlowModCommand) -> bool {
    matches!(
        command,
        FlowModCommand::Modify | FlowModCommand::ModifyStrict
    )
}

/// Decodes the specification's message.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<FlowMod, Malformed> {
    let mut read = empty();
    decode_into(&mut read, r)?;
    Ok(read)
}

/// Like [`decode`], but overwrites another flow-mod and reuses its memory for actions.
pub(crate) fn decode_into(read: &mut FlowMod, r: &mut Reader<'_>) -> Result<(), Malformed> {
    let mut actions = std::mem::take(&mut read.instructions.apply);
    actions.clear();
    *read = empty();
    read.instructions.apply = actions;
    match r.version() {
        Version::V10 => decode_v10(r, read),
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            decode_later(r, read)
        }
    }
}

#[inline]
fn decode_v10(r: &mut Reader<'_>, read: &mut FlowMod) -> Result<(), Malformed> {
    let structure = match10::decode(r)?;
    let cookie = Cookie(r.u64()?);
    decode_middle(r, read)?;
    if structure.exact {
        read.priority = u16::MAX;
    }
    read.matching = structure.matching;
    instruction::decode_into(r, &mut read.instructions)?;
    set_cookies(read, cookie, CookieFilter::default());
    Ok(())
}

/// Decodes Nicira's message.
pub(crate) fn decode_nicira(r: &mut Reader<'_>) -> Result<FlowMod, Malformed> {
    let cookie = Cookie(r.u64()?);
    let mut read = empty();
    decode_middle(r, &mut read)?;
    let match_len = usize::from(r.u16()?);
    r.skip(6)?;
    let place = r.fail(Refusal::MatchBadField);
    let nxm_match = oxm::decode_nxm(r, match_len)?;
    if read.command == FlowModCommand::Add && nxm_match.cookies.mask != 0 {
        return Err(place);
    }
    read.matching = nxm_match.matching;
    read.instructions = instruction::decode(r)?;
    set_cookies(&mut read, cookie, nxm_match.cookies);
    Ok(read)
}

/// Decodes the members that 1.0's and Nicira's message share: from the command to the flags.
fn decode_middle(r: &mut Reader<'_>, read: &mut FlowMod) -> Result<(), Malformed> {
    (read.command, read.table) = decode_command_v10(r)?;
    // OpenFlow 1.0 accepts any action with any match; an action on a header that the packet lacks
    // has no effect.
    read.consistency = Consistency::Waived;
    (read.idle_timeout_s, read.hard_timeout_s) = (r.u16()?, r.u16()?);
    read.priority = r.u16()?;
    read.buffer = decode_buffer(r)?;
    let out_port = port_no::decode(r)?;
    if read.command.is_deletion() {
        read.out_port = out_port;
    }
    read.flags = decode_flags_v10(r, read)?;
    Ok(())
}

/// Decodes the command and, if the controller enabled it, the table id in the upper byte.
fn decode_command_v10(r: &mut Reader<'_>) -> Result<(FlowModCommand, TableId), Malformed> {
    let unknown = r.fail(Refusal::FlowModBadCommand);
    let word = r.u16()?;
    let [table, low] = word.to_be_bytes();
    let table_ids = r.dialect().table_ids;
    let number = if table_ids { low.into() } else { word };
    let command = command_of(number).ok_or(unknown)?;
    let table = match (table_ids.then_some(TableId(table)), command) {
        // An addition needs one table.
        (None | Some(TableId::ALL), FlowModCommand::Add) => TableId::FIRST,
        (Some(table), _) => table,
        (None, _) => TableId::ALL,
    };
    Ok((command, table))
}

fn command_of(number: u16) -> Option<FlowModCommand> {
    COMMANDS.get(usize::from(number)).copied()
}

/// Decodes the flags of 1.0, where an addition implies the reset of counters.
fn decode_flags_v10(r: &mut Reader<'_>, read: &FlowMod) -> Result<FlowFlags, Malformed> {
    let place = r.clone();
    let bits = r.u16()?;
    if bits & EMERGENCY_V10 != 0 {
        // OF 1.0.1, 5.3.3 has a code only for an emergency rule with a timeout. The other emergency
        // rules have no table here, so the error is a full table, as in Open vSwitch.
        let timeouts = read.idle_timeout_s != 0 || read.hard_timeout_s != 0;
        return Err(place.fail(if timeouts {
            Refusal::FlowModBadTimeout
        } else {
            Refusal::FlowModTableFull
        }));
    }
    if bits & !FLAGS_V10 != 0 {
        return Err(place.fail(Refusal::FlowModBadFlags));
    }
    let flags = FlowFlags(bits);
    Ok(match read.command {
        FlowModCommand::Add => flags.with(FlowFlags::RESET_COUNTS),
        _ => flags,
    })
}

/// Stores the cookie of 1.0 according to the command.
fn set_cookies(read: &mut FlowMod, cookie: Cookie, nxm_match: CookieFilter) {
    if matches!(read.command, FlowModCommand::Add) {
        read.cookie = cookie;
    } else {
        read.cookie = nxm_match.cookie;
        read.cookie_mask = nxm_match.mask;
        if is_modify(read.command) && cookie.0 != COOKIE_UNCHANGED {
            read.new_cookie = Some(cookie);
        }
    }
}

#[inline]
fn decode_later(r: &mut Reader<'_>, read: &mut FlowMod) -> Result<(), Malformed> {
    let (cookie, cookie_mask) = (Cookie(r.u64()?), r.u64()?);
    let place = r.clone();
    let table = TableId(r.u8()?);
    let unknown = r.fail(Refusal::FlowModBadCommand);
    let command = command_of(r.u8()?.into()).ok_or(unknown)?;
    if table == TableId::ALL && !command.is_deletion() {
        return Err(place.fail(Refusal::FlowModBadTable));
    }
    (read.command, read.table, read.cookie) = (command, table, cookie);
    if command != FlowModCommand::Add {
        read.cookie_mask = cookie_mask;
    }
    if r.version() == Version::V11 && is_modify(command) && cookie_mask == 0 {
        read.missing = MissingRule::Add;
    }
    (read.idle_timeout_s, read.hard_timeout_s) = (r.u16()?, r.u16()?);
    read.priority = r.u16()?;
    read.buffer = decode_buffer(r)?;
    let (out_port, out_group) = (port_no::decode(r)?, GroupId(r.u32()?));
    if command.is_deletion() {
        (read.out_port, read.out_group) = (out_port, out_group);
    }
    let unknown = r.fail(Refusal::FlowModBadFlags);
    read.flags = FlowFlags(r.u16()?);
    if read.flags.0 & !flags(r.version()) != 0 {
        return Err(unknown);
    }
    if implies_reset(command, r.version()) {
        read.flags = read.flags.with(FlowFlags::RESET_COUNTS);
    }
    let importance = r.u16()?;
    if has_importance(r.version()) {
        read.importance = importance;
    }
    read.matching = oxm::decode_structure(r)?;
    instruction::decode_into(r, &mut read.instructions)
}

/// Returns true if an addition implies the reset of counters.
fn implies_reset(command: FlowModCommand, version: Version) -> bool {
    command == FlowModCommand::Add && version <= Version::V11
}

const fn has_importance(version: Version) -> bool {
    match version {
        Version::V10 | Version::V11 | Version::V12 | Version::V13 => false,
        Version::V14 | Version::V15 => true,
    }
}

/// An empty flow-mod to decode into. Inlined, because the structure is large and would be moved.
#[inline]
fn empty() -> FlowMod {
    let nothing = flow::Instructions::default();
    FlowMod::new(FlowModCommand::Add, 0, Match::any(), nothing)
}

/// Appends the body of the message type that [`kind`] returns.
pub(crate) fn encode(flow_mod: &FlowMod, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let context = EncodeContext {
        matching: &flow_mod.matching,
        fidelity: Fidelity::Lossless,
    };
    match (w.version(), kind(flow_mod, w.dialect())) {
        (Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15, _) => {
            encode_later(flow_mod, w)?;
        }
        (Version::V10, MessageKind::NxFlowMod) => encode_nicira(flow_mod, w)?,
        (Version::V10, _) => {
            match10::encode(&flow_mod.matching, Fidelity::Lossless, w)?;
            w.u64(cookie_v10(flow_mod).0);
            encode_middle(flow_mod, w)?;
        }
    }
    instruction::encode(&flow_mod.instructions, context, w)
}

fn encode_nicira(flow_mod: &FlowMod, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.u64(cookie_v10(flow_mod).0);
    encode_middle(flow_mod, w)?;
    let cookies = match flow_mod.command {
        FlowModCommand::Add => CookieFilter::default(),
        _ => CookieFilter {
            cookie: flow_mod.cookie,
            mask: flow_mod.cookie_mask,
        },
    };
    let nxm_match = NxmMatch {
        matching: flow_mod.matching.clone(),
        cookies,
    };
    oxm::encode_nxm_with_length(&nxm_match, w, |w| w.zeros(6))
}

/// The value of the cookie member in 1.0.
fn cookie_v10(flow_mod: &FlowMod) -> Cookie {
    match flow_mod.command {
        FlowModCommand::Add => flow_mod.cookie,
        FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
            flow_mod.new_cookie.unwrap_or(Cookie(COOKIE_UNCHANGED))
        }
        FlowModCommand::Delete | FlowModCommand::DeleteStrict => Cookie(0),
    }
}

/// Appends the members that 1.0's and Nicira's message share: from the command to the flags.
fn encode_middle(flow_mod: &FlowMod, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let command = number_of(flow_mod.command);
    let table = match (w.dialect().table_ids, flow_mod.table, flow_mod.command) {
        (true, TableId(table), _) => table,
        (false, TableId::FIRST, FlowModCommand::Add) => 0,
        (false, _, FlowModCommand::Add) => return Err(w.unsupported("a table without table ids")),
        (false, TableId::ALL, _) => 0,
        (false, _, _) => return Err(w.unsupported("a table without table ids")),
    };
    if flow_mod.out_group != GroupId::ANY {
        return Err(w.unsupported("a filter by output group"));
    }
    w.u8(table);
    w.u8(command);
    w.u16(flow_mod.idle_timeout_s);
    w.u16(flow_mod.hard_timeout_s);
    w.u16(flow_mod.priority);
    encode_buffer(flow_mod.buffer, w);
    port_no::encode(flow_mod.out_port, w)?;
    w.u16(flags_v10(flow_mod).ok_or_else(|| w.unsupported("these flags"))?);
    Ok(())
}

/// The flags in 1.0. It has no flag for an addition that keeps the counters, but this makes a
/// difference only if the addition replaces a rule.
fn flags_v10(flow_mod: &FlowMod) -> Option<u16> {
    let implied = match flow_mod.command {
        FlowModCommand::Add => FlowFlags::RESET_COUNTS.0,
        _ => 0,
    };
    let FlowFlags(bits) = flow_mod.flags;
    (bits & !(FLAGS_V10 | implied) == 0).then_some(bits & FLAGS_V10)
}

const fn number_of(command: FlowModCommand) -> u8 {
    match command {
        FlowModCommand::Add => 0,
        FlowModCommand::Modify => 1,
        FlowModCommand::ModifyStrict => 2,
        FlowModCommand::Delete => 3,
        FlowModCommand::DeleteStrict => 4,
    }
}

fn encode_later(flow_mod: &FlowMod, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    if flow_mod.new_cookie.is_some() {
        return Err(w.unsupported("a modification of cookies"));
    }
    if flow_mod.table == TableId::ALL && !flow_mod.command.is_deletion() {
        return Err(w.unsupported("all tables, except in a deletion"));
    }
    let implied = if implies_reset(flow_mod.command, w.version()) {
        FlowFlags::RESET_COUNTS.0
    } else {
        0
    };
    let known = flags(w.version());
    if flow_mod.flags.0 & !(known | implied) != 0 {
        return Err(w.unsupported("these flags"));
    }
    if flow_mod.missing == MissingRule::Add && w.version() != Version::V11 {
        return Err(w.unsupported("a modification that adds missing rules"));
    }
    w.u64(flow_mod.cookie.0);
    w.u64(flow_mod.cookie_mask);
    w.u8(flow_mod.table.0);
    w.u8(number_of(flow_mod.command));
    w.u16(flow_mod.idle_timeout_s);
    w.u16(flow_mod.hard_timeout_s);
    w.u16(flow_mod.priority);
    encode_buffer(flow_mod.buffer, w);
    port_no::encode(flow_mod.out_port, w)?;
    w.u32(flow_mod.out_group.0);
    w.u16(flow_mod.flags.0 & known);
    // Only a switch with eviction uses the importance, so its loss in other versions is harmless.
    w.u16(if has_importance(w.version()) {
        flow_mod.importance
    } else {
        0
    });
    oxm::encode_structure(&flow_mod.matching, w)
}

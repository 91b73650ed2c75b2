//! Rules: how they are changed, and how they end. How they are told of is in
//! `flow_stats`.

use ::flow::text::DEFAULT_PRIORITY;
use ::flow::{Match, Refusal};
use base::{BufferId, PortNo, TableId};

use super::Detail;
use super::names::Unreadable;
use super::text::{Seconds, Text};
use super::{action, config, flow_stats, port};
use crate::codec::Reader;
use crate::entries;
use crate::match10;
use crate::oxm::{self, Filter};
use crate::oxs;
use crate::version::Version;

/// Why a rule ended, by number.
pub(super) const REASONS: [&str; 6] = [
    "idle",
    "hard",
    "delete",
    "group_delete",
    "meter_delete",
    "eviction",
];

/// What is done to rules, by number.
const COMMANDS: [&str; 5] = ["ADD", "MOD", "MOD_STRICT", "DEL", "DEL_STRICT"];

/// Flags of rules, from bit 0.
const FLAGS: [&str; 5] = [
    "send_flow_rem",
    "check_overlap",
    "reset_counts",
    "no_packet_counts",
    "no_byte_counts",
];

/// The number of an addition.
const ADD: u16 = 0;

/// The number of the first deletion.
const DELETE: u16 = 3;

/// Emergency rules of 1.0, which nobody has (OF 1.0.1, 5.3.3).
const EMERGENCY_V10: u16 = 1 << 2;

/// A flow-mod's members beside its match and what its rule does.
#[derive(Default)]
struct Mod {
    command: u16,
    table: u8,
    /// Given to rules.
    cookie: u64,
    /// Asked of rules.
    wanted: u64,
    mask: u64,
    idle_s: u16,
    hard_s: u16,
    priority: u16,
    /// The priority, where the match is told without it.
    priority_apart: Option<u16>,
    importance: u16,
    buffer: Option<BufferId>,
    out_port: Option<PortNo>,
    flags: u16,
}

/// Writes a flow-mod.
pub(super) fn print_mod(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    if r.version() != Version::V10 {
        return print_mod_later(r, text);
    }
    let mut wire = r.clone();
    let said = match10::decode(r)?;
    let mut told = Mod {
        cookie: r.u64()?,
        ..Mod::default()
    };
    read_middle(r, &mut told)?;
    if said.exact {
        told.priority = u16::MAX;
    }
    let actions = action::instructions(r)?;
    let fields = if text.manner.detail >= Detail::FRAME_BYTES {
        told.tell_priority_apart();
        super::match10::members(&mut wire)?
    } else {
        fields(r, told.priority, &said.matching)
    };
    write_mod(&told, &fields, &actions, text);
    Ok(())
}

/// Writes a flow-mod of Nicira's.
pub(super) fn print_mod_nicira(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let mut told = Mod {
        cookie: r.u64()?,
        ..Mod::default()
    };
    read_middle(r, &mut told)?;
    let length = usize::from(r.u16()?);
    r.skip(6)?;
    let mut wire = r.clone();
    let Filter { matching, cookies } = oxm::decode_nxm(r, length)?;
    if told.command == ADD && cookies.mask != 0 {
        return Err(Unreadable("NXBRC_NXM_INVALID"));
    }
    (told.wanted, told.mask) = (cookies.cookie.0, cookies.mask);
    let actions = action::instructions(r)?;
    let fields = if text.manner.detail >= Detail::FRAME_BYTES {
        told.tell_priority_apart();
        entries::write(&wire.sub(length)?)?
    } else {
        fields(r, told.priority, &matching)
    };
    write_mod(&told, &fields, &actions, text);
    Ok(())
}

impl Mod {
    /// Has the priority told behind the match, if it is not the usual one.
    fn tell_priority_apart(&mut self) {
        self.priority_apart = Some(self.priority).filter(|priority| *priority != DEFAULT_PRIORITY);
    }
}

/// Reads the members that both forms of 1.0 have.
fn read_middle(r: &mut Reader<'_>, told: &mut Mod) -> Result<(), Unreadable> {
    told.table = r.u8()?;
    told.command = command(r)?;
    (told.idle_s, told.hard_s) = (r.u16()?, r.u16()?);
    told.priority = r.u16()?;
    told.buffer = Some(BufferId(r.u32()?));
    told.out_port = Some(port::read_number(r)?);
    let place = r.clone();
    told.flags = r.u16()?;
    if told.flags & EMERGENCY_V10 != 0 {
        let timeouts = told.idle_s != 0 || told.hard_s != 0;
        return Err(Unreadable(if timeouts {
            "OFPFMFC_BAD_EMERG_TIMEOUT"
        } else {
            "OFPFMFC_TABLE_FULL"
        }));
    }
    check_flags(&place, told.flags)
}

/// Reads the command.
fn command(r: &mut Reader<'_>) -> Result<u16, Unreadable> {
    let unknown = r.fail(Refusal::FlowModBadCommand);
    let number = u16::from(r.u8()?);
    if usize::from(number) < COMMANDS.len() {
        Ok(number)
    } else {
        Err(unknown.into())
    }
}

/// Refuses flags that the version does not have.
fn check_flags(place: &Reader<'_>, flags: u16) -> Result<(), Unreadable> {
    let known = match place.version() {
        Version::V10 | Version::V11 => 0x03,
        Version::V12 => 0x07,
        Version::V13 | Version::V14 | Version::V15 => 0x1f,
    };
    if flags & !known == 0 {
        Ok(())
    } else {
        Err(place.fail(Refusal::FlowModBadFlags).into())
    }
}

fn print_mod_later(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let mut told = Mod::default();
    let (cookie, mask) = (r.u64()?, r.u64()?);
    let place = r.clone();
    told.table = r.u8()?;
    told.command = command(r)?;
    if told.command == ADD {
        told.cookie = cookie;
    } else {
        (told.wanted, told.mask) = (cookie, mask);
    }
    if told.table == TableId::ALL.0 && told.command < DELETE {
        return Err(place.fail(Refusal::FlowModBadTable).into());
    }
    (told.idle_s, told.hard_s) = (r.u16()?, r.u16()?);
    told.priority = r.u16()?;
    told.buffer = Some(BufferId(r.u32()?));
    told.out_port = Some(port::read_number(r)?);
    r.skip(4)?;
    let place = r.clone();
    told.flags = r.u16()?;
    check_flags(&place, told.flags)?;
    let importance = r.u16()?;
    if r.version() >= Version::V14 {
        told.importance = importance;
    }
    let matching = oxm::decode_structure(r)?;
    let actions = action::instructions(r)?;
    write_mod(&told, &fields(r, told.priority, &matching), &actions, text);
    Ok(())
}

fn write_mod(told: &Mod, fields: &str, actions: &str, text: &mut Text<'_>) {
    write!(text, " {}", COMMANDS[usize::from(told.command)]);
    if told.table != 0 {
        write!(text, " table:{}", told.table);
    }
    write!(text, " {fields}");
    text.one_space();
    if told.cookie != 0 && told.cookie != u64::MAX {
        write!(text, "cookie:0x{:x} ", told.cookie);
    }
    if told.mask != 0 {
        write!(text, "cookie:0x{:x}/0x{:x} ", told.wanted, told.mask);
    }
    for (name, number) in [
        ("idle", told.idle_s),
        ("hard", told.hard_s),
        ("importance", told.importance),
    ] {
        if number != 0 {
            write!(text, "{name}:{number} ");
        }
    }
    if let Some(priority) = told.priority_apart {
        write!(text, "pri:{priority} ");
    }
    if let Some(buffer) = told.buffer.filter(|buffer| *buffer != BufferId::NONE) {
        write!(text, "buf:0x{:x} ", buffer.0);
    }
    if let Some(port) = told.out_port.filter(|port| *port != PortNo::ANY) {
        write!(text, "out_port:{} ", port::name(port));
    }
    write!(text, "{}actions={actions}", flags(told.flags));
}

/// The names of flags, each with a space behind it.
pub(super) fn flags(bits: u16) -> String {
    let set = FLAGS.iter().enumerate();
    let set = set.filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, name)| format!("{name} ")).collect()
}

/// A rule's priority and match. What OpenFlow 1.0 and 1.1 call no tag leaves nothing of
/// a tag open, which later versions cannot say.
pub(super) fn fields(r: &Reader<'_>, priority: u16, matching: &Match) -> String {
    let mut told = String::new();
    if priority != DEFAULT_PRIORITY {
        told = format!("priority={priority}");
    }
    let matching = matching.to_string();
    if !told.is_empty() && !matching.is_empty() {
        told.push(',');
    }
    told + &untagged(r.version(), matching)
}

pub(super) fn untagged(version: Version, matching: String) -> String {
    match version {
        Version::V10 | Version::V11 => {
            matching.replace("vlan_tci=0x0000/0x1fff", "vlan_tci=0x0000")
        }
        _ => matching,
    }
}

/// A rule's end.
struct Removed {
    cookie: u64,
    priority: u16,
    reason: u8,
    table: u8,
    duration: Seconds,
    idle_s: u16,
    hard_s: u16,
    packets: u64,
    bytes: u64,
}

/// Writes a flow-removed.
pub(super) fn print_removed(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    if r.version() == Version::V15 {
        return print_removed_v15(r, text);
    }
    let first = match r.version() {
        Version::V10 => Some(match10::decode(r)?.matching),
        _ => None,
    };
    let mut told = read_removed(r)?;
    told.idle_s = r.u16()?;
    let last = r.u16()?;
    (told.packets, told.bytes) = (r.u64()?, r.u64()?);
    let matching = if let Some(matching) = first {
        told.table = TableId::ALL.0;
        matching
    } else {
        told.hard_s = last;
        oxm::decode_structure(r)?
    };
    write_removed(&told, &fields(r, told.priority, &matching), text);
    Ok(())
}

/// Writes a flow-removed of Nicira's.
pub(super) fn print_removed_nicira(
    r: &mut Reader<'_>,
    text: &mut Text<'_>,
) -> Result<(), Unreadable> {
    let mut told = read_removed(r)?;
    // One more than the table, and zero where it is not known.
    told.table = told.table.wrapping_sub(1);
    told.idle_s = r.u16()?;
    let length = usize::from(r.u16()?);
    (told.packets, told.bytes) = (r.u64()?, r.u64()?);
    let matching = oxm::decode_nxm(r, length)?.matching;
    write_removed(&told, &fields(r, told.priority, &matching), text);
    Ok(())
}

fn read_removed(r: &mut Reader<'_>) -> Result<Removed, Unreadable> {
    Ok(Removed {
        cookie: r.u64()?,
        priority: r.u16()?,
        reason: r.u8()?,
        table: r.u8()?,
        duration: Seconds(r.u32()?, r.u32()?),
        idle_s: 0,
        hard_s: 0,
        packets: 0,
        bytes: 0,
    })
}

fn print_removed_v15(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let (table, reason, priority) = (r.u8()?, r.u8()?, r.u16()?);
    let (idle_s, hard_s, cookie) = (r.u16()?, r.u16()?, r.u64()?);
    let matching = oxm::decode_structure(r)?;
    let counts = oxs::decode(r)?;
    let told = Removed {
        cookie,
        priority,
        reason,
        table,
        duration: flow_stats::duration(&counts),
        idle_s,
        hard_s,
        packets: counts.packets.unwrap_or(u64::MAX),
        bytes: counts.bytes.unwrap_or(u64::MAX),
    };
    write_removed(&told, &fields(r, priority, &matching), text);
    Ok(())
}

fn write_removed(told: &Removed, fields: &str, text: &mut Text<'_>) {
    let reason = config::name(&REASONS, told.reason.into());
    write!(text, " {fields} reason={reason}");
    if told.table != TableId::ALL.0 {
        write!(text, " table_id={}", told.table);
    }
    if told.cookie != 0 {
        write!(text, " cookie:0x{:x}", told.cookie);
    }
    write!(text, " duration{} idle{}", told.duration, told.idle_s);
    if told.hard_s != 0 {
        write!(text, " hard{}", told.hard_s);
    }
    write!(text, " pkts{} bytes{}", told.packets, told.bytes);
}

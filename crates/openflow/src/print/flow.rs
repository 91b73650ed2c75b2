//! Changes and removals of rules. `flow_stats` prints their statistics.

use std::borrow::Cow;

use ::flow::text::DEFAULT_PRIORITY;
use ::flow::{Field, Match, PacketType, Refusal};
use base::{BufferId, PortNo, TableId};

use super::Detail;
use super::refusal_names::DecodeErrorName;
use super::text::{PrintBuffer, Seconds};
use super::{action, config, flow_stats, port};
use crate::codec::Reader;
use crate::match10;
use crate::oxm::{self, NxmMatch};
use crate::oxm_text;
use crate::oxs;
use crate::version::Version;

/// The reasons of a removal by number.
pub(super) const REASONS: [&str; 6] = [
    "idle",
    "hard",
    "delete",
    "group_delete",
    "meter_delete",
    "eviction",
];

/// The commands of a flow-mod by number.
const COMMANDS: [&str; 5] = ["ADD", "MOD", "MOD_STRICT", "DEL", "DEL_STRICT"];

/// The flags of rules, from bit 0.
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

/// Emergency rules of 1.0, which are not supported (OF 1.0.1, 5.3.3).
const EMERGENCY_V10: u16 = 1 << 2;

/// The members of a flow-mod except its match and instructions.
#[derive(Default)]
struct FlowModMembers {
    command: u16,
    table: u8,
    /// The cookie to set.
    cookie: u64,
    /// The cookie to match.
    cookie_match: u64,
    mask: u64,
    idle_s: u16,
    hard_s: u16,
    priority: u16,
    /// The priority, if it is printed after the match.
    priority_last: Option<u16>,
    importance: u16,
    buffer: Option<BufferId>,
    out_port: Option<PortNo>,
    flags: u16,
}

/// Writes a flow-mod.
pub(super) fn print_mod(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    if r.version() != Version::V10 {
        return print_mod_later(r, text);
    }
    let mut wire = r.clone();
    let structure = match10::decode(r)?;
    let mut members = FlowModMembers {
        cookie: r.u64()?,
        ..FlowModMembers::default()
    };
    read_middle(r, &mut members)?;
    if structure.exact {
        members.priority = u16::MAX;
    }
    let actions = action::instructions(r)?;
    let fields = if text.context.detail >= Detail::FRAME_BYTES {
        members.print_priority_last();
        super::match10::members(&mut wire)?
    } else {
        fields(r, members.priority, &structure.matching)
    };
    write_mod(&members, &fields, &actions, text);
    Ok(())
}

/// Writes a Nicira flow-mod.
pub(super) fn print_mod_nicira(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut members = FlowModMembers {
        cookie: r.u64()?,
        ..FlowModMembers::default()
    };
    read_middle(r, &mut members)?;
    let length = usize::from(r.u16()?);
    r.skip(6)?;
    let mut wire = r.clone();
    let NxmMatch { matching, cookies } = oxm::decode_nxm(r, length)?;
    if members.command == ADD && cookies.mask != 0 {
        return Err(DecodeErrorName("NXBRC_NXM_INVALID"));
    }
    (members.cookie_match, members.mask) = (cookies.cookie.0, cookies.mask);
    let actions = action::instructions(r)?;
    let fields = if text.context.detail >= Detail::FRAME_BYTES {
        members.print_priority_last();
        oxm_text::format(&wire.sub(length)?)?
    } else {
        fields(r, members.priority, &matching)
    };
    write_mod(&members, &fields, &actions, text);
    Ok(())
}

impl FlowModMembers {
    /// Prints the priority after the match, unless it is the default.
    fn print_priority_last(&mut self) {
        self.priority_last = Some(self.priority).filter(|priority| *priority != DEFAULT_PRIORITY);
    }
}

/// Reads the members that both formats of 1.0 share.
fn read_middle(r: &mut Reader<'_>, members: &mut FlowModMembers) -> Result<(), DecodeErrorName> {
    members.table = r.u8()?;
    members.command = command(r)?;
    (members.idle_s, members.hard_s) = (r.u16()?, r.u16()?);
    members.priority = r.u16()?;
    members.buffer = Some(BufferId(r.u32()?));
    members.out_port = Some(port::read_number(r)?);
    let start = r.clone();
    members.flags = r.u16()?;
    if members.flags & EMERGENCY_V10 != 0 {
        let timeouts = members.idle_s != 0 || members.hard_s != 0;
        return Err(DecodeErrorName(if timeouts {
            "OFPFMFC_BAD_EMERG_TIMEOUT"
        } else {
            "OFPFMFC_TABLE_FULL"
        }));
    }
    check_flags(&start, members.flags)
}

/// Reads the command.
fn command(r: &mut Reader<'_>) -> Result<u16, DecodeErrorName> {
    let unknown = r.fail(Refusal::FlowModBadCommand);
    let number = u16::from(r.u8()?);
    if usize::from(number) < COMMANDS.len() {
        Ok(number)
    } else {
        Err(unknown.into())
    }
}

/// Refuses flags that the version does not have.
pub(super) fn check_flags(start: &Reader<'_>, flags: u16) -> Result<(), DecodeErrorName> {
    let known = match start.version() {
        Version::V10 | Version::V11 => 0x03,
        Version::V12 => 0x07,
        Version::V13 | Version::V14 | Version::V15 => 0x1f,
    };
    if flags & !known == 0 {
        Ok(())
    } else {
        Err(start.fail(Refusal::FlowModBadFlags).into())
    }
}

fn print_mod_later(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let mut members = FlowModMembers::default();
    let (cookie, mask) = (r.u64()?, r.u64()?);
    let start = r.clone();
    members.table = r.u8()?;
    members.command = command(r)?;
    // A modification of 1.1 for any cookie adds the rule if there is none.
    let may_add = r.version() == Version::V11 && members.command < DELETE && mask == 0;
    if members.command == ADD || may_add {
        members.cookie = cookie;
    } else {
        (members.cookie_match, members.mask) = (cookie, mask);
    }
    // 1.1 does not have the table, later versions only for deletions.
    let has_all = r.version() != Version::V11 && members.command >= DELETE;
    if members.table == TableId::ALL.0 && !has_all {
        return Err(start.fail(Refusal::FlowModBadTable).into());
    }
    (members.idle_s, members.hard_s) = (r.u16()?, r.u16()?);
    members.priority = r.u16()?;
    members.buffer = Some(BufferId(r.u32()?));
    members.out_port = Some(port::read_number(r)?);
    r.skip(4)?;
    let start = r.clone();
    members.flags = r.u16()?;
    check_flags(&start, members.flags)?;
    let importance = r.u16()?;
    if r.version() >= Version::V14 && members.command == ADD {
        members.importance = importance;
    }
    let matching = oxm::decode_structure(r)?;
    let actions = action::instructions(r)?;
    write_mod(
        &members,
        &fields(r, members.priority, &matching),
        &actions,
        text,
    );
    Ok(())
}

fn write_mod(members: &FlowModMembers, fields: &str, actions: &str, text: &mut PrintBuffer<'_>) {
    write!(text, " {}", COMMANDS[usize::from(members.command)]);
    if members.table != 0 {
        write!(text, " table:{}", members.table);
    }
    write!(text, " {fields}");
    text.ensure_space();
    if members.cookie != 0 && members.cookie != u64::MAX {
        write!(text, "cookie:0x{:x} ", members.cookie);
    }
    if members.mask != 0 {
        write!(
            text,
            "cookie:0x{:x}/0x{:x} ",
            members.cookie_match, members.mask
        );
    }
    for (name, number) in [
        ("idle", members.idle_s),
        ("hard", members.hard_s),
        ("importance", members.importance),
    ] {
        if number != 0 {
            write!(text, "{name}:{number} ");
        }
    }
    if let Some(priority) = members.priority_last {
        write!(text, "pri:{priority} ");
    }
    if let Some(buffer) = members.buffer.filter(|buffer| *buffer != BufferId::NONE) {
        write!(text, "buf:0x{:x} ", buffer.0);
    }
    if let Some(port) = members.out_port.filter(|port| *port != PortNo::ANY) {
        write!(text, "out_port:{} ", port::name(port));
    }
    write!(text, "{}actions={actions}", flags(members.flags));
}

/// The names of flags, each with a trailing space.
pub(super) fn flags(bits: u16) -> String {
    let set = FLAGS.iter().enumerate();
    let set = set.filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, name)| format!("{name} ")).collect()
}

/// Formats a rule's priority and match.
pub(super) fn fields(r: &Reader<'_>, priority: u16, matching: &Match) -> String {
    let mut members = String::new();
    if priority != DEFAULT_PRIORITY {
        members = format!("priority={priority}");
    }
    let matching = match_fields(r.version(), matching);
    if !members.is_empty() && !matching.is_empty() {
        members.push(',');
    }
    members + &matching
}

/// Formats a match. In OpenFlow 1.0 and 1.1 "no tag" fixes all bits of the tag, which a match of
/// later versions cannot express.
pub(super) fn match_fields(version: Version, matching: &Match) -> String {
    let fields = without_default_packet_type(matching).to_string();
    match version {
        Version::V10 | Version::V11 => fields.replace("vlan_tci=0x0000/0x1fff", "vlan_tci=0x0000"),
        _ => fields,
    }
}

/// The match without a term on the packet type of Ethernet, which a match without that term has as
/// well (OF 1.5.1, 7.2.3.11). Open vSwitch does not print it.
pub(super) fn without_default_packet_type(matching: &Match) -> Cow<'_, Match> {
    if matching.exact(Field::PacketType) != Some(PacketType::ETHERNET.0.into()) {
        return Cow::Borrowed(matching);
    }
    Cow::Owned(matching.without(Field::PacketType))
}

/// The members of a flow-removed.
struct FlowRemovedMembers {
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
pub(super) fn print_removed(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    if r.version() == Version::V15 {
        return print_removed_v15(r, text);
    }
    let first = match r.version() {
        Version::V10 => Some(match10::decode(r)?.matching),
        _ => None,
    };
    let mut members = read_removed(r)?;
    members.idle_s = r.u16()?;
    let last = r.u16()?;
    (members.packets, members.bytes) = (r.u64()?, r.u64()?);
    let matching = if let Some(matching) = first {
        members.table = TableId::ALL.0;
        matching
    } else {
        members.hard_s = last;
        oxm::decode_structure(r)?
    };
    write_removed(&members, &fields(r, members.priority, &matching), text);
    Ok(())
}

/// Writes a Nicira flow-removed.
pub(super) fn print_removed_nicira(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut members = read_removed(r)?;
    // The table id plus one; zero if it is unknown.
    members.table = members.table.wrapping_sub(1);
    members.idle_s = r.u16()?;
    let length = usize::from(r.u16()?);
    (members.packets, members.bytes) = (r.u64()?, r.u64()?);
    let matching = oxm::decode_nxm(r, length)?.matching;
    write_removed(&members, &fields(r, members.priority, &matching), text);
    Ok(())
}

fn read_removed(r: &mut Reader<'_>) -> Result<FlowRemovedMembers, DecodeErrorName> {
    Ok(FlowRemovedMembers {
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

fn print_removed_v15(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (table, reason, priority) = (r.u8()?, r.u8()?, r.u16()?);
    let (idle_s, hard_s, cookie) = (r.u16()?, r.u16()?, r.u64()?);
    let matching = oxm::decode_structure(r)?;
    let counts = oxs::decode(r)?;
    let members = FlowRemovedMembers {
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
    write_removed(&members, &fields(r, priority, &matching), text);
    Ok(())
}

fn write_removed(members: &FlowRemovedMembers, fields: &str, text: &mut PrintBuffer<'_>) {
    let reason = config::reason_name(&REASONS, members.reason.into());
    write!(text, " {fields} reason={reason}");
    if members.table != TableId::ALL.0 {
        write!(text, " table_id={}", members.table);
    }
    if members.cookie != 0 {
        write!(text, " cookie:0x{:x}", members.cookie);
    }
    write!(text, " duration{} idle{}", members.duration, members.idle_s);
    if members.hard_s != 0 {
        write!(text, " hard{}", members.hard_s);
    }
    write!(text, " pkts{} bytes{}", members.packets, members.bytes);
}

//! The configuration of a switch and of its connections: switch configuration, roles, asynchronous
//! configuration, and Nicira's settings.

use flow::Refusal;

use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use crate::codec::Reader;
use crate::message::conntrack::ConntrackFlush;
use crate::message::{WireFormat, asynchronous};
use crate::version::Version;

/// The modes of fragment handling by number.
const FRAGMENTS: [&str; 4] = ["normal", "drop", "reassemble", "nx-match"];

/// The flag of 1.1 and 1.2 that enables packet-ins for an invalid TTL; Open vSwitch has it in 1.0
/// as well.
const INVALID_TTL: u16 = 1 << 2;

/// Writes a configuration.
pub(super) fn print(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let flags = r.u16()?;
    write!(text, " frags={}", FRAGMENTS[usize::from(flags & 3)]);
    if flags & INVALID_TTL != 0 && r.version() < Version::V13 {
        text.push(" invalid_ttl_to_controller");
    }
    write!(text, " miss_send_len={}", r.u16()?);
    Ok(())
}

/// Writes a configuration to set.
pub(super) fn print_set(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let unknown = r.fail(Refusal::ConfigBadFlags);
    let known = match r.version() {
        Version::V10 | Version::V11 | Version::V12 => 3 | INVALID_TTL,
        Version::V13 | Version::V14 | Version::V15 => 3,
    };
    if r.clone().u16()? & !known != 0 {
        return Err(unknown.into());
    }
    print(r, text)
}

/// Writes a role request. Without a change of the role its generation id has no meaning.
pub(super) fn print_role_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    match write_role(r, text)? {
        true => Ok(()),
        false => write_generation_of_role(r, text),
    }
}

/// Writes a role reply.
pub(super) fn print_role_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    write_role(r, text)?;
    write_generation_of_role(r, text)
}

/// Writes the role. Returns true if it is to stay unchanged.
fn write_role(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<bool, DecodeErrorName> {
    let nicira = r.version() < Version::V12;
    let (name, unchanged) = role(r, nicira)?;
    write!(text, " role={name}");
    Ok(unchanged)
}

/// Writes the generation id behind a role; messages of Nicira have none.
fn write_generation_of_role(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    if r.version() < Version::V12 {
        return Ok(());
    }
    r.skip(4)?;
    write_generation(r, text)
}

/// Writes a generation id; all ones is none.
fn write_generation(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    match r.u64()? {
        u64::MAX => {}
        generation => write!(text, " generation_id={generation}"),
    }
    Ok(())
}

/// Reads a role; the flag is true for "no change".
pub(super) fn role(
    r: &mut Reader<'_>,
    nicira: bool,
) -> Result<(&'static str, bool), DecodeErrorName> {
    let unknown = r.fail(Refusal::RoleBad);
    match (r.u32()?, nicira) {
        (0, false) => Ok(("nochange", true)),
        (1, false) | (0, true) => Ok(("equal", false)),
        (2, false) | (1, true) => Ok(("primary", false)),
        (3, false) | (2, true) => Ok(("secondary", false)),
        _ => Err(unknown.into()),
    }
}

/// Writes a role-status.
pub(super) fn print_role_status(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (role, _) = role(r, false)?;
    let reason = r.u8()?;
    r.skip(3)?;
    write!(text, " role={role}");
    write_generation(r, text)?;
    write!(
        text,
        " reason={}",
        reason_name(&ROLE_REASONS, reason.into())
    );
    Ok(())
}

/// An asynchronous message: its printed name and its reasons.
type AsyncMaskRow = (&'static str, &'static [&'static str]);

const ROLE_REASONS: [&str; 3] = [
    "primary_request",
    "configuration_changed",
    "experimenter_data_changed",
];

/// All asynchronous messages in the order of the properties of 1.4.
const ASYNC_MASKS: [AsyncMaskRow; 6] = [
    ("PACKET_IN", &super::packet::REASONS),
    ("PORT_STATUS", &["add", "delete", "modify"]),
    ("FLOW_REMOVED", &super::flow::REASONS),
    ("ROLE_STATUS", &ROLE_REASONS),
    ("TABLE_STATUS", &["", "", "", "vacancy_down", "vacancy_up"]),
    (
        "REQUESTFORWARD",
        &["group_mod_request", "meter_mod_request"],
    ),
];

/// The name of a reason, or its number.
pub(super) fn reason_name(names: &[&str], number: u32) -> String {
    let known = usize::try_from(number)
        .ok()
        .and_then(|index| names.get(index));
    match known {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => number.to_string(),
    }
}

/// The masks of each asynchronous message, for a primary and for a secondary controller.
type AsyncMaskTable = [[u32; 2]; ASYNC_MASKS.len()];

/// Writes the asynchronous configuration of a primary controller and of others.
pub(super) fn print_async(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut masks = AsyncMaskTable::default();
    if r.version() < Version::V14 {
        for (kind, pair) in (1..).step_by(2).zip(&mut masks[..3]) {
            let known = asynchronous::known_reasons(kind, r.version());
            *pair = [r.u32()? & known, r.u32()? & known];
        }
        write_masks(&masks, text);
        return Ok(());
    }
    print_async_properties(r, text)
}

/// Writes the asynchronous configuration in a reply, including unknown reasons.
pub(super) fn print_async_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    if r.version() < Version::V14 {
        return print_async(r, text);
    }
    let mut masks = AsyncMaskTable::default();
    read_masks(r, &mut masks, |_| Ok(()))?;
    write_masks(&masks, text);
    Ok(())
}

/// Writes the asynchronous configuration in the form with properties before 1.4.
pub(super) fn print_async_properties(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut masks = AsyncMaskTable::default();
    read_masks(r, &mut masks, |unknown| match unknown {
        0 => Ok(()),
        _ => Err(DecodeErrorName("OFPACFC_INVALID")),
    })?;
    write_masks(&masks, text);
    Ok(())
}

/// Reads properties with one mask each; `check` receives the unknown bits of the mask.
fn read_masks(
    r: &mut Reader<'_>,
    masks: &mut AsyncMaskTable,
    check: impl Fn(u32) -> Result<(), DecodeErrorName>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        let (kind, mask) = property(r)?;
        let pair = masks.get_mut(usize::from(kind / 2));
        if let Some(pair) = pair {
            let known = asynchronous::known_reasons(kind, r.version());
            check(mask & !known)?;
            pair[usize::from(1 - kind % 2)] = mask & known;
        }
    }
    Ok(())
}

fn write_masks(masks: &AsyncMaskTable, text: &mut PrintBuffer<'_>) {
    for (which, title) in ["primary", "secondary"].into_iter().enumerate() {
        writeln!(text, "\n {title}:");
        for ((label, reasons), masks) in ASYNC_MASKS.iter().zip(masks) {
            let mask = masks[which];
            let names = (0..32).filter(|bit| mask >> bit & 1 == 1);
            let names: Vec<_> = names.map(|bit| reason_name(reasons, bit)).collect();
            let names = if names.is_empty() {
                "(off)".to_owned()
            } else {
                names.join(" ")
            };
            writeln!(text, "{label:>16}: {names}");
        }
    }
}

/// Reads a property: its type and its mask.
fn property(r: &mut Reader<'_>) -> Result<(u16, u32), DecodeErrorName> {
    let property = crate::message::property::next(r)?;
    if property.kind >= crate::message::property::EXPERIMENTER - 1 {
        return Err(property.fail(Refusal::PropertyBadExperimenter).into());
    }
    let mask = property
        .value
        .clone()
        .on_short(Refusal::PropertyBadLength)
        .u32()?;
    Ok((property.kind, mask))
}

/// Writes the requested match format.
pub(super) fn print_flow_format(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let name = match r.u32()? {
        0 => "openflow10",
        2 => "nxm",
        _ => "(unknown)",
    };
    write!(text, " format={name}");
    Ok(())
}

/// Writes the setting for table ids in flow-mods.
pub(super) fn print_table_ids(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    text.push(if r.u8()? == 0 { " disable" } else { " enable" });
    Ok(())
}

/// Writes the id of a controller.
pub(super) fn print_controller_id(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    r.skip(6)?;
    write!(text, " id={}", r.u16()?);
    Ok(())
}

/// Writes the zone whose connections are flushed.
pub(super) fn print_flush_zone(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    r.skip(6)?;
    write!(text, " zone_id={}", r.u16()?);
    Ok(())
}

/// Writes the connections that are flushed.
pub(super) fn print_flush(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let flush = ConntrackFlush::decode(r)?;
    write!(text, " zone={} {flush}", flush.zone.unwrap_or(0));
    Ok(())
}

/// Writes the requested packet-in format.
pub(super) fn print_packet_in_format(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let format = r.u32()?;
    match format {
        0 => text.push(" format=standard"),
        1 => text.push(" format=nxt_packet_in"),
        2 => text.push(" format=nxt_packet_in2"),
        _ => return Err(DecodeErrorName("OFPBRC_EPERM")),
    }
    Ok(())
}

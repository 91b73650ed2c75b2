//! How a switch and its connections are set: configuration, roles, what is told
//! unasked, and Nicira's switches.

use flow::Refusal;

use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use crate::codec::Reader;
use crate::message::asynchronous;
use crate::version::Version;

/// What becomes of fragments, by number.
const FRAGMENTS: [&str; 4] = ["normal", "drop", "reassemble", "nx-match"];

/// The bit by which a switch of 1.1 and 1.2 tells controllers of expired frames; Open
/// vSwitch takes it in every version.
const INVALID_TTL: u16 = 1 << 2;

/// Writes a configuration.
pub(super) fn print(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let flags = r.u16()?;
    write!(text, " frags={}", FRAGMENTS[usize::from(flags & 3)]);
    if flags & INVALID_TTL != 0 {
        text.push(" invalid_ttl_to_controller");
    }
    write!(text, " miss_send_len={}", r.u16()?);
    Ok(())
}

/// Writes a configuration that is to be.
pub(super) fn print_set(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let unknown = r.fail(Refusal::ConfigBadFlags);
    // From 1.3 on the bit is for the tables to say.
    let known = match r.version() {
        Version::V10 | Version::V11 | Version::V12 => 3 | INVALID_TTL,
        Version::V13 | Version::V14 | Version::V15 => 3,
    };
    if r.clone().u16()? & !known != 0 {
        return Err(unknown.into());
    }
    print(r, text)
}

/// Writes a role that is wished for or given.
pub(super) fn print_role(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let nicira = r.version() < Version::V12;
    let (name, unchanged) = role(r, nicira)?;
    write!(text, " role={name}");
    if !nicira && !unchanged {
        r.skip(4)?;
        write!(text, " generation_id={}", r.u64()?);
    }
    Ok(())
}

/// Reads a role, and whether it is none.
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

/// Writes that a role has changed.
pub(super) fn print_role_status(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (role, _) = role(r, false)?;
    let reason = r.u8()?;
    r.skip(3)?;
    write!(text, " role={role}");
    match r.u64()? {
        u64::MAX => {}
        generation => write!(text, " generation_id={generation}"),
    }
    write!(
        text,
        " reason={}",
        reason_name(&ROLE_REASONS, reason.into())
    );
    Ok(())
}

/// What is told unasked, by the name that is printed, and its reasons.
type AsyncMaskRow = (&'static str, &'static [&'static str]);

const ROLE_REASONS: [&str; 3] = [
    "primary_request",
    "configuration_changed",
    "experimenter_data_changed",
];

/// In the order of the properties of 1.4.
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

/// What is told unasked: by kind, each for primaries and for secondaries.
type AsyncMaskTable = [[u32; 2]; ASYNC_MASKS.len()];

/// Writes what is told unasked, to a primary controller and to others.
pub(super) fn print_async(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut masks = AsyncMaskTable::default();
    if r.version() < Version::V14 {
        for kind in &mut masks[..3] {
            *kind = [r.u32()?, r.u32()?];
        }
        write_masks(&masks, text);
        return Ok(());
    }
    print_async_properties(r, text)
}

/// Writes what is told unasked, as a reply says it: with reasons that nobody knows.
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

/// Writes what is told unasked, where properties say it before 1.4.
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

/// Reads properties, each of which says a mask; `check` is told the bits of it that nobody
/// knows.
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

/// Reads a property: its kind and its mask.
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

/// Writes which form of match is wished for.
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

/// Writes whether flow-mods name their table.
pub(super) fn print_table_ids(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    text.push(if r.u8()? == 0 { " disable" } else { " enable" });
    Ok(())
}

/// Writes by which number a connection is known to rules.
pub(super) fn print_controller_id(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    r.skip(6)?;
    write!(text, " id={}", r.u16()?);
    Ok(())
}

/// Writes which form of packet-in is wished for.
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

//! Tables: their configuration and counters. `table_features` prints their capabilities.

use base::TableId;

use super::refusal_names::DecodeErrorName;
use super::table_features::{self, MISS, PrintedTable, TableFeatureSet};
use super::text::{AlternateHex, PrintBuffer};
use crate::codec::{Malformed, Reader};
use crate::message::property;
use crate::version::Version;
use ::flow::Refusal;

/// Bytes of a table's name.
const NAME: usize = 32;

/// The configuration flags for eviction (1.4) and for vacancy events.
const EVICTION: u32 = 1 << 2;
const VACANCY: u32 = 1 << 3;

/// The property with the vacancy thresholds (`OFPTMPT_VACANCY`).
const VACANCY_PROPERTY: u16 = 3;

/// The property with the eviction criteria (`OFPTMPT_EVICTION`).
const EVICTION_PROPERTY: u16 = 2;

/// The reasons of a table-status by number.
const STATUS_REASONS: [&str; 5] = ["", "", "", "VACANCY_DOWN", "VACANCY_UP"];

/// The eviction criteria by the bit.
const EVICTION_REASONS: [(u32, &str); 3] = [(1, "OTHER"), (2, "IMPORTANCE"), (4, "LIFETIME")];

/// The eviction criteria of a table that does not name them.
const DEFAULT_REASONS: u32 = u32::MAX;

/// Actions by the bit of their number in 1.0, in the order of the output.
const ACTIONS_V10: [(u32, &str); 12] = [
    (1 << 0, "output"),
    (1 << 11, "enqueue"),
    (1 << 1, "set_vlan_vid"),
    (1 << 2, "set_vlan_pcp"),
    (1 << 3, "strip_vlan"),
    (1 << 4, "mod_dl_src"),
    (1 << 5, "mod_dl_dst"),
    (1 << 6, "mod_nw_src"),
    (1 << 7, "mod_nw_dst"),
    (1 << 8, "mod_nw_tos"),
    (1 << 9, "mod_tp_src"),
    (1 << 10, "mod_tp_dst"),
];

/// The same in later versions; bits 1 to 14 are of 1.1 only.
const ACTIONS: [(u32, &str); 24] = [
    (1 << 0, "output"),
    (1 << 22, "group"),
    (1 << 25, "set_field"),
    (1 << 1, "set_vlan_vid"),
    (1 << 2, "set_vlan_pcp"),
    (1 << 18, "strip_vlan"),
    (1 << 17, "push_vlan"),
    (1 << 3, "mod_dl_src"),
    (1 << 4, "mod_dl_dst"),
    (1 << 5, "mod_nw_src"),
    (1 << 6, "mod_nw_dst"),
    (1 << 7, "mod_nw_tos"),
    (1 << 8, "mod_nw_ecn"),
    (1 << 23, "mod_nw_ttl"),
    (1 << 9, "mod_tp_src"),
    (1 << 10, "mod_tp_dst"),
    (1 << 24, "dec_ttl"),
    (1 << 13, "set_mpls_label"),
    (1 << 14, "set_mpls_tc"),
    (1 << 15, "set_mpls_ttl"),
    (1 << 16, "dec_mpls_ttl"),
    (1 << 19, "push_mpls"),
    (1 << 20, "pop_mpls"),
    (1 << 21, "set_queue"),
];

/// The names of the actions of the set bits, or a note that there are none.
pub(super) fn actions(bits: u32, version: Version) -> String {
    match action_names(bits, version) {
        names if names.is_empty() => "<none>".to_owned(),
        names => names,
    }
}

/// The names of the actions of the set bits.
pub(super) fn action_names(bits: u32, version: Version) -> String {
    let (table, known): (&[(u32, &str)], u32) = match version {
        Version::V10 => (&ACTIONS_V10, 0xfff),
        Version::V11 => (&ACTIONS, 0x01ff_ffff),
        Version::V12 | Version::V13 | Version::V14 | Version::V15 => (&ACTIONS, 0x03ff_8001),
    };
    let set = table.iter().filter(|(bit, _)| bits & known & bit != 0);
    let names: Vec<_> = set.map(|(_, name)| *name).collect();
    names.join(" ")
}

/// Writes a table-mod.
pub(super) fn print_mod(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let table = TableId(r.u8()?);
    r.skip(3)?;
    let config = r.u32()?;
    check_properties(r.clone())?;
    let vacancy = vacancy(r)?;
    if table == TableId::ALL {
        text.push(" table_id: ALL_TABLES");
    } else {
        write!(text, " table_id={table}");
    }
    match r.version() {
        Version::V10 | Version::V13 => {}
        Version::V11 | Version::V12 => {
            let miss = usize::try_from(config & 3).unwrap_or(0);
            let miss = MISS.get(miss).unwrap_or(&MISS[0]);
            write!(text, ", flow_miss_config={miss}");
        }
        Version::V14 | Version::V15 => write_settings(config, vacancy, text),
    }
    Ok(())
}

/// Checks the properties of a table-mod, which are stricter than in a reply: they must be known and
/// have no present vacancy.
fn check_properties(mut r: Reader<'_>) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        let mut property = property::next(&mut r)?;
        match property.kind {
            EVICTION_PROPERTY => {}
            VACANCY_PROPERTY => {
                let [_, _, now, _] = property.value.take()?;
                if now != 0 {
                    return Err(DecodeErrorName("OFPBPC_BAD_VALUE"));
                }
            }
            property::EXPERIMENTER => return Err(property.unknown().into()),
            _ => return Err(DecodeErrorName("OFPBRC_BAD_TYPE")),
        }
    }
    Ok(())
}

/// Reads properties and returns the vacancy thresholds, if they are there.
fn vacancy(r: &mut Reader<'_>) -> Result<Option<[u8; 2]>, Malformed> {
    let mut limits = None;
    while !r.is_empty() {
        let mut property = property::next(r)?;
        match property.kind {
            VACANCY_PROPERTY => limits = Some(property.value.take()?),
            property::EXPERIMENTER => return Err(property.unknown()),
            _ => {}
        }
    }
    Ok(limits)
}

fn write_settings(config: u32, vacancy: Option<[u8; 2]>, text: &mut PrintBuffer<'_>) {
    let on = |bit| if config & bit != 0 { "on" } else { "off" };
    write!(text, ", eviction={}, vacancy={}", on(EVICTION), on(VACANCY));
    if config & VACANCY != 0 {
        let [down, up] = vacancy.unwrap_or_default();
        write!(text, " vacancy:{down},{up}");
    }
}

/// Writes the configuration of tables.
pub(super) fn print_descs(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        print_desc(r, text)?;
    }
    Ok(())
}

/// Writes the configuration of a table.
fn print_desc(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let length = usize::from(r.clone().u16()?);
    let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
    r.skip(2)?;
    let table = r.u8()?;
    r.skip(1)?;
    let config = r.u32()?;
    let (mut reasons, mut vacancy) = (DEFAULT_REASONS, [0; 3]);
    while !r.is_empty() {
        let mut property = property::next(&mut r)?;
        match property.kind {
            EVICTION_PROPERTY => reasons = property.value.u32()?,
            VACANCY_PROPERTY => vacancy = property.value.take()?,
            _ => return Err(property.unknown().into()),
        }
    }
    let on = |bit| if config & bit != 0 { "on" } else { "off" };
    write!(text, "\n  table {table}:\n   eviction={}", on(EVICTION));
    writeln!(text, " eviction_flags={}", eviction_reasons(reasons));
    write!(text, "   vacancy={}", on(VACANCY));
    if config & VACANCY != 0 {
        let [down, up, now] = vacancy;
        write!(
            text,
            " vacancy_down={down}% vacancy_up={up}% vacancy={now}%"
        );
    }
    text.push("\n");
    Ok(())
}

/// Writes a table-status.
pub(super) fn print_status(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let unknown = r.fail(Refusal::PropertyBadValue);
    let reason = STATUS_REASONS.get(usize::from(r.u8()?)).copied();
    let reason = reason.filter(|name| !name.is_empty()).ok_or(unknown)?;
    r.skip(7)?;
    write!(text, " reason={reason}\ntable_desc:-");
    print_desc(r, text)
}

/// Formats the eviction criteria.
fn eviction_reasons(bits: u32) -> String {
    if bits == DEFAULT_REASONS {
        return "(default)".to_owned();
    }
    let set = EVICTION_REASONS.iter().filter(|(bit, _)| bits & bit != 0);
    let mut names: Vec<_> = set.map(|(_, name)| (*name).to_owned()).collect();
    let known = EVICTION_REASONS.iter().fold(0, |all, (bit, _)| all | bit);
    let rest = bits & !known;
    if rest != 0 || names.is_empty() {
        names.push(AlternateHex(rest.into()).to_string());
    }
    names.join("|")
}

/// Writes the counters of tables, and their capabilities if the version has them here.
pub(super) fn print_stats(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    table_features::print_tables(r, read_stats, text)
}

fn read_stats(r: &mut Reader<'_>) -> Result<PrintedTable, DecodeErrorName> {
    let id = TableId(r.u8()?);
    r.skip(match r.version() {
        Version::V11 | Version::V12 => 7,
        _ => 3,
    })?;
    let name = match r.version() {
        Version::V10 | Version::V11 | Version::V12 => r.text(NAME)?,
        Version::V13 | Version::V14 | Version::V15 => String::new(),
    };
    let features = match r.version() {
        Version::V10 => TableFeatureSet::read_v10(r)?,
        Version::V11 => TableFeatureSet::read_v11(r)?,
        Version::V12 => TableFeatureSet::read_v12(r)?,
        Version::V13 | Version::V14 | Version::V15 => TableFeatureSet::default(),
    };
    Ok(PrintedTable {
        id,
        name,
        counts: Some((r.u32()?, r.u64()?, r.u64()?)),
        features,
    })
}

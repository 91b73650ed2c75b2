//! Statistics of rules: requests, rules with their counters, and sums.

use ::flow::{Match, Refusal};
use base::{PortNo, TableId};

use super::flow::{check_flags, fields, flags, match_fields};
use super::refusal_names::DecodeErrorName;
use super::text::{OptionalCount, PrintBuffer, Seconds};
use super::{action, port};
use crate::codec::Reader;
use crate::match10;
use crate::oxm;
use crate::oxs::{self, OxsCounts};
use crate::port_no;
use crate::version::Version;

/// Writes a request for the statistics of rules or for their sums.
pub(super) fn print_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (table, out_port, matching) = if r.version() == Version::V10 {
        let matching = match10::decode(r)?.matching;
        let table = r.u8()?;
        r.skip(1)?;
        (table, port_no::decode(r)?, matching)
    } else {
        let table = r.u8()?;
        r.skip(3)?;
        let out_port = port::read_number(r)?;
        r.skip(8 + 16)?;
        (table, out_port, oxm::decode_structure(r)?)
    };
    write_request(r.version(), table, out_port, &matching, text);
    Ok(())
}

/// Writes a request for the statistics of rules in Nicira's format.
pub(super) fn print_request_nicira(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let out_port = port_no::decode(r)?;
    let length = usize::from(r.u16()?);
    let table = r.u8()?;
    r.skip(3)?;
    let matching = oxm::decode_nxm(r, length)?.matching;
    write_request(r.version(), table, out_port, &matching, text);
    Ok(())
}

fn write_request(
    version: Version,
    table: u8,
    out_port: PortNo,
    matching: &Match,
    text: &mut PrintBuffer<'_>,
) {
    if table != TableId::ALL.0 {
        write!(text, " table={table}");
    }
    if out_port != PortNo::ANY {
        write!(text, " out_port={}", port::name(out_port));
    }
    match match_fields(version, matching) {
        fields if fields.is_empty() => {}
        fields => write!(text, " {fields}"),
    }
}

/// The statistics of a rule, as far as the format has them.
struct FlowStatsEntry {
    table: u8,
    duration: Seconds,
    priority: u16,
    idle_s: u16,
    hard_s: u16,
    flags: u16,
    importance: u16,
    cookie: u64,
    packets: u64,
    bytes: u64,
    idle_age: Option<u64>,
    hard_age: Option<u64>,
    fields: String,
}

/// Writes rules and their counters.
pub(super) fn print_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    entries(
        r,
        text,
        match r.version() {
            Version::V15 => read_v15,
            _ => read,
        },
    )
}

/// Writes rules and their counters in Nicira's format.
pub(super) fn print_reply_nicira(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    entries(r, text, read_nicira)
}

fn entries(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
    read: fn(&mut Reader<'_>) -> Result<FlowStatsEntry, DecodeErrorName>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        let mut r = next_entry(r)?;
        let stats = read(&mut r)?;
        let actions = action::instructions(&mut r)?;
        write_entry(&stats, &actions, text);
    }
    Ok(())
}

/// Splits off the next entry, which begins with its length.
fn next_entry<'a>(r: &mut Reader<'a>) -> Result<Reader<'a>, DecodeErrorName> {
    let length = usize::from(r.clone().u16()?);
    let bad = r.fail(Refusal::RequestBadLength);
    let mut entry = r.sub(length)?;
    if length < 2 {
        return Err(bad.into());
    }
    entry.skip(2)?;
    Ok(entry)
}

/// An entry with a table and no other members.
const fn empty(table: u8) -> FlowStatsEntry {
    FlowStatsEntry {
        table,
        duration: Seconds(0, 0),
        priority: 0,
        idle_s: 0,
        hard_s: 0,
        flags: 0,
        importance: 0,
        cookie: 0,
        packets: 0,
        bytes: 0,
        idle_age: None,
        hard_age: None,
        fields: String::new(),
    }
}

fn read_times(r: &mut Reader<'_>, stats: &mut FlowStatsEntry) -> Result<(), DecodeErrorName> {
    stats.duration = Seconds(r.u32()?, r.u32()?);
    stats.priority = r.u16()?;
    (stats.idle_s, stats.hard_s) = (r.u16()?, r.u16()?);
    Ok(())
}

fn read_counts(r: &mut Reader<'_>, stats: &mut FlowStatsEntry) -> Result<(), DecodeErrorName> {
    stats.cookie = r.u64()?;
    (stats.packets, stats.bytes) = (r.u64()?, r.u64()?);
    Ok(())
}

fn read(r: &mut Reader<'_>) -> Result<FlowStatsEntry, DecodeErrorName> {
    let mut stats = empty(r.u8()?);
    r.skip(1)?;
    let matching = if r.version() == Version::V10 {
        let matching = match10::decode(r)?.matching;
        read_times(r, &mut stats)?;
        r.skip(6)?;
        read_counts(r, &mut stats)?;
        matching
    } else {
        read_times(r, &mut stats)?;
        let start = r.clone();
        let (flags, importance) = (r.u16()?, r.u16()?);
        if r.version() >= Version::V13 {
            check_flags(&start, flags)?;
            stats.flags = flags;
        }
        if r.version() >= Version::V14 {
            stats.importance = importance;
        }
        r.skip(2)?;
        read_counts(r, &mut stats)?;
        oxm::decode_structure(r)?
    };
    stats.fields = fields(r, stats.priority, &matching);
    Ok(stats)
}

fn read_nicira(r: &mut Reader<'_>) -> Result<FlowStatsEntry, DecodeErrorName> {
    let mut stats = empty(r.u8()?);
    r.skip(1)?;
    read_times(r, &mut stats)?;
    let length = usize::from(r.u16()?);
    // The seconds plus one; zero if they are unknown.
    let ages = [r.u16()?, r.u16()?].map(|age| age.checked_sub(1).map(u64::from));
    [stats.idle_age, stats.hard_age] = ages;
    read_counts(r, &mut stats)?;
    let matching = oxm::decode_nxm(r, length)?.matching;
    stats.fields = fields(r, stats.priority, &matching);
    Ok(stats)
}

fn read_v15(r: &mut Reader<'_>) -> Result<FlowStatsEntry, DecodeErrorName> {
    r.skip(2)?;
    let mut stats = empty(r.u8()?);
    r.skip(1)?;
    stats.priority = r.u16()?;
    (stats.idle_s, stats.hard_s) = (r.u16()?, r.u16()?);
    let start = r.clone();
    (stats.flags, stats.importance) = (r.u16()?, r.u16()?);
    check_flags(&start, stats.flags)?;
    stats.cookie = r.u64()?;
    let matching = oxm::decode_structure(r)?;
    let counts = oxs::decode(r)?;
    stats.duration = duration(&counts);
    stats.idle_age = counts.idle.map(|idle| idle.as_secs());
    stats.packets = counts.packets.unwrap_or(u64::MAX);
    stats.bytes = counts.bytes.unwrap_or(u64::MAX);
    stats.fields = fields(r, stats.priority, &matching);
    Ok(stats)
}

fn write_entry(stats: &FlowStatsEntry, actions: &str, text: &mut PrintBuffer<'_>) {
    write!(
        text,
        "\n cookie=0x{:x}, duration={}, ",
        stats.cookie, stats.duration
    );
    write!(text, "table={}, ", stats.table);
    write!(
        text,
        "n_packets={}, n_bytes={}, ",
        OptionalCount(stats.packets),
        OptionalCount(stats.bytes)
    );
    for (name, seconds) in [
        ("idle_timeout", stats.idle_s),
        ("hard_timeout", stats.hard_s),
    ] {
        if seconds != 0 {
            write!(text, "{name}={seconds}, ");
        }
    }
    text.push(&flags(stats.flags));
    if stats.importance != 0 {
        write!(text, "importance={}, ", stats.importance);
    }
    if let Some(age) = stats.idle_age {
        write!(text, "idle_age={age}, ");
    }
    if let Some(age) = stats
        .hard_age
        .filter(|age| *age != u64::from(stats.duration.0))
    {
        write!(text, "hard_age={age}, ");
    }
    text.push(&stats.fields);
    text.ensure_space();
    write!(text, "actions={actions}");
}

/// Writes the sums of rules' counters.
pub(super) fn print_sums(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (packets, bytes, flows) = if r.version() == Version::V15 {
        let counts = oxs::decode(r)?;
        let unknown = u64::MAX;
        let (packets, bytes) = (
            counts.packets.unwrap_or(unknown),
            counts.bytes.unwrap_or(unknown),
        );
        (packets, bytes, counts.flows.unwrap_or(u32::MAX))
    } else {
        (r.u64()?, r.u64()?, r.u32()?)
    };
    write!(
        text,
        " packet_count={packets} byte_count={bytes} flow_count={flows}"
    );
    Ok(())
}

/// Writes rules with counters only (1.5).
pub(super) fn print_counts(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        let mut r = next_entry(r)?;
        r.skip(2)?;
        let table = r.u8()?;
        r.skip(1)?;
        let priority = r.u16()?;
        let matching = oxm::decode_structure(&mut r)?;
        let counts = oxs::decode(&mut r)?;
        let (packets, bytes) = (optional_count(counts.packets), optional_count(counts.bytes));
        write!(text, "\n duration={}, table={table}, ", duration(&counts));
        write!(text, "n_packets={packets}, n_bytes={bytes}, ");
        text.push(&fields(&r, priority, &matching));
    }
    Ok(())
}

/// The age of a rule in the counters of 1.5.
pub(super) fn duration(counts: &OxsCounts) -> Seconds {
    let stats = counts.duration.map(|duration| {
        let seconds = u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
        Seconds(seconds, duration.subsec_nanos())
    });
    stats.unwrap_or(Seconds(u32::MAX, u32::MAX))
}

const fn optional_count(count: Option<u64>) -> OptionalCount {
    match count {
        Some(count) => OptionalCount(count),
        None => OptionalCount(u64::MAX),
    }
}

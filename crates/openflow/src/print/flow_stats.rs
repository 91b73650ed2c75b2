//! Rules: which are asked for, what each is and counted, and their sums.

use ::flow::{Match, Refusal};
use base::{PortNo, TableId};

use super::action;
use super::flow::{fields, flags, untagged};
use super::names::Unreadable;
use super::text::{Known, Seconds, Text};
use crate::codec::Reader;
use crate::match10;
use crate::oxm;
use crate::oxs::{self, Counts};
use crate::port_no;
use crate::version::Version;

/// Writes which rules are asked for, or which are to be summed.
pub(super) fn print_request(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let (table, port, matching) = if r.version() == Version::V10 {
        let matching = match10::decode(r)?.matching;
        let table = r.u8()?;
        r.skip(1)?;
        (table, port_no::decode(r)?, matching)
    } else {
        let table = r.u8()?;
        r.skip(3)?;
        let port = port_no::decode(r)?;
        r.skip(8 + 16)?;
        (table, port, oxm::decode_structure(r)?)
    };
    write_request(r.version(), table, port, &matching, text);
    Ok(())
}

/// Writes which rules are asked for in Nicira's form.
pub(super) fn print_request_nicira(
    r: &mut Reader<'_>,
    text: &mut Text<'_>,
) -> Result<(), Unreadable> {
    let port = port_no::decode(r)?;
    let length = usize::from(r.u16()?);
    let table = r.u8()?;
    r.skip(3)?;
    let matching = oxm::decode_nxm(r, length)?.matching;
    write_request(r.version(), table, port, &matching, text);
    Ok(())
}

fn write_request(version: Version, table: u8, port: PortNo, matching: &Match, text: &mut Text<'_>) {
    if table != TableId::ALL.0 {
        write!(text, " table={table}");
    }
    if port != PortNo::ANY {
        write!(text, " out_port={port}");
    }
    match untagged(version, matching.to_string()) {
        fields if fields.is_empty() => {}
        fields => write!(text, " {fields}"),
    }
}

/// A rule's statistics, as far as they are told.
struct Entry {
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

/// Writes rules and their counts.
pub(super) fn print_reply(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    entries(
        r,
        text,
        match r.version() {
            Version::V15 => read_v15,
            _ => read,
        },
    )
}

/// Writes rules and their counts in Nicira's form.
pub(super) fn print_reply_nicira(
    r: &mut Reader<'_>,
    text: &mut Text<'_>,
) -> Result<(), Unreadable> {
    entries(r, text, read_nicira)
}

fn entries(
    r: &mut Reader<'_>,
    text: &mut Text<'_>,
    read: fn(&mut Reader<'_>) -> Result<Entry, Unreadable>,
) -> Result<(), Unreadable> {
    while !r.is_empty() {
        let mut r = entry(r)?;
        let told = read(&mut r)?;
        let actions = action::instructions(&mut r)?;
        write_entry(&told, &actions, text);
    }
    Ok(())
}

/// A reader of the next entry, which begins with its length.
fn entry<'a>(r: &mut Reader<'a>) -> Result<Reader<'a>, Unreadable> {
    let length = usize::from(r.clone().u16()?);
    let bad = r.fail(Refusal::RequestBadLength);
    let mut entry = r.sub(length)?;
    if length < 2 {
        return Err(bad.into());
    }
    entry.skip(2)?;
    Ok(entry)
}

/// What is told of a table, and of nothing else.
const fn blank(table: u8) -> Entry {
    Entry {
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

fn read_times(r: &mut Reader<'_>, told: &mut Entry) -> Result<(), Unreadable> {
    told.duration = Seconds(r.u32()?, r.u32()?);
    told.priority = r.u16()?;
    (told.idle_s, told.hard_s) = (r.u16()?, r.u16()?);
    Ok(())
}

fn read_counts(r: &mut Reader<'_>, told: &mut Entry) -> Result<(), Unreadable> {
    told.cookie = r.u64()?;
    (told.packets, told.bytes) = (r.u64()?, r.u64()?);
    Ok(())
}

fn read(r: &mut Reader<'_>) -> Result<Entry, Unreadable> {
    let mut told = blank(r.u8()?);
    r.skip(1)?;
    let matching = if r.version() == Version::V10 {
        let matching = match10::decode(r)?.matching;
        read_times(r, &mut told)?;
        r.skip(6)?;
        read_counts(r, &mut told)?;
        matching
    } else {
        read_times(r, &mut told)?;
        let (flags, importance) = (r.u16()?, r.u16()?);
        if r.version() >= Version::V13 {
            told.flags = flags;
        }
        if r.version() >= Version::V14 {
            told.importance = importance;
        }
        r.skip(2)?;
        read_counts(r, &mut told)?;
        oxm::decode_structure(r)?
    };
    told.fields = fields(r, told.priority, &matching);
    Ok(told)
}

fn read_nicira(r: &mut Reader<'_>) -> Result<Entry, Unreadable> {
    let mut told = blank(r.u8()?);
    r.skip(1)?;
    read_times(r, &mut told)?;
    let length = usize::from(r.u16()?);
    // One more than the seconds; zero if they are not known.
    let ages = [r.u16()?, r.u16()?].map(|age| age.checked_sub(1).map(u64::from));
    [told.idle_age, told.hard_age] = ages;
    read_counts(r, &mut told)?;
    let matching = oxm::decode_nxm(r, length)?.matching;
    told.fields = fields(r, told.priority, &matching);
    Ok(told)
}

fn read_v15(r: &mut Reader<'_>) -> Result<Entry, Unreadable> {
    r.skip(2)?;
    let mut told = blank(r.u8()?);
    r.skip(1)?;
    told.priority = r.u16()?;
    (told.idle_s, told.hard_s) = (r.u16()?, r.u16()?);
    (told.flags, told.importance) = (r.u16()?, r.u16()?);
    told.cookie = r.u64()?;
    let matching = oxm::decode_structure(r)?;
    let counts = oxs::decode(r)?;
    told.duration = duration(&counts);
    told.idle_age = counts.idle.map(|idle| idle.as_secs());
    told.packets = counts.packets.unwrap_or(u64::MAX);
    told.bytes = counts.bytes.unwrap_or(u64::MAX);
    told.fields = fields(r, told.priority, &matching);
    Ok(told)
}

fn write_entry(told: &Entry, actions: &str, text: &mut Text<'_>) {
    write!(
        text,
        "\n cookie=0x{:x}, duration={}, ",
        told.cookie, told.duration
    );
    write!(text, "table={}, ", told.table);
    write!(
        text,
        "n_packets={}, n_bytes={}, ",
        Known(told.packets),
        Known(told.bytes)
    );
    for (name, seconds) in [("idle_timeout", told.idle_s), ("hard_timeout", told.hard_s)] {
        if seconds != 0 {
            write!(text, "{name}={seconds}, ");
        }
    }
    text.push(&flags(told.flags));
    if told.importance != 0 {
        write!(text, "importance={}, ", told.importance);
    }
    if let Some(age) = told.idle_age {
        write!(text, "idle_age={age}, ");
    }
    if let Some(age) = told
        .hard_age
        .filter(|age| *age != u64::from(told.duration.0))
    {
        write!(text, "hard_age={age}, ");
    }
    text.push(&told.fields);
    text.one_space();
    write!(text, "actions={actions}");
}

/// Writes the sums over rules.
pub(super) fn print_sums(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
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

/// Writes the counts of rules alone (1.5).
pub(super) fn print_counts(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    while !r.is_empty() {
        let mut r = entry(r)?;
        r.skip(2)?;
        let table = r.u8()?;
        r.skip(1)?;
        let priority = r.u16()?;
        let matching = oxm::decode_structure(&mut r)?;
        let counts = oxs::decode(&mut r)?;
        let (packets, bytes) = (known(counts.packets), known(counts.bytes));
        write!(text, "\n duration={}, table={table}, ", duration(&counts));
        write!(text, "n_packets={packets}, n_bytes={bytes}, ");
        text.push(&fields(&r, priority, &matching));
    }
    Ok(())
}

/// How long a rule has been there, as 1.5 tells it.
pub(super) fn duration(counts: &Counts) -> Seconds {
    let told = counts.duration.map(|duration| {
        let seconds = u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
        Seconds(seconds, duration.subsec_nanos())
    });
    told.unwrap_or(Seconds(u32::MAX, u32::MAX))
}

const fn known(count: Option<u64>) -> Known {
    match count {
        Some(count) => Known(count),
        None => Known(u64::MAX),
    }
}

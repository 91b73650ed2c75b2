//! Groups: their changes, descriptions and counters.

use ::flow::Refusal;
use ::flow::text::NameMap;
use base::{BucketId, GroupId, PortNo};

use super::refusal_names::DecodeErrorName;
use super::text::{AlternateHex, PrintBuffer, Seconds};
use super::{action, port, table};
use crate::codec::{Malformed, Reader};
use crate::message::group_mod::ADD_OR_MODIFY;
use crate::message::{property, selection};
use crate::port_no;
use crate::version::Version;

/// The commands of a group-mod.
const COMMANDS: [(u16, &str); 6] = [
    (0, "ADD"),
    (1, "MOD"),
    (2, "DEL"),
    (3, "INSERT_BUCKET"),
    (5, "REMOVE_BUCKET"),
    (ADD_OR_MODIFY, "ADD_OR_MOD"),
];

/// The group types by number.
const KINDS: [&str; 4] = ["all", "select", "indirect", "ff"];

/// The type of a select group, of which the buckets have weights.
const SELECT: u8 = 1;

/// Returns true if buckets have ids and properties: in 1.5 and in Nicira's extension of 1.0.
const fn numbers_buckets(version: Version) -> bool {
    matches!(version, Version::V10 | Version::V15)
}

/// Writes a change to a group.
pub(super) fn print_mod(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let unknown = r.fail(Refusal::GroupModBadCommand);
    let number = r.u16()?;
    let command = COMMANDS.iter().find(|(known, _)| *known == number);
    let (_, command) = *command.ok_or(unknown)?;
    let one_by_one = command.ends_with("BUCKET");
    let bad_kind = r.fail(Refusal::GroupModBadType);
    let kind = r.u8()?;
    if !one_by_one && usize::from(kind) >= KINDS.len() {
        return Err(bad_kind.into());
    }
    r.skip(1)?;
    let group = GroupId(r.u32()?);
    let (mut position, mut choice) = (None, String::new());
    let buckets = if numbers_buckets(r.version()) {
        let length = usize::from(r.u16()?);
        r.skip(2)?;
        position = Some(BucketId(r.u32()?)).filter(|_| one_by_one);
        let mut list = r.sub_or(length, Refusal::GroupModBadBucket)?;
        let text_of_buckets = buckets(kind, text.context.names, &mut list)?;
        choice = selection(r, kind == SELECT && !one_by_one && command != "DEL")?;
        text_of_buckets
    } else {
        buckets(kind, text.context.names, r)?
    };
    write!(text, "\n {command} ");
    if let Some(position) = position {
        write!(text, "command_bucket_id:{},", bucket_id_name(position));
    }
    write!(text, "group_id={}", group.0);
    if !one_by_one {
        write!(text, ",type={}", kind_name(kind));
    }
    text.push(&choice);
    text.push(&buckets);
    Ok(())
}

/// Reads the selection method of a group; `allowed` is true if the group may have one.
fn selection(r: &mut Reader<'_>, allowed: bool) -> Result<String, DecodeErrorName> {
    let read = selection::decode(r, allowed)?;
    Ok(read.map_or_else(String::new, |selection| format!(",{selection}")))
}

fn bucket_id_name(position: BucketId) -> String {
    match position {
        BucketId::FIRST => "first".to_owned(),
        BucketId::LAST => "last".to_owned(),
        BucketId::ALL => "all".to_owned(),
        position => position.0.to_string(),
    }
}

fn kind_name(kind: u8) -> &'static str {
    KINDS.get(usize::from(kind)).copied().unwrap_or("unknown")
}

/// The members of a bucket except its actions.
struct BucketMembers {
    id: Option<u32>,
    weight: u16,
    watch_port: PortNo,
    watch_group: GroupId,
}

/// Formats buckets: `,bucket=` and the contents of each.
fn buckets(kind: u8, names: &NameMap, r: &mut Reader<'_>) -> Result<String, DecodeErrorName> {
    let mut text_of_buckets = String::new();
    while !r.is_empty() {
        let bad = r.fail(Refusal::GroupModBadBucket);
        let length = usize::from(r.clone().on_short(bad.refusal).u16()?);
        if length % 8 != 0 {
            return Err(bad.into());
        }
        let mut r = r.sub_or(length, bad.refusal)?;
        r.skip(2)?;
        let (bucket, actions) = if numbers_buckets(r.version()) {
            bucket_v15(kind, names, &mut r)?
        } else {
            bucket_v11(names, &mut r)?
        };
        if !port::fits_sixteen_bits(bucket.watch_port) {
            return Err(Malformed {
                refusal: Refusal::GroupModBadWatch,
                at: bad.at,
            }
            .into());
        }
        text_of_buckets += ",bucket=";
        if let Some(id) = bucket.id {
            text_of_buckets += &format!("bucket_id:{id},");
        }
        if bucket.weight != u16::from(kind == SELECT) {
            text_of_buckets += &format!("weight:{},", bucket.weight);
        }
        if bucket.watch_port != PortNo::ANY {
            text_of_buckets += &format!("watch_port:{},", port::name_of(bucket.watch_port, names));
        }
        if bucket.watch_group != GroupId::ANY {
            text_of_buckets += &format!("watch_group:{},", bucket.watch_group.0);
        }
        text_of_buckets += &format!("actions={actions}");
    }
    Ok(text_of_buckets)
}

fn bucket_v11(
    names: &NameMap,
    r: &mut Reader<'_>,
) -> Result<(BucketMembers, String), DecodeErrorName> {
    let bucket = BucketMembers {
        id: None,
        weight: r.u16()?,
        watch_port: port_no::decode(r)?,
        watch_group: GroupId(r.u32()?),
    };
    r.skip(4)?;
    let whole = r.clone();
    r.rest();
    Ok((bucket, action::list(whole, names)?))
}

fn bucket_v15(
    kind: u8,
    names: &NameMap,
    r: &mut Reader<'_>,
) -> Result<(BucketMembers, String), DecodeErrorName> {
    let length = usize::from(r.u16()?);
    let mut bucket = BucketMembers {
        id: Some(r.u32()?),
        weight: u16::from(kind == SELECT),
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
    };
    let actions = action::list(r.sub_or(length, Refusal::GroupModBadBucket)?, names)?;
    while !r.is_empty() {
        let mut property = property::next(r)?;
        match property.kind {
            0 => bucket.weight = property.value.u16()?,
            1 => bucket.watch_port = PortNo(property.value.u32()?),
            2 => bucket.watch_group = GroupId(property.value.u32()?),
            _ => return Err(property.unknown().into()),
        }
    }
    Ok((bucket, actions))
}

/// Writes a request for the counters of a group.
pub(super) fn print_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    match GroupId(r.u32()?) {
        GroupId::ALL => text.push(" group_id=ALL"),
        GroupId::ANY => text.push(" group_id=ANY"),
        group => write!(text, " group_id={}", group.0),
    }
    Ok(())
}

/// Writes a request for the description of a group.
pub(super) fn print_desc_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    if numbers_buckets(r.version()) {
        return print_request(r, text);
    }
    text.push(" group_id=ALL");
    Ok(())
}

/// Writes the descriptions of groups.
pub(super) fn print_descs(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        let length = usize::from(r.clone().u16()?);
        let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
        r.skip(2)?;
        let kind = r.u8()?;
        r.skip(1)?;
        let group = r.u32()?;
        let mut choice = String::new();
        let buckets = if numbers_buckets(r.version()) {
            let length = usize::from(r.u16()?);
            r.skip(6)?;
            let text_of_buckets = buckets(
                kind,
                text.context.names,
                &mut r.sub_or(length, Refusal::RequestBadLength)?,
            )?;
            choice = selection(&mut r, kind == SELECT)?;
            text_of_buckets
        } else {
            buckets(kind, text.context.names, &mut r)?
        };
        write!(
            text,
            "\n group_id={group},type={}{choice}{buckets}",
            kind_name(kind)
        );
    }
    Ok(())
}

/// Writes the counters of groups.
pub(super) fn print_stats(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        if let Err(malformed) = next_entry(r).and_then(|mut r| write_stats(&mut r, text)) {
            text.push(" ***parse error***");
            return Err(malformed);
        }
    }
    Ok(())
}

/// Splits off the next group's counters.
fn next_entry<'a>(r: &mut Reader<'a>) -> Result<Reader<'a>, DecodeErrorName> {
    let length = usize::from(r.clone().u16()?);
    let least = match r.version() {
        Version::V11 | Version::V12 => 32,
        _ => 40,
    };
    let bad = r.fail(Refusal::RequestBadLength);
    let entry = r.sub_or(length, Refusal::RequestBadLength)?;
    if length < least {
        Err(bad.into())
    } else {
        Ok(entry)
    }
}

fn write_stats(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    r.skip(4)?;
    let (group, references) = (r.u32()?, r.u32()?);
    r.skip(4)?;
    let (packets, bytes) = (r.u64()?, r.u64()?);
    write!(text, "\n group_id={group},");
    if !matches!(r.version(), Version::V11 | Version::V12) {
        let duration = Seconds(r.u32()?, r.u32()?);
        if duration.0 != u32::MAX {
            write!(text, "duration={duration},");
        }
    }
    write!(text, "ref_count={references},");
    write!(text, "packet_count={packets},byte_count={bytes}");
    for bucket in 0.. {
        if r.is_empty() {
            break;
        }
        let (packets, bytes) = (r.u64()?, r.u64()?);
        write!(
            text,
            ",bucket{bucket}:packet_count={packets},byte_count={bytes}"
        );
    }
    Ok(())
}

/// Writes the supported groups.
pub(super) fn print_features(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (kinds, capabilities) = (r.u32()?, r.u32()?);
    let mut limits = [[0_u32; 4]; 2];
    for limit in limits.as_flattened_mut() {
        *limit = r.u32()?;
    }
    let [most, actions] = limits;
    writeln!(text, "\n Group table:\n    Types:  0x{kinds:x}");
    writeln!(text, "    Capabilities:  0x{capabilities:x}");
    let named = ["all", "select", "indirect", "fast failover"]
        .into_iter()
        .enumerate();
    for (index, name) in named.filter(|(index, _)| kinds >> index & 1 == 1) {
        writeln!(
            text,
            "    {name} group:\n       max_groups={}",
            AlternateHex(most[index].into())
        );
        let actions = table::actions(actions[index], r.version());
        writeln!(text, "       actions: {actions}");
    }
    Ok(())
}

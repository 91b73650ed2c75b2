//! Packet-in in Nicira's two formats, and resumed packets: the properties of the second format,
//! including the continuation.
//!
//! Unknown properties are skipped, as in Open vSwitch's tools.

use ::flow::text::NameMap;
use ::flow::{Match, Refusal};
use base::BufferId;

use super::packet::{PacketInHead, write_head};
use super::refusal_names::DecodeErrorName;
use super::text::{AlternateHex, PrintBuffer};
use super::{action, frame};
use crate::codec::Reader;
use crate::message::property::{self, Property};
use crate::oxm;

/// The properties of the second format (`NXPINT_*`).
mod packet_in2 {
    pub(super) const PACKET: u16 = 0;
    pub(super) const FULL_LEN: u16 = 1;
    pub(super) const BUFFER: u16 = 2;
    pub(super) const TABLE: u16 = 3;
    pub(super) const COOKIE: u16 = 4;
    pub(super) const REASON: u16 = 5;
    pub(super) const METADATA: u16 = 6;
    pub(super) const USERDATA: u16 = 7;
    pub(super) const CONTINUATION: u16 = 8;
}

/// The properties of a continuation, as Open vSwitch writes them (`NXCPT_*`).
mod continuation {
    pub(super) const BRIDGE: u16 = 0x8000;
    pub(super) const STACK: u16 = 0x8001;
    pub(super) const MIRRORS: u16 = 0x8002;
    pub(super) const CONNTRACKED: u16 = 0x8003;
    pub(super) const TABLE: u16 = 0x8004;
    pub(super) const COOKIE: u16 = 0x8005;
    pub(super) const ACTIONS: u16 = 0x8006;
    pub(super) const ACTION_SET: u16 = 0x8007;
    pub(super) const PORT: u16 = 0x8008;
}

/// The maximum bytes of a stack entry.
const STACK_ENTRY_MAX: usize = 128;

/// Writes a packet-in of the first format.
pub(super) fn print(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let buffer = BufferId(r.u32()?);
    let (total_len, reason, table) = (r.u16()?.into(), r.u8()?, r.u8()?);
    let cookie = r.u64()?;
    let match_len = usize::from(r.u16()?);
    r.skip(6)?;
    let head = PacketInHead {
        total_len,
        reason,
        table,
        cookie,
        matching: oxm::decode_nxm(r, match_len)?.matching,
    };
    r.skip(2)?;
    let data = r.rest();
    write_head(&head, buffer, data, text);
    frame::print(data, text);
    Ok(())
}

/// The members of the second format.
struct PacketIn2Members<'a> {
    head: PacketInHead,
    buffer: BufferId,
    full_len: Option<u32>,
    data: &'a [u8],
    userdata: &'a [u8],
    continuation: ContinuationMembers,
}

/// The members of a continuation.
#[derive(Default)]
struct ContinuationMembers {
    bridge: [u8; 16],
    /// The top of the stack first.
    stack: Vec<String>,
    mirrors: u32,
    conntracked: bool,
    table: u8,
    cookie: u64,
    actions: Vec<String>,
    set: Option<String>,
    port: u32,
}

/// Writes a packet-in of the second format, or a resume.
pub(super) fn print_second(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let bad_length = r.fail(Refusal::RequestBadLength);
    let mut read = PacketIn2Members {
        head: PacketInHead {
            total_len: 0,
            reason: 0,
            table: 0,
            cookie: u64::MAX,
            matching: Match::any(),
        },
        buffer: BufferId::NONE,
        full_len: None,
        data: &[],
        userdata: &[],
        continuation: ContinuationMembers::default(),
    };
    while !r.is_empty() {
        take_property(&mut read, property::next(r)?)?;
    }
    let length = u32::try_from(read.data.len()).map_err(|_| bad_length)?;
    read.head.total_len = read.full_len.unwrap_or(length);
    if length == 0 || read.head.total_len < length {
        return Err(bad_length.into());
    }
    write_head(&read.head, read.buffer, read.data, text);
    if !read.userdata.is_empty() {
        let bytes: Vec<_> = read
            .userdata
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        write!(text, "\n userdata={}", bytes.join("."));
    }
    write_continuation(&read.continuation, text);
    frame::print(read.data, text);
    Ok(())
}

/// Reads a property of the second format into the members.
fn take_property<'a>(
    read: &mut PacketIn2Members<'a>,
    property: Property<'a>,
) -> Result<(), DecodeErrorName> {
    let mut value = property.value.on_short(Refusal::PropertyBadLength);
    match property.kind {
        packet_in2::PACKET => read.data = value.rest(),
        packet_in2::FULL_LEN => read.full_len = Some(value.u32()?),
        packet_in2::BUFFER => read.buffer = BufferId(value.u32()?),
        packet_in2::TABLE => read.head.table = value.u8()?,
        packet_in2::COOKIE => read.head.cookie = aligned(&mut value)?,
        packet_in2::REASON => read.head.reason = value.u8()?,
        packet_in2::METADATA => read.head.matching = oxm::decode(value)?,
        packet_in2::USERDATA => read.userdata = value.rest(),
        packet_in2::CONTINUATION => {
            value.skip(4)?;
            while !value.is_empty() {
                take_continuation_property(&mut read.continuation, property::next(&mut value)?)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads a number of eight bytes, which is aligned.
fn aligned(value: &mut Reader<'_>) -> Result<u64, DecodeErrorName> {
    value.skip(4)?;
    Ok(value.u64()?)
}

/// Reads a property of a continuation into the members.
fn take_continuation_property(
    read: &mut ContinuationMembers,
    property: Property<'_>,
) -> Result<(), DecodeErrorName> {
    let mut value = property.value.on_short(Refusal::PropertyBadLength);
    match property.kind {
        continuation::BRIDGE => read.bridge = value.take()?,
        continuation::STACK if value.len() > STACK_ENTRY_MAX => {
            return Err(value.fail(Refusal::PropertyBadLength).into());
        }
        continuation::STACK => read.stack.push(number(value.rest())),
        continuation::MIRRORS => read.mirrors = value.u32()?,
        continuation::CONNTRACKED => read.conntracked = true,
        continuation::TABLE => read.table = value.u8()?,
        continuation::COOKIE => read.cookie = aligned(&mut value)?,
        continuation::ACTIONS => {
            let (table, cookie) = (read.table, read.cookie);
            read.actions
                .push(format!("unroll_xlate(table={table}, cookie={cookie})"));
            read.actions.extend(actions(value)?);
        }
        continuation::ACTION_SET => read.set = actions(value)?,
        continuation::PORT => read.port = value.u32()?,
        _ => {}
    }
    Ok(())
}

/// The actions in a property, if there are any.
fn actions(mut value: Reader<'_>) -> Result<Option<String>, DecodeErrorName> {
    value.skip(4)?;
    if !value.len().is_multiple_of(8) {
        return Err(value.fail(Refusal::RequestBadLength).into());
    }
    Ok(match value.is_empty() {
        true => None,
        false => Some(action::list(value, NameMap::empty())?),
    })
}

/// Formats a number of any length in hexadecimal, without leading zeros.
fn number(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match digits.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => format!("0x{digits}"),
    }
}

fn write_continuation(read: &ContinuationMembers, text: &mut PrintBuffer<'_>) {
    if read.bridge != [0; 16] {
        write!(text, "\n continuation.bridge={}", uuid(read.bridge));
    }
    if !read.stack.is_empty() {
        let stack = read.stack.join(" ");
        write!(text, "\n continuation.stack=(top) {stack} (bottom)");
    }
    if read.mirrors != 0 {
        write!(
            text,
            "\n continuation.mirrors={}",
            AlternateHex(read.mirrors.into())
        );
    }
    if read.conntracked {
        text.push("\n continuation.conntracked=true");
    }
    if !read.actions.is_empty() {
        write!(text, "\n continuation.actions={}", read.actions.join(","));
    }
    if let Some(set) = &read.set {
        write!(text, "\n continuation.action_set={set}");
    }
    if read.port != 0 {
        write!(text, "\n continuation.odp_port={}", read.port);
    }
}

/// Formats a bridge's UUID. Open vSwitch writes and reads its four words in host byte order; this
/// function assumes little-endian.
fn uuid(bytes: [u8; 16]) -> String {
    let (words, _) = bytes.as_chunks::<4>();
    let digits: String = words
        .iter()
        .map(|word| format!("{:08x}", u32::from_le_bytes(*word)))
        .collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    parts.join("-")
}

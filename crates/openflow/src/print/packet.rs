//! Packet-in and packet-out.

use ::flow::text::NameMap;
use ::flow::{Field, Match, PacketOut, Refusal};
use base::BufferId;

use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use super::{action, config, flow, frame, port};
use crate::codec::Reader;
use crate::message::WireFormat;
use crate::oxm;
use crate::version::Version;

/// The reasons of a packet-in by number.
pub(super) const REASONS: [&str; 6] = [
    "no_match",
    "action",
    "invalid_ttl",
    "action_set",
    "group",
    "packet_out",
];

/// The members of a packet-in except the frame.
pub(super) struct PacketInHead {
    pub(super) total_len: u32,
    pub(super) reason: u8,
    pub(super) table: u8,
    /// All ones if there is none.
    pub(super) cookie: u64,
    pub(super) matching: Match,
}

/// Writes a packet-in.
pub(super) fn print_in(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let buffer = BufferId(r.u32()?);
    let head = read_in(r)?;
    let data = r.rest();
    write_head(&head, buffer, data, text);
    frame::print(data, text);
    Ok(())
}

/// Writes the members before the frame.
pub(super) fn write_head(
    head: &PacketInHead,
    buffer: BufferId,
    data: &[u8],
    text: &mut PrintBuffer<'_>,
) {
    if head.table != 0 {
        write!(text, " table_id={}", head.table);
    }
    if head.cookie != u64::MAX {
        write!(text, " cookie=0x{:x}", head.cookie);
    }
    let matching = flow::without_default_packet_type(&head.matching);
    write!(text, " total_len={} {matching}", head.total_len);
    write!(
        text,
        " (via {})",
        config::reason_name(&REASONS, head.reason.into())
    );
    write!(text, " data_len={}", data.len());
    let total = u64::from(head.total_len).cmp(&(data.len() as u64));
    if buffer == BufferId::NONE {
        text.push(" (unbuffered)");
        if total.is_ne() {
            text.push(" (***total_len != data_len***)");
        }
    } else {
        write!(text, " buffer=0x{:08x}", buffer.0);
        if total.is_lt() {
            text.push(" (***total_len < data_len***)");
        }
    }
}

/// Reads the members before the frame.
fn read_in(r: &mut Reader<'_>) -> Result<PacketInHead, DecodeErrorName> {
    let mut head = PacketInHead {
        total_len: 0,
        reason: 0,
        table: 0,
        cookie: u64::MAX,
        matching: Match::any(),
    };
    match r.version() {
        Version::V10 => {
            head.total_len = r.u16()?.into();
            head.matching = from_port(r)?;
            head.reason = r.u8()?;
            r.skip(1)?;
        }
        Version::V11 => {
            head.matching = from_port(r)?;
            r.skip(4)?;
            (head.total_len, head.reason, head.table) = (r.u16()?.into(), r.u8()?, r.u8()?);
        }
        version => {
            (head.total_len, head.reason, head.table) = (r.u16()?.into(), r.u8()?, r.u8()?);
            if version != Version::V12 {
                head.cookie = r.u64()?;
            }
            head.matching = oxm::decode_structure(r)?;
            r.skip(2)?;
        }
    }
    Ok(head)
}

/// Reads a port as a match on the ingress port.
fn from_port(r: &mut Reader<'_>) -> Result<Match, DecodeErrorName> {
    let port = port::read_number(r)?;
    let any = Match::any();
    Ok(any.with(Field::InPort, port.0.into()).unwrap_or_default())
}

/// Writes a packet-out.
pub(super) fn print_out(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut whole = r.clone();
    let buffer = BufferId(r.u32()?);
    let matching = match r.version() {
        Version::V15 => None,
        _ => Some(from_port(r)?),
    };
    let length = usize::from(r.u16()?);
    let matching = match (matching, r.version()) {
        (Some(matching), Version::V10) => matching,
        (Some(matching), _) => {
            r.skip(6)?;
            matching
        }
        (None, _) => {
            // The codec refuses pipeline fields that a packet-out cannot have.
            PacketOut::decode(&mut whole)?;
            r.skip(2)?;
            oxm::decode_structure(r)?
        }
    };
    if length % 8 != 0 {
        return Err(r.fail(Refusal::RequestBadLength).into());
    }
    let actions = r.sub_or(length, Refusal::RequestBadLength)?;
    write!(
        text,
        " {} actions={}",
        flow::without_default_packet_type(&matching),
        action::list(actions, NameMap::empty())?
    );
    if buffer != BufferId::NONE {
        write!(text, " buffer=0x{:08x}", buffer.0);
        return Ok(());
    }
    let data = r.rest();
    write!(text, " data_len={}", data.len());
    if !data.is_empty() {
        frame::print(data, text);
    }
    Ok(())
}

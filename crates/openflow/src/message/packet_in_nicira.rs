//! Packet-in in Nicira's two formats, the same in every version except for the reasons; and the
//! message that resumes a paused packet, which has the layout of the second format
//! (`openflow/nicira-ext.h` and `ofp-packet.c` of Open vSwitch 3.1).
//!
//! The first format has an NXM match. The second is a list of properties; only it includes the
//! userdata of the rule and the continuation.

use base::{BufferId, Cookie, PortNo, TableId};
use flow::{Match, PacketIn, PacketInReason, PipelineFields, Refusal, Resume};

use super::WireFormat;
use super::packet_in::{decode_reason, empty, pipeline_fields, reason_number};
use super::property::{self, Property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::oxm::{self, NxmMatch};

/// Decodes the first format.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<PacketIn, Malformed> {
    r.skip(4)?;
    let total_len = r.u16()?;
    let reason = decode_reason(r)?;
    let (table, cookie) = (TableId(r.u8()?), Cookie(r.u64()?));
    let match_len = usize::from(r.u16()?);
    r.skip(6)?;
    let missing_port = r.fail(Refusal::MatchBadField);
    let nxm_match = oxm::decode_nxm(r, match_len)?;
    r.skip(2)?;
    let registers = pipeline_fields(&nxm_match.matching).ok_or(missing_port)?;
    let from = registers.in_port;
    Ok(PacketIn {
        table,
        cookie,
        registers,
        total_len,
        data: r.rest().to_vec(),
        ..empty(reason, from)
    })
}

/// Appends the first format.
pub(super) fn encode(packet_in: &PacketIn, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.u32(BufferId::NONE.0);
    w.u16(packet_in.total_len);
    w.u8(reason_number(packet_in.reason, w.version()));
    w.u8(packet_in.table.0);
    w.u64(packet_in.cookie.0);
    let nxm_match = NxmMatch::of(packet_in.registers.to_match());
    oxm::encode_nxm_with_length(&nxm_match, w, |w| w.zeros(6))?;
    w.zeros(2);
    w.bytes(&packet_in.data);
    Ok(())
}

/// The properties of the second format (`NXPINT_*`).
const PACKET: u16 = 0;
const FULL_LEN: u16 = 1;
const BUFFER_ID: u16 = 2;
const TABLE_ID: u16 = 3;
const COOKIE: u16 = 4;
const REASON: u16 = 5;
const METADATA: u16 = 6;
const USERDATA: u16 = 7;
const CONTINUATION: u16 = 8;

/// The members decoded from the properties so far.
struct PacketIn2Builder {
    packet_in: PacketIn,
    full_len: Option<u32>,
}

/// Decodes the second format.
pub(super) fn decode_second(r: &mut Reader<'_>) -> Result<PacketIn, Malformed> {
    let start = r.clone();
    let mut builder = PacketIn2Builder {
        packet_in: empty(PacketInReason::NoMatch, PortNo::ANY),
        full_len: None,
    };
    builder.packet_in.table = TableId::FIRST;
    while !r.is_empty() {
        apply_property(&mut builder, property::next(r)?)?;
    }
    let bad_length = start.fail(Refusal::RequestBadLength);
    let PacketIn2Builder {
        mut packet_in,
        full_len,
    } = builder;
    let len = packet_in.data.len();
    let total = full_len.map_or(Ok(len), usize::try_from);
    packet_in.total_len = match total.map(|total| (total >= len, u16::try_from(total))) {
        Ok((true, Ok(total))) => total,
        _ => return Err(bad_length),
    };
    Ok(packet_in)
}

/// Decodes a property into the builder.
fn apply_property(builder: &mut PacketIn2Builder, property: Property<'_>) -> Result<(), Malformed> {
    let packet_in = &mut builder.packet_in;
    let short = Refusal::PropertyBadLength;
    let mut value = property.value.clone().on_short(short);
    match property.kind {
        PACKET => packet_in.data = value.rest().to_vec(),
        FULL_LEN => builder.full_len = Some(value.u32()?),
        BUFFER_ID => value.skip(4)?,
        TABLE_ID => packet_in.table = TableId(value.u8()?),
        // A number of eight bytes is aligned.
        COOKIE => {
            value.skip(4)?;
            packet_in.cookie = Cookie(value.u64()?);
        }
        REASON => packet_in.reason = decode_reason(&mut value)?,
        METADATA => packet_in.registers = decode_metadata(&property)?,
        USERDATA => packet_in.userdata = value.rest().to_vec(),
        CONTINUATION => {
            value.skip(4)?;
            packet_in.continuation = value.rest().to_vec();
        }
        _ => return Err(property.unknown()),
    }
    if property.kind == METADATA {
        return Ok(());
    }
    value.end()
}

fn decode_metadata(property: &Property<'_>) -> Result<PipelineFields, Malformed> {
    let missing_port = property.fail(Refusal::RequestBadPort);
    let matching: Match = oxm::decode(property.value.clone())?;
    pipeline_fields(&matching).ok_or(missing_port)
}

/// Appends the second format.
pub(super) fn encode_second(packet_in: &PacketIn, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put_bytes(PACKET, &packet_in.data, w)?;
    if usize::from(packet_in.total_len) != packet_in.data.len() {
        property::put_u32(FULL_LEN, packet_in.total_len.into(), w)?;
    }
    put_bytes(TABLE_ID, &[packet_in.table.0], w)?;
    if packet_in.cookie != Cookie::NONE {
        property::put(COOKIE, w, |w| {
            w.zeros(4);
            w.u64(packet_in.cookie.0);
            Ok(())
        })?;
    }
    let reason = reason_number(packet_in.reason, w.version());
    put_bytes(REASON, &[reason], w)?;
    put_metadata(&packet_in.registers, w)?;
    put_continuation(&packet_in.continuation, w)?;
    if packet_in.userdata.is_empty() {
        return Ok(());
    }
    put_bytes(USERDATA, &packet_in.userdata, w)
}

fn put_bytes(kind: u16, bytes: &[u8], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    property::put(kind, w, |w| {
        w.bytes(bytes);
        Ok(())
    })
}

fn put_metadata(registers: &PipelineFields, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    property::put(METADATA, w, |w| oxm::encode(&registers.to_match(), w))
}

fn put_continuation(continuation: &[u8], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    if continuation.is_empty() {
        return Ok(());
    }
    property::put(CONTINUATION, w, |w| {
        w.zeros(4);
        w.bytes(continuation);
        Ok(())
    })
}

impl WireFormat for Resume {
    /// The other properties (table, cookie, reason) describe the earlier packet-in and are ignored.
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let start = r.clone();
        let packet_in = decode_second(r)?;
        if packet_in.data.is_empty() {
            return Err(start.fail(Refusal::RequestBadLength));
        }
        Ok(Self {
            registers: packet_in.registers,
            data: packet_in.data,
            continuation: packet_in.continuation,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        put_bytes(PACKET, &self.data, w)?;
        put_metadata(&self.registers, w)?;
        put_continuation(&self.continuation, w)
    }
}

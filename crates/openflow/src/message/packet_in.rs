//! Packet-in: a packet for the controller (OF 1.0.1, 5.4.1; OF 1.1.0, A.4.1; OF 1.3.5, 7.4.1;
//! OF 1.4.1, 7.4.1).
//!
//! OpenFlow 1.0 has neither table nor cookie, 1.1 and 1.2 have no cookie: the decoder returns
//! [`TableId::ALL`] and no cookie. Until 1.3 all actions share one reason. Nicira's formats are in
//! `packet_in_nicira`.

use base::{BufferId, Cookie, PortNo, TableId};
use flow::{Field, Match, PacketIn, PacketInReason, PipelineFields, Refusal};

use super::packet_in_nicira;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::{Dialect, PacketInFormat};
use crate::kinds::MessageKind;
use crate::oxm;
use crate::port_no;
use crate::version::Version;

const REASONS: [PacketInReason; 6] = [
    PacketInReason::NoMatch,
    PacketInReason::Action,
    PacketInReason::InvalidTtl,
    PacketInReason::ActionSet,
    PacketInReason::Group,
    PacketInReason::PacketOut,
];

/// The number of reasons in a version. 1.0 and 1.1 lack the third, but Open vSwitch uses it there.
const fn reasons(version: Version) -> usize {
    match version {
        Version::V10 | Version::V11 | Version::V12 | Version::V13 => 3,
        Version::V14 | Version::V15 => REASONS.len(),
    }
}

/// The number of a reason, also used in the masks of asynchronous messages.
pub(crate) const fn reason_number(reason: PacketInReason, version: Version) -> u8 {
    let number = any_reason_number(reason);
    if (number as usize) < reasons(version) {
        number
    } else {
        1
    }
}

/// The number of a reason, independent of the version.
pub(crate) const fn any_reason_number(reason: PacketInReason) -> u8 {
    match reason {
        PacketInReason::NoMatch => 0,
        PacketInReason::Action => 1,
        PacketInReason::InvalidTtl => 2,
        PacketInReason::ActionSet => 3,
        PacketInReason::Group => 4,
        PacketInReason::PacketOut => 5,
    }
}

/// The reason with this number, independent of the version.
pub(crate) fn reason_of(number: u8) -> Option<PacketInReason> {
    REASONS.get(usize::from(number)).copied()
}

/// Decodes a reason of the version.
pub(super) fn decode_reason(r: &mut Reader<'_>) -> Result<PacketInReason, Malformed> {
    let unknown = r.fail(Refusal::RequestBadType);
    let number = usize::from(r.u8()?);
    let known = &REASONS[..reasons(r.version())];
    known.get(number).copied().ok_or(unknown)
}

/// The message type of a packet-in in `dialect`.
pub(crate) const fn kind(dialect: Dialect) -> MessageKind {
    match dialect.packet_in {
        PacketInFormat::Standard => MessageKind::PacketIn,
        PacketInFormat::Nicira => MessageKind::NxPacketIn,
        PacketInFormat::Nicira2 => MessageKind::NxPacketIn2,
    }
}

/// Appends a packet-in in the format of the dialect.
pub(crate) fn encode(packet_in: &PacketIn, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match w.dialect().packet_in {
        PacketInFormat::Standard => encode_standard(packet_in, w),
        PacketInFormat::Nicira => packet_in_nicira::encode(packet_in, w),
        PacketInFormat::Nicira2 => packet_in_nicira::encode_second(packet_in, w),
    }
}

/// Decodes the specification's format.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<PacketIn, Malformed> {
    // The buffer id; our controllers do not use buffers.
    r.skip(4)?;
    match r.version() {
        Version::V10 => {
            let total_len = r.u16()?;
            let in_port = port_no::decode(r)?;
            let reason = decode_reason(r)?;
            r.skip(1)?;
            Ok(PacketIn {
                total_len,
                data: r.rest().to_vec(),
                ..empty(reason, in_port)
            })
        }
        Version::V11 => {
            let in_port = port_no::decode(r)?;
            // The physical port, which equals `in_port` for our ports.
            port_no::decode(r)?;
            let total_len = r.u16()?;
            let reason = decode_reason(r)?;
            Ok(PacketIn {
                total_len,
                table: TableId(r.u8()?),
                data: r.rest().to_vec(),
                ..empty(reason, in_port)
            })
        }
        Version::V12 | Version::V13 | Version::V14 | Version::V15 => decode_with_match(r),
    }
}

fn encode_standard(packet_in: &PacketIn, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let reason = reason_number(packet_in.reason, w.version());
    let in_port = packet_in.registers.in_port;
    w.u32(BufferId::NONE.0);
    match w.version() {
        Version::V10 => {
            w.u16(packet_in.total_len);
            port_no::encode(in_port, w)?;
            w.u8(reason);
            w.zeros(1);
        }
        Version::V11 => {
            port_no::encode(in_port, w)?;
            port_no::encode(in_port, w)?;
            w.u16(packet_in.total_len);
            w.u8(reason);
            w.u8(packet_in.table.0);
        }
        Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            w.u16(packet_in.total_len);
            w.u8(reason);
            w.u8(packet_in.table.0);
            if w.version() != Version::V12 {
                w.u64(packet_in.cookie.0);
            }
            oxm::encode_structure(&packet_in.registers.to_match(), w)?;
            w.zeros(2);
        }
    }
    w.bytes(&packet_in.data);
    Ok(())
}

/// A packet-in with a reason and a port and no other members.
pub(super) const fn empty(reason: PacketInReason, in_port: PortNo) -> PacketIn {
    PacketIn {
        reason,
        table: TableId::ALL,
        cookie: Cookie::NONE,
        registers: PipelineFields::new(in_port),
        total_len: 0,
        data: Vec::new(),
        userdata: Vec::new(),
        continuation: Vec::new(),
    }
}

/// Decodes the format of 1.2 and later, after the buffer id.
fn decode_with_match(r: &mut Reader<'_>) -> Result<PacketIn, Malformed> {
    let total_len = r.u16()?;
    let reason = decode_reason(r)?;
    let table = TableId(r.u8()?);
    let cookie = match r.version() {
        Version::V12 => Cookie::NONE,
        _ => Cookie(r.u64()?),
    };
    let missing_port = r.fail(Refusal::MatchBadField);
    let matching = oxm::decode_structure(r)?;
    r.skip(2)?;
    let registers = pipeline_fields(&matching).ok_or(missing_port)?;
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

/// The pipeline fields in a match (OF 1.3.5, 7.4.1): an omitted register is zero, and other fields
/// are ignored. Returns none if the match has no port.
pub(super) fn pipeline_fields(matching: &Match) -> Option<PipelineFields> {
    matching.exact(Field::InPort)?;
    let registers = PipelineFields::from_match(matching);
    Some(PipelineFields {
        conjunction: 0,
        set_output: PortNo::UNSET,
        ..registers
    })
}

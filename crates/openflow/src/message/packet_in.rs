//! Packet-in: a frame for the controller (OF 1.0.1, 5.4.1; OF 1.1.0, A.4.1;
//! OF 1.3.5, 7.4.1; OF 1.4.1, 7.4.1).
//!
//! OpenFlow 1.0 tells neither table nor cookie, 1.1 and 1.2 no cookie: read from
//! them, they are "every table" and "none". Until 1.3 there is one reason for all
//! that actions send.

use base::{BufferId, Cookie, PortNo, TableId};
use flow::{Field, Match, PacketIn, PacketInReason, Refusal};

use super::Body;
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
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

/// How many of the reasons a version has. 1.0 to 1.1 have no third; Open vSwitch
/// uses it there all the same.
const fn reasons(version: Version) -> usize {
    match version {
        Version::V10 | Version::V11 | Version::V12 | Version::V13 => 3,
        Version::V14 | Version::V15 => REASONS.len(),
    }
}

/// The number of a reason, also in the masks of asynchronous messages.
pub(crate) const fn reason_number(reason: PacketInReason, version: Version) -> u8 {
    let number = any_reason_number(reason);
    if (number as usize) < reasons(version) {
        number
    } else {
        1
    }
}

/// The number of a reason where no version limits them.
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

/// The reason with this number, where no version limits them.
pub(crate) fn reason_of(number: u8) -> Option<PacketInReason> {
    REASONS.get(usize::from(number)).copied()
}

fn decode_reason(r: &mut Reader<'_>) -> Result<PacketInReason, Malformed> {
    let unknown = r.fail(Refusal::RequestBadType);
    let number = usize::from(r.u8()?);
    let known = &REASONS[..reasons(r.version())];
    known.get(number).copied().ok_or(unknown)
}

impl Body for PacketIn {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        // The frame that the switch kept: with us nobody asks for it.
        r.skip(4)?;
        match r.version() {
            Version::V10 => {
                let total_len = r.u16()?;
                let in_port = port_no::decode(r)?;
                let mut read = decode_reason(r).map(blank)?;
                r.skip(1)?;
                (read.in_port, read.total_len) = (in_port, total_len);
                read.data = r.rest().to_vec();
                Ok(read)
            }
            Version::V11 => {
                let in_port = port_no::decode(r)?;
                // The physical port, which is the same for ports like ours.
                port_no::decode(r)?;
                let total_len = r.u16()?;
                let mut read = decode_reason(r).map(blank)?;
                read.table = TableId(r.u8()?);
                (read.in_port, read.total_len) = (in_port, total_len);
                read.data = r.rest().to_vec();
                Ok(read)
            }
            Version::V12 | Version::V13 | Version::V14 | Version::V15 => decode_with_match(r),
        }
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        let reason = reason_number(self.reason, w.version());
        w.u32(BufferId::NONE.0);
        match w.version() {
            Version::V10 => {
                w.u16(self.total_len);
                port_no::encode(self.in_port, w)?;
                w.u8(reason);
                w.zeros(1);
            }
            Version::V11 => {
                port_no::encode(self.in_port, w)?;
                port_no::encode(self.in_port, w)?;
                w.u16(self.total_len);
                w.u8(reason);
                w.u8(self.table.0);
            }
            Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
                w.u16(self.total_len);
                w.u8(reason);
                w.u8(self.table.0);
                if w.version() != Version::V12 {
                    w.u64(self.cookie.0);
                }
                oxm::encode_structure(&context(self), w)?;
                w.zeros(2);
            }
        }
        w.bytes(&self.data);
        Ok(())
    }
}

/// A packet-in of which only the reason is known yet.
const fn blank(reason: PacketInReason) -> PacketIn {
    PacketIn {
        reason,
        table: TableId::ALL,
        cookie: Cookie::NONE,
        in_port: PortNo::ANY,
        metadata: 0,
        tunnel_id: 0,
        total_len: 0,
        data: Vec::new(),
    }
}

/// Reads the form of 1.2 and later, behind the buffer's number.
fn decode_with_match(r: &mut Reader<'_>) -> Result<PacketIn, Malformed> {
    let total_len = r.u16()?;
    let reason = decode_reason(r)?;
    let table = TableId(r.u8()?);
    let cookie = match r.version() {
        Version::V12 => Cookie::NONE,
        _ => Cookie(r.u64()?),
    };
    let place = r.fail(Refusal::MatchBadField);
    let matching = oxm::decode_structure(r)?;
    r.skip(2)?;
    let in_port = matching.exact(Field::InPort).ok_or(place)?;
    Ok(PacketIn {
        reason,
        table,
        cookie,
        in_port: PortNo(u32::try_from(in_port).map_err(|_| place)?),
        metadata: register(&matching, Field::Metadata),
        tunnel_id: register(&matching, Field::TunnelId),
        total_len,
        data: r.rest().to_vec(),
    })
}

/// The value of a 64-bit register; zero if it is not told (OF 1.3.5, 7.4.1).
fn register(matching: &Match, field: Field) -> u64 {
    let value = matching.exact(field).unwrap_or(0);
    u64::try_from(value).expect("a register of 64 bits")
}

/// What surrounds the frame, as a match tells it: the port, and registers that
/// are not zero.
fn context(packet_in: &PacketIn) -> Match {
    let registers = [
        (Field::Metadata, packet_in.metadata),
        (Field::TunnelId, packet_in.tunnel_id),
    ];
    registers
        .into_iter()
        .filter(|(_, value)| *value != 0)
        .try_fold(Match::any(), |matching, (field, value)| {
            matching.with(field, value.into())
        })
        .and_then(|matching| matching.with(Field::InPort, packet_in.in_port.0.into()))
        .expect("none of the three needs another")
}

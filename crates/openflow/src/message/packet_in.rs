//! Packet-in: a frame for the controller (OF 1.0.1, 5.4.1; OF 1.3.5, 7.4.1).
//!
//! OpenFlow 1.0 tells neither table nor cookie: read from it, they are "every
//! table" and "none".

use base::{BufferId, Cookie, PortNo, TableId};
use flow::{Field, Match, PacketIn, PacketInReason, Refusal};

use super::Body;
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::oxm;
use crate::port_no;
use crate::version::Version;

const REASONS: [PacketInReason; 3] = [
    PacketInReason::NoMatch,
    PacketInReason::Action,
    PacketInReason::InvalidTtl,
];

/// The number of a reason, also in the masks of asynchronous messages. 1.0 has
/// no third; Open vSwitch uses it there all the same.
pub(crate) const fn reason_number(reason: PacketInReason) -> u8 {
    match reason {
        PacketInReason::NoMatch => 0,
        PacketInReason::Action => 1,
        PacketInReason::InvalidTtl => 2,
    }
}

/// The reason with this number.
pub(crate) fn reason_of(number: u8) -> Option<PacketInReason> {
    REASONS.get(usize::from(number)).copied()
}

fn decode_reason(r: &mut Reader<'_>) -> Result<PacketInReason, Malformed> {
    let unknown = r.fail(Refusal::RequestBadType);
    reason_of(r.u8()?).ok_or(unknown)
}

impl Body for PacketIn {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        // The frame that the switch kept: with us nobody asks for it.
        r.skip(4)?;
        let total_len = r.u16()?;
        match r.version() {
            Version::V10 => {
                let in_port = port_no::decode(r)?;
                let reason = decode_reason(r)?;
                r.skip(1)?;
                Ok(Self {
                    reason,
                    table: TableId::ALL,
                    cookie: Cookie::NONE,
                    in_port,
                    metadata: 0,
                    tunnel_id: 0,
                    total_len,
                    data: r.rest().to_vec(),
                })
            }
            Version::V13 => {
                let reason = decode_reason(r)?;
                let (table, cookie) = (TableId(r.u8()?), Cookie(r.u64()?));
                let place = r.fail(Refusal::MatchBadField);
                let matching = oxm::decode_structure(r)?;
                r.skip(2)?;
                let in_port = matching.exact(Field::InPort).ok_or(place)?;
                Ok(Self {
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
        }
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        w.u32(BufferId::NONE.0);
        w.u16(self.total_len);
        match w.version() {
            Version::V10 => {
                port_no::encode(self.in_port, w)?;
                w.u8(reason_number(self.reason));
                w.zeros(1);
            }
            Version::V13 => {
                w.u8(reason_number(self.reason));
                w.u8(self.table.0);
                w.u64(self.cookie.0);
                oxm::encode_structure(&context(self), w)?;
                w.zeros(2);
            }
        }
        w.bytes(&self.data);
        Ok(())
    }
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

//! Packet-out: a frame to send (OF 1.0.1, 5.3.6; OF 1.3.5, 7.3.7).

use base::{BufferId, PortNo};
use flow::{Match, PacketOut, Refusal};

use super::Body;
use crate::action::{self, Context};
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::faith::Faith;
use crate::port_no;
use crate::version::Version;

/// Reads a buffer's number, or that there is none.
pub(crate) fn decode_buffer(r: &mut Reader<'_>) -> Result<Option<BufferId>, Malformed> {
    let buffer = BufferId(r.u32()?);
    Ok((buffer != BufferId::NONE).then_some(buffer))
}

/// Appends a buffer's number, or that there is none.
pub(crate) fn encode_buffer(buffer: Option<BufferId>, w: &mut Writer<'_>) {
    w.u32(buffer.unwrap_or(BufferId::NONE).0);
}

impl Body for PacketOut {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let buffer = decode_buffer(r)?;
        // 1.0 says that there is none by OFPP_NONE, later versions by OFPP_CONTROLLER.
        let in_port = match (r.version(), port_no::decode(r)?) {
            (Version::V10, PortNo::ANY) => PortNo::CONTROLLER,
            (_, port) => port,
        };
        let actions_len = usize::from(r.u16()?);
        if r.version() == Version::V13 {
            r.skip(6)?;
        }
        if actions_len % 8 != 0 {
            return Err(r.fail(Refusal::RequestBadLength));
        }
        let actions = action::decode(&mut r.sub(actions_len)?)?;
        let data = r.rest().to_vec();
        Ok(Self {
            buffer,
            in_port,
            actions,
            data,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        encode_buffer(self.buffer, w);
        let in_port = match (w.version(), self.in_port) {
            (Version::V10, PortNo::CONTROLLER) => PortNo::ANY,
            (_, port) => port,
        };
        port_no::encode(in_port, w)?;
        let context = Context {
            matching: &Match::any(),
            faith: Faith::Exact,
        };
        let padding = match w.version() {
            Version::V10 => 0,
            Version::V13 => 6,
        };
        w.counted(
            |w| w.zeros(padding),
            |w| action::encode(&self.actions, context, w),
        )?;
        w.bytes(&self.data);
        Ok(())
    }
}

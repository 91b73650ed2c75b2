//! Packet-out: a packet to send (OF 1.0.1, 5.3.6; OF 1.3.5, 7.3.7; OF 1.5.1, 7.3.6).
//!
//! In 1.5 a match has the pipeline fields of the packet: its ingress port and registers.

use base::BufferId;
use flow::{Field, Match, PacketOut, PipelineFields, Refusal};

use super::{WireFormat, packet_in};
use crate::action::{self, EncodeContext};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::fidelity::Fidelity;
use crate::oxm;
use crate::port_no;
use crate::version::Version;

/// Decodes a buffer id; `OFP_NO_BUFFER` is none.
pub(crate) fn decode_buffer(r: &mut Reader<'_>) -> Result<Option<BufferId>, Malformed> {
    let buffer = BufferId(r.u32()?);
    Ok((buffer != BufferId::NONE).then_some(buffer))
}

/// Appends a buffer id; none is `OFP_NO_BUFFER`.
pub(crate) fn encode_buffer(buffer: Option<BufferId>, w: &mut Writer<'_>) {
    w.u32(buffer.unwrap_or(BufferId::NONE).0);
}

impl WireFormat for PacketOut {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let buffer = decode_buffer(r)?;
        let (registers, actions_len) = match r.version() {
            Version::V10 => (PipelineFields::new(port_no::decode(r)?), r.u16()?),
            Version::V11 | Version::V12 | Version::V13 | Version::V14 => {
                let head = (PipelineFields::new(port_no::decode(r)?), r.u16()?);
                r.skip(6)?;
                head
            }
            Version::V15 => {
                let actions_len = r.u16()?;
                r.skip(2)?;
                (decode_context(r)?, actions_len)
            }
        };
        let actions_len = usize::from(actions_len);
        if actions_len % 8 != 0 {
            return Err(r.fail(Refusal::RequestBadLength));
        }
        let actions = action::decode(&mut r.sub(actions_len)?)?;
        let data = r.rest().to_vec();
        Ok(Self {
            buffer,
            registers,
            actions,
            data,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        encode_buffer(self.buffer, w);
        let context = EncodeContext {
            matching: &Match::any(),
            fidelity: Fidelity::Lossless,
        };
        let actions = |w: &mut Writer<'_>| action::encode(&self.actions, context, w);
        if w.version() != Version::V15
            && self.registers != PipelineFields::new(self.registers.in_port)
        {
            return Err(w.unsupported("pipeline fields of a packet other than its port"));
        }
        match w.version() {
            Version::V10 => {
                port_no::encode(self.registers.in_port, w)?;
                w.counted(|_| Ok(()), actions)?;
            }
            Version::V11 | Version::V12 | Version::V13 | Version::V14 => {
                port_no::encode(self.registers.in_port, w)?;
                w.counted(
                    |w| {
                        w.zeros(6);
                        Ok(())
                    },
                    actions,
                )?;
            }
            Version::V15 => {
                let matching = self.registers.to_match();
                let between = |w: &mut Writer<'_>| {
                    w.zeros(2);
                    oxm::encode_structure(&matching, w)
                };
                w.counted(between, actions)?;
            }
        }
        w.bytes(&self.data);
        Ok(())
    }
}

/// Decodes the match with the pipeline fields of the packet, which must have a port (OF 1.5.1,
/// 7.3.6).
fn decode_context(r: &mut Reader<'_>) -> Result<PipelineFields, Malformed> {
    let start = r.clone();
    let matching = oxm::decode_structure(r)?;
    for term in matching.terms() {
        match term.field {
            // The physical port equals the ingress port here, and every packet is Ethernet.
            Field::InPhyPort | Field::PacketType => {}
            field if PipelineFields::contains(field) => {}
            // Only the switch sets these fields.
            Field::ActsetOutput | Field::ConjId => {
                return Err(start.fail(Refusal::MatchBadField));
            }
            _ => return Err(start.fail(Refusal::RequestPipelineFieldsOnly)),
        }
    }
    packet_in::pipeline_fields(&matching).ok_or_else(|| start.fail(Refusal::RequestBadPort))
}

#[cfg(test)]
mod tests {
    use base::Xid;

    use super::*;
    use crate::dialect::Dialect;
    use crate::message::Message;

    #[test]
    fn packet_out_pipeline_fields_encode_only_in_1_5() {
        let registers = PipelineFields {
            metadata: 5,
            ..PipelineFields::new(base::PortNo(1))
        };
        let message = Message::PacketOut(PacketOut {
            buffer: None,
            registers,
            actions: Vec::new(),
            data: Vec::new(),
        });
        for version in Version::ALL {
            let encoded = message.encode(Xid(0), Dialect::new(version), &mut Vec::new());
            assert_eq!(encoded.is_ok(), version == Version::V15, "{version}");
        }
    }
}

//! The switches that a controller turns in Nicira's extension of OpenFlow 1.0
//! (`nicira-ext.h` of Open vSwitch).

use flow::Refusal;

use crate::codec::{Malformed, Reader, Writer};
use crate::dialect::{Extension, Form};
use crate::kinds::Kind;

/// `NXFF_OPENFLOW10` and `NXFF_NXM`; 1 was never used.
const FLOW_FORMATS: [(u32, Form); 2] = [(0, Form::Standard), (2, Form::Nicira)];

/// Which message turns this switch.
pub(crate) const fn kind(extension: Extension) -> Kind {
    match extension {
        Extension::FlowFormat(_) => Kind::FlowFormat,
        Extension::TableIds(_) => Kind::TableIds,
        Extension::StandardPacketIn => Kind::PacketInFormat,
    }
}

/// Reads the body of such a message. A format that is not done is refused like
/// an unknown subtype, and `ovs-ofctl` then tries its next.
pub(crate) fn decode(kind: Kind, r: &mut Reader<'_>) -> Result<Extension, Malformed> {
    let unknown = r.fail(Refusal::RequestBadExperimenterType);
    match kind {
        Kind::TableIds => {
            let on = r.u8()? != 0;
            r.skip(7)?;
            Ok(Extension::TableIds(on))
        }
        Kind::FlowFormat => {
            let number = r.u32()?;
            let known = FLOW_FORMATS.iter().find(|(known, _)| *known == number);
            let (_, form) = known.ok_or(unknown)?;
            Ok(Extension::FlowFormat(*form))
        }
        _ => match r.u32()? {
            0 => Ok(Extension::StandardPacketIn),
            _ => Err(unknown),
        },
    }
}

/// Appends the body of such a message.
pub(crate) fn encode(extension: Extension, w: &mut Writer<'_>) {
    match extension {
        Extension::FlowFormat(Form::Standard | Form::Counts) | Extension::StandardPacketIn => {
            w.u32(0);
        }
        Extension::FlowFormat(Form::Nicira) => w.u32(2),
        Extension::TableIds(on) => {
            w.u8(u8::from(on));
            w.zeros(7);
        }
    }
}

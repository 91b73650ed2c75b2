//! The settings of a connection in Nicira's extension of OpenFlow (`nicira-ext.h` of Open vSwitch).

use flow::Refusal;

use crate::codec::{Malformed, Reader, Writer};
use crate::dialect::{FlowFormat, NiciraSetting, PacketInFormat};
use crate::kinds::MessageKind;

/// `NXFF_OPENFLOW10` and `NXFF_NXM`; 1 was never used.
const FLOW_FORMATS: [(u32, FlowFormat); 2] = [(0, FlowFormat::Standard), (2, FlowFormat::Nicira)];

/// `NXPIF_*`.
const PACKET_IN_FORMATS: [(u32, PacketInFormat); 3] = [
    (0, PacketInFormat::Standard),
    (1, PacketInFormat::Nicira),
    (2, PacketInFormat::Nicira2),
];

/// The message type of this setting.
pub(crate) const fn kind(extension: NiciraSetting) -> MessageKind {
    match extension {
        NiciraSetting::FlowFormat(_) => MessageKind::FlowFormat,
        NiciraSetting::TableIds(_) => MessageKind::TableIds,
        NiciraSetting::PacketInFormat(_) => MessageKind::PacketInFormat,
    }
}

/// Decodes the body of a setting. An unsupported format is refused like an unknown subtype, and
/// `ovs-ofctl` then tries its next one.
pub(crate) fn decode(kind: MessageKind, r: &mut Reader<'_>) -> Result<NiciraSetting, Malformed> {
    let unknown = r.fail(Refusal::RequestBadExperimenterType);
    match kind {
        MessageKind::TableIds => {
            let on = r.u8()? != 0;
            r.skip(7)?;
            Ok(NiciraSetting::TableIds(on))
        }
        MessageKind::FlowFormat => {
            let number = r.u32()?;
            let known = FLOW_FORMATS.iter().find(|(known, _)| *known == number);
            let (_, form) = known.ok_or(unknown)?;
            Ok(NiciraSetting::FlowFormat(*form))
        }
        _ => {
            let number = r.u32()?;
            let mut formats = PACKET_IN_FORMATS.iter();
            let known = formats.find(|(known, _)| *known == number);
            let (_, format) = known.ok_or(unknown)?;
            Ok(NiciraSetting::PacketInFormat(*format))
        }
    }
}

/// Decodes the id of a controller, after padding.
pub(crate) fn decode_controller_id(r: &mut Reader<'_>) -> Result<u16, Malformed> {
    r.skip(6)?;
    r.u16()
}

/// Appends the body of a setting.
pub(crate) fn encode(extension: NiciraSetting, w: &mut Writer<'_>) {
    match extension {
        NiciraSetting::FlowFormat(FlowFormat::Standard | FlowFormat::Counts) => w.u32(0),
        NiciraSetting::PacketInFormat(format) => w.u32(match format {
            PacketInFormat::Standard => 0,
            PacketInFormat::Nicira => 1,
            PacketInFormat::Nicira2 => 2,
        }),
        NiciraSetting::FlowFormat(FlowFormat::Nicira) => w.u32(2),
        NiciraSetting::TableIds(on) => {
            w.u8(u8::from(on));
            w.zeros(7);
        }
    }
}

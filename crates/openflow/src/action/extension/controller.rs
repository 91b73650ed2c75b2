//! `NXAST_CONTROLLER` and `NXAST_CONTROLLER2`: packet-ins with parameters.

use base::MeterId;
use flow::{ControllerAction, MaxLen, PacketInReason, Refusal};

use super::{ActionKind, BodyError, put};
use crate::codec::{EncodeError, Reader, Writer};
use crate::message::packet_in;

/// `NXAC2PT_*`: the properties of the second form.
const MAX_LEN: u16 = 0;
const ID: u16 = 1;
const REASON: u16 = 2;
const USERDATA: u16 = 3;
const PAUSE: u16 = 4;
const METER: u16 = 5;

/// Decodes `NXAST_CONTROLLER`.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<ControllerAction, BodyError> {
    Ok(ControllerAction {
        max_len: MaxLen(r.u16()?),
        controller: r.u16()?,
        reason: decode_reason(r)?,
        ..ControllerAction::default()
    })
}

fn decode_reason(r: &mut Reader<'_>) -> Result<PacketInReason, BodyError> {
    let number = r.u8()?;
    Ok(packet_in::reason_of(number).ok_or(Refusal::ActionBadArgument)?)
}

/// Decodes `NXAST_CONTROLLER2`: properties, each padded to eight bytes.
pub(super) fn decode_properties(r: &mut Reader<'_>) -> Result<ControllerAction, BodyError> {
    let mut to_controller = ControllerAction::default();
    while !r.is_empty() {
        let start = r.clone();
        let (kind, length) = (r.u16()?, usize::from(r.u16()?));
        let Some(inside) = length.checked_sub(4) else {
            return Err(start.fail(Refusal::ActionBadLength).into());
        };
        let mut property = r.sub(inside)?;
        r.skip(length.next_multiple_of(8) - length)?;
        match kind {
            MAX_LEN => to_controller.max_len = MaxLen(property.u16()?),
            ID => to_controller.controller = property.u16()?,
            REASON => to_controller.reason = decode_reason(&mut property)?,
            USERDATA => to_controller.userdata = property.rest().to_vec(),
            PAUSE => to_controller.pause = true,
            METER => {
                let meter = property.u32()?;
                to_controller.meter = (meter != 0).then_some(MeterId(meter));
            }
            _ => return Err(Refusal::ActionBadArgument.into()),
        }
        property.end()?;
    }
    Ok(to_controller)
}

/// Appends the first form if it has all parameters, otherwise the second.
pub(super) fn encode(
    to_controller: &ControllerAction,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let ControllerAction {
        max_len,
        controller,
        reason,
        userdata,
        meter,
        pause,
    } = to_controller;
    let reason = packet_in::any_reason_number(*reason);
    if userdata.is_empty() && meter.is_none() && !pause {
        return put(ActionKind::Controller, w, |w| {
            w.u16(max_len.0);
            w.u16(*controller);
            w.u8(reason);
            Ok(())
        });
    }
    put(ActionKind::Controller2, w, |w| {
        if *max_len != MaxLen::WHOLE {
            property(MAX_LEN, &max_len.0.to_be_bytes(), w)?;
        }
        if *controller != 0 {
            property(ID, &controller.to_be_bytes(), w)?;
        }
        if reason != packet_in::any_reason_number(PacketInReason::Action) {
            property(REASON, &[reason], w)?;
        }
        if !userdata.is_empty() {
            property(USERDATA, userdata, w)?;
        }
        if *pause {
            property(PAUSE, &[], w)?;
        }
        if let Some(meter) = meter {
            property(METER, &meter.0.to_be_bytes(), w)?;
        }
        Ok(())
    })
}

fn property(kind: u16, bytes: &[u8], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.nested_padded(2, |w| {
        w.u16(kind);
        w.u16(0);
        w.bytes(bytes);
        Ok(())
    })
    .map(drop)
}

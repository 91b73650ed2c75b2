//! The state of a controller that the switch connects to: its channel, its role and its address
//! (OF 1.5.1, 7.3.5.22 and 7.4.8). One structure, sent on changes and on request.

use flow::{Refusal, Role, ShortId};

use super::role::{decode_role, encode_role, short_number};
use super::{WireFormat, property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};

/// `OFPCSPT_URI`.
const URI: u16 = 0;

/// The reason for a controller-status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerReason {
    /// A multipart request.
    Request,
    /// The channel is up or down.
    ChannelStatus,
    /// The role changed.
    Role,
    /// The controller was configured.
    Added,
    /// The controller was removed from the configuration.
    Removed,
    /// The short id changed.
    ShortId,
    /// An experimenter's reason.
    Experimenter,
}

/// The state of the channel to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlChannelStatus {
    /// The version is negotiated.
    Up,
    /// There is no channel.
    Down,
}

/// A controller that the switch connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerStatus {
    /// The short id, by which other controllers identify it, if it requested one.
    pub short_id: Option<ShortId>,
    /// The present role; while the channel is down, the last role.
    pub role: Role,
    /// The reason for the message.
    pub reason: ControllerReason,
    /// The state of its channel.
    pub channel: ControlChannelStatus,
    /// The address, such as `tcp:192.0.2.1:6653` (OF 1.5.1, 6.3.1).
    pub uri: Option<String>,
}

const REASONS: [ControllerReason; 7] = [
    ControllerReason::Request,
    ControllerReason::ChannelStatus,
    ControllerReason::Role,
    ControllerReason::Added,
    ControllerReason::Removed,
    ControllerReason::ShortId,
    ControllerReason::Experimenter,
];

/// The number of a reason, also used in the masks of asynchronous messages.
pub(crate) const fn reason_number(reason: ControllerReason) -> u8 {
    match reason {
        ControllerReason::Request => 0,
        ControllerReason::ChannelStatus => 1,
        ControllerReason::Role => 2,
        ControllerReason::Added => 3,
        ControllerReason::Removed => 4,
        ControllerReason::ShortId => 5,
        ControllerReason::Experimenter => 6,
    }
}

impl WireFormat for ControllerStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = usize::from(r.clone().u16()?);
        let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
        r.skip(2)?;
        let short_id = ShortId::new(r.u16()?);
        let bad = r.fail(Refusal::RoleBad);
        let role = decode_role(&mut r)?.ok_or(bad)?;
        let unknown = r.fail(Refusal::RequestBadType);
        let reason = *REASONS.get(usize::from(r.u8()?)).ok_or(unknown)?;
        let channel = match r.u8()? {
            0 => ControlChannelStatus::Up,
            _ => ControlChannelStatus::Down,
        };
        r.skip(6)?;
        Ok(Self {
            short_id,
            role,
            reason,
            channel,
            uri: decode_uri(&mut r)?,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.nested(0, |w| {
            w.u16(0);
            w.u16(short_number(self.short_id));
            encode_role(self.role, w);
            w.u8(reason_number(self.reason));
            w.u8(match self.channel {
                ControlChannelStatus::Up => 0,
                ControlChannelStatus::Down => 1,
            });
            w.zeros(6);
            let Some(uri) = &self.uri else { return Ok(()) };
            property::put(URI, w, |w| {
                w.bytes(uri.as_bytes());
                Ok(())
            })
        })
        .map(drop)
    }
}

/// Decodes the properties. Skips those of experimenters.
fn decode_uri(r: &mut Reader<'_>) -> Result<Option<String>, Malformed> {
    let mut uri = None;
    while !r.is_empty() {
        let mut property = property::next(r)?;
        match property.kind {
            property::EXPERIMENTER => continue,
            URI => {}
            _ => return Err(property.unknown()),
        }
        let (bad, duplicate) = (
            property.fail(Refusal::PropertyBadValue),
            property.fail(Refusal::PropertyDuplicate),
        );
        let text = str::from_utf8(property.value.rest()).map_err(|_| bad)?;
        if uri.replace(text.to_owned()).is_some() {
            return Err(duplicate);
        }
    }
    Ok(uri)
}

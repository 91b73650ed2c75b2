//! How a controller is that the switch goes to: its channel, its role, and where it is
//! met (OF 1.5.1, 7.3.5.22 and 7.4.8). One structure, told when it changes and when
//! somebody asks.

use flow::{Refusal, Role, ShortId};

use super::role::{decode_role, encode_role, short_number};
use super::{WireFormat, property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};

/// `OFPCSPT_URI`.
const URI: u16 = 0;

/// Why a controller is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerReason {
    /// Somebody asked.
    Request,
    /// The channel to it came up, or went down.
    ChannelStatus,
    /// It has another role.
    Role,
    /// The switch goes to it from now on.
    Added,
    /// The switch goes to it no longer.
    Removed,
    /// It has another short id.
    ShortId,
    /// An experimenter's reason.
    Experimenter,
}

/// Whether a controller can be talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlChannelStatus {
    /// Both sides have said hello.
    Up,
    /// There is no channel.
    Down,
}

/// A controller that a switch goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerStatus {
    /// The number by which it is known to the others, if it has asked for one.
    pub short_id: Option<ShortId>,
    /// Its role, or the one that it had when its channel went down.
    pub role: Role,
    /// Why it is told of.
    pub reason: ControllerReason,
    /// Its channel.
    pub channel: ControlChannelStatus,
    /// Where it is met, as `tcp:192.0.2.1:6653` (OF 1.5.1, 6.3.1).
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

/// The number of a reason, also in the masks of asynchronous messages.
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

/// Reads the properties. Those of experimenters are passed over.
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

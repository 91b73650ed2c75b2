//! Request-forward: what one controller asked of groups and meters, told to others
//! (OF 1.4.1, 7.4.6; in ONF's and Nicira's forms before, as Open vSwitch has them).
//! Its body is the request, header and all, as the hearer's version writes it.

use base::Xid;
use flow::{GroupMod, MeterMod, Refusal};

use super::{Message, encode_framed};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::Dialect;
use crate::header::Header;
use crate::kinds::MessageKind;

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardedRequest {
    /// A change of groups.
    GroupMod(GroupMod),
    /// A change of meters.
    MeterMod(MeterMod),
}

/// A request by another controller, which was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestForward {
    /// Its transaction, among those of who sent it.
    pub xid: Xid,
    /// What was asked.
    pub request: ForwardedRequest,
}

impl ForwardedRequest {
    /// The number of its kind in the masks of asynchronous messages.
    pub(crate) const fn reason_number(&self) -> u8 {
        match self {
            Self::GroupMod(_) => 0,
            Self::MeterMod(_) => 1,
        }
    }
}

/// Reads the body of such a message.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<RequestForward, Malformed> {
    let start = r.fail(Refusal::RequestBadLength);
    let bytes = r.rest();
    let length = Header::peek(bytes).map(|header| usize::from(header.length));
    let bytes = length.and_then(|length| bytes.get(..length)).ok_or(start)?;
    let (xid, message) = Message::decode(bytes, r.dialect()).map_err(|malformed| Malformed {
        at: start.at + malformed.at,
        ..malformed
    })?;
    let request = match message {
        Message::GroupMod(command) => ForwardedRequest::GroupMod(command),
        Message::MeterMod(command) => ForwardedRequest::MeterMod(command),
        _ => {
            let refusal = Refusal::RequestBadType;
            return Err(Malformed { refusal, ..start });
        }
    };
    Ok(RequestForward { xid, request })
}

/// Appends such a message, its header included.
pub(super) fn encode(
    forward: &RequestForward,
    xid: Xid,
    dialect: Dialect,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let message = match &forward.request {
        ForwardedRequest::GroupMod(command) => Message::GroupMod(command.clone()),
        ForwardedRequest::MeterMod(command) => Message::MeterMod(command.clone()),
    };
    let mut bytes = Vec::new();
    message.encode(forward.xid, dialect, &mut bytes)?;
    encode_framed(
        MessageKind::RequestForward,
        xid,
        dialect,
        out,
        |w: &mut Writer<'_>| {
            w.bytes(&bytes);
            Ok(())
        },
    )
}

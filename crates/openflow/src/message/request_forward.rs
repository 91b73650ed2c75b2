//! Request-forward: a request of one controller about groups or meters, sent to the others
//! (OF 1.4.1, 7.4.6; before 1.4 in ONF's and Nicira's formats, as in Open vSwitch). Its body is the
//! request with its header, in the version of the receiver.

use base::Xid;
use flow::{GroupMod, MeterMod, Refusal};

use super::{Message, encode_framed};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::Dialect;
use crate::header::Header;
use crate::kinds::MessageKind;

/// The forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardedRequest {
    /// A change to the group table.
    GroupMod(GroupMod),
    /// A change to the meter table.
    MeterMod(MeterMod),
}

/// A successful request of another controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestForward {
    /// The transaction id that its sender chose.
    pub xid: Xid,
    /// The request.
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

/// Decodes the body of a request-forward.
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

/// Appends a request-forward, including its header.
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

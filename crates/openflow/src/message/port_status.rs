//! Port-status: a change of a port (OF 1.3.5, 7.4.3), in all versions a reason and the port's
//! description.

use flow::{PortDesc, PortReason, PortStatus, Refusal};

use super::WireFormat;
use crate::codec::{EncodeError, Malformed, Reader, Writer};

const REASONS: [PortReason; 3] = [PortReason::Add, PortReason::Delete, PortReason::Modify];

/// The number of a reason, also used in the masks of asynchronous messages.
pub(crate) const fn reason_number(reason: PortReason) -> u8 {
    match reason {
        PortReason::Add => 0,
        PortReason::Delete => 1,
        PortReason::Modify => 2,
    }
}

impl WireFormat for PortStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let unknown = r.fail(Refusal::RequestBadType);
        let reason = REASONS.get(usize::from(r.u8()?)).copied().ok_or(unknown)?;
        r.skip(7)?;
        let port = PortDesc::decode(r)?;
        Ok(Self { reason, port })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u8(reason_number(self.reason));
        w.zeros(7);
        self.port.encode(w)
    }
}

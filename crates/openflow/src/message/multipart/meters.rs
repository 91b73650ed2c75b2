//! Requests about meters (OF 1.3.5, 7.3.5.12 and 7.3.5.13). There are none yet.

use base::MeterId;

use crate::codec::{Malformed, Reader};

/// Reads which meter is asked about.
pub(super) fn decode_request(r: &mut Reader<'_>) -> Result<MeterId, Malformed> {
    let meter = MeterId(r.u32()?);
    r.skip(4)?;
    Ok(meter)
}

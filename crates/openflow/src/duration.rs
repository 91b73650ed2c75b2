//! The encoding of a duration: seconds, then nanoseconds.

use std::time::Duration;

use crate::codec::{Malformed, Reader, Writer};

/// The maximum of the nanoseconds.
const NANOS_MAX: u32 = 999_999_999;

/// Decodes a duration. Larger nanoseconds (Open vSwitch writes "unknown" as all ones) become the
/// maximum.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Duration, Malformed> {
    let (seconds, nanos) = (r.u32()?, r.u32()?);
    Ok(Duration::new(seconds.into(), nanos.min(NANOS_MAX)))
}

/// Appends a duration, at most 136 years (2^32 - 1 seconds).
pub(crate) fn encode(duration: Duration, w: &mut Writer<'_>) {
    w.u32(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX));
    w.u32(duration.subsec_nanos());
}

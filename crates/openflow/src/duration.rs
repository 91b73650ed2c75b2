//! A duration on the wire: whole seconds, then nanoseconds.

use std::time::Duration;

use crate::codec::{Malformed, Reader, Writer};

/// The most nanoseconds that are no second.
const NANOS_MAX: u32 = 999_999_999;

/// Reads a duration. More nanoseconds than there are to a second (Open vSwitch
/// says "unknown" by all ones) are as many as there can be.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Duration, Malformed> {
    let (seconds, nanos) = (r.u32()?, r.u32()?);
    Ok(Duration::new(seconds.into(), nanos.min(NANOS_MAX)))
}

/// Appends a duration; 136 years and more are 136 years.
pub(crate) fn encode(duration: Duration, w: &mut Writer<'_>) {
    w.u32(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX));
    w.u32(duration.subsec_nanos());
}

//! The capabilities of bundles (OF 1.5.1, 7.3.5.20).
//!
//! ```text
//! request  flags zeros(4) [time: type length zeros(4) four times]
//! reply    capabilities zeros(6) [time: the same]
//! ```
//!
//! The four times are the accuracy, the limits of a scheduled time in the future and in the past,
//! and the present time.

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::message::bundle::{BundleFlags, WallTime};
use crate::message::{WireFormat, property};
use flow::Refusal;

/// `OFPTMPBF_TIME_CAPABILITY`.
const TIMES: u16 = 1;

/// Bytes of the value of that property.
const TIMES_LEN: usize = 4 + 4 * 16;

/// A bundle features request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleFeaturesRequest {
    /// `OFPBF_TIMESTAMP` and `OFPBF_TIME_SET_SCHED`.
    pub flags: u32,
    /// The controller's times.
    pub times: Option<BundleTimes>,
}

impl BundleFeaturesRequest {
    /// Requests the present time (`OFPBF_TIMESTAMP`).
    pub const TIMESTAMP: u32 = 1 << 0;
    /// Sets the scheduling limits to the controller's (`OFPBF_TIME_SET_SCHED`).
    pub const SET_SCHEDULE: u32 = 1 << 1;
}

/// The scheduling of timed bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleTimes {
    /// The accuracy of execution.
    pub accuracy: WallTime,
    /// The limit of a scheduled time in the future.
    pub future_max: WallTime,
    /// The limit of a scheduled time in the past.
    pub past_max: WallTime,
    /// The present time.
    pub now: WallTime,
}

/// The capabilities of bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleFeatures {
    /// The supported flags.
    pub capabilities: BundleFlags,
    /// The scheduling, if timed bundles are supported.
    pub times: Option<BundleTimes>,
}

impl WireFormat for BundleFeaturesRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let flags = r.u32()?;
        r.skip(4)?;
        let times = decode_times(r)?;
        Ok(Self { flags, times })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u32(self.flags);
        w.zeros(4);
        encode_times(self.times, w)
    }
}

impl WireFormat for BundleFeatures {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let capabilities = BundleFlags(r.u16()?);
        r.skip(6)?;
        let times = decode_times(r)?;
        Ok(Self {
            capabilities,
            times,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u16(self.capabilities.0);
        w.zeros(6);
        encode_times(self.times, w)
    }
}

fn decode_times(r: &mut Reader<'_>) -> Result<Option<BundleTimes>, Malformed> {
    let mut times = None;
    while !r.is_empty() {
        let mut property = property::next(r)?;
        match property.kind {
            TIMES if property.value.len() != TIMES_LEN => {
                return Err(property.fail(Refusal::PropertyBadLength));
            }
            TIMES if times.is_some() => return Err(property.fail(Refusal::PropertyDuplicate)),
            TIMES => {
                let r = &mut property.value;
                r.skip(4)?;
                times = Some(BundleTimes {
                    accuracy: WallTime::decode(r)?,
                    future_max: WallTime::decode(r)?,
                    past_max: WallTime::decode(r)?,
                    now: WallTime::decode(r)?,
                });
            }
            _ => return Err(property.unknown()),
        }
    }
    Ok(times)
}

fn encode_times(times: Option<BundleTimes>, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let Some(times) = times else { return Ok(()) };
    property::put(TIMES, w, |w| {
        w.zeros(4);
        let all = [times.accuracy, times.future_max, times.past_max, times.now];
        all.into_iter().for_each(|time| time.encode(w));
        Ok(())
    })
}

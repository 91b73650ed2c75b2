//! One thing at a time, on a socket that the device listens at. No more is looked at of what
//! is told than must be, lest the lab be slower than the device.

use std::path::Path;
use std::time::Duration;

use controller::{ControllerError, Kind, Link};
use openflow::{FlowFormat, Message, MultipartRequest, Version, VersionSet};
use testbed::Clock;

use crate::trial::TrialError;

/// How long a device may be silent while something is expected of it: a million flows
/// behind one barrier take some devices most of a minute.
const PATIENCE: Duration = Duration::from_secs(300);

/// Bytes that begin statistics, header included (OF 1.0.1, 5.3.5).
const STATISTICS: usize = 12;

/// Flows that a device has told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// How many.
    pub(super) flows: u64,
    /// In how many bytes, headers included.
    pub(super) bytes: u64,
}

/// Calls the device and agrees with it on OpenFlow 1.0.
pub(super) fn call(socket: &Path, clock: &Clock) -> Result<Link, TrialError> {
    let link = Link::call(socket, VersionSet::only(Version::V10), clock)?;
    Ok(link.with_patience(PATIENCE))
}

/// Has all flows told.
pub(super) fn flows(link: &mut Link) -> Result<Told, ControllerError> {
    let all = MultipartRequest::Flow(FlowFormat::Standard, flow::FlowStatsRequest::all());
    link.say(&Message::MultipartRequest(all))?;
    let mut told = Told::default();
    link.listen_until(|heard| {
        match heard.kind {
            Kind::StatisticsPart | Kind::Statistics => {
                told.bytes += heard.bytes.len() as u64;
                let flows = flows_in(heard.bytes);
                let broken = || ControllerError::Down("flow statistics cannot be right".to_owned());
                told.flows += flows.ok_or_else(broken)?;
            }
            _ => heard.expect_no_error("flow statistics")?,
        }
        Ok(heard.kind == Kind::Statistics)
    })?;
    Ok(told)
}

/// How many flows a part of flow statistics tells of: each begins with its length.
fn flows_in(part: &[u8]) -> Option<u64> {
    let mut rest = part.get(STATISTICS..)?;
    let mut count = 0;
    while let Some([a, b]) = rest.first_chunk() {
        let length = usize::from(u16::from_be_bytes([*a, *b])).max(1);
        rest = rest.get(length..)?;
        count += 1;
    }
    rest.is_empty().then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_counted_by_their_lengths() {
        let mut part = vec![0; STATISTICS];
        assert_eq!(flows_in(&part), Some(0));
        part.extend([0, 4, 9, 9, 0, 2]);
        assert_eq!(flows_in(&part), Some(2));
        part.extend([0, 3]);
        assert_eq!(flows_in(&part), None);
        assert_eq!(flows_in(&[0; 4]), None);
    }
}

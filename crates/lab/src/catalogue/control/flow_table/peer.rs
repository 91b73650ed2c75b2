//! Connection of the experiment `flow-table` to a device's management socket. Listings are not
//! decoded beyond the lengths, so that the lab does not limit their speed.

use std::path::Path;
use std::time::Duration;

use controller::{ControllerError, IncomingKind, Link};
use openflow::{FlowFormat, Message, MultipartRequest, Version, VersionSet};
use testbed::Clock;

use crate::trial::TrialError;

/// Time limit for a reply: some devices need most of a minute for a million flows before one
/// barrier.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Bytes before the first flow of a multipart reply, the header included (OpenFlow 1.0.1, 5.3.5).
const REPLY_HEADER: usize = 12;

/// Size of a listing of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Number of flows.
    pub(super) flows: u64,
    /// Bytes of all messages, with headers.
    pub(super) bytes: u64,
}

/// Connects to a device by OpenFlow 1.0.
pub(super) fn connect(socket: &Path, clock: &Clock) -> Result<Link, TrialError> {
    let link = Link::call(socket, VersionSet::only(Version::V10), clock)?;
    Ok(link.with_timeout(TIMEOUT))
}

/// Lists all flows.
pub(super) fn list(link: &mut Link) -> Result<Listing, ControllerError> {
    let all = MultipartRequest::Flow(FlowFormat::Standard, flow::FlowStatsRequest::all());
    link.queue(&Message::MultipartRequest(all))?;
    let mut listing = Listing::default();
    link.listen_until(|received| {
        match received.kind {
            IncomingKind::StatisticsPart | IncomingKind::Statistics => {
                listing.bytes += received.bytes.len() as u64;
                let flows = count_flows(received.bytes);
                let malformed = || ControllerError::Down("malformed flow statistics".to_owned());
                listing.flows += flows.ok_or_else(malformed)?;
            }
            _ => received.expect_no_error("flow statistics")?,
        }
        Ok(received.kind == IncomingKind::Statistics)
    })?;
    Ok(listing)
}

/// Counts the flows in a part of flow statistics, each of which begins with its length.
fn count_flows(part: &[u8]) -> Option<u64> {
    let mut rest = part.get(REPLY_HEADER..)?;
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
        let mut part = vec![0; REPLY_HEADER];
        assert_eq!(count_flows(&part), Some(0));
        part.extend([0, 4, 9, 9, 0, 2]);
        assert_eq!(count_flows(&part), Some(2));
        part.extend([0, 3]);
        assert_eq!(count_flows(&part), None);
        assert_eq!(count_flows(&[0; 4]), None);
    }
}

//! Counters along the path through a device, before and after a trial.

use std::collections::BTreeMap;

use base::PortNo;
use controller::{Controller, DeviceRequests};
use flow::PortStats;
use record::{FrameCounts, PathCounters};
use testbed::{Bench, Failure, InterfaceCounters, backlog_drops};

use super::TestSetup;

/// Bytes of a frame above the MTU: the Ethernet header and two tags.
const HEADERS: u64 = 22;

/// All counters at one moment.
pub(crate) struct PathSnapshot {
    hosts: Vec<FrameCounts>,
    cables: Vec<FrameCounts>,
    ports: Result<Vec<FrameCounts>, String>,
    backlog: Option<u64>,
}

impl PathSnapshot {
    /// Reads the counters.
    pub(crate) fn read(setup: &TestSetup) -> Result<Self, Failure> {
        let bench = &setup.bench;
        let cables = bench.counters_of_ports()?;
        Ok(Self {
            hosts: hosts(bench)?,
            cables: cables.iter().map(of_interface).collect(),
            ports: ports(setup),
            backlog: backlog_drops(),
        })
    }

    /// Returns the differences from `earlier`.
    pub(crate) fn since(self, earlier: Self, setup: &TestSetup) -> PathCounters {
        let (ports, port_stats_error) = match (earlier.ports, self.ports) {
            (Ok(before), Ok(after)) => match difference(&before, &after) {
                Some(ports) => (ports, None),
                None => (Vec::new(), Some("the counters were reset".to_owned())),
            },
            (Err(reason), _) | (_, Err(reason)) => (Vec::new(), Some(reason)),
        };
        let hosts = difference(&earlier.hosts, &self.hosts).unwrap_or_default();
        let has_controller = !setup.controllers.is_empty();
        PathCounters {
            segments: are_segments(&hosts, setup.bench.topology().mtu()),
            hosts,
            // A new link counts from zero.
            cables: difference(&earlier.cables, &self.cables).unwrap_or_default(),
            ports,
            port_stats_error,
            packet_ins: has_controller.then(|| setup.packet_ins()),
            backlog_dropped: self
                .backlog
                .zip(earlier.backlog)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// Returns the counters of the hosts' interfaces.
pub(crate) fn hosts(bench: &Bench) -> Result<Vec<FrameCounts>, Failure> {
    let hosts = bench.hosts().iter();
    hosts
        .map(|host| Ok(of_interface(&host.counters()?)))
        .collect()
}

/// Returns true if the mean size of a host's frames exceeds the MTU.
pub(crate) fn are_segments(hosts: &[FrameCounts], mtu: u32) -> bool {
    let most = u64::from(mtu) + HEADERS;
    hosts
        .iter()
        .any(|host| host.sent_bytes > host.sent.saturating_mul(most))
}

/// Returns the differences of counters; `None` if one was reset, or if their number changed.
pub(crate) fn difference(
    before: &[FrameCounts],
    after: &[FrameCounts],
) -> Option<Vec<FrameCounts>> {
    if before.len() != after.len() {
        return None;
    }
    let both = after.iter().zip(before);
    both.map(|(now, then)| now.since(then)).collect()
}

/// Returns the device's port statistics for the port of each host; empty without controllers.
fn ports(setup: &TestSetup) -> Result<Vec<FrameCounts>, String> {
    let stats_of = |mut controller: &Controller| {
        let stats = controller.port_counts(PortNo::ANY);
        let stats = stats.map_err(|error| error.to_string())?;
        let by_number = stats.into_iter().map(|port| (port.port, of_port(&port)));
        Ok(by_number.collect::<BTreeMap<PortNo, FrameCounts>>())
    };
    let bridges = setup.controllers.iter().map(stats_of);
    let bridges: Vec<_> = bridges.collect::<Result<_, String>>()?;
    if bridges.is_empty() {
        return Ok(Vec::new());
    }
    let places = setup.bench.topology().attachments();
    let found = places.iter().map(|place| {
        let bridge = bridges.get(place.bridge);
        let counts = bridge.and_then(|ports| ports.get(&PortNo(place.port)));
        let missing = || format!("port {} is missing", place.port);
        counts.copied().ok_or_else(missing)
    });
    found.collect()
}

const fn of_interface(counters: &InterfaceCounters) -> FrameCounts {
    FrameCounts {
        received: counters.rx_packets,
        received_bytes: counters.rx_bytes,
        received_dropped: counters.rx_dropped,
        sent: counters.tx_packets,
        sent_bytes: counters.tx_bytes,
        sent_dropped: counters.tx_dropped,
    }
}

const fn of_port(stats: &PortStats) -> FrameCounts {
    FrameCounts {
        received: stats.rx_packets,
        received_bytes: stats.rx_bytes,
        received_dropped: stats.rx_dropped,
        sent: stats.tx_packets,
        sent_bytes: stats.tx_bytes,
        sent_dropped: stats.tx_dropped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_larger_than_the_mtu() {
        let host = |frames, bytes| FrameCounts {
            sent: frames,
            sent_bytes: bytes,
            ..FrameCounts::default()
        };
        assert!(!are_segments(&[host(0, 0), host(10, 15_140)], 1_500));
        assert!(are_segments(&[host(10, 600), host(10, 200_000)], 1_500));
        assert!(!are_segments(&[host(10, 90_140)], 9_000));
    }

    #[test]
    fn difference_of_other_ports_is_none() {
        let one = FrameCounts::default();
        assert_eq!(difference(&[one], &[one, one]), None);
        assert_eq!(difference(&[one], &[one]), Some(vec![one]));
    }
}

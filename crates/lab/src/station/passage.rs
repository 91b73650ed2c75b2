//! What was counted on frames' way through a device, before a test and after it.

use std::collections::BTreeMap;

use base::PortNo;
use controller::{Ask, Controller};
use flow::PortStats;
use record::{FrameCounts, PassageRecord};
use testbed::{Bench, Failure, InterfaceCounters, backlog_drops};

use super::Station;

/// Bytes of a frame above its MTU: a header of Ethernet and two tags.
const HEADERS: u64 = 22;

/// All counters, at a moment.
pub(crate) struct Passage {
    hosts: Vec<FrameCounts>,
    cables: Vec<FrameCounts>,
    ports: Result<Vec<FrameCounts>, String>,
    backlog: Option<u64>,
}

impl Passage {
    /// Reads them now.
    pub(crate) fn read(station: &Station) -> Result<Self, Failure> {
        let bench = &station.bench;
        let cables = bench.counters_of_ports()?;
        Ok(Self {
            hosts: hosts(bench)?,
            cables: cables.iter().map(of_interface).collect(),
            ports: ports(station),
            backlog: backlog_drops(),
        })
    }

    /// What was counted between `earlier` and this.
    pub(crate) fn since(self, earlier: Self, station: &Station) -> PassageRecord {
        let (ports, untold) = match (earlier.ports, self.ports) {
            (Ok(before), Ok(after)) => match between(&before, &after) {
                Some(ports) => (ports, None),
                None => (Vec::new(), Some("its counters began again".to_owned())),
            },
            (Err(reason), _) | (_, Err(reason)) => (Vec::new(), Some(reason)),
        };
        let hosts = between(&earlier.hosts, &self.hosts).unwrap_or_default();
        let is_led = !station.controllers.is_empty();
        PassageRecord {
            segments: are_segments(&hosts, station.bench.topology().mtu()),
            hosts,
            // A cable that was laid anew has counted from zero.
            cables: between(&earlier.cables, &self.cables).unwrap_or_default(),
            ports,
            untold,
            packet_ins: is_led.then(|| station.packet_ins()),
            backlog_dropped: self
                .backlog
                .zip(earlier.backlog)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// What the hosts' interfaces have counted.
pub(crate) fn hosts(bench: &Bench) -> Result<Vec<FrameCounts>, Failure> {
    let hosts = bench.hosts().iter();
    hosts
        .map(|host| Ok(of_interface(&host.counters()?)))
        .collect()
}

/// Whether some host sent, on average, more than fits a frame of its.
pub(crate) fn are_segments(hosts: &[FrameCounts], mtu: u32) -> bool {
    let most = u64::from(mtu) + HEADERS;
    hosts
        .iter()
        .any(|host| host.sent_bytes > host.sent.saturating_mul(most))
}

/// None if a counter began again, or if there are not the same ones.
pub(crate) fn between(before: &[FrameCounts], after: &[FrameCounts]) -> Option<Vec<FrameCounts>> {
    if before.len() != after.len() {
        return None;
    }
    let both = after.iter().zip(before);
    both.map(|(now, then)| now.since(then)).collect()
}

/// What the device tells its controllers of the port to each host; nothing if it has none.
fn ports(station: &Station) -> Result<Vec<FrameCounts>, String> {
    let told = |mut controller: &Controller| {
        let stats = controller.port_counts(PortNo::ANY);
        let stats = stats.map_err(|error| error.to_string())?;
        let by_number = stats.into_iter().map(|port| (port.port, of_port(&port)));
        Ok(by_number.collect::<BTreeMap<PortNo, FrameCounts>>())
    };
    let bridges = station.controllers.iter().map(told);
    let bridges: Vec<_> = bridges.collect::<Result<_, String>>()?;
    if bridges.is_empty() {
        return Ok(Vec::new());
    }
    let places = station.bench.topology().places();
    let found = places.iter().map(|place| {
        let bridge = bridges.get(place.bridge);
        let counts = bridge.and_then(|ports| ports.get(&PortNo(place.port)));
        let lacks = || format!("it told nothing of its port {}", place.port);
        counts.copied().ok_or_else(lacks)
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
    fn what_is_larger_than_a_frame_is_a_segment() {
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
    fn other_ports_than_before_tell_nothing() {
        let one = FrameCounts::default();
        assert_eq!(between(&[one], &[one, one]), None);
        assert_eq!(between(&[one], &[one]), Some(vec![one]));
    }
}

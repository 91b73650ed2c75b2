//! Selection of tracked connections by zone and partial tuples (`NXT_CT_FLUSH`,
//! `dpctl/flush-conntrack`), and their removal.
//!
//! | request | connections |
//! |---|---|
//! | nothing | all |
//! | zone | those of the zone |
//! | original tuple with both addresses and both ports | the one with these packets, in zone 0 by default |
//! | other tuples | those with all given parts, in all zones by default |

mod parse;

use std::net::Ipv6Addr;

use base::Instant;
use conntrack::{
    AddressFamily, ConnectionInfo, ConnectionKey, Conntrack, CtAddress, CtZone, Endpoint,
    KeyProtocol,
};
use openflow::{ConntrackFlush, ConntrackTuple};

pub use parse::parse_request;

/// Selects connections by zone, protocol and partial tuples.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionFilter {
    request: ConntrackFlush,
    /// Version of IP, which the addresses decide.
    family: Option<AddressFamily>,
    zone: Option<CtZone>,
}

impl ConnectionFilter {
    /// Returns the filter of a request.
    #[must_use]
    pub fn new(request: &ConntrackFlush) -> Self {
        let ConntrackFlush {
            original, reply, ..
        } = request;
        let mut addresses = [original.src, original.dst, reply.src, reply.dst].into_iter();
        let address = addresses.find(|address| !address.is_unspecified());
        Self {
            request: *request,
            family: address.map(|address| match address.to_ipv4_mapped() {
                Some(_) => AddressFamily::V4,
                None => AddressFamily::V6,
            }),
            zone: request.zone.map(CtZone),
        }
    }

    /// True if the filter names neither a protocol nor a part of a tuple.
    #[must_use]
    pub fn is_without_tuples(&self) -> bool {
        let everything = ConntrackFlush {
            zone: self.request.zone,
            ..ConntrackFlush::default()
        };
        self.request == everything
    }

    /// True if a connection has all parts that the filter names. An empty tuple matches each
    /// direction.
    #[must_use]
    pub fn matches(&self, connection: &ConnectionInfo) -> bool {
        let ConnectionInfo {
            original, reply, ..
        } = connection;
        let request = &self.request;
        let protocol = KeyProtocol(request.protocol);
        self.zone.is_none_or(|zone| zone == original.zone)
            && self.family.is_none_or(|family| family == original.family)
            && (request.protocol == 0 || protocol == original.protocol)
            && matches_tuple(original, &request.original, protocol)
            && matches_tuple(reply, &request.reply, protocol)
    }

    /// Removes the connections from the tracker, a few under each lock. Returns their number, or
    /// none if the filter names one connection that does not exist.
    #[must_use]
    pub fn flush(&self, tracker: &Conntrack, now: Instant) -> Option<usize> {
        if !self.names_one_connection() {
            return Some(match self.zone {
                Some(zone) if tracker.zone_len(zone) == 0 => 0,
                Some(zone) if self.is_without_tuples() => tracker.flush_zone(zone),
                None if self.is_without_tuples() => tracker.flush_all(),
                _ => tracker.flush(now, |connection| self.matches(connection)),
            });
        }
        let zone = self.zone.unwrap_or_default();
        let protocol = KeyProtocol(self.request.protocol);
        let removed = if protocol.is_icmp() {
            let original = &self.request.original;
            tracker.flush(now, |connection| {
                let keys = [&connection.original, &connection.reply];
                let is_named = |key: &ConnectionKey| {
                    key.protocol == protocol && matches_tuple(key, original, protocol)
                };
                connection.original.zone == zone && keys.into_iter().any(is_named)
            })
        } else {
            usize::from(tracker.flush_tuple(&self.key(zone), now))
        };
        (removed > 0).then_some(removed)
    }

    /// True if the original tuple is complete and the reply tuple empty.
    fn names_one_connection(&self) -> bool {
        let ConntrackFlush {
            protocol,
            original,
            reply,
            ..
        } = &self.request;
        let has_addresses = !original.src.is_unspecified() && !original.dst.is_unspecified();
        let has_ports = original.src_port != 0 && original.dst_port != 0;
        *protocol != 0
            && has_addresses
            && (has_ports || KeyProtocol(*protocol).is_icmp())
            && is_empty(reply, KeyProtocol(*protocol))
    }

    /// Returns the key of the original tuple.
    fn key(&self, zone: CtZone) -> ConnectionKey {
        let ConntrackTuple {
            src,
            dst,
            src_port,
            dst_port,
        } = self.request.original;
        let end = |address, port| Endpoint {
            address: address_of(address),
            port,
            message_type: 0,
        };
        ConnectionKey {
            src: end(src, src_port),
            dst: end(dst, dst_port),
            zone,
            protocol: KeyProtocol(self.request.protocol),
            family: self.family.unwrap_or_default(),
        }
    }
}

/// True if a tuple has neither addresses nor, except for ICMP, ports.
fn is_empty(tuple: &ConntrackTuple, protocol: KeyProtocol) -> bool {
    let has_address = !tuple.src.is_unspecified() || !tuple.dst.is_unspecified();
    let has_port = tuple.src_port != 0 || tuple.dst_port != 0;
    !has_address && (protocol.is_icmp() || !has_port)
}

/// True if packets of `key` have all parts of a tuple. `protocol` is that of the request.
fn matches_tuple(key: &ConnectionKey, tuple: &ConntrackTuple, protocol: KeyProtocol) -> bool {
    if *tuple == ConntrackTuple::default() {
        return true;
    }
    let has_address = |end: &Endpoint, address: Ipv6Addr| {
        address.is_unspecified() || end.address == address_of(address)
    };
    let has_port = |end: &Endpoint, port: u16| port == 0 || end.port == port;
    has_address(&key.src, tuple.src)
        && has_address(&key.dst, tuple.dst)
        && if protocol.is_icmp() {
            // The code of a query is zero.
            let message = (tuple.src_port, tuple.icmp_type(), tuple.icmp_code());
            message == (key.src.port, key.src.message_type, 0)
        } else {
            has_port(&key.src, tuple.src_port) && has_port(&key.dst, tuple.dst_port)
        }
}

/// Returns an address of a request, in which IPv4 addresses are mapped to IPv6.
fn address_of(address: Ipv6Addr) -> CtAddress {
    match address.to_ipv4_mapped() {
        Some(address) => address.into(),
        None => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use conntrack::{
        CtCommit, CtMetadata, CtPacket, CtRequest, HashSeed, PacketFacts, PacketTuple,
        TransportFacts,
    };

    use super::*;

    const NOW: Instant = Instant::from_secs(1);

    fn end(host: u8, port: u16, message_type: u8) -> Endpoint {
        Endpoint {
            address: Ipv4Addr::new(10, 1, 1, host).into(),
            port,
            message_type,
        }
    }

    fn commit(tracker: &Conntrack, zone: u16, protocol: KeyProtocol, ends: [Endpoint; 2]) {
        let [src, dst] = ends;
        let transport = if protocol.is_icmp() {
            TransportFacts::Icmp
        } else {
            TransportFacts::Other
        };
        let packet = CtPacket {
            facts: Some(PacketFacts {
                tuple: PacketTuple {
                    src,
                    dst,
                    protocol,
                    family: AddressFamily::V4,
                },
                transport,
            }),
            payload: &[],
            metadata: CtMetadata::default(),
        };
        let request = CtRequest {
            zone: CtZone(zone),
            commit: CtCommit::Commit,
            ..CtRequest::default()
        };
        tracker.track(&packet, &request, NOW);
    }

    /// Returns a tracker with two UDP connections and an echo in zone 5, and one in zone 0.
    fn tracker() -> Conntrack {
        let tracker = Conntrack::new(HashSeed([1, 2]), 100);
        let udp = |zone, src_port, dst_port| {
            let ends = [end(1, src_port, 0), end(2, dst_port, 0)];
            commit(&tracker, zone, KeyProtocol::UDP, ends);
        };
        udp(5, 1, 2);
        udp(5, 3, 4);
        udp(0, 1, 2);
        let echo = [end(2, 7, 8), end(1, 7, 0)];
        commit(&tracker, 5, KeyProtocol::ICMPV4, echo);
        assert_eq!(tracker.len(), 4);
        tracker
    }

    fn mapped(host: u8) -> Ipv6Addr {
        Ipv4Addr::new(10, 1, 1, host).to_ipv6_mapped()
    }

    fn udp_request(zone: Option<u16>, original: ConntrackTuple) -> ConntrackFlush {
        ConntrackFlush {
            protocol: 17,
            zone,
            original,
            ..ConntrackFlush::default()
        }
    }

    fn removed(request: &ConntrackFlush) -> Option<usize> {
        let tracker = tracker();
        let removed = ConnectionFilter::new(request).flush(&tracker, NOW);
        let left = usize::try_from(tracker.len()).expect("a few");
        assert_eq!(left, 4 - removed.unwrap_or(0));
        removed
    }

    #[test]
    fn filter_without_tuples_selects_all_or_a_zone() {
        let request = ConntrackFlush::default();
        assert!(ConnectionFilter::new(&request).is_without_tuples());
        assert_eq!(removed(&request), Some(4));
        let request = ConntrackFlush {
            zone: Some(5),
            ..request
        };
        assert!(ConnectionFilter::new(&request).is_without_tuples());
        assert_eq!(removed(&request), Some(3));
    }

    #[test]
    fn filter_with_a_complete_tuple_selects_one_connection() {
        let tuple = ConntrackTuple {
            src: mapped(1),
            dst: mapped(2),
            src_port: 1,
            dst_port: 2,
        };
        assert_eq!(removed(&udp_request(Some(5), tuple)), Some(1));
        // Zone 0 by default.
        assert_eq!(removed(&udp_request(None, tuple)), Some(1));
        let other = ConntrackTuple {
            dst_port: 9,
            ..tuple
        };
        assert_eq!(removed(&udp_request(Some(5), other)), None);
        let echo = ConntrackFlush {
            protocol: 1,
            zone: Some(5),
            original: ConntrackTuple {
                src: mapped(2),
                dst: mapped(1),
                src_port: 7,
                dst_port: 0,
            },
            ..ConntrackFlush::default()
        };
        let mut request = echo;
        request.original.set_icmp_code(8);
        assert_eq!(removed(&request), None);
        let mut request = echo;
        request.original.set_icmp_type(8);
        assert_eq!(removed(&request), Some(1));
    }

    #[test]
    fn filter_with_parts_of_a_tuple_selects_all_that_have_them() {
        let with = |src_port, dst_port| ConntrackTuple {
            src_port,
            dst_port,
            ..ConntrackTuple::default()
        };
        assert_eq!(removed(&udp_request(None, with(1, 0))), Some(2));
        assert_eq!(removed(&udp_request(Some(5), with(1, 0))), Some(1));
        assert_eq!(removed(&udp_request(None, with(0, 4))), Some(1));
        assert_eq!(removed(&udp_request(None, with(9, 0))), Some(0));
        let src = ConntrackTuple {
            src: mapped(1),
            ..ConntrackTuple::default()
        };
        let request = ConntrackFlush {
            original: src,
            ..ConntrackFlush::default()
        };
        assert_eq!(removed(&request), Some(3));
        let request = ConntrackFlush {
            reply: src,
            ..ConntrackFlush::default()
        };
        assert_eq!(
            removed(&request),
            Some(1),
            "the echo has host 1 as its receiver"
        );
        let v6 = ConntrackTuple {
            src: Ipv6Addr::LOCALHOST,
            ..ConntrackTuple::default()
        };
        assert_eq!(removed(&udp_request(None, v6)), Some(0));
    }
}

//! The demultiplexing of received tunnel packets: to the protocol of their headers, and to the
//! tunnel port with the most specific match (`ovs-vswitchd.conf.db(5)`, "Tunnel Options").

use std::collections::BTreeMap;
use std::net::IpAddr;

use packet::tunnel::{
    OuterTransport, TunnelHeader, TunnelPacket, TunnelPayload, TunnelProtocol, VxlanExtension,
};

use crate::slots::PortKey;
use config::{PacketTypeMode, TunnelConfig, TunnelEndpoint, TunnelKey};

/// The match of a tunnel port; `None` is a wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TunnelMatch {
    protocol: OuterProtocol,
    port: u16,
    packet_type: PacketTypeMode,
    key: Option<u32>,
    remote: Option<IpAddr>,
    local: Option<LocalEnd>,
}

/// The match on the local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LocalEnd {
    Given(IpAddr),
    Any,
}

/// The outer protocol, independent of header extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OuterProtocol {
    Udp,
    Gre,
    Erspan,
}

impl OuterProtocol {
    const fn of(protocol: TunnelProtocol) -> Self {
        match protocol {
            TunnelProtocol::Gre => Self::Gre,
            TunnelProtocol::Erspan => Self::Erspan,
            TunnelProtocol::Vxlan(_)
            | TunnelProtocol::Geneve
            | TunnelProtocol::Gtpu
            | TunnelProtocol::Lisp => Self::Udp,
        }
    }
}

/// The properties of a decapsulated packet by which it finds its tunnel port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelLookup {
    /// The protocol.
    pub protocol: TunnelProtocol,
    /// The UDP destination port; zero for GRE.
    pub port: u16,
    /// True if the payload is no Ethernet frame.
    pub is_bare: bool,
    /// The key; zero without one.
    pub key: u32,
    /// The sender.
    pub remote: IpAddr,
    /// The receiver.
    pub local: IpAddr,
}

impl TunnelLookup {
    /// Returns the lookup for a received packet.
    #[must_use]
    pub fn new(packet: &TunnelPacket, tunnel_header: &TunnelHeader) -> Self {
        Self {
            protocol: tunnel_header.protocol,
            port: match packet.outer.upper {
                OuterTransport::Udp { dst, .. } => dst,
                OuterTransport::Gre => 0,
            },
            is_bare: tunnel_header.payload != TunnelPayload::Ethernet,
            key: tunnel_header.key.unwrap_or(0),
            remote: packet.outer.src,
            local: packet.outer.dst,
        }
    }
}

/// The tunnel ports and the headers that they accept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelMap {
    /// The tunnel ports.
    ends: BTreeMap<TunnelMatch, PortKey>,
    /// The protocol of each UDP port of a tunnel, with the first of its tunnels.
    listens: BTreeMap<u16, (TunnelProtocol, PortKey)>,
    /// The first GRE tunnel.
    gre: Option<PortKey>,
    /// The first ERSPAN tunnel.
    erspan: Option<PortKey>,
}

impl TunnelMap {
    /// Adds a tunnel port. Of two with equal matches the first receives all packets.
    pub fn add(&mut self, port: PortKey, tunnel: &TunnelConfig) {
        let end = |end: TunnelEndpoint| match end {
            TunnelEndpoint::Given(address) => Some(address),
            TunnelEndpoint::Any | TunnelEndpoint::Flow => None,
        };
        let protocol = OuterProtocol::of(tunnel.protocol);
        let mark = TunnelMatch {
            protocol,
            port: tunnel.port,
            packet_type: tunnel.packet_type,
            key: match tunnel.in_key {
                TunnelKey::Given(key) => Some(key),
                TunnelKey::None => Some(0),
                TunnelKey::Flow => None,
            },
            remote: end(tunnel.remote),
            local: match tunnel.local {
                TunnelEndpoint::Given(address) => Some(LocalEnd::Given(address)),
                TunnelEndpoint::Any => Some(LocalEnd::Any),
                TunnelEndpoint::Flow => None,
            },
        };
        self.ends.entry(mark).or_insert(port);
        match protocol {
            OuterProtocol::Udp => {
                let first = self
                    .listens
                    .entry(tunnel.port)
                    .or_insert((tunnel.protocol, port));
                // A parser with the generic protocol extension reads plain VXLAN, too.
                if first.0 == TunnelProtocol::Vxlan(VxlanExtension::None) {
                    first.0 = tunnel.protocol;
                }
            }
            OuterProtocol::Gre => self.gre = self.gre.or(Some(port)),
            OuterProtocol::Erspan => self.erspan = self.erspan.or(Some(port)),
        }
    }

    /// True if there are no tunnel ports.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the protocol of a packet to the host, and the first tunnel that accepts its
    /// headers; none if there is no such tunnel. `header` begins with the tunnel header; without
    /// it, packets of GRE and ERSPAN are not distinguished.
    pub fn listener(
        &self,
        upper: OuterTransport,
        header: &[u8],
    ) -> Option<(TunnelProtocol, PortKey)> {
        let OuterTransport::Udp { dst, .. } = upper else {
            let gre = self.gre.map(|port| (TunnelProtocol::Gre, port));
            let erspan = self.erspan.map(|port| (TunnelProtocol::Erspan, port));
            return match TunnelProtocol::of_gre(header) {
                Some(TunnelProtocol::Erspan) => erspan,
                Some(_) => gre,
                None => gre.or(erspan),
            };
        };
        self.listens.get(&dst).copied()
    }

    /// Returns the tunnel port of a packet: the one with the most specific match.
    pub fn find(&self, lookup: &TunnelLookup) -> Option<PortKey> {
        let legacy = match lookup.is_bare {
            true => PacketTypeMode::LegacyL3,
            false => PacketTypeMode::LegacyL2,
        };
        for key in [Some(lookup.key), None] {
            for remote in [Some(lookup.remote), None] {
                for local in [
                    Some(LocalEnd::Given(lookup.local)),
                    Some(LocalEnd::Any),
                    None,
                ] {
                    for packet_type in [legacy, PacketTypeMode::Aware] {
                        let mark = TunnelMatch {
                            protocol: OuterProtocol::of(lookup.protocol),
                            port: lookup.port,
                            packet_type,
                            key,
                            remote,
                            local,
                        };
                        if let Some(port) = self.ends.get(&mark) {
                            return Some(*port);
                        }
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use base::PortNo;

    use super::*;
    use crate::program::BridgeId;
    use config::{PortKind, PortSpec};

    fn map(ends: &[&str]) -> TunnelMap {
        let mut map = TunnelMap::default();
        for (words, port) in ends.iter().zip(1..) {
            let spec: PortSpec = words.parse().expect("a tunnel");
            let PortKind::Tunnel(tunnel) = spec.kind else {
                unreachable!("it is a tunnel");
            };
            let key = PortKey {
                bridge: BridgeId(0),
                port: PortNo(port),
            };
            map.add(key, &tunnel);
        }
        map
    }

    fn lookup(protocol: TunnelProtocol, port: u16) -> TunnelLookup {
        TunnelLookup {
            protocol,
            port,
            is_bare: false,
            key: 0,
            remote: [10, 0, 0, 1].into(),
            local: [10, 0, 0, 9].into(),
        }
    }

    #[test]
    fn tunnel_lookup_prefers_the_most_specific_match() {
        let map = map(&[
            "vxlan:a,remote=flow,key=flow",
            "vxlan:b,remote=10.0.0.1,key=flow",
            "vxlan:c,remote=10.0.0.1,key=7",
            "vxlan:d,remote=10.0.0.1,local=10.0.0.9,key=7",
            "vxlan:e,remote=flow,local=10.0.0.9,key=9",
            "vxlan:f,remote=10.0.0.1,key=7",
        ]);
        let find = |remote: &str, local: &str, key| {
            let vxlan = TunnelProtocol::Vxlan(VxlanExtension::None);
            let lookup = TunnelLookup {
                key,
                remote: remote.parse().expect("an address"),
                local: local.parse().expect("an address"),
                ..lookup(vxlan, 4789)
            };
            map.find(&lookup).map(|key| key.port.0)
        };
        assert_eq!(find("10.0.0.2", "10.0.0.8", 7), Some(1));
        assert_eq!(find("10.0.0.1", "10.0.0.8", 8), Some(2));
        assert_eq!(find("10.0.0.1", "10.0.0.8", 7), Some(3));
        assert_eq!(find("10.0.0.1", "10.0.0.9", 7), Some(4));
        assert_eq!(find("10.0.0.2", "10.0.0.9", 9), Some(5));
        // A match on the key precedes a match on an endpoint.
        assert_eq!(find("10.0.0.1", "10.0.0.9", 9), Some(5));
    }

    #[test]
    fn tunnel_lookup_finds_legacy_port_before_packet_type_aware_one() {
        let map = map(&[
            "gre:a,remote=10.0.0.1,packet_type=ptap",
            "gre:b,remote=10.0.0.1,packet_type=legacy_l3",
            "erspan:c,remote=10.0.0.1",
        ]);
        let find = |protocol, is_bare| {
            let lookup = TunnelLookup {
                is_bare,
                ..lookup(protocol, 0)
            };
            map.find(&lookup).map(|key| key.port.0)
        };
        assert_eq!(find(TunnelProtocol::Gre, false), Some(1));
        assert_eq!(find(TunnelProtocol::Gre, true), Some(2));
        assert_eq!(find(TunnelProtocol::Erspan, false), Some(3));
        assert_eq!(find(TunnelProtocol::Erspan, true), None);
    }

    #[test]
    fn listener_distinguishes_erspan_from_gre_by_the_header() {
        let gre_only = map(&["gre:a,remote=10.0.0.1"]);
        let both = map(&["erspan:a,remote=10.0.0.1", "gre:b,remote=10.0.0.1"]);
        let of = |map: &TunnelMap, header: &[u8]| {
            let found = map.listener(OuterTransport::Gre, header);
            found.map(|(protocol, _)| protocol)
        };
        let (erspan, gre) = ([0x10, 0, 0x88, 0xbe], [0, 0, 0x65, 0x58]);
        assert_eq!(of(&gre_only, &erspan), None);
        assert_eq!(of(&both, &erspan), Some(TunnelProtocol::Erspan));
        assert_eq!(of(&both, &gre), Some(TunnelProtocol::Gre));
        assert_eq!(of(&both, &[]), Some(TunnelProtocol::Gre));
    }

    #[test]
    fn listener_of_plain_vxlan_accepts_generic_protocol_extension() {
        let map = map(&[
            "vxlan:a,remote=10.0.0.1",
            "vxlan:b,remote=10.0.0.1,exts=gpe,packet_type=legacy_l3",
        ]);
        let upper = OuterTransport::Udp {
            src: 1,
            dst: 4789,
            summed: false,
        };
        let found = map.listener(upper, &[]).map(|(protocol, _)| protocol);
        assert_eq!(found, Some(TunnelProtocol::Vxlan(VxlanExtension::Gpe)));
    }
}

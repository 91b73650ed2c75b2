//! The underlay of tunnels: host ports with their addresses, routes and neighbours, and the
//! demultiplexing of received packets to tunnel ports. Published with the tables.
//!
//! The control thread fills it in: from the kernel, and from commands of the operator.

use std::collections::BTreeMap;
use std::net::IpAddr;

use packet::MacAddr;
use packet::tunnel::{OuterTransport, TunnelHeader, TunnelPacket, TunnelPayload, TunnelProtocol};

use super::slots::PortKey;
use config::{TunnelConfig, TunnelEndpoint, TunnelKey};

/// The default range of UDP source ports, by which networks distinguish flows: that of Open vSwitch
/// and of Linux for ephemeral ports.
pub const EGRESS_PORTS: (u16, u16) = (32_768, 61_000);

/// A host port: a bridge's local port, or an internal one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnderlayPort {
    /// The name of the interface.
    pub name: String,
    /// The Ethernet address.
    pub mac: MacAddr,
    /// The host's addresses on it.
    pub addresses: Vec<IpAddr>,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderlayRoute {
    /// The destination prefix.
    pub to: IpAddr,
    /// The prefix length in bits.
    pub len: u8,
    /// The next hop, if there is one.
    pub gateway: Option<IpAddr>,
    /// The preferred source address, if there is one.
    pub source: Option<IpAddr>,
    /// The egress port; none for an interface that belongs to no bridge.
    pub by: Option<PortKey>,
    /// The metric; the lowest wins.
    pub metric: u32,
}

/// The next hop of a tunnel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The port that receives the packet, as if the host had sent it.
    pub by: PortKey,
    /// The source Ethernet address.
    pub(crate) mac: MacAddr,
    /// The network address of the next hop.
    pub next: IpAddr,
    /// The default source address.
    pub source: IpAddr,
}

/// The match of a tunnel port; `None` is a wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TunnelMatch {
    protocol: OuterProtocol,
    port: u16,
    bare: bool,
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
}

impl OuterProtocol {
    const fn of(protocol: TunnelProtocol) -> Self {
        match protocol {
            TunnelProtocol::Vxlan(_) | TunnelProtocol::Geneve => Self::Udp,
            TunnelProtocol::Gre => Self::Gre,
        }
    }
}

/// The underlay at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Underlay {
    /// The host ports.
    pub ports_of_host: BTreeMap<PortKey, UnderlayPort>,
    /// The routes, longest prefix first.
    routes: Vec<UnderlayRoute>,
    /// The Ethernet addresses of neighbours.
    pub neighbours: BTreeMap<(PortKey, IpAddr), MacAddr>,
    /// The tunnel ports.
    ends: BTreeMap<TunnelMatch, PortKey>,
    /// The protocol of each UDP port of a tunnel.
    listens: BTreeMap<u16, TunnelProtocol>,
    /// True if there are GRE tunnels.
    has_gre: bool,
    /// The range of UDP source ports: first and last.
    pub egress_ports: (u16, u16),
}

impl Default for Underlay {
    fn default() -> Self {
        Self {
            ports_of_host: BTreeMap::new(),
            routes: Vec::new(),
            neighbours: BTreeMap::new(),
            ends: BTreeMap::new(),
            listens: BTreeMap::new(),
            has_gre: false,
            egress_ports: EGRESS_PORTS,
        }
    }
}

/// The recipient of a packet to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostPacket {
    /// The host itself.
    Host,
    /// A tunnel of this protocol.
    Tunnel(TunnelProtocol),
}

impl Underlay {
    /// Adds a tunnel port. Of two with equal matches the first receives all packets.
    pub fn add_end(&mut self, port: PortKey, tunnel: &TunnelConfig) {
        let family = OuterProtocol::of(tunnel.protocol);
        let end = |end: TunnelEndpoint| match end {
            TunnelEndpoint::Given(address) => Some(address),
            TunnelEndpoint::Any | TunnelEndpoint::Flow => None,
        };
        let mark = TunnelMatch {
            protocol: family,
            port: tunnel.port,
            bare: tunnel.is_layer3,
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
        match family {
            OuterProtocol::Udp => {
                self.listens.entry(tunnel.port).or_insert(tunnel.protocol);
            }
            OuterProtocol::Gre => self.has_gre = true,
        }
    }

    /// Sets the routes.
    pub fn set_routes(&mut self, mut routes: Vec<UnderlayRoute>) {
        routes.sort_by_key(|route| (std::cmp::Reverse(route.len), route.metric));
        self.routes = routes;
    }

    /// Returns the routes, longest prefix first.
    pub fn routes(&self) -> &[UnderlayRoute] {
        &self.routes
    }

    /// Returns the UDP ports of tunnels and their protocols.
    pub fn listening(&self) -> impl Iterator<Item = (u16, TunnelProtocol)> {
        self.listens
            .iter()
            .map(|(port, protocol)| (*port, *protocol))
    }

    /// Returns the number of tunnels with this UDP port; for port 0, of GRE tunnels.
    pub fn tunnels_with_port(&self, port: u16) -> usize {
        self.ends.keys().filter(|mark| mark.port == port).count()
    }

    /// Returns whether there are GRE tunnels.
    pub const fn has_gre(&self) -> bool {
        self.has_gre
    }

    /// Returns whether any tunnel ports exist.
    pub(crate) fn terminates(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Returns the route to an address.
    pub fn route(&self, to: IpAddr) -> Option<&UnderlayRoute> {
        self.routes
            .iter()
            .find(|route| is_within(to, route.to, route.len))
    }

    /// Returns the next hop to an address; none if the route leaves by no port of a bridge.
    pub fn hop(&self, to: IpAddr) -> Option<NextHop> {
        let route = self.route(to)?;
        let by = route.by?;
        let ground = self.ports_of_host.get(&by)?;
        let next = route.gateway.unwrap_or(to);
        let fits =
            |address: &&IpAddr| address.is_ipv4() == to.is_ipv4() && !is_link_local(**address);
        let source = match route.source {
            Some(source) => source,
            None => *ground.addresses.iter().find(fits)?,
        };
        Some(NextHop {
            by,
            mac: ground.mac,
            next,
            source,
        })
    }

    /// Returns the recipient of a packet to a host port.
    pub(crate) fn classify(&self, ground: &UnderlayPort, found: &TunnelPacket) -> HostPacket {
        if !ground.addresses.contains(&found.outer.dst) {
            return HostPacket::Host;
        }
        match found.outer.upper {
            OuterTransport::Udp { dst, .. } => match self.listens.get(&dst) {
                Some(protocol) => HostPacket::Tunnel(*protocol),
                None => HostPacket::Host,
            },
            OuterTransport::Gre if self.has_gre => HostPacket::Tunnel(TunnelProtocol::Gre),
            OuterTransport::Gre => HostPacket::Host,
        }
    }

    /// Returns the tunnel port of a packet: the one with the most specific match
    /// (`ovs-vswitchd.conf.db(5)`, "Tunnel Options").
    pub fn find(&self, found: &TunnelPacket, tunnel_header: &TunnelHeader) -> Option<PortKey> {
        let outer = found.outer;
        let port = match outer.upper {
            OuterTransport::Udp { dst, .. } => dst,
            OuterTransport::Gre => 0,
        };
        for key in [Some(tunnel_header.key.unwrap_or(0)), None] {
            for remote in [Some(outer.src), None] {
                for local in [Some(LocalEnd::Given(outer.dst)), Some(LocalEnd::Any), None] {
                    let mark = TunnelMatch {
                        protocol: OuterProtocol::of(tunnel_header.protocol),
                        port,
                        bare: tunnel_header.payload != TunnelPayload::Ethernet,
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
        None
    }
}

/// Returns whether an address is valid on one link only.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Returns whether an address is within a prefix of `len` bits.
pub fn is_within(address: IpAddr, prefix: IpAddr, len: u8) -> bool {
    match (address, prefix) {
        (IpAddr::V4(address), IpAddr::V4(prefix)) => {
            let differ = address.to_bits() ^ prefix.to_bits();
            differ.leading_zeros() >= u32::from(len)
        }
        (IpAddr::V6(address), IpAddr::V6(prefix)) => {
            let differ = address.to_bits() ^ prefix.to_bits();
            differ.leading_zeros() >= u32::from(len)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use base::PortNo;
    use packet::tunnel::{OuterHeaders, VxlanExtension};

    use super::*;
    use crate::program::BridgeId;
    use config::PortSpec;

    fn key(port: u32) -> PortKey {
        PortKey {
            bridge: BridgeId(0),
            port: PortNo(port),
        }
    }

    fn tunnel(words: &str) -> std::sync::Arc<TunnelConfig> {
        let spec: PortSpec = format!("vxlan:t,{words}").parse().expect("a tunnel");
        match spec.kind {
            config::PortKind::Tunnel(tunnel) => tunnel,
            _ => unreachable!("it is one"),
        }
    }

    fn arrival(src: &str, dst: &str) -> TunnelPacket {
        let outer = OuterHeaders {
            eth_dst: MacAddr::default(),
            eth_src: MacAddr::default(),
            src: src.parse().expect("an address"),
            dst: dst.parse().expect("an address"),
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            upper: OuterTransport::Udp {
                src: 1,
                dst: 4789,
                summed: false,
            },
        };
        let mut pool = packet::Pool::new(2);
        let mut frame = packet::Frame::from_bytes(&[0; 60]);
        let mut tunnel_header = TunnelHeader::new(TunnelProtocol::Vxlan(VxlanExtension::None));
        tunnel_header.key = Some(0);
        packet::tunnel::encapsulate(&mut frame, 0, &outer, &tunnel_header, &mut pool)
            .expect("short");
        packet::tunnel::parse_outer(frame.bytes()).expect("a packet")
    }

    #[test]
    fn tunnel_lookup_prefers_the_most_specific_match() {
        let mut underlay = Underlay::default();
        let ends = [
            "remote=flow,key=flow",
            "remote=10.0.0.1,key=flow",
            "remote=10.0.0.1,key=7",
            "remote=10.0.0.1,local=10.0.0.9,key=7",
            "remote=flow,local=10.0.0.9,key=9",
            "remote=10.0.0.1,key=7",
        ];
        for (words, port) in ends.iter().zip(1..) {
            underlay.add_end(key(port), &tunnel(words));
        }
        let find = |src, dst, number| {
            let mut tunnel_header = TunnelHeader::new(TunnelProtocol::Vxlan(VxlanExtension::None));
            tunnel_header.key = Some(number);
            underlay
                .find(&arrival(src, dst), &tunnel_header)
                .map(|key| key.port.0)
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
    fn underlay_route_lookup_takes_the_longest_prefix() {
        let mut underlay = Underlay::default();
        let ground = UnderlayPort {
            name: "br-phy".to_owned(),
            mac: MacAddr::from_u64(2),
            addresses: vec!["fe80::1".parse().unwrap(), "10.0.0.9".parse().unwrap()],
        };
        underlay.ports_of_host.insert(key(1), ground);
        let route = |to: &str, len, gateway: Option<&str>, by| UnderlayRoute {
            to: to.parse().unwrap(),
            len,
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
            source: None,
            by,
            metric: 0,
        };
        underlay.set_routes(vec![
            route("0.0.0.0", 0, Some("10.0.0.254"), Some(key(1))),
            route("10.0.0.0", 24, None, Some(key(1))),
            route("10.0.1.0", 24, None, None),
        ]);
        let hop = |to: &str| {
            underlay
                .hop(to.parse().unwrap())
                .map(|hop| hop.next.to_string())
        };
        assert_eq!(hop("10.0.0.7").as_deref(), Some("10.0.0.7"));
        assert_eq!(hop("8.8.8.8").as_deref(), Some("10.0.0.254"));
        assert_eq!(hop("10.0.1.1"), None);
        assert_eq!(hop("fd00::1"), None);
    }
}

//! The underlay of tunnels: host ports with their addresses, routes and neighbours, and the
//! demultiplexing of received packets to tunnel ports. Published with the tables.
//!
//! The control thread fills it in: from the kernel, from commands of the operator, and from
//! neighbours that workers report.

mod tunnel_map;

use std::collections::BTreeMap;
use std::net::IpAddr;

use packet::MacAddr;
use packet::tunnel::{TunnelPacket, TunnelProtocol};

use super::slots::PortKey;

pub use tunnel_map::{TunnelLookup, TunnelMap};

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
    /// True if workers report neighbours from received packets, because no kernel resolves them.
    pub snoops: bool,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderlayRoute {
    /// The destination prefix.
    pub to: IpAddr,
    /// The prefix length in bits.
    pub len: u8,
    /// The packet mark; zero for unmarked packets.
    pub mark: u32,
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
    pub mac: MacAddr,
    /// The network address of the next hop.
    pub next: IpAddr,
    /// The default source address.
    pub source: IpAddr,
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
    pub tunnels: TunnelMap,
    /// The range of UDP source ports: first and last.
    pub egress_ports: (u16, u16),
}

impl Default for Underlay {
    fn default() -> Self {
        Self {
            ports_of_host: BTreeMap::new(),
            routes: Vec::new(),
            neighbours: BTreeMap::new(),
            tunnels: TunnelMap::default(),
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
    /// Sets the routes.
    pub fn set_routes(&mut self, mut routes: Vec<UnderlayRoute>) {
        routes.sort_by_key(|route| (std::cmp::Reverse(route.len), route.metric));
        self.routes = routes;
    }

    /// Returns the routes, longest prefix first.
    pub fn routes(&self) -> &[UnderlayRoute] {
        &self.routes
    }

    /// Returns whether any tunnel ports exist.
    pub(crate) fn terminates(&self) -> bool {
        !self.tunnels.is_empty()
    }

    /// Returns the route to an address for packets with this mark: as in Open vSwitch, one with
    /// just this mark.
    pub fn route(&self, to: IpAddr, mark: u32) -> Option<&UnderlayRoute> {
        self.routes
            .iter()
            .find(|route| route.mark == mark && is_within(to, route.to, route.len))
    }

    /// Returns the next hop to an address for packets with this mark; none if the route leaves by
    /// no port of a bridge.
    pub fn hop(&self, to: IpAddr, mark: u32) -> Option<NextHop> {
        let route = self.route(to, mark)?;
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

    /// Returns the recipient of a packet to a host port. `frame` holds the packet.
    pub(crate) fn classify(
        &self,
        ground: &UnderlayPort,
        found: &TunnelPacket,
        frame: &[u8],
    ) -> HostPacket {
        if !ground.addresses.contains(&found.outer.dst) {
            return HostPacket::Host;
        }
        let header = frame.get(found.at..found.end).unwrap_or_default();
        match self.tunnels.listener(found.outer.upper, header) {
            Some((protocol, _)) => HostPacket::Tunnel(protocol),
            None => HostPacket::Host,
        }
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

    use super::*;
    use crate::program::BridgeId;

    fn key(port: u32) -> PortKey {
        PortKey {
            bridge: BridgeId(0),
            port: PortNo(port),
        }
    }

    #[test]
    fn underlay_route_lookup_takes_the_longest_prefix() {
        let mut underlay = Underlay::default();
        let ground = UnderlayPort {
            name: "br-phy".to_owned(),
            mac: MacAddr::from_u64(2),
            addresses: vec!["fe80::1".parse().unwrap(), "10.0.0.9".parse().unwrap()],
            snoops: false,
        };
        underlay.ports_of_host.insert(key(1), ground);
        let route = |to: &str, len, gateway: Option<&str>, by| UnderlayRoute {
            to: to.parse().unwrap(),
            len,
            mark: 0,
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
            source: None,
            by,
            metric: 0,
        };
        underlay.set_routes(vec![
            route("0.0.0.0", 0, Some("10.0.0.254"), Some(key(1))),
            route("10.0.0.0", 24, None, Some(key(1))),
            route("10.0.1.0", 24, None, None),
            UnderlayRoute {
                mark: 7,
                ..route("10.0.0.0", 25, Some("10.0.0.253"), Some(key(1)))
            },
        ]);
        let marked = |to: &str, mark| {
            let hop = underlay.hop(to.parse().unwrap(), mark);
            hop.map(|hop| hop.next.to_string())
        };
        let hop = |to: &str| marked(to, 0);
        assert_eq!(marked("10.0.0.7", 7).as_deref(), Some("10.0.0.253"));
        assert_eq!(marked("10.0.0.7", 8), None);
        assert_eq!(hop("10.0.0.7").as_deref(), Some("10.0.0.7"));
        assert_eq!(hop("8.8.8.8").as_deref(), Some("10.0.0.254"));
        assert_eq!(hop("10.0.1.1"), None);
        assert_eq!(hop("fd00::1"), None);
    }
}

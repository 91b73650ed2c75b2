//! In-band control: combines the kernel's routes and neighbours with the addresses of controllers
//! and managers, whose frames may pass through bridges.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use base::PortNo;
use packet::MacAddr;

use super::{BridgeRuntime, Control};
use config::{ControllerConfig, ControllerTarget};
use dataplane::in_band::InBandConfig;
use dataplane::underlay::is_within;
use switch::underlay::{KernelRoute, KernelTables};

impl Control {
    /// Updates the in-band flows of the bridges that have in-band control.
    pub(super) fn update_in_band(&mut self) {
        let now = self.now();
        for site in self.sites.values_mut() {
            let config = config_of(site, self.underlay.kernel());
            site.bridge.set_in_band(config, now);
        }
    }

    /// Returns true if a bridge needs the next hop towards a controller or manager.
    pub(super) fn has_far_controllers(&self) -> bool {
        let mut sites = self.sites.values();
        sites.any(|site| remotes(site).any(|remote| !remote.ip().is_loopback()))
    }
}

fn config_of(site: &BridgeRuntime, kernel: &KernelTables) -> InBandConfig {
    let mut ports = site.bridge.ports();
    let local = ports.find(|(port, _)| *port == PortNo::LOCAL);
    let remotes: BTreeSet<_> = remotes(site).collect();
    let next_hops: BTreeSet<_> = remotes
        .iter()
        .filter_map(|remote| next_hop(*remote.ip(), kernel))
        .collect();
    InBandConfig {
        local: local.map_or_else(MacAddr::default, |(_, entry)| entry.desc.hw_addr),
        next_hops: next_hops.into_iter().collect(),
        remotes: remotes.into_iter().collect(),
        queue: site.in_band.queue,
    }
}

/// Returns the controllers and managers that may be reached through the bridge. As in Open vSwitch,
/// only those with an IPv4 address.
fn remotes(site: &BridgeRuntime) -> impl Iterator<Item = SocketAddrV4> {
    let controllers = site.controllers.keys();
    let controllers = controllers.filter_map(|ControllerConfig { target, options }| match target {
        ControllerTarget::Tcp { host, port } | ControllerTarget::Ssl { host, port }
            if options.in_band =>
        {
            Some(SocketAddrV4::new(host.parse().ok()?, *port))
        }
        ControllerTarget::Tcp { .. } | ControllerTarget::Ssl { .. } | ControllerTarget::Unix(_) => {
            None
        }
    });
    controllers.chain(site.in_band.managers.iter().copied())
}

/// Returns the MAC address of the next hop towards a host, if the kernel knows it.
fn next_hop(host: Ipv4Addr, kernel: &KernelTables) -> Option<MacAddr> {
    let host = IpAddr::V4(host);
    let routes = kernel.routes.iter();
    let routes = routes.filter(|route| is_within(host, route.to, route.len));
    let order = |route: &&KernelRoute| (route.len, std::cmp::Reverse(route.metric));
    let route = routes.max_by_key(order)?;
    let next = route.gateway.unwrap_or(host);
    let mut neighbours = kernel.neighbours.iter();
    let found = neighbours.find(|known| known.index == route.index && known.address == next);
    found.map(|known| known.mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use switch::underlay::KernelNeighbour;

    #[test]
    fn next_hop_is_host_or_gateway_of_best_route() {
        let route = |to: [u8; 4], len, gateway: Option<[u8; 4]>, metric| KernelRoute {
            to: to.into(),
            len,
            gateway: gateway.map(IpAddr::from),
            source: None,
            index: 7,
            metric,
        };
        let neighbour = |address: [u8; 4]| KernelNeighbour {
            index: 7,
            address: address.into(),
            mac: MacAddr([2, 0, 0, 0, 0, address[3]]),
        };
        let kernel = KernelTables {
            routes: vec![
                route([0; 4], 0, Some([10, 0, 0, 254]), 0),
                route([10, 0, 0, 0], 24, None, 0),
                route([10, 9, 0, 0], 16, Some([10, 0, 0, 1]), 5),
                route([10, 9, 0, 0], 16, Some([10, 0, 0, 2]), 1),
            ],
            neighbours: [[10, 0, 0, 254], [10, 0, 0, 9], [10, 0, 0, 1], [10, 0, 0, 2]]
                .map(neighbour)
                .into(),
            ..KernelTables::default()
        };
        let next = |host: [u8; 4]| next_hop(host.into(), &kernel).map(|mac| mac.0[5]);
        assert_eq!(next([192, 0, 2, 1]), Some(254));
        assert_eq!(next([10, 0, 0, 9]), Some(9));
        assert_eq!(next([10, 0, 0, 8]), None, "nobody knows where it is");
        assert_eq!(next([10, 9, 0, 9]), Some(2));
    }
}

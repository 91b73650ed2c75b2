//! The underlay of tunnels: combines the kernel's tables, routes and neighbours set by commands,
//! and the existing ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use base::Instant;
use packet::neighbour::request;
use packet::{Frame, MacAddr};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::Control;
use super::host_ports::HostPorts;
use super::neighbours::{NeighbourCache, NeighbourOrigin};
use crate::underlay::{ResolveRequest, follow};
use config::PortKind;
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use dataplane::underlay::{EGRESS_PORTS, Underlay, UnderlayPort, UnderlayRoute};
use switch::underlay::{KernelRoute, KernelTables};

/// The minimum interval between two resolutions of the same host.
const RESOLVE_INTERVAL: Duration = Duration::from_millis(500);

/// The limit of pending resolutions; further ones wait until these are answered or time out.
const RESOLVE_MAX: usize = 1024;

/// A route set by `ovs/route/add`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserRoute {
    /// The destination prefix.
    pub(super) to: IpAddr,
    /// The prefix length, in bits.
    pub(super) len: u8,
    /// The packet mark; zero for unmarked packets.
    pub(super) mark: u32,
    /// The gateway, if any.
    pub(super) gateway: Option<IpAddr>,
    /// The source address, if set.
    pub(super) source: Option<IpAddr>,
    /// The egress interface.
    pub(super) by: String,
}

/// The sources of the underlay.
pub(super) struct UnderlaySources {
    /// The kernel's tables.
    kernel: KernelTables,
    /// Routes set by commands.
    pub(super) routes: Vec<UserRoute>,
    /// Addresses of dummies set by commands, by the dummy's name.
    pub(super) addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Neighbours set by commands and taken from messages.
    pub(super) neighbours: NeighbourCache,
    /// The first and the last UDP source port.
    pub(super) egress_ports: (u16, u16),
    /// The queue of the task that follows the kernel; none until it is needed.
    resolver: Option<UnboundedSender<ResolveRequest>>,
    /// Pending resolutions, with the time of the request.
    pending: BTreeMap<(PortKey, IpAddr), Instant>,
    /// The interfaces of the host that carry tunnel packets.
    pub(super) host_ports: HostPorts,
}

impl Default for UnderlaySources {
    fn default() -> Self {
        Self {
            kernel: KernelTables::default(),
            routes: Vec::new(),
            addresses: BTreeMap::new(),
            neighbours: NeighbourCache::default(),
            egress_ports: EGRESS_PORTS,
            resolver: None,
            pending: BTreeMap::new(),
            host_ports: HostPorts::default(),
        }
    }
}

impl UnderlaySources {
    /// Returns the kernel's tables.
    pub(super) const fn kernel(&self) -> &KernelTables {
        &self.kernel
    }

    /// Returns the kernel's routes.
    pub(super) fn kernel_routes(&self) -> &[KernelRoute] {
        &self.kernel.routes
    }

    /// Returns true if the host's addresses are known.
    pub(super) const fn knows_addresses(&self) -> bool {
        !self.kernel.addresses.is_empty()
    }

    /// Returns the first address of an interface of the host, preferably IPv4.
    pub(super) fn address_of(&self, index: u32) -> Option<IpAddr> {
        let addresses = self.kernel.addresses.iter();
        let own = addresses.filter(|address| address.index == index);
        let own = own.map(|address| address.address);
        own.min_by_key(IpAddr::is_ipv6)
    }
}

impl Control {
    /// Replaces the kernel's tables.
    pub(super) fn handle_underlay(&mut self, tables: KernelTables) {
        self.underlay.kernel = tables;
        self.update_routes();
    }

    fn update_routes(&mut self) {
        self.update_host_ports();
        self.update_underlay();
        self.update_in_band();
        self.update_agents();
    }

    /// Requests that the kernel resolves a host.
    pub(super) fn handle_resolve(&mut self, by: PortKey, host: IpAddr) {
        let now = self.now();
        let pending = &mut self.underlay.pending;
        pending.retain(|_, then| now < *then + RESOLVE_INTERVAL);
        if pending.len() >= RESOLVE_MAX || pending.contains_key(&(by, host)) {
            return;
        }
        pending.insert((by, host), now);
        let site = self.sites.get(&by.bridge);
        let index = match by.bridge {
            BridgeId::HOST => Some(by.port.0),
            _ => site.and_then(|site| site.ports.get(&by.port)?.index),
        };
        match (index, &self.underlay.resolver) {
            (Some(index), Some(resolver)) => {
                // The task may have ended with the netlink socket.
                let _ = resolver.send((index, host));
            }
            (Some(_), None) => {}
            (None, _) => self.send_neighbour_request(by, host),
        }
    }

    /// Sends an ARP request or a neighbour solicitation on a port that no kernel serves, as if its
    /// host had sent it.
    fn send_neighbour_request(&self, by: PortKey, host: IpAddr) {
        let underlay_port = self.publications.underlay().ports_of_host.get(&by);
        let port = self.sites.get(&by.bridge);
        let port = port.and_then(|site| site.ports.get(&by.port));
        let device = port.and_then(|port| port.device.as_ref());
        let dummy = device.and_then(|device| device.dummy());
        let (Some(underlay_port), Some(dummy)) = (underlay_port, dummy) else {
            return;
        };
        let mut addresses = underlay_port.addresses.iter();
        let source = addresses.find(|address| address.is_ipv4() == host.is_ipv4());
        let bytes = source.and_then(|source| request(underlay_port.mac, *source, host));
        if let Some(bytes) = bytes {
            // A dummy that is down loses it, like a wire; the next frame of the tunnel repeats it.
            let _ = dummy.inject(0, Frame::from_bytes(&bytes));
        }
    }

    /// Records a neighbour that a worker took from a message on this port.
    pub(super) fn handle_neighbour(&mut self, at: PortKey, host: IpAddr, mac: MacAddr) {
        let now = self.now();
        self.underlay.pending.remove(&(at, host));
        let underlay_port = self.publications.underlay().ports_of_host.get(&at);
        let Some(name) = underlay_port.map(|port| port.name.clone()) else {
            return;
        };
        let neighbours = &mut self.underlay.neighbours;
        if neighbours.set((name, host), mac, NeighbourOrigin::Message, now) {
            self.update_underlay();
        }
    }

    /// Removes expired neighbours, and requests learned ones again before they expire.
    pub(super) fn age_neighbours(&mut self) {
        let now = self.now();
        let timeouts = self.underlay.neighbours.handle_timeouts(now);
        for (name, host) in timeouts.renewals {
            if let Some(by) = self.host_port_named(&name) {
                self.send_neighbour_request(by, host);
            }
        }
        if timeouts.is_changed {
            self.update_underlay();
        }
    }

    /// Rebuilds the underlay, and has it published if it has changed.
    pub(super) fn update_underlay(&mut self) {
        self.remove_stale_dummies();
        self.remove_stale_neighbours();
        let underlay = self.underlay_now();
        self.publications.set_underlay(underlay);
    }

    /// Removes the addresses of dummies that no longer exist.
    fn remove_stale_dummies(&mut self) {
        let ports = self.sites.values().flat_map(|site| site.ports.values());
        let is_dummy = |name: &str| {
            ports
                .clone()
                .any(|port| port.spec.name == name && matches!(port.spec.kind, PortKind::Dummy(_)))
        };
        self.underlay.addresses.retain(|name, _| is_dummy(name));
    }

    /// Removes the neighbours behind interfaces that no longer exist.
    fn remove_stale_neighbours(&mut self) {
        let sites = self.sites.values();
        let bridges = sites.clone().map(|site| site.bridge.name());
        let ports = sites.flat_map(|site| site.ports.values());
        let mut names: BTreeSet<&str> = bridges.collect();
        names.extend(ports.map(|port| port.spec.name.as_str()));
        let host_ports = self.publications.underlay().ports_of_host.values();
        names.extend(host_ports.map(|port| port.name.as_str()));
        self.underlay.neighbours.retain(&names);
    }

    /// Follows the kernel's tables if its routes are used, or from the first tunnel, sFlow agent or
    /// in-band controller on.
    pub(super) fn follow_underlay(&mut self) {
        let sites = self.sites.values();
        let mut ports = sites.flat_map(|site| site.ports.values());
        let has_tunnels = ports.any(|port| matches!(port.spec.kind, PortKind::Tunnel(_)));
        let mut sites = self.sites.values();
        let has_agents = sites.any(|site| site.bridge.exporters().sflow.is_some());
        let follows =
            self.tools.system_routes || has_tunnels || has_agents || self.has_far_controllers();
        if follows && self.underlay.resolver.is_none() {
            let (resolver, requests) = unbounded_channel();
            let followed = follow(self.tools.inbox.clone(), requests, self.tools.system_routes);
            self.tools.runtime.spawn(followed);
            self.underlay.resolver = Some(resolver);
        }
        self.update_routes();
    }

    fn underlay_now(&self) -> Underlay {
        let mut underlay = Underlay::default();
        underlay.egress_ports = self.underlay.egress_ports;
        let mut by_index = self.add_ports(&mut underlay);
        self.underlay
            .host_ports
            .add_to(&mut underlay, &mut by_index);
        let by_name: BTreeMap<_, _> = underlay
            .ports_of_host
            .iter()
            .map(|(key, host_port)| (host_port.name.clone(), *key))
            .collect();
        let kernel = &self.underlay.kernel;
        for entry in &kernel.addresses {
            let host_port = by_index.get(&entry.index);
            if let Some(host_port) = host_port.and_then(|key| underlay.ports_of_host.get_mut(key)) {
                host_port.addresses.push(entry.address);
            }
        }
        for entry in &kernel.neighbours {
            if let Some(key) = by_index.get(&entry.index) {
                underlay.neighbours.insert((*key, entry.address), entry.mac);
            }
        }
        for (name, address, mac) in self.underlay.neighbours.iter() {
            if let Some(key) = by_name.get(name) {
                underlay.neighbours.insert((*key, address), mac);
            }
        }
        let by_command = self.underlay.routes.iter().map(|route| UnderlayRoute {
            to: route.to,
            len: route.len,
            mark: route.mark,
            gateway: route.gateway,
            source: route.source,
            by: by_name.get(route.by.as_str()).copied(),
            metric: 0,
        });
        let by_kernel = kernel.routes.iter().map(|route| UnderlayRoute {
            to: route.to,
            len: route.len,
            mark: 0,
            gateway: route.gateway,
            source: route.source,
            by: by_index.get(&route.index).copied(),
            // Routes set by commands take precedence.
            metric: route.metric.saturating_add(1),
        });
        underlay.set_routes(by_command.chain(by_kernel).collect());
        underlay
    }

    /// Adds the ports with addresses of the host, and the tunnel endpoints. Returns the former by
    /// interface index.
    fn add_ports(&self, underlay: &mut Underlay) -> BTreeMap<u32, PortKey> {
        let mut by_index = BTreeMap::new();
        for (bridge, site) in &self.sites {
            for (number, port) in &site.ports {
                let key = PortKey {
                    bridge: *bridge,
                    port: *number,
                };
                let by_command = self.underlay.addresses.get(&port.spec.name);
                match &port.spec.kind {
                    kind @ (PortKind::Tap | PortKind::Dummy(_)) => {
                        let has_addresses = match kind {
                            PortKind::Tap => port.index.is_some(),
                            _ => by_command.is_some(),
                        };
                        let entry = site.bridge.ports().find(|(port, _)| port == number);
                        let Some((_, entry)) = entry.filter(|_| has_addresses) else {
                            continue;
                        };
                        by_index.extend(port.index.map(|index| (index, key)));
                        let host_port = UnderlayPort {
                            name: port.spec.name.clone(),
                            mac: entry.desc.hw_addr,
                            addresses: by_command.cloned().unwrap_or_default(),
                            // The kernel resolves the neighbours of its interfaces.
                            snoops: port.index.is_none(),
                        };
                        underlay.ports_of_host.insert(key, host_port);
                    }
                    PortKind::Tunnel(tunnel) if port.device.is_some() => {
                        underlay.tunnels.add(key, tunnel);
                    }
                    _ => {}
                }
            }
        }
        by_index
    }

    /// Returns the port with this name, if it has addresses of the host.
    pub(super) fn host_port_named(&self, name: &str) -> Option<PortKey> {
        let ports_of_host = &self.publications.underlay().ports_of_host;
        let found = ports_of_host
            .iter()
            .find(|(_, host_port)| host_port.name == name);
        found.map(|(key, _)| *key)
    }
}

//! What tunnels' packets go by: put together from what the kernel tells, what was said by hand,
//! and the ports that there are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use base::Instant;
use packet::MacAddr;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::Control;
use crate::underlay::{Wanted, follow};
use config::PortKind;
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use dataplane::underlay::{EGRESS_PORTS, Underlay, UnderlayPort, UnderlayRoute};
use switch::underlay::{KernelRoute, KernelTables};

/// So long the kernel is not asked again where a host is.
const ASKED_AGAIN: Duration = Duration::from_millis(500);

/// Hosts that are asked for at a time; more are asked for when these are answered, or their time
/// is over.
const ASKED_MAX: usize = 1024;

/// A route that was said by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserRoute {
    /// To addresses that begin so ...
    pub(super) to: IpAddr,
    /// ... in so many bits.
    pub(super) len: u8,
    /// By this router, if by any.
    pub(super) gateway: Option<IpAddr>,
    /// From this address, if it is said.
    pub(super) source: Option<IpAddr>,
    /// By this interface.
    pub(super) by: String,
}

/// What is known of ways to other hosts.
#[derive(Debug)]
pub(super) struct UnderlaySite {
    /// What the kernel tells.
    kernel: KernelTables,
    /// Routes that were said by hand.
    pub(super) routes: Vec<UserRoute>,
    /// Addresses of dummies, which were said by hand, by the dummy's name.
    pub(super) addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Neighbours that were said by hand, by the name of the port's interface.
    pub(super) neighbours: BTreeMap<(String, IpAddr), MacAddr>,
    /// UDP source ports, the first and the last.
    pub(super) egress_ports: (u16, u16),
    /// The way to whom asks the kernel; none while there are no tunnels.
    asks: Option<UnboundedSender<Wanted>>,
    /// Hosts that were asked for.
    asked: BTreeMap<(PortKey, IpAddr), Instant>,
}

impl Default for UnderlaySite {
    fn default() -> Self {
        Self {
            kernel: KernelTables::default(),
            routes: Vec::new(),
            addresses: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            egress_ports: EGRESS_PORTS,
            asks: None,
            asked: BTreeMap::new(),
        }
    }
}

impl UnderlaySite {
    /// What the kernel knows of ways to other hosts.
    pub(super) const fn kernel(&self) -> &KernelTables {
        &self.kernel
    }

    /// The routes of the kernel.
    pub(super) fn kernel_routes(&self) -> &[KernelRoute] {
        &self.kernel.routes
    }

    /// Whether the host's addresses are known.
    pub(super) const fn knows_addresses(&self) -> bool {
        !self.kernel.addresses.is_empty()
    }

    /// The first address of an interface of the host; one of IPv4, if it has any.
    pub(super) fn address_of(&self, index: u32) -> Option<IpAddr> {
        let addresses = self.kernel.addresses.iter();
        let own = addresses.filter(|address| address.index == index);
        let own = own.map(|address| address.address);
        own.min_by_key(IpAddr::is_ipv6)
    }
}

impl Control {
    /// Takes news of the kernel's tables.
    pub(super) fn handle_underlay(&mut self, tables: KernelTables) {
        self.underlay.kernel = tables;
        self.settle_ways();
    }

    fn settle_ways(&mut self) {
        self.settle_host_ports();
        self.lay_underlay();
        self.lay_in_band();
        self.settle_agents();
    }

    /// Has the kernel find out where a host is.
    pub(super) fn handle_resolve(&mut self, by: PortKey, host: IpAddr) {
        let now = self.now();
        let asked = &mut self.underlay.asked;
        asked.retain(|_, then| now < *then + ASKED_AGAIN);
        if asked.len() >= ASKED_MAX || asked.contains_key(&(by, host)) {
            return;
        }
        asked.insert((by, host), now);
        let site = self.sites.get(&by.bridge);
        let index = match by.bridge {
            BridgeId::HOST => Some(by.port.0),
            _ => site.and_then(|site| site.ports.get(&by.port)?.index),
        };
        if let (Some(index), Some(asks)) = (index, &self.underlay.asks) {
            // Whoever follows the kernel may have ended with it.
            let _ = asks.send((index, host));
        }
    }

    /// Puts together what tunnels' packets go by, and has it published if it is not as it was.
    pub(super) fn lay_underlay(&mut self) {
        self.forget_dummies();
        let underlay = self.underlay_now();
        if *self.publisher.underlay() != underlay {
            self.publisher.set_underlay(underlay);
            self.virtual_links_changed = true;
        }
    }

    /// The addresses of dummies go with them.
    fn forget_dummies(&mut self) {
        let ports = self.sites.values().flat_map(|site| site.ports.values());
        let is_dummy = |name: &str| {
            ports.clone().any(|port| {
                port.wanted.name == name && matches!(port.wanted.kind, PortKind::Dummy(_))
            })
        };
        self.underlay.addresses.retain(|name, _| is_dummy(name));
    }

    /// Follows the kernel's tables from the first tunnel on, the first agent of sFlow, or the first
    /// controller that may be met through a bridge.
    pub(super) fn follow_underlay(&mut self) {
        let sites = self.sites.values();
        let mut ports = sites.flat_map(|site| site.ports.values());
        let has_tunnels = ports.any(|port| matches!(port.wanted.kind, PortKind::Tunnel(_)));
        let mut sites = self.sites.values();
        let has_agents = sites.any(|site| site.bridge.exporters().sflow.is_some());
        let follows = has_tunnels || has_agents || self.has_far_controllers();
        if follows && self.underlay.asks.is_none() {
            let (asks, wanted) = unbounded_channel();
            let followed = follow(self.tools.inbox.clone(), wanted, self.tools.system_routes);
            self.tools.runtime.spawn(followed);
            self.underlay.asks = Some(asks);
        }
        self.settle_ways();
    }

    fn underlay_now(&self) -> Underlay {
        let mut underlay = Underlay::default();
        underlay.egress_ports = self.underlay.egress_ports;
        let mut by_index = self.take_in_ports(&mut underlay);
        self.host_ports.take_in(&mut underlay, &mut by_index);
        let by_name: BTreeMap<_, _> = underlay
            .ports_of_host
            .iter()
            .map(|(key, ground)| (ground.name.clone(), *key))
            .collect();
        let kernel = &self.underlay.kernel;
        for known in &kernel.addresses {
            let ground = by_index.get(&known.index);
            if let Some(ground) = ground.and_then(|key| underlay.ports_of_host.get_mut(key)) {
                ground.addresses.push(known.address);
            }
        }
        for known in &kernel.neighbours {
            if let Some(key) = by_index.get(&known.index) {
                underlay.neighbours.insert((*key, known.address), known.mac);
            }
        }
        for ((name, address), mac) in &self.underlay.neighbours {
            if let Some(key) = by_name.get(name.as_str()) {
                underlay.neighbours.insert((*key, *address), *mac);
            }
        }
        let by_hand = self.underlay.routes.iter().map(|route| UnderlayRoute {
            to: route.to,
            len: route.len,
            gateway: route.gateway,
            source: route.source,
            by: by_name.get(route.by.as_str()).copied(),
            metric: 0,
        });
        let of_kernel = kernel.routes.iter().map(|route| UnderlayRoute {
            to: route.to,
            len: route.len,
            gateway: route.gateway,
            source: route.source,
            by: by_index.get(&route.index).copied(),
            // What was said by hand comes first.
            metric: route.metric.saturating_add(1),
        });
        underlay.set_routes(by_hand.chain(of_kernel).collect());
        underlay
    }

    /// Takes in the ports that the host has addresses at, and the ends of tunnels. Answers the
    /// former by the numbers of their interfaces.
    fn take_in_ports(&self, underlay: &mut Underlay) -> BTreeMap<u32, PortKey> {
        let mut by_index = BTreeMap::new();
        for (bridge, site) in &self.sites {
            for (number, port) in &site.ports {
                let key = PortKey {
                    bridge: *bridge,
                    port: *number,
                };
                let by_hand = self.underlay.addresses.get(&port.wanted.name);
                match &port.wanted.kind {
                    kind @ (PortKind::Tap | PortKind::Dummy(_)) => {
                        let is_ground = match kind {
                            PortKind::Tap => port.index.is_some(),
                            _ => by_hand.is_some(),
                        };
                        let entry = site.bridge.ports().find(|(port, _)| port == number);
                        let Some((_, entry)) = entry.filter(|_| is_ground) else {
                            continue;
                        };
                        by_index.extend(port.index.map(|index| (index, key)));
                        let ground = UnderlayPort {
                            name: port.wanted.name.clone(),
                            mac: entry.desc.hw_addr,
                            addresses: by_hand.cloned().unwrap_or_default(),
                        };
                        underlay.ports_of_host.insert(key, ground);
                    }
                    PortKind::Tunnel(tunnel) if port.device.is_some() => {
                        underlay.add_end(key, tunnel);
                    }
                    _ => {}
                }
            }
        }
        by_index
    }

    /// The port of this name that the host has addresses at, if it is one.
    pub(super) fn ground_named(&self, name: &str) -> Option<PortKey> {
        let ports_of_host = &self.publisher.underlay().ports_of_host;
        let found = ports_of_host.iter().find(|(_, ground)| ground.name == name);
        found.map(|(key, _)| *key)
    }
}

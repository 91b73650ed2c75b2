//! Virtual ports: pairs of patch ports, tunnels, and the carrier at both ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Control;
use super::bridge_runtime::PortRuntime;
use config::PortKind;
use dataplane::slots::PortKey;
use dataplane::virtual_links::{VirtualLink, VirtualLinks};
use switch::link::Link;

impl Control {
    /// Connects patch ports that name each other, and disconnects those that no longer do.
    pub(super) fn connect_patches(&mut self) {
        self.follow_underlay();
        let changed = self.publications.set_virtual_links(self.pairs());
        let sites = self.sites.iter();
        let ports = sites.flat_map(|(id, site)| site.ports.iter().map(|port| (*id, port)));
        let ends: Vec<_> = ports
            .filter(|(_, (_, port))| is_virtual(&port.spec.kind))
            .map(|(bridge, (number, _))| PortKey {
                bridge,
                port: *number,
            })
            .collect();
        for end in ends {
            let link = self.publications.virtual_links().find(end).cloned();
            // A new port has a carrier, until it turns out to have no peer.
            if !changed && link.is_some() {
                continue;
            }
            if let Some(site) = self.sites.get_mut(&end.bridge) {
                let is_tunnel = matches!(link, Some(VirtualLink::Tunnel(_)));
                site.bridge.set_tunnel(end.port, is_tunnel);
            }
            self.set_carrier(end, link.is_some());
        }
    }

    fn pairs(&self) -> VirtualLinks {
        let mut ends = BTreeMap::new();
        for (bridge, site) in &self.sites {
            for (number, port) in &site.ports {
                if let Some((name, peer)) = end(port) {
                    let key = PortKey {
                        bridge: *bridge,
                        port: *number,
                    };
                    ends.insert(name, (key, peer));
                }
            }
        }
        let pair = |(name, (key, peer)): (&&str, &(PortKey, &str))| {
            let (other, back) = ends.get(peer)?;
            (back == name).then_some((*key, VirtualLink::Patch(*other)))
        };
        let tunnels = self.sites.iter().flat_map(|(bridge, site)| {
            site.ports.iter().filter_map(|(number, port)| {
                let key = PortKey {
                    bridge: *bridge,
                    port: *number,
                };
                match &port.spec.kind {
                    PortKind::Tunnel(tunnel) if port.device.is_some() => {
                        Some((key, VirtualLink::Tunnel(Arc::clone(tunnel))))
                    }
                    _ => None,
                }
            })
        });
        ends.iter().filter_map(pair).chain(tunnels).collect()
    }

    /// Sets the carrier of a virtual port.
    fn set_carrier(&mut self, key: PortKey, carrier: bool) {
        let Some(site) = self.sites.get_mut(&key.bridge) else {
            return;
        };
        let port = site.ports.get_mut(&key.port);
        let Some(device) = port.and_then(|port| port.device.as_mut()) else {
            return;
        };
        device.set_carrier(carrier);
        let status = device.status();
        let link = Link {
            index: 0,
            name: status.name,
            up: status.up,
            carrier: status.carrier,
            hw_addr: None,
        };
        let mut effects = Vec::new();
        site.bridge.handle_port_link(key.port, &link, &mut effects);
        self.apply_effects(key.bridge, effects, &mut None);
        self.tools.facts_changed.notify_one();
    }
}

/// Returns true if ports of this kind are virtual.
const fn is_virtual(kind: &PortKind) -> bool {
    matches!(kind, PortKind::Patch(_) | PortKind::Tunnel(_))
}

/// Returns the name of an open patch port, and the name of its peer.
fn end(port: &PortRuntime) -> Option<(&str, &str)> {
    match &port.spec.kind {
        PortKind::Patch(peer) if port.device.is_some() => Some((&port.spec.name, peer)),
        _ => None,
    }
}

//! Ports within the process: which are joined, and that both ends know it.

use std::collections::BTreeMap;

use super::Control;
use super::site::PortSite;
use crate::config::PortKind;
use crate::core::link::Link;
use crate::dataplane::slots::PortKey;
use crate::dataplane::ways::{Way, Ways};

impl Control {
    /// Joins patch ports that name each other, and parts those that do so no more.
    pub(super) fn pair_up(&mut self) {
        let ways = self.pairs();
        if *self.publisher.ways() == ways {
            return;
        }
        self.publisher.set_ways(ways);
        self.ways_changed = true;
        let sites = self.sites.iter();
        let ports = sites.flat_map(|(id, site)| site.ports.iter().map(|port| (*id, port)));
        let ends: Vec<_> = ports
            .filter(|(_, (_, port))| matches!(port.wanted.kind, PortKind::Patch(_)))
            .map(|(bridge, (number, _))| PortKey {
                bridge,
                port: *number,
            })
            .collect();
        for end in ends {
            let paired = self.publisher.ways().find(end).is_some();
            self.set_carrier(end, paired);
        }
    }

    fn pairs(&self) -> Ways {
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
            (back == name).then_some((*key, Way::Patch(*other)))
        };
        ends.iter().filter_map(pair).collect()
    }

    /// Has a port within the process know whether there is something at its other end.
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
        self.carry_out(key.bridge, effects, &mut None);
        self.tools.news.notify_one();
    }
}

/// The name of a patch port that is open, and of what it wants at its other end.
fn end(port: &PortSite) -> Option<(&str, &str)> {
    match &port.wanted.kind {
        PortKind::Patch(peer) if port.device.is_some() => Some((&port.wanted.name, peer)),
        _ => None,
    }
}

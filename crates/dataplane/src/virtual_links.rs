//! The peers of virtual ports: patch ports and tunnels. Published with the tables, so a frame sees
//! a change whole or not at all.

use std::sync::Arc;

use super::slots::PortKey;
use config::TunnelConfig;

/// The peer of a virtual port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualLink {
    /// Another patch port, which receives the frames.
    Patch(PortKey),
    /// A tunnel.
    Tunnel(Arc<TunnelConfig>),
}

/// The peers of all virtual ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualLinks {
    /// Sorted by key.
    virtual_links: Vec<(PortKey, VirtualLink)>,
}

impl VirtualLinks {
    /// Returns the peer of a port, if it has one.
    pub fn find(&self, port: PortKey) -> Option<&VirtualLink> {
        let place = self
            .virtual_links
            .binary_search_by_key(&port, |(key, _)| *key);
        place.ok().map(|place| &self.virtual_links[place].1)
    }
}

impl FromIterator<(PortKey, VirtualLink)> for VirtualLinks {
    fn from_iter<I: IntoIterator<Item = (PortKey, VirtualLink)>>(virtual_links: I) -> Self {
        let mut virtual_links: Vec<_> = virtual_links.into_iter().collect();
        virtual_links.sort_by_key(|(key, _)| *key);
        Self { virtual_links }
    }
}

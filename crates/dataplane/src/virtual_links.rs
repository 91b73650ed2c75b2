//! Where frames go on that leave by a port within the process: what stands behind such ports
//! at one moment. Published with the tables, so a frame sees a change whole or not at all.

use std::sync::Arc;

use super::slots::PortKey;
use config::TunnelConfig;

/// What is behind a port within the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualLink {
    /// Another port, by which frames come in.
    Patch(PortKey),
    /// A tunnel.
    Tunnel(Arc<TunnelConfig>),
}

/// All of them, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualLinks {
    /// In the order of the keys.
    virtual_links: Vec<(PortKey, VirtualLink)>,
}

impl VirtualLinks {
    /// What is behind a port, if there is anything now.
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

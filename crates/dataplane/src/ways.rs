//! Where frames go on that leave by a port within the process: what stands behind such ports
//! at one moment. Published with the tables, so a frame sees a change whole or not at all.

use std::sync::Arc;

use super::slots::PortKey;
use config::Tunnel;

/// What is behind a port within the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Another port, by which frames come in.
    Patch(PortKey),
    /// A tunnel.
    Tunnel(Arc<Tunnel>),
}

/// All of them, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// In the order of the keys.
    ways: Vec<(PortKey, Way)>,
}

impl Ways {
    /// What is behind a port, if there is anything now.
    pub fn find(&self, port: PortKey) -> Option<&Way> {
        let place = self.ways.binary_search_by_key(&port, |(key, _)| *key);
        place.ok().map(|place| &self.ways[place].1)
    }
}

impl FromIterator<(PortKey, Way)> for Ways {
    fn from_iter<I: IntoIterator<Item = (PortKey, Way)>>(ways: I) -> Self {
        let mut ways: Vec<_> = ways.into_iter().collect();
        ways.sort_by_key(|(key, _)| *key);
        Self { ways }
    }
}

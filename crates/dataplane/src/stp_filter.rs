//! The port state filter: drops frames that are received on ports which the spanning tree blocks,
//! before the tables or after learning.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::PortNo;

/// The treatment of frames received on a blocked port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedPort {
    /// Learn the source address, then drop.
    LearnOnly,
    /// Drop.
    DropAll,
}

/// The blocked ports of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StpFilter(BTreeMap<PortNo, BlockedPort>);

impl StpFilter {
    /// Compiles the filter; none if no port is blocked.
    pub fn compile(ports: impl IntoIterator<Item = (PortNo, BlockedPort)>) -> Option<Arc<Self>> {
        let ports: BTreeMap<_, _> = ports.into_iter().collect();
        (!ports.is_empty()).then(|| Arc::new(Self(ports)))
    }

    /// Returns the treatment of a blocked port; none for other ports.
    pub fn of(&self, port: PortNo) -> Option<BlockedPort> {
        self.0.get(&port).copied()
    }
}

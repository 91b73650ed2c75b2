//! Ports whose frames go nowhere, since a spanning tree keeps them out: what comes in by them is
//! dropped before the tables, or looked at for whom it teaches and dropped then.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::PortNo;

/// What becomes of a frame that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedPort {
    /// It teaches where its sender is, and goes nowhere.
    LearnOnly,
    /// Nothing.
    DropAll,
}

/// The ports of a bridge that do not let frames in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StpFilter(BTreeMap<PortNo, BlockedPort>);

impl StpFilter {
    /// Those of these ports; none if there are none.
    pub fn compile(held: impl IntoIterator<Item = (PortNo, BlockedPort)>) -> Option<Arc<Self>> {
        let held: BTreeMap<_, _> = held.into_iter().collect();
        (!held.is_empty()).then(|| Arc::new(Self(held)))
    }

    /// What becomes of the frames of a port; none if they go on.
    pub fn of(&self, port: PortNo) -> Option<BlockedPort> {
        self.0.get(&port).copied()
    }
}

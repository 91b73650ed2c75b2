//! The control protocols of a bridge, and the punted frames of other switches: BPDUs and slow
//! protocols.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo};
use packet::wire::slow;

use super::bonds::Bonds;
use super::{Bridge, BridgeSpanningTree, Effect};
use dataplane::in_band::InBand;
use dataplane::punt::{PuntTable, PuntedProtocols, is_bpdu};
use dataplane::stp_filter::StpFilter;

/// The protocols of a bridge with other switches, and its in-band control.
pub(super) struct ControlProtocols {
    /// The spanning tree, if it is enabled.
    pub(super) spanning: Option<BridgeSpanningTree>,
    /// Ports that the spanning tree blocks; none if no port is blocked.
    pub(super) stp_filter: Option<Arc<StpFilter>>,
    pub(super) bonds: Bonds,
    /// Control protocols that ports punt; none if no port punts.
    punts: Option<Arc<PuntTable>>,
    /// The in-band control path to the controllers; none if it is disabled.
    pub(super) in_band: Option<Arc<InBand>>,
}

impl ControlProtocols {
    /// Returns disabled protocols of a bridge with this number of sending threads.
    pub(super) const fn new(writers: usize) -> Self {
        Self {
            spanning: None,
            stp_filter: None,
            bonds: Bonds::new(writers),
            punts: None,
            in_band: None,
        }
    }

    /// Returns the time of the next timer of a protocol.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let tree = self.spanning.as_ref();
        let tree = tree.map(BridgeSpanningTree::next_timeout);
        let timeouts = [tree, self.bonds.next_timeout()];
        timeouts.into_iter().flatten().min()
    }

    /// Recomputes the punted protocols of these ports. With a spanning tree no port forwards BPDUs,
    /// whether it takes part in the tree or not.
    fn update_punts(&mut self, all: impl Iterator<Item = PortNo>) {
        let mut ports: BTreeMap<PortNo, PuntedProtocols> = BTreeMap::new();
        for port in all.filter(|_| self.spanning.is_some()) {
            ports.entry(port).or_default().spanning = true;
        }
        for port in self.bonds.lacp_members() {
            ports.entry(port).or_default().slow = true;
        }
        self.punts = PuntTable::compile(ports);
    }
}

impl Bridge {
    /// Returns the protocols that ports punt; none if no port punts.
    pub const fn punts(&self) -> Option<&Arc<PuntTable>> {
        self.protocols.punts.as_ref()
    }

    /// Recomputes the punted protocols.
    pub(super) fn update_punts(&mut self) {
        self.protocols.update_punts(self.ports.keys().copied());
        self.publication.request();
    }

    /// Handles a punted frame.
    pub fn handle_punted(
        &mut self,
        from: PortNo,
        frame: &[u8],
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if slow::is_slow_protocol(frame) {
            self.protocols
                .bonds
                .handle_slow_protocol(&self.ports, from, frame, now, effects);
        }
        if is_bpdu(frame) {
            self.handle_bpdu(from, frame);
        }
    }

    /// Runs the bonds and the spanning tree, and pushes the frames they send.
    pub fn run_protocols(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.run_bonds(now, effects);
        self.run_spanning_tree(now, effects);
    }
}

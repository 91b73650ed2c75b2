//! The control protocols of a bridge, and the punted frames of other switches: BPDUs, slow
//! protocols, and messages of connectivity monitoring.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo};

use super::bonds::Bonds;
use super::monitoring::BridgeMonitors;
use super::ports::PortEntries;
use super::{Bridge, BridgeSpanningTree, Effect};
use dataplane::in_band::InBand;
use dataplane::punt::{PuntTable, PuntedProtocol, PuntedProtocols};
use dataplane::stp_filter::StpFilter;

/// The protocols of a bridge with other switches, and its in-band control.
pub(super) struct ControlProtocols {
    /// The spanning tree, if it is enabled.
    pub(super) spanning: Option<BridgeSpanningTree>,
    /// Times that a guard of the spanning tree shut or blocked a port.
    pub(super) tree_guarded: u64,
    /// Ports that the spanning tree blocks; none if no port is blocked.
    pub(super) stp_filter: Option<Arc<StpFilter>>,
    pub(super) bonds: Bonds,
    /// The connectivity monitoring of ports.
    pub(super) monitors: BridgeMonitors,
    /// Control protocols that ports punt; none if no port punts.
    punts: Option<Arc<PuntTable>>,
    /// The in-band control path to the controllers; none if it is disabled.
    pub(super) in_band: Option<Arc<InBand>>,
}

impl ControlProtocols {
    /// Returns disabled protocols of a bridge with this number of sending threads. `seed` is that of
    /// its monitors.
    pub(super) const fn new(writers: usize, seed: u64) -> Self {
        Self {
            spanning: None,
            tree_guarded: 0,
            stp_filter: None,
            bonds: Bonds::new(writers),
            monitors: BridgeMonitors::new(seed),
            punts: None,
            in_band: None,
        }
    }

    /// Returns the time of the next timer of a protocol.
    pub(super) fn next_timeout(&self, ports: &PortEntries) -> Option<Instant> {
        let tree = self.spanning.as_ref();
        let tree = tree.map(BridgeSpanningTree::next_timeout);
        let monitors = self.monitors.next_timeout(ports);
        let timeouts = [tree, self.bonds.next_timeout(), monitors];
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
        self.monitors.add_punts(&mut ports);
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
        // The port may have stopped to punt the protocol in the meantime. Tunnel keys have been
        // checked by the worker.
        let punted = self
            .protocols
            .punts
            .as_ref()
            .and_then(|punts| punts.of(from));
        match punted.and_then(|punted| punted.protocol(frame, 0)) {
            Some(PuntedProtocol::Slow) => {
                let bonds = &mut self.protocols.bonds;
                bonds.handle_slow_protocol(&self.ports, from, frame, now, effects);
            }
            Some(PuntedProtocol::Spanning) => self.handle_bpdu(from, frame),
            Some(protocol) => self.handle_monitored(from, (protocol, frame), now, effects),
            None => {}
        }
    }

    /// Runs the monitors, the bonds and the spanning tree, and pushes the frames they send.
    pub fn run_protocols(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.run_monitors(now, effects);
        self.run_bonds(now, effects);
        self.run_spanning_tree(now, effects);
    }
}

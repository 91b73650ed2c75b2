//! Punted control frames of other switches: BPDUs and slow protocols.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo};
use packet::wire::slow;

use super::{Bridge, Effect};
use dataplane::punt::{PuntTable, PuntedProtocols, is_bpdu};

impl Bridge {
    /// Returns the protocols that ports punt; none if no port punts.
    pub const fn punts(&self) -> Option<&Arc<PuntTable>> {
        self.punts.as_ref()
    }

    /// Recomputes the punted protocols. With a spanning tree no port forwards BPDUs, whether it
    /// takes part in the tree or not.
    pub(super) fn update_punts(&mut self) {
        let mut ports: BTreeMap<PortNo, PuntedProtocols> = BTreeMap::new();
        let all = self.ports.keys().filter(|_| self.spanning.is_some());
        for port in all {
            ports.entry(*port).or_default().spanning = true;
        }
        for port in self.lacp_members() {
            ports.entry(port).or_default().slow = true;
        }
        self.punts = PuntTable::compile(ports);
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
            self.handle_slow_protocol(from, frame, now, effects);
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

//! What switches say to each other, as far as a bridge understands it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo};
use packet::wire::slow;

use super::{Bridge, Effect};
use dataplane::punt::{PuntTable, PuntedProtocols, is_bpdu};

impl Bridge {
    /// What its ports take of that; none if nothing.
    pub const fn punts(&self) -> Option<&Arc<PuntTable>> {
        self.punts.as_ref()
    }

    /// Settles anew what its ports take. Where there is a spanning tree, no port passes on
    /// BPDUs, whether it takes part or not.
    pub(super) fn update_punts(&mut self) {
        let mut ports: BTreeMap<PortNo, PuntedProtocols> = BTreeMap::new();
        let all = self.ports.keys().filter(|_| self.spanning.is_some());
        for port in all {
            ports.entry(*port).or_default().spanning = true;
        }
        for port in self.speakers_of_lacp() {
            ports.entry(port).or_default().slow = true;
        }
        self.punts = PuntTable::compile(ports);
        self.unpublished = true;
    }

    /// Takes a message that came by one of these ports.
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
            self.hear_bpdu(from, frame);
        }
    }

    /// Does what is due between this switch and others, and says what it has to say to them.
    pub fn speak_to_others(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.look_after_bonds(now, effects);
        self.look_after_tree(now, effects);
    }
}

//! The stations of a bridge: learned from its frames, and put in by hand.

use std::sync::Arc;

use base::{Instant, PortNo};

use super::Bridge;
use l2::fdb::{FdbEntry, FdbFull, FdbKey, ForwardingDatabase};

impl Bridge {
    /// The stations, for those who want to see them.
    pub const fn stations(&self) -> &ForwardingDatabase {
        &self.stations
    }

    /// Learns what a worker saw: a station behind a port.
    pub fn handle_station(&mut self, address: FdbKey, port: PortNo, now: Instant) {
        if self.ports.contains_key(&port) && self.stations.learn(address, self.home(port), now) {
            self.unpublished = true;
        }
    }

    /// Puts a station behind a port, for good. Returns which it takes the place of, unless
    /// it is there already.
    ///
    /// # Errors
    /// There is no room.
    pub fn add_station(
        &mut self,
        address: FdbKey,
        port: PortNo,
        now: Instant,
    ) -> Result<Option<Arc<FdbEntry>>, FdbFull> {
        self.unpublished = true;
        self.stations.add_static(address, self.home(port), now)
    }

    /// Takes out a station that was put in by hand. Tells whether there was one.
    pub fn remove_station(&mut self, address: FdbKey) -> bool {
        let was_there = self.stations.remove_static(address);
        self.unpublished |= was_there;
        was_there
    }

    /// Forgets all stations that were learned.
    pub fn flush_stations(&mut self) {
        self.unpublished |= self.stations.flush();
    }

    /// Counts what happens to stations from zero again.
    pub fn clear_station_counts(&mut self) {
        self.stations.clear_counts();
    }

    /// The port whose interface has this name.
    pub fn port_named(&self, name: &str) -> Option<PortNo> {
        let mut ports = self.ports.iter();
        let found = ports.find(|(_, entry)| entry.desc.name == name);
        found.map(|(number, _)| *number)
    }
}

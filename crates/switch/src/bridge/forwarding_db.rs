//! The forwarding database of a bridge: learned and static entries.

use std::sync::Arc;

use base::{Instant, PortNo};

use super::Bridge;
use l2::fdb::{FdbEntry, FdbFull, FdbKey, ForwardingDatabase};

impl Bridge {
    /// Returns the forwarding database.
    pub const fn fdb(&self) -> &ForwardingDatabase {
        &self.normal.fdb
    }

    /// Learns an address that a worker saw on a port.
    pub fn handle_address(&mut self, address: FdbKey, port: PortNo, now: Instant) {
        if self.ports.contains_key(&port)
            && self
                .normal
                .fdb
                .learn(address, self.protocols.bonds.fdb_port(port), now)
        {
            self.publication.request();
        }
    }

    /// Adds a static entry. Returns the entry that it replaces, unless the two are equal.
    ///
    /// # Errors
    /// The forwarding database is full.
    pub fn add_static_entry(
        &mut self,
        address: FdbKey,
        port: PortNo,
        now: Instant,
    ) -> Result<Option<Arc<FdbEntry>>, FdbFull> {
        self.publication.request();
        self.normal
            .fdb
            .add_static(address, self.protocols.bonds.fdb_port(port), now)
    }

    /// Removes a static entry. Returns whether there was one.
    pub fn remove_static_entry(&mut self, address: FdbKey) -> bool {
        let was_there = self.normal.fdb.remove_static(address);
        self.publication.request_if(was_there);
        was_there
    }

    /// Removes the learned entries of these addresses: their stations left the port where another
    /// bridge knew them, so their paths may have changed.
    pub fn forget_addresses(&mut self, addresses: &[FdbKey]) {
        let has_changed = self.normal.fdb.forget(addresses);
        self.publication.request_if(has_changed);
    }

    /// Removes all learned entries.
    pub fn flush_fdb(&mut self) {
        self.publication.request_if(self.normal.fdb.flush());
    }

    /// Resets the counters of the forwarding database.
    pub fn clear_fdb_counters(&mut self) {
        self.normal.fdb.clear_counts();
    }

    /// Returns the port whose interface has this name.
    pub fn port_named(&self, name: &str) -> Option<PortNo> {
        let mut ports = self.ports.iter();
        let found = ports.find(|(_, entry)| entry.desc.name == name);
        found.map(|(number, _)| *number)
    }
}

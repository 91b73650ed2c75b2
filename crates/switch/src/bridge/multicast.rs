//! Multicast snooping: group memberships and multicast routers of a bridge.

use base::{Instant, PortNo};
use packet::MembershipMessage;

use super::Bridge;
use super::switching::NormalState;
use config::SwitchingConfig;
use l2::multicast_snooping::{MulticastTable, MulticastView};

impl NormalState {
    /// Enables, configures or disables multicast snooping.
    pub(super) fn set_snooping(&mut self, config: &SwitchingConfig) {
        match (&config.snooping, &mut self.multicast) {
            (None, _) => self.multicast = None,
            (Some(snooping), Some(table)) => table.configure(snooping, config),
            (Some(snooping), None) => {
                self.multicast = Some(MulticastTable::new(snooping, config));
            }
        }
    }

    /// Removes the memberships and the forwarding database entries of a port. Returns whether there
    /// were memberships.
    pub(super) fn remove_port(&mut self, port: PortNo) -> bool {
        self.fdb.remove_port(port);
        let table = self.multicast.as_mut();
        table.is_some_and(|table| table.remove_port(port))
    }

    /// Removes all learned addresses and memberships.
    pub(super) fn flush(&mut self) {
        self.fdb.flush();
        if let Some(table) = &mut self.multicast {
            table.flush();
        }
    }
}

impl Bridge {
    /// Returns the multicast table, if the bridge snoops.
    pub const fn multicast(&self) -> Option<&MulticastTable> {
        self.normal.multicast.as_ref()
    }

    /// Returns the workers' view of the multicast table.
    pub fn multicast_view(&self) -> Option<MulticastView> {
        self.normal.multicast.as_ref().map(MulticastTable::view)
    }

    /// Handles a membership message that was received on a port in a VLAN.
    pub fn handle_membership(&mut self, (port, vid): (PortNo, u16), frame: &[u8], now: Instant) {
        let fdb_port = self.protocols.bonds.fdb_port(port);
        let Some(table) = &mut self.normal.multicast else {
            return;
        };
        let message = MembershipMessage::parse(frame);
        if self.ports.contains_key(&port)
            && message.is_some_and(|message| table.handle_message((fdb_port, vid), &message, now))
        {
            self.publication.request();
        }
    }

    /// Flushes the multicast table. Returns whether the bridge snoops.
    pub fn flush_multicast(&mut self) -> bool {
        let Some(table) = &mut self.normal.multicast else {
            return false;
        };
        self.publication.request_if(table.flush());
        true
    }
}

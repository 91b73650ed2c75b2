//! Multicast snooping: group memberships and multicast routers of a bridge.

use base::{Instant, PortNo};
use packet::MembershipMessage;

use super::Bridge;
use config::SwitchingConfig;
use l2::multicast_snooping::{MulticastTable, MulticastView};

impl Bridge {
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

    /// Returns the multicast table, if the bridge snoops.
    pub const fn multicast(&self) -> Option<&MulticastTable> {
        self.multicast.as_ref()
    }

    /// Returns the workers' view of the multicast table.
    pub fn multicast_view(&self) -> Option<MulticastView> {
        self.multicast.as_ref().map(MulticastTable::view)
    }

    /// Handles a membership message that was received on a port in a VLAN.
    pub fn handle_membership(&mut self, (port, vid): (PortNo, u16), frame: &[u8], now: Instant) {
        let fdb_port = self.fdb_port(port);
        let Some(table) = &mut self.multicast else {
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
        let Some(table) = &mut self.multicast else {
            return false;
        };
        self.publication.request_if(table.flush());
        true
    }

    /// Removes all memberships of a port.
    pub(super) fn forget_multicast(&mut self, port: PortNo) {
        if let Some(table) = &mut self.multicast {
            self.publication.request_if(table.remove_port(port));
        }
    }

    /// Removes expired memberships.
    pub(super) fn expire_multicast(&mut self, now: Instant) {
        if let Some(table) = &mut self.multicast {
            self.publication.request_if(table.expire(now));
        }
    }
}

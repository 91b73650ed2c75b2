//! What a bridge has heard hosts and routers say of multicast groups.

use base::{Instant, PortNo};
use packet::MembershipMessage;

use super::Bridge;
use config::SwitchingConfig;
use l2::multicast_snooping::{MulticastTable, MulticastView};

impl Bridge {
    /// Listens in as it is told from now on, or no longer.
    pub(super) fn set_snooping(&mut self, config: &SwitchingConfig) {
        match (&config.snooping, &mut self.multicast) {
            (None, _) => self.multicast = None,
            (Some(snooping), Some(table)) => table.configure(snooping, config),
            (Some(snooping), None) => {
                self.multicast = Some(MulticastTable::new(snooping, config));
            }
        }
    }

    /// Who is in which group, if the bridge listens in.
    pub const fn multicast(&self) -> Option<&MulticastTable> {
        self.multicast.as_ref()
    }

    /// The same for workers.
    pub fn multicast_view(&self) -> Option<MulticastView> {
        self.multicast.as_ref().map(MulticastTable::view)
    }

    /// Takes in what a host or a router said in a VLAN, by a port.
    pub fn handle_membership(&mut self, (port, vid): (PortNo, u16), frame: &[u8], now: Instant) {
        let home = self.home(port);
        let Some(table) = &mut self.multicast else {
            return;
        };
        let said = MembershipMessage::parse(frame);
        if self.ports.contains_key(&port)
            && said.is_some_and(|said| table.handle_message((home, vid), &said, now))
        {
            self.unpublished = true;
        }
    }

    /// Forgets who is in which group. Tells whether the bridge listens in.
    pub fn flush_multicast(&mut self) -> bool {
        let Some(table) = &mut self.multicast else {
            return false;
        };
        self.unpublished |= table.flush();
        true
    }

    /// Forgets what is behind a port.
    pub(super) fn forget_multicast(&mut self, port: PortNo) {
        if let Some(table) = &mut self.multicast {
            self.unpublished |= table.remove_port(port);
        }
    }

    /// Forgets who was silent for too long.
    pub(super) fn expire_multicast(&mut self, now: Instant) {
        if let Some(table) = &mut self.multicast {
            self.unpublished |= table.expire(now);
        }
    }
}

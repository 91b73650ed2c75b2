//! The check for frames that the ingress port punts. Punted frames cross no table, so the bits here
//! are those that Open vSwitch examines of the others.

use dataplane::punt::{BfdFilter, PuntedProtocols};
use packet::wire::ethernet::EtherType;
use packet::wire::{bfd, cfm};

use super::super::key::KeyField;
use super::{MegaflowBuilder, UDP};

/// The highest bit of a port.
const PORT_TOP: u16 = 0x8000;

impl MegaflowBuilder {
    /// Records the check for messages of a port's monitors.
    pub(crate) fn check_for_monitors(&mut self, protocols: PuntedProtocols) {
        let eth_type = self.current.get(KeyField::ETH_TYPE);
        if let Some(filter) = protocols.cfm
            && eth_type == u128::from(cfm::TYPE.0)
        {
            self.examine(KeyField::ETH_DST, u128::MAX);
            if filter.check_tunnel_key {
                self.examine(KeyField::TUNNEL_ID, u128::MAX);
            }
        } else if let Some(filter) = protocols.bfd {
            self.check_for_bfd(filter);
        }
    }

    /// Records the check for packets of a BFD session. The IPv4 destination is examined only of the
    /// session's own.
    fn check_for_bfd(&mut self, filter: BfdFilter) {
        if let Some(address) = filter.eth_dst {
            self.examine(KeyField::ETH_DST, u128::MAX);
            if self.current.get(KeyField::ETH_DST) != u128::from(address.to_u64()) {
                return;
            }
        }
        if self.current.get(KeyField::ETH_TYPE) != u128::from(EtherType::IPV4.0) {
            return;
        }
        self.examine(KeyField::NW_PROTO, u128::MAX);
        if self.current.get(KeyField::NW_PROTO) != UDP || !self.has_ports() {
            return;
        }
        let port = self.current.get(KeyField::TP_DST);
        let difference = u16::try_from(port).unwrap_or_default() ^ bfd::UDP_PORT;
        if difference != 0 {
            // The highest bit that differs excludes the port.
            let bit = PORT_TOP >> difference.leading_zeros();
            return self.examine(KeyField::TP_DST, u128::from(bit));
        }
        self.examine(KeyField::TP_DST, u128::MAX);
        let dst = self.current.get(KeyField::NW_DST);
        let is_own = filter
            .ip_dst
            .is_some_and(|own| dst == u128::from(own.to_bits()));
        if is_own {
            self.examine(KeyField::NW_DST, u128::MAX);
        }
        if filter.check_tunnel_key && (is_own || filter.ip_dst.is_none()) {
            self.examine(KeyField::TUNNEL_ID, u128::MAX);
        }
    }
}

//! The ports of a bridge as the tables see them, and the permission to output to them.

use base::PortNo;
use flow::PortDesc;
use imbl::{OrdMap, OrdSet};

use crate::port::PortView;
use crate::verdict::{Destination, DropReason};

/// The ports, by number, and those that are tunnels.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortTable {
    ports: OrdMap<PortNo, PortView>,
    /// A packet that is output to one of these carries its pipeline fields, which hold the tunnel
    /// key and addresses (`ovs-fields(7)`, "Tunnel Fields").
    tunnels: OrdSet<PortNo>,
}

impl PortTable {
    /// Adds a port, or updates its configuration and state.
    pub(crate) fn set(&mut self, port: &PortDesc) {
        let before = self.get(port.number).unwrap_or_default();
        let view = PortView {
            config: port.config,
            state: port.state,
            ..before
        };
        self.ports.insert(port.number, view);
    }

    /// Changes an existing port.
    pub(crate) fn update(&mut self, port: PortNo, change: impl FnOnce(&mut PortView)) {
        if let Some(view) = self.ports.get_mut(&port) {
            change(view);
        }
    }

    /// Removes a port.
    pub(crate) fn remove(&mut self, port: PortNo) {
        self.ports.remove(&port);
    }

    /// Returns a port.
    pub(crate) fn get(&self, port: PortNo) -> Option<PortView> {
        self.ports.get(&port).copied()
    }

    /// Returns all ports, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PortNo, PortView)> {
        self.ports.iter().map(|(port, view)| (*port, *view))
    }

    /// True if `port` exists and is protected.
    pub(crate) fn is_protected(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|view| view.is_protected)
    }

    /// Checks an output of a packet from `from` to `to`.
    pub(crate) fn check_egress(&self, from: PortNo, to: PortNo) -> Result<(), DropReason> {
        let view = self.get(to).ok_or(DropReason::OutputNoPort)?;
        if view.is_protected && self.is_protected(from) {
            return Err(DropReason::OutputProtected);
        }
        match view.forwards() {
            true => Ok(()),
            false if view.without_stp_block().forwards() => Err(DropReason::OutputShut),
            false => Err(DropReason::OutputClosed),
        }
    }

    /// Stores if a port is a tunnel.
    pub(crate) fn set_tunnel(&mut self, port: PortNo, is_tunnel: bool) {
        match is_tunnel {
            true => self.tunnels.insert(port),
            false => self.tunnels.remove(&port),
        };
    }

    /// True if a packet with this destination may be sent by a tunnel.
    pub(crate) fn may_tunnel(&self, to: &Destination) -> bool {
        match to {
            Destination::Port(port) => self.tunnels.contains(port),
            Destination::Normal => !self.tunnels.is_empty(),
            Destination::Controller(_) | Destination::Collectors(_) => false,
        }
    }
}

//! Which ports are ends of tunnels: with a frame that leaves by one goes what rules have
//! written of it (`ovs-fields(7)`, "Tunnel Fields").
//!
//! What a tunnel makes of that is not known here.

use base::PortNo;
use flow::TlvMapping;
use imbl::OrdSet;

use crate::pipeline::Pipeline;
use crate::verdict::Destination;

/// The ports that are ends of tunnels.
#[derive(Clone, Debug, Default)]
pub(crate) struct TunnelPorts(OrdSet<PortNo>);

impl Pipeline {
    /// Takes note whether a port is the end of a tunnel.
    pub fn set_tunnel(&mut self, port: PortNo, is_one: bool) {
        match is_one {
            true => self.tunnels.0.insert(port),
            false => self.tunnels.0.remove(&port),
        };
    }

    /// Whether a frame that goes there may leave by a tunnel.
    pub(crate) fn may_tunnel(&self, to: &Destination) -> bool {
        match to {
            Destination::Port(port) => self.tunnels.0.contains(port),
            Destination::Normal => !self.tunnels.0.is_empty(),
            Destination::Controller(_) | Destination::Collectors(_) => false,
        }
    }

    /// The options of tunnels that are known, and by which fields.
    pub fn tunnel_options(&self) -> impl Iterator<Item = &TlvMapping> {
        self.options.mappings()
    }
}

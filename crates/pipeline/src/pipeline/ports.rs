//! The ports that tables may send to, and by which of them a frame may leave.

use base::PortNo;
use flow::PortDesc;

use super::Pipeline;
use crate::port::PortView;
use crate::verdict::DropReason;

impl Pipeline {
    /// Takes in a port, new or changed.
    pub fn set_port(&mut self, port: &PortDesc) {
        let before = self.port(port.number).unwrap_or_default();
        let view = PortView {
            config: port.config,
            state: port.state,
            ..before
        };
        self.ports.insert(port.number, view);
    }

    /// Keeps frames from leaving by a port, or no longer.
    pub fn set_stp_blocked(&mut self, port: PortNo, is_stp_blocked: bool) {
        if let Some(view) = self.ports.get_mut(&port) {
            view.is_stp_blocked = is_stp_blocked;
        }
    }

    /// Keeps frames from going between a port and others that are protected, or no longer.
    pub fn set_protected(&mut self, port: PortNo, is_protected: bool) {
        if let Some(view) = self.ports.get_mut(&port) {
            view.is_protected = is_protected;
        }
    }

    /// Forgets a port. Rules that name it stay, and send there nothing.
    pub fn remove_port(&mut self, port: PortNo) {
        self.ports.remove(&port);
    }

    /// A port, if there is one of this number.
    #[must_use]
    pub fn port(&self, port: PortNo) -> Option<PortView> {
        self.ports.get(&port).copied()
    }

    /// All ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, PortView)> {
        self.ports.iter().map(|(port, view)| (*port, *view))
    }

    /// Whether a port is protected: frames do not go from it to another that is.
    #[must_use]
    pub fn is_protected(&self, port: PortNo) -> bool {
        self.port(port).is_some_and(|view| view.is_protected)
    }

    /// Whether a frame that came in by `from` may leave by `to`, which an output names.
    ///
    /// # Errors
    /// Why not.
    pub fn check_egress(&self, from: PortNo, to: PortNo) -> Result<(), DropReason> {
        let view = self.port(to).ok_or(DropReason::OutputNoPort)?;
        if view.is_protected && self.is_protected(from) {
            return Err(DropReason::OutputProtected);
        }
        match view.forwards() {
            true => Ok(()),
            false if view.without_stp_block().forwards() => Err(DropReason::OutputShut),
            false => Err(DropReason::OutputClosed),
        }
    }
}

//! Where an output goes: ports as they are now, and the reserved ones.

use base::{MeterId, PortNo};
use flow::MaxLen;
use packet::Packet;

use super::Execution;
use crate::port::PortView;
use crate::verdict::{Cause, Destination, DropReason, PacketInMeta};

impl Execution<'_> {
    /// Sends the frame out of `port` (OF 1.3.5, 4.5), as it is now.
    pub(crate) fn output(
        &mut self,
        packet: &Packet<'_>,
        port: PortNo,
        max_len: MaxLen,
    ) -> Result<(), DropReason> {
        match port {
            // No port takes another kind of packet than Ethernet.
            port if self.is_bare() && !beside_ports(port) => {
                self.drop(DropReason::UnsupportedPacketType);
            }
            PortNo::IN_PORT => self.send(self.from),
            PortNo::TABLE => return self.submit(packet),
            PortNo::NORMAL => self.promise(Destination::Normal),
            PortNo::FLOOD => self.spread(PortView::floods),
            PortNo::ALL => self.spread(PortView::forwards),
            PortNo::CONTROLLER => self.report(max_len),
            // The only way back is `IN_PORT`, so that a mistake makes no loop.
            port if port == self.from => self.drop(DropReason::OutputToIngress),
            port => self.send(port),
        }
        Ok(())
    }

    fn send(&mut self, port: PortNo) {
        match self.pipeline.check_egress(self.from, port) {
            Ok(()) => self.promise(Destination::Port(port)),
            Err(reason) => self.drop(reason),
        }
    }

    /// To all ports that `takes` a frame, but the one it came in by, and those that are kept
    /// apart from it.
    fn spread(&mut self, takes: fn(&PortView) -> bool) {
        let is_protected = self.pipeline.is_protected(self.from);
        for (port, view) in self.pipeline.ports() {
            if port == self.from || !takes(&view.without_stp_block()) {
                continue;
            }
            if is_protected && view.is_protected {
                self.trace.on_skip(DropReason::OutputProtected);
            } else if view.is_stp_blocked {
                self.trace.on_skip(DropReason::OutputShut);
            } else {
                self.promise(Destination::Port(port));
            }
        }
    }

    /// To the controllers; by the table-miss rule only if the port allows it
    /// (OF 1.3.5, 7.2.1: `OFPPC_NO_PACKET_IN`).
    fn report(&mut self, max_len: MaxLen) {
        let done = if self.cause == Cause::MissRule && !self.reports_misses() {
            Err(DropReason::NoPacketIn)
        } else {
            self.tell_controllers(Some(max_len))
        };
        if let Err(reason) = done {
            self.drop(reason);
        }
    }

    /// The TTL is over: the controllers may want to answer the sender, and
    /// nothing more is done (OF 1.3.5, 5.12).
    pub(crate) fn expired(&mut self) -> DropReason {
        self.expired_telling(&[0])
    }

    /// As [`Self::expired`], to the controllers that gave themselves these ids.
    pub(crate) fn expired_telling(&mut self, controllers: &[u16]) -> DropReason {
        for controller in controllers {
            match self.check_meter(MeterId::CONTROLLER) {
                Ok(()) => {
                    let mut meta = self.packet_in(None);
                    (meta.cause, meta.controller) = (Cause::InvalidTtl, *controller);
                    self.promise(Destination::Controller(meta));
                }
                Err(reason) => self.drop(reason),
            }
        }
        DropReason::InvalidTtl
    }

    /// What goes with the frame to controllers that gave themselves no id.
    pub(crate) fn packet_in(&mut self, max_len: Option<MaxLen>) -> Box<PacketInMeta> {
        Box::new(PacketInMeta {
            cause: self.cause,
            table: self.table,
            cookie: self.cookie,
            registers: self.registers(),
            controller: 0,
            userdata: Vec::new(),
            continuation: None,
            max_len,
        })
    }

    /// Whether the port of arrival may cause packet-ins by misses.
    pub(crate) fn reports_misses(&self) -> bool {
        let port = self.pipeline.port(self.from);
        port.is_none_or(|port| port.reports_misses())
    }
}

/// Whether an output to it does not go out of a port.
const fn beside_ports(port: PortNo) -> bool {
    matches!(port, PortNo::TABLE | PortNo::CONTROLLER)
}

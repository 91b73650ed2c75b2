//! Outputs to ports and to the reserved ports (OF 1.3.5, 4.5).

use base::{MeterId, PortNo};
use flow::MaxLen;
use packet::Packet;

use super::Execution;
use crate::port::PortView;
use crate::verdict::{Cause, Destination, DropReason, PacketInMeta};

impl Execution<'_> {
    /// Outputs the packet to `port`.
    pub(crate) fn output(
        &mut self,
        packet: &Packet<'_>,
        port: PortNo,
        max_len: MaxLen,
    ) -> Result<(), DropReason> {
        match port {
            // Ports other than tunnels only send Ethernet frames.
            port if self.is_bare() && !is_virtual_port(port) && !self.is_tunnel(port) => {
                self.drop(DropReason::UnsupportedPacketType);
            }
            PortNo::IN_PORT => self.send(self.in_port),
            PortNo::TABLE => return self.submit_to_tables(packet),
            PortNo::NORMAL => self.record_output(Destination::Normal),
            PortNo::FLOOD => self.flood_to(PortView::floods),
            PortNo::ALL => self.flood_to(PortView::forwards),
            PortNo::CONTROLLER => self.send_packet_in(max_len),
            // Only `IN_PORT` outputs to the ingress port, so that a mistake makes no loop.
            port if port == self.in_port => self.drop(DropReason::OutputToIngress),
            port => self.send(port),
        }
        Ok(())
    }

    /// True if an output to `port` is one to a tunnel.
    fn is_tunnel(&self, port: PortNo) -> bool {
        let port = match port {
            PortNo::IN_PORT => self.in_port,
            port => port,
        };
        self.pipeline.may_tunnel(&Destination::Port(port))
    }

    fn send(&mut self, port: PortNo) {
        match self.pipeline.check_egress(self.in_port, port) {
            Ok(()) => self.record_output(Destination::Port(port)),
            Err(reason) => self.drop(reason),
        }
    }

    /// Outputs to all ports that satisfy `takes`, except the ingress port and ports that are
    /// protected from it.
    fn flood_to(&mut self, takes: fn(&PortView) -> bool) {
        let is_protected = self.pipeline.is_protected(self.in_port);
        for (port, view) in self.pipeline.ports() {
            if self.verdict.is_over_limit {
                break;
            }
            if port == self.in_port || !takes(&view.without_stp_block()) {
                continue;
            }
            if is_protected && view.is_protected {
                self.trace.on_skip(DropReason::OutputProtected);
            } else if view.is_stp_blocked {
                self.trace.on_skip(DropReason::OutputShut);
            } else {
                self.record_output(Destination::Port(port));
            }
        }
    }

    /// Sends the packet to the controllers; for the table-miss rule, only if the ingress port
    /// permits it (OF 1.3.5, 7.2.1: `OFPPC_NO_PACKET_IN`).
    fn send_packet_in(&mut self, max_len: MaxLen) {
        let done = if self.cause == Cause::MissRule && !self.reports_misses() {
            Err(DropReason::NoPacketIn)
        } else {
            self.send_to_controllers(Some(max_len))
        };
        if let Err(reason) = done {
            self.drop(reason);
        }
    }

    /// Handles an expired TTL: the controllers may answer the sender, and processing ends (OF
    /// 1.3.5, 5.12).
    pub(crate) fn handle_expired_ttl(&mut self) -> DropReason {
        self.handle_expired_ttl_for(&[0])
    }

    /// Does the same as [`Self::handle_expired_ttl`], for the controllers with these ids.
    pub(crate) fn handle_expired_ttl_for(&mut self, controllers: &[u16]) -> DropReason {
        for controller in controllers {
            match self.check_meter(MeterId::CONTROLLER) {
                Ok(()) => {
                    let mut meta = self.packet_in(None);
                    (meta.cause, meta.controller) = (Cause::InvalidTtl, *controller);
                    self.record_output(Destination::Controller(meta));
                }
                Err(reason) => self.drop(reason),
            }
        }
        DropReason::InvalidTtl
    }

    /// Returns the metadata of a packet-in to controllers without an id.
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

    /// True if the ingress port permits packet-ins by misses.
    pub(crate) fn reports_misses(&self) -> bool {
        let port = self.pipeline.port(self.in_port);
        port.is_none_or(|port| port.reports_misses())
    }
}

/// True if an output to it is no output to a port of the bridge.
const fn is_virtual_port(port: PortNo) -> bool {
    matches!(port, PortNo::TABLE | PortNo::CONTROLLER)
}

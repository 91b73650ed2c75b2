//! What a bridge tells its peers unasked, and whom.

use std::sync::Arc;

use base::{Instant, PortNo};
use flow::{PacketIn, PortDesc, PortReason, PortStatus};
use openflow::Message;
use pipeline::Removal;

use super::{Bridge, Effect};
use crate::core::connection::Connection;

impl Bridge {
    /// Tells of a frame. One that met no rule goes only to those who take such.
    pub(super) fn tell_packet_in(
        &self,
        message: PacketIn,
        is_miss: bool,
        effects: &mut Vec<Effect>,
    ) {
        let reason = message.reason;
        let wants = |peer: &Connection| {
            if is_miss {
                peer.takes_misses()
            } else {
                peer.wants_packet_in(reason)
            }
        };
        self.tell(Message::PacketIn(message), wants, effects);
    }

    /// Tells of the end of rules that asked for it.
    pub(super) fn tell_removals(
        &self,
        removals: &[Removal],
        at: Instant,
        effects: &mut Vec<Effect>,
    ) {
        for event in removals.iter().filter_map(|removal| removal.event(at)) {
            let reason = event.reason;
            let wants = |peer: &Connection| peer.wants_flow_removed(reason);
            self.tell(Message::FlowRemoved(event), wants, effects);
        }
    }

    /// Tells that a port changed.
    pub(super) fn tell_port_changed(&self, port: PortNo, effects: &mut Vec<Effect>) {
        if let Some(entry) = self.ports.get(&port) {
            self.tell_port(PortReason::Modify, entry.desc.clone(), effects);
        }
    }

    /// Tells that something happened to a port.
    pub(super) fn tell_port(&self, reason: PortReason, port: PortDesc, effects: &mut Vec<Effect>) {
        let wants = |peer: &Connection| peer.wants_port_status(reason);
        let message = Message::PortStatus(PortStatus { reason, port });
        self.tell(message, wants, effects);
    }

    fn tell(
        &self,
        message: Message,
        wants: impl Fn(&Connection) -> bool,
        effects: &mut Vec<Effect>,
    ) {
        let message = Arc::new(message);
        let listeners = self.connections.iter().filter(|(_, peer)| wants(peer));
        effects.extend(listeners.map(|(id, _)| Effect::Tell(id, Arc::clone(&message))));
    }
}

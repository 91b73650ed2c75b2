//! Asynchronous messages and their recipients.

use std::sync::Arc;

use base::{Instant, PortNo};
use flow::{
    FlowKey, PacketIn, PacketInReason, PipelineFields, PortDesc, PortReason, PortState, PortStatus,
    Role,
};
use openflow::{Message, RoleReason, RoleStatus, Version};
use packet::{Depth, Frame, Headers};
use pipeline::{Cause, Removal};

use super::{Bridge, ConnectionId, Effect};
use crate::connection::Connection;

impl Bridge {
    /// Sends a packet-in to the controllers with this controller id. A packet without a matching
    /// rule is only for peers that take misses. Before OpenFlow 1.3 there is no table-miss rule, so
    /// its packet-ins have the reason "action".
    pub(super) fn send_packet_in(
        &mut self,
        message: PacketIn,
        (cause, controller): (Cause, u16),
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let reason_for = |peer: &Connection| match (cause, peer.version) {
            (Cause::MissRule, Version::V10 | Version::V11 | Version::V12) => PacketInReason::Action,
            _ => cause.reason(),
        };
        for reason in [
            PacketInReason::NoMatch,
            PacketInReason::Action,
            PacketInReason::InvalidTtl,
            PacketInReason::ActionSet,
            PacketInReason::Group,
            PacketInReason::PacketOut,
        ] {
            let wants = |peer: &Connection| {
                peer.controller == controller
                    && reason_for(peer) == reason
                    && peer.wants_packet_in(reason)
                    && (cause != Cause::Miss || peer.takes_misses())
            };
            if self.connections.iter().any(|(_, peer)| wants(peer)) {
                let message = PacketIn {
                    reason,
                    ..message.clone()
                };
                let may = |peer: &Connection| peer.policer.admits_packet_in(cause, now);
                self.controllers.packet_ins_limited +=
                    self.send_to_peers(message, wants, may, effects);
            }
        }
    }

    /// Sends a packet-in to subscribed peers within their rate limit, on the connection that
    /// carries this flow. Returns the number of peers over their limit.
    fn send_to_peers(
        &self,
        message: PacketIn,
        wants: impl Fn(&Connection) -> bool,
        may: impl Fn(&Connection) -> bool,
        effects: &mut Vec<Effect>,
    ) -> u64 {
        let hash = match self.connections.any_auxiliary() {
            true => flow_hash(&message.data),
            false => 0,
        };
        let message = Arc::new(Message::PacketIn(message));
        let listeners = self.connections.iter().filter(|(_, peer)| wants(peer));
        let mut limited = 0;
        for (id, peer) in listeners {
            if may(peer) {
                let carrier = self.connections.carrier(id, hash);
                effects.push(Effect::Notify(carrier, Arc::clone(&message)));
            } else {
                limited += 1;
            }
        }
        limited
    }

    /// Sends flow-removed messages of rules that have the flag for it.
    pub(super) fn send_flow_removed(&self, removals: &[Removal], effects: &mut Vec<Effect>) {
        for event in removals.iter().filter_map(|removal| removal.flow_removed()) {
            let reason = event.reason;
            let wants = |peer: &Connection| peer.wants_flow_removed(reason);
            self.notify(Message::FlowRemoved(event), wants, effects);
        }
    }

    /// Reports to a peer that another has become master in its place.
    pub(super) fn send_role_status(&self, id: ConnectionId, effects: &mut Vec<Effect>) {
        let lost = |(peer, connection): &(ConnectionId, &Connection)| {
            *peer == id && connection.knows_role_status()
        };
        if self.connections.iter().any(|peer| lost(&peer)) {
            let message = Message::RoleStatus(RoleStatus {
                role: Role::Slave,
                reason: RoleReason::MasterRequest,
                generation: self.connections.generation(),
            });
            effects.push(Effect::Notify(id, Arc::new(message)));
        }
    }

    /// Reports a modified port to the peers whose version shows the change.
    pub(super) fn send_port_modified(
        &self,
        port: PortNo,
        before: &PortDesc,
        effects: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.ports.get(&port) else {
            return;
        };
        let reason = PortReason::Modify;
        let is_changed = |version| visible_in(&entry.desc, version) != visible_in(before, version);
        let wants = |peer: &Connection| peer.wants_port_status(reason) && is_changed(peer.version);
        let port = entry.desc.clone();
        self.notify(
            Message::PortStatus(PortStatus { reason, port }),
            wants,
            effects,
        );
    }

    /// Sends a port-status message.
    pub(super) fn send_port_status(
        &self,
        reason: PortReason,
        port: PortDesc,
        effects: &mut Vec<Effect>,
    ) {
        let wants = |peer: &Connection| peer.wants_port_status(reason);
        let message = Message::PortStatus(PortStatus { reason, port });
        self.notify(message, wants, effects);
    }

    /// Sends a message to all subscribed peers except one.
    pub(super) fn notify_others(
        &self,
        but: ConnectionId,
        message: Message,
        wants: impl Fn(&Connection) -> bool,
        effects: &mut Vec<Effect>,
    ) {
        let message = Arc::new(message);
        let others = self.connections.iter().filter(|(id, _)| *id != but);
        let listeners = others.filter(|(_, peer)| wants(peer));
        effects.extend(listeners.map(|(id, _)| Effect::Notify(id, Arc::clone(&message))));
    }

    pub(super) fn notify(
        &self,
        message: Message,
        wants: impl Fn(&Connection) -> bool,
        effects: &mut Vec<Effect>,
    ) {
        let message = Arc::new(message);
        let listeners = self.connections.iter().filter(|(_, peer)| wants(peer));
        effects.extend(listeners.map(|(id, _)| Effect::Notify(id, Arc::clone(&message))));
    }
}

/// Returns a description as peers of a version know it: OpenFlow 1.0 has no live ports.
fn visible_in(desc: &PortDesc, version: Version) -> PortDesc {
    let mut visible = desc.clone();
    if version == Version::V10 {
        visible.state.0 &= !PortState::LIVE.0;
    }
    visible
}

/// Returns the symmetric hash of a frame's flow, as select groups use it. All malformed frames are
/// one flow.
fn flow_hash(frame: &[u8]) -> u64 {
    let headers = Headers::parse(&Frame::from_bytes(frame), Depth::Transport);
    headers.map_or(0, |headers| {
        let mut key = FlowKey::new();
        key.fill(&headers, &PipelineFields::new(PortNo::ANY));
        pipeline::symmetric_hash(&key)
    })
}

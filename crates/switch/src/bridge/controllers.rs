//! Controller status messages about the configured controllers (OF 1.5.1, 7.3.5.22 and 7.4.8).
//! Tools and controllers that connect to a listener receive the messages, but are not reported.

use std::collections::BTreeSet;
use std::sync::Arc;

use flow::{Role, ShortId};
use openflow::{ControlChannelStatus, ControllerReason, ControllerStatus, Message};

use super::{Bridge, ConnectionId, Effect};
use crate::connection::{Connection, ConnectionKind};
use config::PacketRate;

/// The configured controllers, and the settings for all connections.
#[derive(Debug)]
pub(super) struct ControllerSet {
    /// True if controllers are configured, connected or not.
    pub(super) are_configured: bool,
    /// The URIs of the configured controllers.
    uris: BTreeSet<Arc<str>>,
    /// Packet-ins that each controller may receive per second; none for no limit.
    packet_in_limit: Option<PacketRate>,
    /// Number of packet-ins that the rate limit dropped.
    pub(super) packet_ins_limited: u64,
}

impl ControllerSet {
    /// Returns an empty set with default settings.
    pub(super) fn new(are_configured: bool) -> Self {
        Self {
            are_configured,
            uris: BTreeSet::new(),
            packet_in_limit: None,
            packet_ins_limited: 0,
        }
    }

    /// Sets the packet-in rate limit of a new connection of a configured controller.
    pub(super) fn limit(&self, peer: &Connection) {
        if peer.kind == ConnectionKind::Primary {
            peer.policer.set(peer.rate_limit.or(self.packet_in_limit));
        }
    }
}

/// The role and the short id of a connection before a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoleSnapshot {
    id: ConnectionId,
    role: Role,
    short_id: Option<ShortId>,
}

impl Bridge {
    /// Handles the configuration of a controller at `uri`.
    pub fn handle_controller_added(&mut self, uri: &str) {
        if self.controllers.uris.insert(uri.into()) {
            self.report_configuration(uri, ControllerReason::Added);
        }
    }

    /// Handles the removal of the controller at `uri` from the configuration.
    pub fn handle_controller_removed(&mut self, uri: &str) {
        if self.controllers.uris.remove(uri) {
            self.report_configuration(uri, ControllerReason::Removed);
        }
    }

    /// Limits the packet-ins to each configured controller.
    pub fn limit_packet_ins(&mut self, rate: Option<PacketRate>) {
        self.controllers.packet_in_limit = rate;
        for (_, peer) in self.connections.iter() {
            self.controllers.limit(peer);
        }
    }

    /// Returns the number of packet-ins that the rate limit dropped.
    pub const fn packet_ins_limited(&self) -> u64 {
        self.controllers.packet_ins_limited
    }

    /// Returns the role of the controller at `uri`, if it is connected.
    pub fn role_of(&self, uri: &str) -> Option<Role> {
        let mut peers = self.connections.iter().map(|(_, peer)| peer);
        let peer = peers.find(|peer| peer.uri.as_deref() == Some(uri));
        peer.map(|peer| peer.role)
    }

    /// Returns the URI of a connection, if it belongs to a configured controller.
    pub fn uri_of(&self, id: ConnectionId) -> Option<Arc<str>> {
        let mut peers = self.connections.iter();
        let (_, peer) = peers.find(|(of, _)| *of == id)?;
        peer.uri.clone()
    }

    /// Returns the status of all configured controllers.
    pub(super) fn controller_statuses(&self) -> Vec<ControllerStatus> {
        let status = |uri: &Arc<str>| {
            let mut peers = self.connections.iter().map(|(_, peer)| peer);
            match peers.find(|peer| peer.uri.as_ref() == Some(uri)) {
                Some(peer) => status_of(peer, ControllerReason::Request, ControlChannelStatus::Up),
                None => disconnected_status(uri, ControllerReason::Request),
            }
        };
        self.controllers.uris.iter().map(status).collect()
    }

    /// Returns the roles and short ids of all connections, for a later comparison.
    pub(super) fn role_snapshots(&self) -> Vec<RoleSnapshot> {
        let snapshot = |(id, peer): (ConnectionId, &Connection)| RoleSnapshot {
            id,
            role: peer.role,
            short_id: peer.short_id,
        };
        self.connections.iter().map(snapshot).collect()
    }

    /// Reports changes of roles and short ids since `before` to the other controllers.
    pub(super) fn report_role_changes(&self, before: &[RoleSnapshot], effects: &mut Vec<Effect>) {
        for snapshot in before {
            let mut peers = self.connections.iter();
            let Some((id, peer)) = peers.find(|(id, _)| *id == snapshot.id) else {
                continue;
            };
            let changes = [
                (peer.role != snapshot.role, ControllerReason::Role),
                (
                    peer.short_id != snapshot.short_id,
                    ControllerReason::ShortId,
                ),
            ];
            for (_, reason) in changes.into_iter().filter(|(changed, _)| *changed) {
                if self.is_configured(peer) {
                    let status = status_of(peer, reason, ControlChannelStatus::Up);
                    self.report_status(Some(id), status, effects);
                }
            }
        }
    }

    /// Records that a controller's channel is up, or is about to close.
    pub(super) fn report_channel(&mut self, id: ConnectionId, channel: ControlChannelStatus) {
        let mut effects = Vec::new();
        let mut peers = self.connections.iter();
        if let Some((_, peer)) = peers.find(|(of, _)| *of == id)
            && self.is_configured(peer)
        {
            let status = status_of(peer, ControllerReason::ChannelStatus, channel);
            self.report_status(Some(id), status, &mut effects);
        }
        self.notifications.defer(effects);
    }

    fn report_configuration(&mut self, uri: &str, reason: ControllerReason) {
        let mut effects = Vec::new();
        self.report_status(None, disconnected_status(uri, reason), &mut effects);
        self.notifications.defer(effects);
        // The next publication sends the late effects.
        self.publication.request();
    }

    /// Returns whether a connection belongs to a configured controller.
    fn is_configured(&self, peer: &Connection) -> bool {
        let mut uris = peer.uri.iter();
        uris.any(|uri| self.controllers.uris.contains(uri))
    }

    /// Sends a status to all subscribed connections except the one it describes.
    fn report_status(
        &self,
        about: Option<ConnectionId>,
        status: ControllerStatus,
        effects: &mut Vec<Effect>,
    ) {
        let reason = status.reason;
        let wants = |peer: &Connection| peer.wants_controller_status(reason);
        let message = Arc::new(Message::ControllerStatus(status));
        let others = self.connections.iter().filter(|(id, _)| Some(*id) != about);
        let listeners = others.filter(|(_, peer)| wants(peer));
        effects.extend(listeners.map(|(id, _)| Effect::Notify(id, Arc::clone(&message))));
    }
}

fn status_of(
    peer: &Connection,
    reason: ControllerReason,
    channel: ControlChannelStatus,
) -> ControllerStatus {
    ControllerStatus {
        short_id: peer.short_id,
        role: peer.role,
        reason,
        channel,
        uri: peer.uri.as_deref().map(str::to_owned),
    }
}

/// Returns the status of a disconnected controller: its role on connection is equal, without a
/// short id (OF 1.3.5, 6.3).
fn disconnected_status(uri: &str, reason: ControllerReason) -> ControllerStatus {
    ControllerStatus {
        short_id: None,
        role: Role::default(),
        reason,
        channel: ControlChannelStatus::Down,
        uri: Some(uri.to_owned()),
    }
}

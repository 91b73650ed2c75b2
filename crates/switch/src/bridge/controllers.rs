//! How the controllers are that a bridge was told to go to, for the others to know
//! (OF 1.5.1, 7.3.5.22 and 7.4.8). Tools, and controllers that came by themselves, are
//! told of them but are not among them.

use std::sync::Arc;

use flow::{Role, ShortId};
use openflow::{ControlChannelStatus, ControllerReason, ControllerStatus, Message};

use super::{Bridge, ConnectionId, Effect};
use crate::connection::Connection;

/// A controller's standing, before something happens to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    id: ConnectionId,
    role: Role,
    short_id: Option<ShortId>,
}

impl Bridge {
    /// Takes note that the bridge goes to the controller at `uri` from now on.
    pub fn handle_controller_added(&mut self, uri: &str) {
        if self.controllers.insert(uri.into()) {
            self.note_configured(uri, ControllerReason::Added);
        }
    }

    /// Takes note that the bridge goes to the controller at `uri` no longer.
    pub fn handle_controller_removed(&mut self, uri: &str) {
        if self.controllers.remove(uri) {
            self.note_configured(uri, ControllerReason::Removed);
        }
    }

    /// The role of the controller at `uri`, if it is there.
    pub fn role_of(&self, uri: &str) -> Option<Role> {
        let mut peers = self.connections.iter().map(|(_, peer)| peer);
        let peer = peers.find(|peer| peer.uri.as_deref() == Some(uri));
        peer.map(|peer| peer.role)
    }

    /// Where this peer is met, if the bridge was told to go there.
    pub fn uri_of(&self, id: ConnectionId) -> Option<Arc<str>> {
        let mut peers = self.connections.iter();
        let (_, peer) = peers.find(|(of, _)| *of == id)?;
        peer.uri.clone()
    }

    /// How all controllers are that the bridge goes to.
    pub(super) fn controller_statuses(&self) -> Vec<ControllerStatus> {
        let status = |uri: &Arc<str>| {
            let mut peers = self.connections.iter().map(|(_, peer)| peer);
            match peers.find(|peer| peer.uri.as_ref() == Some(uri)) {
                Some(peer) => status_of(peer, ControllerReason::Request, ControlChannelStatus::Up),
                None => away(uri, ControllerReason::Request),
            }
        };
        self.controllers.iter().map(status).collect()
    }

    /// How the controllers stand, to be compared later.
    pub(super) fn standings(&self) -> Vec<Standing> {
        let standing = |(id, peer): (ConnectionId, &Connection)| Standing {
            id,
            role: peer.role,
            short_id: peer.short_id,
        };
        self.connections.iter().map(standing).collect()
    }

    /// Tells the others of controllers that stand otherwise than before.
    pub(super) fn tell_standings(&self, before: &[Standing], effects: &mut Vec<Effect>) {
        for standing in before {
            let mut peers = self.connections.iter();
            let Some((id, peer)) = peers.find(|(id, _)| *id == standing.id) else {
                continue;
            };
            let changes = [
                (peer.role != standing.role, ControllerReason::Role),
                (
                    peer.short_id != standing.short_id,
                    ControllerReason::ShortId,
                ),
            ];
            for (_, reason) in changes.into_iter().filter(|(changed, _)| *changed) {
                if self.goes_to(peer) {
                    let status = status_of(peer, reason, ControlChannelStatus::Up);
                    self.tell_status(Some(id), status, effects);
                }
            }
        }
    }

    /// Takes note that the channel to a controller came up, or is about to go.
    pub(super) fn note_channel(&mut self, id: ConnectionId, channel: ControlChannelStatus) {
        let mut effects = Vec::new();
        let mut peers = self.connections.iter();
        if let Some((_, peer)) = peers.find(|(of, _)| *of == id)
            && self.goes_to(peer)
        {
            let status = status_of(peer, ControllerReason::ChannelStatus, channel);
            self.tell_status(Some(id), status, &mut effects);
        }
        self.late.append(&mut effects);
    }

    fn note_configured(&mut self, uri: &str, reason: ControllerReason) {
        let mut effects = Vec::new();
        self.tell_status(None, away(uri, reason), &mut effects);
        self.late.append(&mut effects);
        // What is late is told with the next publication.
        self.unpublished = true;
    }

    /// Whether the bridge was told to go to this peer, and still is.
    fn goes_to(&self, peer: &Connection) -> bool {
        let mut uris = peer.uri.iter();
        uris.any(|uri| self.controllers.contains(uri))
    }

    /// Tells those who want to know, but not the one whom it is about: it knows.
    fn tell_status(
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
        effects.extend(listeners.map(|(id, _)| Effect::Tell(id, Arc::clone(&message))));
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

/// The status of a controller that is not there: when it comes, it is any controller's
/// equal, and has no id (OF 1.3.5, 6.3).
fn away(uri: &str, reason: ControllerReason) -> ControllerStatus {
    ControllerStatus {
        short_id: None,
        role: Role::default(),
        reason,
        channel: ControlChannelStatus::Down,
        uri: Some(uri.to_owned()),
    }
}

//! The connected peers of all bridges, and their queues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use dataplane::program::BridgeId;
use openflow::{BoxedMessage, Message};
use switch::connection::ConnectionId;
use switch::dump::Dump;

use crate::outbox::{Credit, Outbox, Outgoing};

/// A peer in the control thread.
pub(super) struct ConnectedPeer {
    bridge: BridgeId,
    outbox: Outbox,
    /// Messages behind a barrier that is not answered yet.
    deferred: VecDeque<(BoxedMessage, Credit)>,
}

impl ConnectedPeer {
    /// Returns the peer's bridge.
    pub(super) const fn bridge(&self) -> BridgeId {
        self.bridge
    }

    /// Returns true if messages of the peer are deferred: the next ones must be, too.
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }
}

/// The peers by connection.
#[derive(Default)]
pub(super) struct PeerTable(BTreeMap<ConnectionId, ConnectedPeer>);

impl PeerTable {
    /// Adds a peer of a bridge.
    pub(super) fn insert(&mut self, id: ConnectionId, bridge: BridgeId, outbox: Outbox) {
        let deferred = VecDeque::new();
        let peer = ConnectedPeer {
            bridge,
            outbox,
            deferred,
        };
        self.0.insert(id, peer);
    }

    /// Removes a peer. Returns its bridge.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<BridgeId> {
        self.0.remove(&id).map(|peer| peer.bridge)
    }

    /// Removes the peers of these bridges.
    pub(super) fn remove_bridges(&mut self, bridges: &BTreeSet<BridgeId>) {
        self.0.retain(|_, peer| !bridges.contains(&peer.bridge));
    }

    /// Returns the number of peers.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns a peer.
    pub(super) fn get(&self, id: ConnectionId) -> Option<&ConnectedPeer> {
        self.0.get(&id)
    }

    /// Returns the bridge of a peer.
    pub(super) fn bridge_of(&self, id: ConnectionId) -> Option<BridgeId> {
        self.0.get(&id).map(|peer| peer.bridge)
    }

    /// Sends an answer with the request's credit.
    pub(super) fn answer(&self, id: ConnectionId, answer: Outgoing, credit: &mut Option<Credit>) {
        if let Some(peer) = self.0.get(&id) {
            peer.outbox.answer(answer, credit.take());
        }
    }

    /// Sends flow-monitor updates. Returns true if the peer's monitors must pause.
    pub(super) fn update(&self, id: ConnectionId, updates: Box<Dump>) -> bool {
        let peer = self.0.get(&id);
        peer.is_some_and(|peer| peer.outbox.update(updates))
    }

    /// Sends an asynchronous message. Returns false if the peer's queue is full.
    pub(super) fn notify(&self, id: ConnectionId, message: &Arc<Message>) -> bool {
        let peer = self.0.get(&id);
        peer.is_none_or(|peer| peer.outbox.send_async(message))
    }

    /// Ends a connection at once.
    pub(super) fn disconnect(&self, id: ConnectionId) {
        if let Some(peer) = self.0.get(&id) {
            peer.outbox.leave();
        }
    }

    /// Returns the memory of processed messages to their connection.
    pub(super) fn recycle(&self, id: ConnectionId, messages: Vec<BoxedMessage>) {
        if let Some(peer) = self.0.get(&id) {
            peer.outbox.recycle(messages);
        }
    }

    /// Defers a message behind a barrier.
    pub(super) fn defer(&mut self, id: ConnectionId, message: BoxedMessage, credit: Credit) {
        if let Some(peer) = self.0.get_mut(&id) {
            peer.deferred.push_back((message, credit));
        }
    }

    /// Returns the peers with deferred messages.
    pub(super) fn with_deferred(&self) -> Vec<ConnectionId> {
        let peers = self.0.iter().filter(|(_, peer)| peer.has_deferred());
        peers.map(|(id, _)| *id).collect()
    }

    /// Takes the deferred messages of a peer; the peer may have left.
    pub(super) fn take_deferred(&mut self, id: ConnectionId) -> VecDeque<(BoxedMessage, Credit)> {
        let peer = self.0.get_mut(&id);
        peer.map(|peer| std::mem::take(&mut peer.deferred))
            .unwrap_or_default()
    }
}

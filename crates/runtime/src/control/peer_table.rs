//! The connected peers of all bridges, and their queues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use dataplane::program::BridgeId;
use openflow::{BoxedMessage, Message};
use switch::connection::{ConnectionId, ConnectionKind};
use switch::dump::Dump;

use crate::outbox::{Credit, Outbox, Outgoing};

/// A peer in the control thread.
pub(super) struct ConnectedPeer {
    bridge: BridgeId,
    outbox: Outbox,
    /// True if it connected to a listener.
    is_service: bool,
    /// Messages behind a barrier that is not answered yet.
    deferred: VecDeque<(BoxedMessage, Credit)>,
    /// True if the barrier is answered, so that the messages can be handled.
    is_resumable: bool,
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
pub(super) struct PeerTable {
    peers: BTreeMap<ConnectionId, ConnectedPeer>,
    /// The peers whose deferred messages can be handled, configured controllers and others; they
    /// may have left.
    resumable: [VecDeque<ConnectionId>; 2],
    /// True if a peer of the second queue is next.
    service_next: bool,
}

impl PeerTable {
    /// Adds a peer of a bridge.
    pub(super) fn insert(
        &mut self,
        id: ConnectionId,
        kind: ConnectionKind,
        bridge: BridgeId,
        outbox: Outbox,
    ) {
        let peer = ConnectedPeer {
            bridge,
            outbox,
            is_service: kind == ConnectionKind::Service,
            deferred: VecDeque::new(),
            is_resumable: false,
        };
        self.peers.insert(id, peer);
    }

    /// Removes a peer. Returns its bridge.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<BridgeId> {
        self.peers.remove(&id).map(|peer| peer.bridge)
    }

    /// Removes the peers of these bridges.
    pub(super) fn remove_bridges(&mut self, bridges: &BTreeSet<BridgeId>) {
        self.peers.retain(|_, peer| !bridges.contains(&peer.bridge));
    }

    /// Returns the number of peers.
    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    /// Returns a peer.
    pub(super) fn get(&self, id: ConnectionId) -> Option<&ConnectedPeer> {
        self.peers.get(&id)
    }

    /// Returns the bridge of a peer.
    pub(super) fn bridge_of(&self, id: ConnectionId) -> Option<BridgeId> {
        self.peers.get(&id).map(|peer| peer.bridge)
    }

    /// Sends an answer with the request's credit.
    pub(super) fn answer(&self, id: ConnectionId, answer: Outgoing, credit: &mut Option<Credit>) {
        if let Some(peer) = self.peers.get(&id) {
            peer.outbox.answer(answer, credit.take());
        }
    }

    /// Sends flow-monitor updates. Returns true if the peer's monitors must pause.
    pub(super) fn update(&self, id: ConnectionId, updates: Box<Dump>) -> bool {
        let peer = self.peers.get(&id);
        peer.is_some_and(|peer| peer.outbox.update(updates))
    }

    /// Sends an asynchronous message. Returns false if the peer's queue is full.
    pub(super) fn notify(&self, id: ConnectionId, message: &Arc<Message>) -> bool {
        let peer = self.peers.get(&id);
        peer.is_none_or(|peer| peer.outbox.send_async(message))
    }

    /// Ends a connection at once.
    pub(super) fn disconnect(&self, id: ConnectionId) {
        if let Some(peer) = self.peers.get(&id) {
            peer.outbox.leave();
        }
    }

    /// Returns the memory of processed messages to their connection.
    pub(super) fn recycle(&self, id: ConnectionId, messages: Vec<BoxedMessage>) {
        if let Some(peer) = self.peers.get(&id) {
            peer.outbox.recycle(messages);
        }
    }

    /// Defers a message behind a barrier.
    pub(super) fn defer(&mut self, id: ConnectionId, message: BoxedMessage, credit: Credit) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.deferred.push_back((message, credit));
        }
    }

    /// Has the deferred messages of all peers handled: barriers have been answered.
    pub(super) fn schedule_deferred(&mut self) {
        for (id, peer) in &mut self.peers {
            if peer.has_deferred() && !peer.is_resumable {
                peer.is_resumable = true;
                self.resumable[usize::from(peer.is_service)].push_back(*id);
            }
        }
    }

    /// Returns true if deferred messages can be handled.
    pub(super) fn has_resumable(&self) -> bool {
        self.resumable.iter().any(|peers| !peers.is_empty())
    }

    /// Returns the next peer whose deferred messages can be handled: a configured controller and
    /// another peer in turns, since of the others there may be thousands.
    pub(super) fn next_resumable(&mut self) -> Option<ConnectionId> {
        let [controllers, services] = &mut self.resumable;
        let (first, second) = match self.service_next {
            true => (services, controllers),
            false => (controllers, services),
        };
        self.service_next = !self.service_next;
        let id = first.pop_front().or_else(|| second.pop_front())?;
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.is_resumable = false;
        }
        Some(id)
    }

    /// Takes the deferred messages of a peer; the peer may have left.
    pub(super) fn take_deferred(&mut self, id: ConnectionId) -> VecDeque<(BoxedMessage, Credit)> {
        let peer = self.peers.get_mut(&id);
        peer.map(|peer| std::mem::take(&mut peer.deferred))
            .unwrap_or_default()
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use std::sync::Arc;

    use base::MemoryBudget;
    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn deferred_messages_of_a_controller_wait_for_one_other_peer_at_most() {
        let mut table = PeerTable::default();
        let budget = MemoryBudget::new(1000);
        for id in 0..100 {
            let kind = match id {
                99 => ConnectionKind::Primary,
                _ => ConnectionKind::Service,
            };
            let (id, (outbox, _)) = (ConnectionId(id), Outbox::new());
            table.insert(id, kind, BridgeId(0), outbox);
            let permit = Arc::new(Semaphore::new(1)).try_acquire_many_owned(1);
            let share = budget.reserve(1).expect("there is room");
            let credit = Credit::new(permit.expect("there are permits"), share);
            table.defer(id, BoxedMessage::default(), credit);
        }
        table.schedule_deferred();
        table.schedule_deferred();
        let order: Vec<_> = std::iter::from_fn(|| table.next_resumable()).collect();
        assert_eq!(order.len(), 100);
        assert!(order[..2].contains(&ConnectionId(99)));
        assert!(!table.has_resumable());
    }
}

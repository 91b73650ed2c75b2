//! Messages of peers: handled at once, or deferred behind a barrier.

use base::Instant;
use flow::FlowModCommand;
use openflow::{BoxedMessage, Message};

use super::{Control, PREFETCH_BATCH, TURN_MAX, shaping};
use crate::outbox::{Credit, credit_of};
use switch::connection::ConnectionId;

/// Returns true for a message whose cost grows with the size of a table, or of another message.
const fn may_be_long(message: &Message) -> bool {
    match message {
        Message::FlowMod(flow_mod) => matches!(
            flow_mod.command,
            FlowModCommand::Modify | FlowModCommand::Delete
        ),
        _ => true,
    }
}

impl Control {
    /// Handles a burst of messages of one peer, and returns their memory to the connection.
    pub(super) fn handle_messages(
        &mut self,
        id: ConnectionId,
        mut messages: Vec<BoxedMessage>,
        mut credit: Credit,
    ) {
        let now = self.now();
        for batch in messages.chunks_mut(PREFETCH_BATCH) {
            let bridge = self.peers.bridge_of(id);
            if let Some(site) = bridge.and_then(|bridge| self.sites.get_mut(&bridge)) {
                site.bridge.prefetch(batch);
            }
            for received in batch {
                let may_be_long = may_be_long(&received.message);
                self.handle_message(id, received, &mut credit, now);
                if may_be_long {
                    self.serve_overdue_protocols();
                }
            }
            self.serve_overdue_protocols();
        }
        self.peers.recycle(id, messages);
        self.counters.memory_refused = self.tools.exchange.admission.memory_refused();
    }

    /// Handles a message, now or after a barrier. A message that is deferred or answered later
    /// takes its credit out of the burst's. The rest returns at once when the whole burst is
    /// handled, so a connection resumes with credit for many messages, not for one.
    fn handle_message(
        &mut self,
        id: ConnectionId,
        received: &mut BoxedMessage,
        credit: &mut Credit,
        now: Instant,
    ) {
        let Some(peer) = self.peers.get(id) else {
            return;
        };
        let bridge = peer.bridge();
        let Some(site) = self.sites.get_mut(&bridge) else {
            return;
        };
        let own = credit_of(Some(received)) as usize;
        if peer.has_deferred() || site.bridge.is_at_barrier(id) {
            let own = credit
                .split(own)
                .expect("the burst has credit for all of it");
            self.peers.defer(id, std::mem::take(received), own);
            return;
        }
        if shaping::requests_queue_counts(&received.message) {
            site.count_queues();
        }
        let mut effects = Vec::new();
        site.bridge.handle_message(id, received, now, &mut effects);
        if !effects.is_empty() {
            let mut own = credit.split(own);
            self.apply_effects(bridge, effects, &mut own);
            if let Some(own) = own {
                credit.merge(own);
            }
        }
    }

    /// Handles messages whose barrier has been answered, within the time of a turn: thousands of
    /// peers may have such messages. The others follow in the next turns.
    pub(super) fn resume_deferred(&mut self) {
        let end = self.tools.clock.unwarped() + TURN_MAX;
        while let Some(id) = self.peers.next_resumable() {
            let now = self.now();
            // Messages behind a further barrier are deferred again in the same order.
            for (mut received, mut credit) in self.peers.take_deferred(id) {
                self.handle_message(id, &mut received, &mut credit, now);
                self.serve_overdue_protocols();
            }
            if self.tools.clock.unwarped() >= end {
                return;
            }
        }
    }
}

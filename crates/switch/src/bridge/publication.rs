//! Publication of a bridge's state to the workers, and effects that wait for it.

use base::Xid;
use fastpath::View;
use openflow::Message;
use pipeline::{Pipeline, Removal};

use super::{Bridge, ConnectionId, Effect};
use dataplane::program::Generation;
use l2::fdb::FdbView;

/// An effect that waits for the workers.
#[derive(Debug)]
pub(super) struct PendingEffect {
    /// The generation that every worker must have passed; none before the publication.
    pub(super) generation: Option<Generation>,
    pub(super) kind: PendingEffectKind,
}

/// The kind of effect that waits.
#[derive(Debug)]
pub(super) enum PendingEffectKind {
    /// A barrier reply.
    Barrier(ConnectionId, Xid),
    /// The reply to a bundle's commit.
    Committed(ConnectionId, Xid, Box<Message>),
    /// The flow-removed messages of rules, and their deallocation.
    Removals(Vec<Removal>),
}

impl Bridge {
    /// Returns the state that the workers run.
    pub fn snapshot(&mut self) -> (Pipeline, View, FdbView) {
        let compiled = self.compiled.publish(&self.pipeline);
        (self.pipeline.clone(), compiled, self.fdb.view())
    }

    /// Returns a snapshot of the tables.
    pub fn rules(&self) -> Pipeline {
        self.pipeline.clone()
    }

    /// Returns whether there is unpublished state.
    pub fn is_unpublished(&self) -> bool {
        self.unpublished
    }

    /// Returns the number of rules removed since the last publication.
    pub const fn removed(&self) -> usize {
        self.removed
    }

    /// Returns whether an effect waits for the publication of the present state.
    pub fn is_publication_awaited(&self) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| waiting.generation.is_none())
    }

    /// Records the publication of the present state under this generation.
    pub fn handle_published(&mut self, generation: Generation) {
        self.unpublished = false;
        self.removed = 0;
        self.published = generation;
        for waiting in self
            .waiting
            .iter_mut()
            .filter(|waiting| waiting.generation.is_none())
        {
            waiting.generation = Some(generation);
        }
    }

    /// Handles that every worker has passed `generation`.
    pub fn handle_passed(&mut self, generation: Generation, effects: &mut Vec<Effect>) {
        self.passed = generation;
        self.flush_notifications(effects);
        self.complete_pending(effects);
    }

    /// Pushes the effects whose generation has passed.
    pub(super) fn complete_pending(&mut self, effects: &mut Vec<Effect>) {
        let newest = self.passed;
        let passed =
            |waiting: &PendingEffect| waiting.generation.is_some_and(|after| after <= newest);
        while let Some(waiting) = self.waiting.pop_front_if(|waiting| passed(waiting)) {
            match waiting.kind {
                PendingEffectKind::Barrier(id, xid) => {
                    effects.push(Effect::Reply(id, xid, Box::new(Message::BarrierReply)));
                }
                PendingEffectKind::Committed(id, xid, reply) => {
                    effects.push(Effect::Reply(id, xid, reply));
                }
                PendingEffectKind::Removals(removals) => {
                    self.send_flow_removed(&removals, effects);
                    effects.push(Effect::Free(removals));
                }
            }
        }
    }

    /// Returns whether a peer waits for a barrier; its further messages must wait too (OF 1.3.5,
    /// 6.2).
    pub fn is_at_barrier(&self, id: ConnectionId) -> bool {
        self.waiting
            .iter()
            .any(|waiting| matches!(waiting.kind, PendingEffectKind::Barrier(at, _) if at == id))
    }

    /// Queues a barrier reply behind all earlier messages; sends it at once if these have taken
    /// effect.
    pub(super) fn queue_barrier(&mut self, id: ConnectionId, xid: Xid, effects: &mut Vec<Effect>) {
        let generation = (!self.unpublished).then_some(self.published);
        self.waiting.push_back(PendingEffect {
            generation,
            kind: PendingEffectKind::Barrier(id, xid),
        });
        self.complete_pending(effects);
    }
}

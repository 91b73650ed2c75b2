//! Publication of a bridge's state to the workers, and effects that wait for it.

use std::collections::VecDeque;

use base::Xid;
use fastpath::View;
use openflow::Message;
use pipeline::{Pipeline, Removal};

use super::{Bridge, ConnectionId, Effect};
use dataplane::program::Generation;
use l2::fdb::FdbView;

/// An effect that waits for the workers.
#[derive(Debug)]
struct PendingEffect {
    /// The generation that every worker must have passed; none before the publication.
    generation: Option<Generation>,
    kind: PendingEffectKind,
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

/// The publication of a bridge's state: its progress, and the effects that wait for it.
#[derive(Debug)]
pub(super) struct PublicationState {
    /// True if the workers lack the latest state.
    is_requested: bool,
    /// Number of rules removed since the last publication.
    removed: usize,
    published: Generation,
    passed: Generation,
    waiting: VecDeque<PendingEffect>,
}

impl PublicationState {
    /// Returns the state of a bridge that is not yet published.
    pub(super) fn new() -> Self {
        Self {
            is_requested: true,
            removed: 0,
            published: Generation::default(),
            passed: Generation::default(),
            waiting: VecDeque::new(),
        }
    }

    /// Requests the publication of the present state.
    pub(super) const fn request(&mut self) {
        self.is_requested = true;
    }

    /// Requests the publication of the present state if it has changed.
    pub(super) const fn request_if(&mut self, has_changed: bool) {
        self.is_requested |= has_changed;
    }

    /// Queues an effect that waits until the workers have taken the present state.
    pub(super) fn queue(&mut self, kind: PendingEffectKind) {
        self.waiting.push_back(PendingEffect {
            generation: None,
            kind,
        });
    }

    /// Queues the flow-removed messages of rules behind the publication of their removal.
    pub(super) fn queue_removals(&mut self, removals: Vec<Removal>) {
        self.removed += removals.len();
        self.queue(PendingEffectKind::Removals(removals));
    }

    /// Queues a barrier reply behind all earlier messages.
    fn queue_barrier(&mut self, id: ConnectionId, xid: Xid) {
        let generation = (!self.is_requested).then_some(self.published);
        self.waiting.push_back(PendingEffect {
            generation,
            kind: PendingEffectKind::Barrier(id, xid),
        });
    }

    /// Returns the number of waiting effects.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Removes the effects after the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        self.waiting.truncate(count);
    }

    /// Removes the replies to a closed connection.
    pub(super) fn handle_down(&mut self, id: ConnectionId) {
        self.waiting.retain(|waiting| match waiting.kind {
            PendingEffectKind::Barrier(at, _) | PendingEffectKind::Committed(at, ..) => at != id,
            PendingEffectKind::Removals(_) => true,
        });
    }

    /// Records the publication of the present state under this generation.
    fn handle_published(&mut self, generation: Generation) {
        self.is_requested = false;
        self.removed = 0;
        self.published = generation;
        let waiting = self.waiting.iter_mut();
        for waiting in waiting.filter(|waiting| waiting.generation.is_none()) {
            waiting.generation = Some(generation);
        }
    }

    /// Returns the next effect whose generation has passed.
    fn poll(&mut self) -> Option<PendingEffectKind> {
        let newest = self.passed;
        let passed =
            |waiting: &PendingEffect| waiting.generation.is_some_and(|after| after <= newest);
        let waiting = self.waiting.pop_front_if(|waiting| passed(waiting))?;
        Some(waiting.kind)
    }

    fn is_at_barrier(&self, id: ConnectionId) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| matches!(waiting.kind, PendingEffectKind::Barrier(at, _) if at == id))
    }
}

impl Bridge {
    /// Returns the state that the workers run.
    pub fn snapshot(&mut self) -> (Pipeline, View, FdbView) {
        let compiled = self.tables.compiled.publish(&self.tables.pipeline);
        self.tables.report_slow_tables(&self.identity.name);
        (
            self.tables.pipeline.clone(),
            compiled,
            self.normal.fdb.view(),
        )
    }

    /// Returns a snapshot of the tables.
    pub fn rules(&self) -> Pipeline {
        self.tables.pipeline.clone()
    }

    /// Returns whether there is unpublished state.
    pub fn is_unpublished(&self) -> bool {
        self.publication.is_requested
    }

    /// Returns the number of rules removed since the last publication.
    pub const fn removed(&self) -> usize {
        self.publication.removed
    }

    /// Returns whether an effect waits for the publication of the present state.
    pub fn is_publication_awaited(&self) -> bool {
        let mut waiting = self.publication.waiting.iter();
        waiting.any(|waiting| waiting.generation.is_none())
    }

    /// Records the publication of the present state under this generation.
    pub fn handle_published(&mut self, generation: Generation) {
        self.publication.handle_published(generation);
    }

    /// Handles that every worker has passed `generation`.
    pub fn handle_passed(&mut self, generation: Generation, effects: &mut Vec<Effect>) {
        self.publication.passed = generation;
        self.flush_notifications(effects);
        self.complete_pending(effects);
    }

    /// Pushes the effects whose generation has passed.
    fn complete_pending(&mut self, effects: &mut Vec<Effect>) {
        while let Some(kind) = self.publication.poll() {
            match kind {
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
        self.publication.is_at_barrier(id)
    }

    /// Queues a barrier reply behind all earlier messages; sends it at once if these have taken
    /// effect.
    pub(super) fn queue_barrier(&mut self, id: ConnectionId, xid: Xid, effects: &mut Vec<Effect>) {
        self.publication.queue_barrier(id, xid);
        self.complete_pending(effects);
    }
}

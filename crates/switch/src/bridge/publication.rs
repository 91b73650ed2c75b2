//! What workers are given to run, and what waits until they do.

use base::Xid;
use fastpath::View;
use openflow::Message;
use pipeline::{Pipeline, Removal};

use super::{Bridge, ConnectionId, Effect};
use dataplane::program::Generation;
use l2::fdb::FdbView;

/// Something that waits for the workers.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The publication that they must have passed; none if it is still to come.
    pub(super) generation: Option<Generation>,
    pub(super) what: Awaited,
}

/// What waits for them.
#[derive(Debug)]
pub(super) enum Awaited {
    /// A barrier reply.
    Barrier(ConnectionId, Xid),
    /// The answer to a bundle's commit.
    Committed(ConnectionId, Xid, Box<Message>),
    /// The end of rules.
    Removals(Vec<Removal>),
}

impl Bridge {
    /// What workers are to run for it.
    pub fn snapshot(&mut self) -> (Pipeline, View, FdbView) {
        let compiled = self.compiled.publish(&self.pipeline);
        (self.pipeline.clone(), compiled, self.stations.view())
    }

    /// Its tables as they are now.
    pub fn rules(&self) -> Pipeline {
        self.pipeline.clone()
    }

    /// Whether there is something to publish.
    pub fn is_unpublished(&self) -> bool {
        self.unpublished
    }

    /// How many rules are gone since the last publication.
    pub const fn removed(&self) -> usize {
        self.removed
    }

    /// Whether somebody waits for the present state to be published.
    pub fn is_publication_awaited(&self) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| waiting.generation.is_none())
    }

    /// Takes note that the present state was published under this number.
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

    /// Takes note that every worker has passed `generation`.
    pub fn handle_passed(&mut self, generation: Generation, effects: &mut Vec<Effect>) {
        self.passed = generation;
        self.tell_news(effects);
        self.settle_waiting(effects);
    }

    /// Does what need not wait any longer.
    pub(super) fn settle_waiting(&mut self, effects: &mut Vec<Effect>) {
        let newest = self.passed;
        let passed = |waiting: &Waiting| waiting.generation.is_some_and(|after| after <= newest);
        while let Some(waiting) = self.waiting.pop_front_if(|waiting| passed(waiting)) {
            match waiting.what {
                Awaited::Barrier(id, xid) => {
                    effects.push(Effect::Reply(id, xid, Box::new(Message::BarrierReply)));
                }
                Awaited::Committed(id, xid, reply) => {
                    effects.push(Effect::Reply(id, xid, reply));
                }
                Awaited::Removals(removals) => {
                    self.tell_removals(&removals, effects);
                    effects.push(Effect::Free(removals));
                }
            }
        }
    }

    /// Whether a peer waits for a barrier; its further messages must wait too
    /// (OF 1.3.5, 6.2).
    pub fn is_at_barrier(&self, id: ConnectionId) -> bool {
        self.waiting
            .iter()
            .any(|waiting| matches!(waiting.what, Awaited::Barrier(at, _) if at == id))
    }

    /// Lets a barrier wait for what came before it, if that is not done already.
    pub(super) fn hold_barrier(&mut self, id: ConnectionId, xid: Xid, effects: &mut Vec<Effect>) {
        let generation = (!self.unpublished).then_some(self.published);
        self.waiting.push_back(Waiting {
            generation,
            what: Awaited::Barrier(id, xid),
        });
        self.settle_waiting(effects);
    }
}

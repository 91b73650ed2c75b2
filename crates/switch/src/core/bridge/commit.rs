//! Bundles, step by step; and doing one: all of its messages, or none.
//!
//! All of it happens between two publications, so that workers, and every frame,
//! see a bundle whole or not at all, whether it asks for that or not.

use std::collections::BTreeMap;

use base::{Instant, PortNo, Xid};
use fastpath::Mark;
use flow::{PortConfig, Refusal};
use openflow::{BundleControl, BundleStep, Message};
use pipeline::Pipeline;

use super::{Awaited, Bridge, ConnectionId, Effect, Waiting};
use crate::core::bundles::Held;

/// All that the messages of a bundle can change.
struct Before {
    pipeline: Pipeline,
    compiled: Mark,
    ports: BTreeMap<PortNo, PortConfig>,
    waiting: usize,
    effects: usize,
}

impl Bridge {
    /// Does a step of a bundle's life, and answers it.
    pub(super) fn bundle_step(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        control: BundleControl,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Message>, Refusal> {
        let BundleControl {
            bundle,
            step,
            flags,
        } = control;
        let bundles = &mut self.peer(id)?.bundles;
        let done = match step {
            BundleStep::OpenRequest => {
                bundles.open(bundle, flags)?;
                BundleStep::OpenReply
            }
            BundleStep::CloseRequest => {
                bundles.close(bundle, flags)?;
                BundleStep::CloseReply
            }
            BundleStep::DiscardRequest => {
                bundles.discard(bundle)?;
                BundleStep::DiscardReply
            }
            BundleStep::CommitRequest => {
                let messages = bundles.commit(bundle, flags)?;
                self.commit(id, messages, now, effects)?;
                BundleStep::CommitReply
            }
            BundleStep::OpenReply
            | BundleStep::CloseReply
            | BundleStep::CommitReply
            | BundleStep::DiscardReply => return Err(Refusal::BundleBadType),
        };
        let reply = Message::BundleControl(BundleControl {
            step: done,
            ..control
        });
        if done != BundleStep::CommitReply {
            return Ok(Some(reply));
        }
        // It is done when no frame meets the old rules, as with a barrier.
        self.waiting.push_back(Waiting {
            generation: None,
            what: Awaited::Committed(id, xid, Box::new(reply)),
        });
        Ok(None)
    }

    /// Does all messages, in order; or none, and refuses the first that cannot be done.
    fn commit(
        &mut self,
        id: ConnectionId,
        messages: Vec<Held>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let before = self.before(effects);
        for held in messages {
            let Held {
                xid,
                message,
                excerpt,
            } = held;
            match self.answer(id, xid, message, now, effects) {
                Ok(None) => {}
                Ok(Some(reply)) => effects.push(Effect::Reply(id, xid, Box::new(reply))),
                Err(refusal) => {
                    self.undo(before, effects);
                    effects.push(Effect::Refuse(id, xid, refusal, excerpt));
                    return Err(Refusal::BundleMessageFailed);
                }
            }
        }
        self.unpublished = true;
        Ok(())
    }

    fn before(&self, effects: &[Effect]) -> Before {
        let config = |(port, entry): (&PortNo, &super::PortEntry)| (*port, entry.desc.config);
        Before {
            pipeline: self.pipeline.clone(),
            compiled: self.compiled.mark(),
            ports: self.ports.iter().map(config).collect(),
            waiting: self.waiting.len(),
            effects: effects.len(),
        }
    }

    fn undo(&mut self, before: Before, effects: &mut Vec<Effect>) {
        self.pipeline = before.pipeline;
        self.compiled.undo(before.compiled);
        for (port, entry) in &mut self.ports {
            if let Some(config) = before.ports.get(port) {
                entry.desc.config = *config;
            }
        }
        self.waiting.truncate(before.waiting);
        effects.truncate(before.effects);
    }
}

//! Bundle control messages, and the commit of a bundle: all of its messages or none.
//!
//! A commit runs between two publications. Workers, and so every frame, see a bundle whole or not
//! at all, with or without the flag for it.

use std::collections::BTreeMap;

use base::{Instant, PortNo, Xid};
use fastpath::Savepoint;
use flow::{PortConfig, Refusal};
use openflow::{BundleAdd, BundleControl, BundleFlags, BundleStep, Message, Version};
use pipeline::{Pipeline, check_internal_table};

use super::notifications::NotificationSavepoint;
use super::publication::PendingEffectKind;
use super::schedule::commit_time;
use super::{Bridge, ConnectionId, Effect};
use crate::bundles::BundleMessage;

/// The state that the messages of a bundle can change.
struct CommitSavepoint {
    pipeline: Pipeline,
    compiled: Savepoint,
    ports: BTreeMap<PortNo, PortConfig>,
    waiting: usize,
    effects: usize,
    notifications: NotificationSavepoint,
}

impl Bridge {
    /// Handles a bundle control message.
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
            ..
        } = control;
        let peer = self.peer(id)?;
        check_flags(flags, peer.version)?;
        let bundles = &mut peer.bundles;
        let done = match step {
            BundleStep::OpenRequest => {
                bundles.open(bundle, flags, xid, now)?;
                self.schedule.expire_before(now);
                BundleStep::OpenReply
            }
            BundleStep::CloseRequest => {
                bundles.close(bundle, flags, now)?;
                BundleStep::CloseReply
            }
            BundleStep::DiscardRequest => {
                if !self.schedule.discard(id, &control) {
                    self.peer(id)?.bundles.discard(bundle)?;
                }
                BundleStep::DiscardReply
            }
            BundleStep::CommitRequest => {
                match commit_time(&control, self.wall_time(now), now)? {
                    Some(at) => self.schedule(at, (id, xid), control)?,
                    None => {
                        let messages = self.peer(id)?.bundles.commit(bundle, flags)?;
                        self.commit(id, messages, now, effects)?;
                        self.queue_commit_reply(id, xid, control);
                    }
                }
                return Ok(None);
            }
            BundleStep::OpenReply
            | BundleStep::CloseReply
            | BundleStep::CommitReply
            | BundleStep::DiscardReply => return Err(Refusal::BundleBadType),
        };
        Ok(Some(Message::BundleControl(reply_to(control, done))))
    }

    /// Adds a message to a bundle.
    pub(super) fn bundle_add(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        add: BundleAdd,
        now: Instant,
    ) -> Result<(), Refusal> {
        if let Message::FlowMod(command) = &*add.message {
            check_internal_table(command)?;
        }
        let peer = self.peer(id)?;
        check_flags(add.flags, peer.version)?;
        peer.bundles.add(xid, add, now)?;
        self.schedule.expire_before(now);
        Ok(())
    }

    /// Queues the reply to a commit. As for a barrier, the reply waits until no frame meets the old
    /// rules.
    pub(super) fn queue_commit_reply(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        control: BundleControl,
    ) {
        let reply = Message::BundleControl(reply_to(control, BundleStep::CommitReply));
        let reply = PendingEffectKind::Committed(id, xid, Box::new(reply));
        self.publication.queue(reply);
    }

    /// Executes all messages in order; if one fails, undoes all and refuses that one. Packet-outs
    /// are sent last, so that none is sent by a bundle that fails, each through the tables as they
    /// were at its place in the bundle.
    pub(super) fn commit(
        &mut self,
        id: ConnectionId,
        messages: Vec<BundleMessage>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let savepoint = self.savepoint(effects);
        let main = self.connections.main_of(id);
        let reported = self.peer(main)?.flow_mods;
        let mut frames = Vec::new();
        for bundle_message in messages {
            let BundleMessage {
                xid,
                message,
                excerpt,
                ..
            } = bundle_message;
            let done = match message {
                Message::PacketOut(frame) => {
                    let checked = self.tables.pipeline.check_packet_out(&frame);
                    frames.push((frame, self.tables.pipeline.clone()));
                    checked.map(|()| None)
                }
                Message::FlowMod(command) => {
                    let done = self.flow_mod(id, xid, &command, now);
                    if let Err(refusal) = done {
                        self.log_refusal(id, &command, refusal, now);
                    }
                    done.map(|()| None)
                }
                message => self.execute(id, xid, message, now, effects),
            };
            match done {
                Ok(None) => {}
                Ok(Some(reply)) => effects.push(Effect::Reply(id, xid, Box::new(reply))),
                Err(refusal) => {
                    self.undo(savepoint, effects);
                    self.peer(main)?.flow_mods = reported;
                    effects.push(Effect::Refuse(id, xid, refusal, excerpt));
                    return Err(Refusal::BundleMessageFailed);
                }
            }
        }
        for (frame, tables) in frames {
            self.send_out_through(&frame, Some(&tables), now, effects);
        }
        self.publication.request();
        Ok(())
    }

    fn savepoint(&self, effects: &[Effect]) -> CommitSavepoint {
        let config = |(port, entry): (&PortNo, &super::PortEntry)| (*port, entry.desc.config);
        CommitSavepoint {
            pipeline: self.tables.pipeline.clone(),
            compiled: self.tables.compiled.savepoint(),
            ports: self.ports.iter().map(config).collect(),
            waiting: self.publication.waiting(),
            effects: effects.len(),
            notifications: self.notifications.savepoint(),
        }
    }

    fn undo(&mut self, savepoint: CommitSavepoint, effects: &mut Vec<Effect>) {
        self.tables.pipeline = savepoint.pipeline;
        self.tables.compiled.roll_back(savepoint.compiled);
        for (port, entry) in &mut self.ports {
            if let Some(config) = savepoint.ports.get(port) {
                entry.desc.config = *config;
            }
        }
        for port in savepoint.ports.keys() {
            self.update_live(*port);
        }
        self.publication.truncate(savepoint.waiting);
        effects.truncate(savepoint.effects);
        self.notifications.roll_back(savepoint.notifications);
    }
}

/// Returns the reply to a bundle control request. As in Open vSwitch it has no flags; the
/// specification is silent about them.
fn reply_to(control: BundleControl, step: BundleStep) -> BundleControl {
    BundleControl {
        step,
        flags: BundleFlags::default(),
        time: None,
        ..control
    }
}

/// Checks that the version defines all flags of a bundle.
fn check_flags(flags: BundleFlags, version: Version) -> Result<(), Refusal> {
    let has_time = version == Version::V15 || !flags.contains(BundleFlags::TIME);
    let is_known = flags.is_known() && has_time;
    is_known.then_some(()).ok_or(Refusal::BundleBadFlags)
}

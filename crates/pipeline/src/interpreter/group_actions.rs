//! What groups and meters do to a frame on its way (OF 1.3.5, 5.6 and 5.7), and
//! what is done to copies.
//!
//! A bucket is given the frame as it is when it comes to the group, and what it
//! does to it nobody else sees: neither the other buckets nor the actions behind.

use base::{GroupId, MeterId};
use flow::{Action, Field, GroupKind, MaxLen};
use packet::Packet;

use super::Execution;
use super::pause::FinalActionSet;
use crate::groups::Group;
use crate::limits::NESTING_MAX;
use crate::meters::MeterDecision;
use crate::meters::raise_drop_precedence;
use crate::pipeline::spend;
use crate::verdict::{Cause, Destination, DropReason};

impl Execution<'_> {
    /// Hands the frame to a group.
    pub(crate) fn group(&mut self, packet: &mut Packet<'_>, id: GroupId) -> Result<(), DropReason> {
        let pipeline = self.pipeline;
        // A group that a rule names is there, or the rule would not be.
        let group = pipeline.groups().find(id).ok_or(DropReason::NoBucket)?;
        group.counters.add(self.writer, self.weight, self.now);
        let hash = match group.kind {
            GroupKind::All => {
                let mut all = 0..group.buckets.len();
                return all.try_for_each(|index| self.bucket(packet, group, index));
            }
            GroupKind::Select => group.hash(self.fields(packet)),
            GroupKind::Indirect | GroupKind::FastFailover => 0,
        };
        let left = &mut self.buckets_left;
        let chosen = group.select_bucket(hash, |bucket| pipeline.is_bucket_live(bucket, left));
        match chosen {
            Some(index) => self.bucket(packet, group, index),
            None => {
                self.drop(DropReason::NoBucket);
                Ok(())
            }
        }
    }

    /// Runs the frame through a bucket.
    fn bucket(
        &mut self,
        packet: &mut Packet<'_>,
        group: &Group,
        index: usize,
    ) -> Result<(), DropReason> {
        if !spend(&mut self.buckets_left) {
            return Err(DropReason::GroupLimit);
        }
        // Buckets may look the frame up again, and so lead back here.
        if self.nesting >= NESTING_MAX {
            return Err(DropReason::RecursionTooDeep);
        }
        let bucket = &group.buckets[index];
        bucket.counters.add(self.writer, self.weight, self.now);
        self.trace.on_bucket(group.id, index);
        let cause = self.cause;
        if matches!(cause, Cause::Action | Cause::ActionSet) {
            self.cause = Cause::Group;
        }
        let priority = self.priority;
        self.nesting += 1;
        let done = if bucket.rewrites {
            self.on_copy(packet, bucket.actions())
        } else {
            self.apply(packet, bucket.actions())
        };
        self.nesting -= 1;
        (self.cause, self.priority) = (cause, priority);
        self.contain(done)
    }

    /// Does actions to a copy of the frame, with a copy of all that goes with it:
    /// nobody sees it afterwards but those it was sent to.
    pub(crate) fn on_copy(
        &mut self,
        packet: &Packet<'_>,
        actions: &[Action],
    ) -> Result<(), DropReason> {
        if self.nesting >= NESTING_MAX {
            return Err(DropReason::RecursionTooDeep);
        }
        self.keep(packet)?;
        let copy = self.pool.duplicate(packet.frame());
        let mut copy = copy.ok_or(DropReason::NoBuffer)?;
        let (set, stack) = (self.set.clone(), self.stack.clone());
        let (from, registers, exited) = (self.from, self.registers.clone(), self.exited);
        let priority = self.priority;
        self.nesting += 1;
        let done = match Packet::parse(&mut copy, self.depth) {
            Ok(mut copied) => self.apply(&mut copied, actions),
            Err(reason) => Err(DropReason::Malformed(reason)),
        };
        self.nesting -= 1;
        self.wait(FinalActionSet::Never);
        self.settle(copy);
        (*self.set, *self.stack) = (set, stack);
        (self.from, self.registers, self.exited) = (from, registers, exited);
        self.priority = priority;
        self.changes();
        self.contain(done)
    }

    /// What ends a copy ends nothing else; but limits are the frame's, not the copy's.
    fn contain(&mut self, done: Result<(), DropReason>) -> Result<(), DropReason> {
        match done {
            Err(reason) if !reason.is_limit() => {
                self.drop(reason);
                Ok(())
            }
            done => done,
        }
    }

    /// Submits the frame to a rule's meter.
    pub(crate) fn submit_to_meter(
        &mut self,
        packet: &mut Packet<'_>,
        id: MeterId,
    ) -> Result<(), DropReason> {
        match self.metered(id) {
            MeterDecision::Pass => Ok(()),
            MeterDecision::Drop => Err(DropReason::Metered),
            MeterDecision::Remark(levels) => self.remark(packet, levels),
        }
    }

    fn metered(&mut self, id: MeterId) -> MeterDecision {
        let metered = self
            .pipeline
            .submit_to_meter(id, self.writer, self.weight, self.now);
        let Some(outcome) = metered else {
            return MeterDecision::Pass;
        };
        self.trace.on_meter(id, outcome != MeterDecision::Pass);
        outcome
    }

    /// Raises the frame's drop precedence, if it has one.
    fn remark(&mut self, packet: &mut Packet<'_>, levels: u8) -> Result<(), DropReason> {
        let dscp = self.field(packet, Field::IpDscp);
        let dscp = dscp.and_then(|dscp| u8::try_from(dscp).ok());
        if let Some(raised) = dscp.and_then(|dscp| raise_drop_precedence(dscp, levels)) {
            self.keep(packet)?;
            self.changes();
            packet.set_ip_dscp(raised);
        }
        Ok(())
    }

    /// The frame goes to the controllers, if their meter lets it.
    pub(crate) fn tell_controllers(&mut self, max_len: Option<MaxLen>) -> Result<(), DropReason> {
        self.check_meter(MeterId::CONTROLLER)?;
        let meta = self.packet_in(max_len);
        self.promise(Destination::Controller(meta));
        Ok(())
    }

    /// Whether this meter lets a frame go to the controllers. One that is not there does.
    pub(crate) fn check_meter(&mut self, meter: MeterId) -> Result<(), DropReason> {
        match self.metered(meter) {
            MeterDecision::Pass => Ok(()),
            MeterDecision::Drop | MeterDecision::Remark(_) => Err(DropReason::ControllerMetered),
        }
    }
}

//! Groups and meters (OF 1.3.5, 5.6 and 5.7), and actions on copies.
//!
//! A bucket receives the packet as it is when it enters the group. Its modifications are visible
//! neither to other buckets nor to later actions.

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
    /// Sends the packet to a group.
    pub(crate) fn group(&mut self, packet: &mut Packet<'_>, id: GroupId) -> Result<(), DropReason> {
        let pipeline = self.pipeline;
        // A rule that names a missing group is refused; a bucket may name one.
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

    /// Executes a bucket.
    fn bucket(
        &mut self,
        packet: &mut Packet<'_>,
        group: &Group,
        index: usize,
    ) -> Result<(), DropReason> {
        if !spend(&mut self.buckets_left) {
            return Err(DropReason::GroupLimit);
        }
        // Buckets may resubmit, and so return here.
        if self.nesting >= NESTING_MAX {
            return Err(DropReason::RecursionTooDeep);
        }
        let bucket = &group.buckets[index];
        self.spend_actions(bucket.actions().len())?;
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
        self.contain_drop(done, DropReason::is_limit)
    }

    /// Executes actions on a copy of the packet, with a copy of its pipeline fields.
    pub(crate) fn on_copy(
        &mut self,
        packet: &Packet<'_>,
        actions: &[Action],
    ) -> Result<(), DropReason> {
        if self.nesting >= NESTING_MAX {
            return Err(DropReason::RecursionTooDeep);
        }
        self.preserve_state(packet)?;
        let copy = self.pool.duplicate(packet.frame());
        let mut copy = copy.ok_or(DropReason::NoBuffer)?;
        let (set, stack) = (self.set.clone(), self.stack.clone());
        let (from, registers, exited) = (self.in_port, self.registers.clone(), self.exited);
        let priority = self.priority;
        self.nesting += 1;
        self.trace.on_copy(actions);
        let copied = match packet.malformed() {
            None => Packet::parse(&mut copy, self.depth),
            Some(_) => Packet::parse_leniently(&mut copy, self.depth),
        };
        let done = match copied {
            Ok(mut copied) => self.apply(&mut copied, actions),
            Err(reason) => Err(DropReason::Malformed(reason)),
        };
        self.nesting -= 1;
        self.finish_pause(FinalActionSet::Never);
        self.trace.on_copy_end();
        self.finish_frame(copy);
        (*self.set, *self.stack) = (set, stack);
        (self.in_port, self.registers, self.exited) = (from, registers, exited);
        self.priority = priority;
        self.mark_modified();
        self.contain_drop(done, DropReason::drops_all)
    }

    /// Ends only the copy, except for reasons that apply to the packet and all of its copies.
    pub(crate) fn contain_drop(
        &mut self,
        done: Result<(), DropReason>,
        applies_to_all: impl Fn(DropReason) -> bool,
    ) -> Result<(), DropReason> {
        match done {
            Err(reason) if !applies_to_all(reason) => {
                self.drop(reason);
                Ok(())
            }
            done => done,
        }
    }

    /// Submits the packet to a rule's meter.
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

    /// Raises the packet's drop precedence.
    fn remark(&mut self, packet: &mut Packet<'_>, levels: u8) -> Result<(), DropReason> {
        let dscp = self.field(packet, Field::IpDscp);
        let dscp = dscp.and_then(|dscp| u8::try_from(dscp).ok());
        if let Some(raised) = dscp.and_then(|dscp| raise_drop_precedence(dscp, levels)) {
            self.preserve_state(packet)?;
            self.mark_modified();
            packet.set_ip_dscp(raised);
        }
        Ok(())
    }

    /// Sends the packet to the controllers, if the controller meter permits it.
    pub(crate) fn send_to_controllers(
        &mut self,
        max_len: Option<MaxLen>,
    ) -> Result<(), DropReason> {
        self.check_meter(MeterId::CONTROLLER)?;
        let meta = self.packet_in(max_len);
        self.record_output(Destination::Controller(meta));
        Ok(())
    }

    /// Submits the packet to a meter of packet-ins. A missing meter permits it.
    pub(crate) fn check_meter(&mut self, meter: MeterId) -> Result<(), DropReason> {
        match self.metered(meter) {
            MeterDecision::Pass => Ok(()),
            MeterDecision::Drop | MeterDecision::Remark(_) => Err(DropReason::ControllerMetered),
        }
    }
}

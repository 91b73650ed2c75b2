//! Execution of groups (OF 1.3.5, 5.6) whose buckets rewrite the frame and output it to ports.
//! Groups with other actions are executed by the interpreter.

use base::GroupId;
use flow::GroupKind;
use packet::{Frame, Headers, Packet, Pool};
use pipeline::{DropReason, Group, GroupBucket, Rule};

use super::ops::stop_at;
use super::{Executor, Interruption};
use crate::action_program::{Op, SlowPathReason};

impl<'a> Executor<'_, 'a> {
    /// Executes the group of the action with this number.
    pub(super) fn execute_group(
        &mut self,
        frame: &Frame,
        rule: &'a Rule,
        (number, id): (usize, GroupId),
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let context = self.batch.context;
        let Some(group) = context.pipeline.group(id) else {
            return Err(Interruption::Drop(DropReason::NoBucket));
        };
        if group.compiled_word(compile_group) != COMPILED {
            return Err(Interruption::SlowPath(
                SlowPathReason::Group,
                stop_at(rule, number),
            ));
        }
        group.count(self.batch.memory.writer, self.weight, context.now);
        let hash = match group.kind() {
            GroupKind::All => {
                let mut buckets = group.buckets().iter();
                return buckets
                    .try_for_each(|bucket| self.execute_bucket(frame, rule, bucket, pool));
            }
            GroupKind::Select => self
                .selection_hash(frame, group)
                .map_err(Interruption::Drop)?,
            GroupKind::Indirect | GroupKind::FastFailover => 0,
        };
        let left = &mut self.buckets_left;
        let selected =
            group.select_bucket(hash, |bucket| context.pipeline.is_bucket_live(bucket, left));
        match selected {
            Some(index) => self.execute_bucket(frame, rule, &group.buckets()[index], pool),
            None => {
                self.drop(DropReason::NoBucket);
                Ok(())
            }
        }
    }

    /// Hash by which a select group chooses a bucket.
    fn selection_hash(&mut self, frame: &Frame, group: &Group) -> Result<u64, DropReason> {
        let headers =
            Headers::parse(frame, self.batch.ingress.depth).map_err(DropReason::Malformed)?;
        self.store_pipeline_fields();
        let memory = &mut *self.batch.memory;
        memory.group_key.fill(&headers, &memory.pipeline_fields);
        Ok(group.hash(&memory.group_key))
    }

    /// Executes a bucket. A drop in the bucket ends only the bucket, except at the limit of
    /// buckets.
    fn execute_bucket(
        &mut self,
        frame: &Frame,
        rule: &'a Rule,
        bucket: &GroupBucket,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let Some(left) = self.buckets_left.checked_sub(1) else {
            return Err(Interruption::Drop(DropReason::GroupLimit));
        };
        self.buckets_left = left;
        bucket.count(
            self.batch.memory.writer,
            self.weight,
            self.batch.context.now,
        );
        let priority = self.priority;
        if !bucket.rewrites() {
            let ops = bucket.actions().iter().map(Op::of);
            ops.for_each(|op| self.execute_output(&op));
        } else if let Err(reason) = self.execute_on_copy(frame, rule, bucket, pool) {
            self.drop(reason);
        }
        self.priority = priority;
        Ok(())
    }

    /// Executes a bucket on a copy of the frame.
    fn execute_on_copy(
        &mut self,
        frame: &Frame,
        rule: &Rule,
        bucket: &GroupBucket,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        // The outputs of the copy differ from those of the frame.
        self.use_verdict();
        self.copy_before_rewrite(frame, pool)?;
        let mut copy = pool.duplicate(frame).ok_or(DropReason::NoBuffer)?;
        let result = self.rewrite_copy(&mut copy, rule, bucket, pool);
        match std::mem::take(&mut self.is_output) {
            true => self.batch.memory.verdict.frames.push(copy),
            false => pool.put(copy),
        }
        result
    }

    fn rewrite_copy(
        &mut self,
        copy: &mut Frame,
        rule: &Rule,
        bucket: &GroupBucket,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let packet = Packet::parse(copy, self.batch.ingress.depth);
        let mut packet = packet.map_err(DropReason::Malformed)?;
        for op in bucket.actions().iter().map(Op::of) {
            let Op::Rewrite(rewrite) = op else {
                self.execute_output(&op);
                continue;
            };
            self.copy_before_rewrite(packet.frame(), pool)?;
            let result = rewrite.apply(&mut packet);
            result.map_err(|failure| self.rewrite_failed(rule, failure))?;
        }
        Ok(())
    }
}

/// Value of a group whose buckets are all executed here.
const COMPILED: u64 = 1;

/// Value that is stored with a group: [`COMPILED`] or zero.
fn compile_group(group: &Group) -> u64 {
    let mut actions = group.buckets().iter().flat_map(GroupBucket::actions);
    let is_compiled = actions.all(|action| {
        matches!(
            Op::of(action),
            Op::Output(_)
                | Op::InPort
                | Op::Normal
                | Op::Flood
                | Op::All
                | Op::Enqueue(..)
                | Op::SetQueue(_)
                | Op::Rewrite(_)
                | Op::Nop
        )
    });
    if is_compiled { COMPILED } else { 0 }
}

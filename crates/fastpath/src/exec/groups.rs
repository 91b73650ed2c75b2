//! Execution of groups (OF 1.3.5, 5.6). Buckets that only rewrite the frame and output it to ports
//! are executed directly, all others as [lists](super::lists) of actions.

use base::GroupId;
use flow::GroupKind;
use packet::{Frame, Packet, Pool};
use pipeline::{Cause, DropReason, Group, GroupBucket, NESTING_MAX, Rule, TurnPlace};

use super::{Executor, Interruption};
use crate::action_program::Op;

impl<'a> Executor<'_, 'a> {
    /// Executes a group.
    pub(super) fn execute_group(
        &mut self,
        frame: &mut Frame,
        place: TurnPlace<'a>,
        id: GroupId,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        self.give_up_recording();
        let context = self.batch.context;
        let (Some(group), Some(rule)) = (context.pipeline.group(id), place.rule) else {
            return Err(Interruption::Drop(DropReason::NoBucket));
        };
        let is_compiled = group.compiled_word(compile_group) == COMPILED && !self.is_malformed;
        let mut execute =
            |executor: &mut Self, frame: &mut Frame, bucket: &GroupBucket| match is_compiled {
                true => executor.execute_bucket(frame, rule, bucket, pool),
                false => executor.execute_listed_bucket(frame, place, bucket, pool),
            };
        group.count(self.batch.memory.writer, self.weight, context.now);
        let hash = match group.kind() {
            GroupKind::All => {
                let mut buckets = group.buckets().iter();
                return buckets.try_for_each(|bucket| execute(self, frame, bucket));
            }
            GroupKind::Select => self.selection_hash(frame, group)?,
            GroupKind::Indirect | GroupKind::FastFailover => 0,
        };
        let left = &mut self.buckets_left;
        let selected =
            group.select_bucket(hash, |bucket| context.pipeline.is_bucket_live(bucket, left));
        match selected {
            Some(index) => execute(self, frame, &group.buckets()[index]),
            None => {
                self.drop(DropReason::NoBucket);
                Ok(())
            }
        }
    }

    /// Executes a bucket as a list of actions. A drop in the bucket ends only the bucket, except at
    /// the limits of the frame.
    #[inline(never)]
    fn execute_listed_bucket(
        &mut self,
        frame: &mut Frame,
        place: TurnPlace<'a>,
        bucket: &GroupBucket,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        self.begin_bucket(bucket)?;
        let place = TurnPlace {
            cause: match place.cause {
                Cause::Action | Cause::ActionSet => Cause::Group,
                other => other,
            },
            ..place
        };
        let priority = self.priority;
        self.level.nesting += 1;
        let result = match bucket.rewrites() {
            true => self.execute_copy(frame, place, bucket.actions(), pool),
            false => self.execute_list(frame, place, bucket.actions(), pool),
        };
        self.level.nesting -= 1;
        self.priority = priority;
        self.contain(result, DropReason::is_limit)
    }

    /// Counts a bucket, up to the limits of the frame.
    fn begin_bucket(&mut self, bucket: &GroupBucket) -> Result<(), Interruption<'a>> {
        let Some(left) = self.buckets_left.checked_sub(1) else {
            return Err(Interruption::Drop(DropReason::GroupLimit));
        };
        self.buckets_left = left;
        self.check_nesting(0)?;
        self.spend_actions(bucket.actions().len())?;
        let (writer, now) = (self.batch.memory.writer, self.batch.context.now);
        bucket.count(writer, self.weight, now);
        Ok(())
    }

    /// Refuses so many more levels than there are if the packet is nested too deep.
    fn check_nesting(&self, more: usize) -> Result<(), Interruption<'a>> {
        match usize::from(self.level.nesting) + more >= NESTING_MAX {
            true => Err(Interruption::Drop(DropReason::RecursionTooDeep)),
            false => Ok(()),
        }
    }

    /// Hash by which a select group chooses a bucket.
    fn selection_hash(
        &mut self,
        frame: &mut Frame,
        group: &Group,
    ) -> Result<u64, Interruption<'a>> {
        let packet = self.parse(frame)?;
        self.store_pipeline_fields();
        let memory = &mut *self.batch.memory;
        memory
            .group_key
            .fill(packet.headers(), &memory.pipeline_fields);
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
        self.begin_bucket(bucket)?;
        let priority = self.priority;
        if !bucket.rewrites() {
            let ops = bucket.actions().iter().map(Op::of);
            ops.for_each(|op| self.execute_output(&op));
        } else {
            self.check_nesting(1)?;
            if let Err(reason) = self.execute_on_copy(frame, rule, bucket, pool) {
                self.drop(reason);
            }
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

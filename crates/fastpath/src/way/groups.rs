//! What groups do to a frame (OF 1.3.5, 5.6): those whose buckets change it and send it
//! out of ports. What else a bucket may do is the interpreter's.

use base::GroupId;
use flow::GroupKind;
use packet::{Frame, Headers, Packet, Pool};
use pipeline::{DropReason, Group, GroupBucket, Rule};

use super::acts::at_action;
use super::{End, Way};
use crate::steps::{SlowPathReason, Step};

impl<'a> Way<'_, 'a> {
    /// Hands the frame to the group of the action in this place.
    pub(super) fn group(
        &mut self,
        frame: &Frame,
        rule: &'a Rule,
        (at, id): (usize, GroupId),
        pool: &mut Pool,
    ) -> Result<(), End<'a>> {
        let ground = self.batch.ground;
        let Some(group) = ground.pipeline.group(id) else {
            return Err(End::Lost(DropReason::NoBucket));
        };
        if group.compiled_word(gist) != SIMPLE {
            return Err(End::Handed(SlowPathReason::Group, at_action(rule, at)));
        }
        group.count(self.batch.runner.writer, self.weight, ground.now);
        let hash = match group.kind() {
            GroupKind::All => {
                let mut buckets = group.buckets().iter();
                return buckets.try_for_each(|bucket| self.bucket(frame, rule, bucket, pool));
            }
            GroupKind::Select => self.hash(frame, group).map_err(End::Lost)?,
            GroupKind::Indirect | GroupKind::FastFailover => 0,
        };
        let left = &mut self.buckets_left;
        let chosen =
            group.select_bucket(hash, |bucket| ground.pipeline.is_bucket_live(bucket, left));
        match chosen {
            Some(index) => self.bucket(frame, rule, &group.buckets()[index], pool),
            None => {
                self.drop(DropReason::NoBucket);
                Ok(())
            }
        }
    }

    /// What a select group draws by.
    fn hash(&mut self, frame: &Frame, group: &Group) -> Result<u64, DropReason> {
        let headers = Headers::parse(frame, self.batch.depth).map_err(DropReason::Malformed)?;
        self.tell_registers();
        let runner = &mut *self.batch.runner;
        runner.key.fill(&headers, &runner.registers);
        Ok(group.hash(&runner.key))
    }

    /// Runs the frame through a bucket. What ends it there ends nothing else, but that it
    /// has met as many as it may.
    fn bucket(
        &mut self,
        frame: &Frame,
        rule: &'a Rule,
        bucket: &GroupBucket,
        pool: &mut Pool,
    ) -> Result<(), End<'a>> {
        let Some(left) = self.buckets_left.checked_sub(1) else {
            return Err(End::Lost(DropReason::GroupLimit));
        };
        self.buckets_left = left;
        bucket.count(self.batch.runner.writer, self.weight, self.batch.ground.now);
        let priority = self.priority;
        if !bucket.rewrites() {
            let steps = bucket.actions().iter().map(Step::of);
            steps.for_each(|step| self.send_by(&step));
        } else if let Err(reason) = self.on_copy(frame, rule, bucket, pool) {
            self.drop(reason);
        }
        self.priority = priority;
        Ok(())
    }

    /// Does to a copy of the frame what the bucket does.
    fn on_copy(
        &mut self,
        frame: &Frame,
        rule: &Rule,
        bucket: &GroupBucket,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        // Where the copy goes is not where the frame goes that it is one of.
        self.tell();
        self.keep(frame, pool)?;
        let mut copy = pool.duplicate(frame).ok_or(DropReason::NoBuffer)?;
        let done = self.rewrite(&mut copy, rule, bucket, pool);
        match std::mem::take(&mut self.promised) {
            true => self.batch.runner.verdict.frames.push(copy),
            false => pool.put(copy),
        }
        done
    }

    fn rewrite(
        &mut self,
        copy: &mut Frame,
        rule: &Rule,
        bucket: &GroupBucket,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let packet = Packet::parse(copy, self.batch.depth);
        let mut packet = packet.map_err(DropReason::Malformed)?;
        for step in bucket.actions().iter().map(Step::of) {
            let Step::Change(change) = step else {
                self.send_by(&step);
                continue;
            };
            self.keep(packet.frame(), pool)?;
            let made = change.make(&mut packet);
            made.map_err(|unmade| self.unmade(rule, unmade))?;
        }
        Ok(())
    }
}

/// What is to be said of a group all of whose buckets' steps are done here.
const SIMPLE: u64 = 1;

/// Whether a group is that, in a word.
fn gist(group: &Group) -> u64 {
    let mut actions = group.buckets().iter().flat_map(GroupBucket::actions);
    let is_simple = actions.all(|action| {
        matches!(
            Step::of(action),
            Step::Output(_)
                | Step::InPort
                | Step::Normal
                | Step::Flood
                | Step::All
                | Step::Enqueue(..)
                | Step::Queue(_)
                | Step::Change(_)
                | Step::Nothing
        )
    });
    if is_simple { SIMPLE } else { 0 }
}

//! Group commands and queries of a pipeline.

use base::{GroupId, Instant, MeterId, PortNo};
use flow::{
    Field, FlowRemovedReason, GroupCapabilities, GroupDesc, GroupFeatures, GroupKind, GroupMod,
    GroupModCommand, GroupStats, Refusal,
};

use super::Pipeline;
use crate::groups::group_table::check_watch;
use crate::groups::{Group, GroupBucket, GroupTable};
use crate::instructions::action_facts::meters_of;
use crate::instructions::check::check_bucket;
use crate::rules::Changes;

impl Pipeline {
    /// Applies `command` completely or, with a refusal, not at all.
    ///
    /// # Errors
    /// The specification's reasons (OF 1.3.5, 7.4.4.7), and those for which a rule with a bucket's
    /// actions would be refused.
    pub fn group_mod(&mut self, command: &GroupMod, now: Instant) -> Result<Changes, Refusal> {
        match command.command {
            GroupModCommand::Add | GroupModCommand::Modify | GroupModCommand::AddOrModify => {
                self.put_group(command, now)?;
            }
            GroupModCommand::InsertBuckets | GroupModCommand::RemoveBuckets => {
                self.put_group(&self.groups.expand(command)?, now)?;
            }
            GroupModCommand::Delete => return self.delete_groups(command.group, now),
        }
        Ok(Changes::default())
    }

    fn put_group(&mut self, command: &GroupMod, now: Instant) -> Result<(), Refusal> {
        self.groups.check_space(command, self.limits)?;
        self.check_buckets(command)?;
        self.groups.put(command, &mut self.allocator, now)
    }

    fn check_buckets(&self, command: &GroupMod) -> Result<(), Refusal> {
        if command.kind == GroupKind::Indirect && command.buckets.len() != 1 {
            return Err(Refusal::GroupModInvalidGroup);
        }
        for bucket in &command.buckets {
            if bucket.weight != 0 && command.kind != GroupKind::Select {
                return Err(Refusal::GroupModInvalidGroup);
            }
            check_watch(command, bucket)?;
            check_bucket(&bucket.actions)?;
            self.tlv_map.check_actions(bucket.actions.iter())?;
            // The groups that a bucket names need not exist: as in Open vSwitch, groups can be
            // added in any order. A packet to a group that does not exist is dropped.
            self.meters.check_all_exist(meters_of(&bucket.actions))?;
        }
        Ok(())
    }

    /// Deletes groups and the rules that name them.
    fn delete_groups(&mut self, group: GroupId, now: Instant) -> Result<Changes, Refusal> {
        let mut changes = Changes::default();
        let ids = self.groups.deletable(group)?;
        self.delete_group_list(ids, now, &mut changes);
        self.delete_orphaned(now, &mut changes);
        Ok(changes)
    }

    fn delete_group_list(&mut self, ids: Vec<GroupId>, now: Instant, changes: &mut Changes) {
        for id in ids {
            let reason = FlowRemovedReason::GroupDelete;
            for rule in self.groups.rules_of(id) {
                self.remove(&rule, Some(reason), now, changes);
            }
            self.groups.remove(id);
        }
    }

    /// Deletes all groups and meters, and the rules that name them.
    pub fn delete_groups_and_meters(&mut self, now: Instant) -> Changes {
        let mut changes = Changes::default();
        self.delete_group_list(self.groups.ids().collect(), now, &mut changes);
        self.delete_meters(MeterId::ALL, now, &mut changes);
        self.delete_orphaned(now, &mut changes);
        changes
    }

    /// Returns the group with this id.
    #[must_use]
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.find(id).map(AsRef::as_ref)
    }

    /// Returns the group table.
    #[inline]
    pub(crate) const fn groups(&self) -> &GroupTable {
        &self.groups
    }

    /// Returns the fields and masks by which a group selects a bucket, empty for the default hash of
    /// a connection; `None` for a group that selects none.
    #[must_use]
    pub fn hashed_fields(&self, group: GroupId) -> Option<Vec<(Field, u128)>> {
        let group = self.groups.find(group)?;
        let selects = group.kind == GroupKind::Select;
        selects.then(|| {
            group
                .hashed()
                .map_or_else(Vec::new, |fields| fields.iter().collect())
        })
    }

    /// Returns the ids of all groups.
    pub fn group_ids(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.groups.ids()
    }

    /// Returns the statistics of a group, or with [`GroupId::ALL`] of all. A group that does not
    /// exist has none.
    pub fn group_stats(
        &self,
        group: GroupId,
        now: Instant,
    ) -> impl Iterator<Item = GroupStats> + '_ {
        self.groups.stats(group, now)
    }

    /// Returns the description of a group, or with [`GroupId::ALL`] of all. A group that does not
    /// exist has none.
    pub fn group_descs(&self, group: GroupId) -> impl Iterator<Item = GroupDesc> + '_ {
        self.groups.descs(group)
    }

    /// Returns the limits and capabilities of the group table, as Open vSwitch reports them: the
    /// maximum number of groups is the number of ids (memory sets a limit before), and chains are
    /// not reported as checked, because a bucket may name a group that does not exist.
    #[must_use]
    pub const fn group_features() -> GroupFeatures {
        GroupFeatures {
            capabilities: GroupCapabilities::SELECT_WEIGHT
                .with(GroupCapabilities::SELECT_LIVENESS)
                .with(GroupCapabilities::CHAINING),
            groups_max: [GroupId::MAX.0; GroupKind::ALL.len()],
        }
    }

    /// True if a bucket is live: it watches nothing, or one of the things that it watches is live
    /// (OF 1.3.5, 6.5). Examines at most `budget` buckets of watched groups, and subtracts them.
    pub fn is_bucket_live(&self, bucket: &GroupBucket, budget: &mut u32) -> bool {
        let flow::Bucket {
            watch_port,
            watch_group,
            ..
        } = bucket.given;
        let watches = (watch_port != PortNo::ANY, watch_group != GroupId::ANY);
        if watches == (false, false) {
            return true;
        }
        let port = self.port(watch_port);
        watches.0 && port.is_some_and(|port| port.is_live())
            || watches.1 && self.has_live_bucket(watch_group, budget)
    }

    fn has_live_bucket(&self, id: GroupId, budget: &mut u32) -> bool {
        let group = self.groups.find(id);
        group.is_some_and(|group| {
            let mut buckets = group.buckets.iter();
            buckets.any(|bucket| spend(budget) && self.is_bucket_live(bucket, budget))
        })
    }
}

/// Subtracts one from a budget. Returns false if it was zero.
pub(crate) const fn spend(budget: &mut u32) -> bool {
    let is_left = *budget > 0;
    *budget = budget.saturating_sub(1);
    is_left
}

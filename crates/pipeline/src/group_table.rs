//! Changing the group table (OF 1.3.5, 6.5 and 7.3.4.2).
//!
//! Groups may send frames to groups, and buckets may watch them, but never in a
//! circle, nor in a row longer than [`CHAIN_MAX`]: what would make one is refused,
//! so that no frame has to be stopped. A group that another sends to is not deleted
//! alone; one that is only watched is, and counts as dead from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{GroupId, Instant, PortNo};
use flow::field::Depth;
use flow::{
    FlowRemovedReason, GroupCapabilities, GroupDesc, GroupFeatures, GroupKind, GroupMod,
    GroupModCommand, GroupStats, Refusal,
};
use imbl::{OrdMap, OrdSet};

use crate::check::check_bucket;
use crate::flow_mod::Changes;
use crate::group::{Group, groups_of};
use crate::limits::{BUCKETS_PER_GROUP_MAX, CHAIN_MAX};
use crate::meter_table::meters_of;
use crate::pipeline::{Pipeline, deepest};
use crate::references::References;
use crate::rule::Rule;

/// The groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupTable {
    groups: OrdMap<GroupId, Arc<Group>>,
    /// Buckets of all of them.
    buckets: usize,
    /// How many groups look how deep.
    depths: [usize; Depth::ALL.len()],
    users: References<GroupId>,
    /// By a group's number, there or not: which groups send to it or watch it.
    referrers: OrdMap<GroupId, OrdSet<GroupId>>,
}

impl GroupTable {
    /// A group, if there is one of this number.
    #[inline]
    pub(crate) fn find(&self, group: GroupId) -> Option<&Arc<Group>> {
        self.groups.get(&group)
    }

    /// How deep a frame must be read for the groups.
    pub(crate) const fn depth(&self) -> Depth {
        deepest(self.depths)
    }

    /// Takes note of a rule.
    pub(crate) fn rule_came(&mut self, rule: &Arc<Rule>) {
        self.users.add(rule, rule.groups());
    }

    /// Takes note that a rule is gone.
    pub(crate) fn rule_went(&mut self, rule: &Rule) {
        self.users.remove(rule, rule.groups());
    }

    fn put(&mut self, group: Group) {
        self.take(group.id);
        self.buckets += group.buckets.len();
        self.depths[group.depth() as usize] += 1;
        for named in group.successors().chain(group.watched()) {
            self.referrers.entry(named).or_default().insert(group.id);
        }
        self.groups.insert(group.id, Arc::new(group));
    }

    fn take(&mut self, id: GroupId) {
        let Some(old) = self.groups.remove(&id) else {
            return;
        };
        self.buckets -= old.buckets.len();
        self.depths[old.depth() as usize] -= 1;
        for named in old.successors().chain(old.watched()) {
            let left = self.referrers.get_mut(&named).is_none_or(|referrers| {
                referrers.remove(&id);
                referrers.is_empty()
            });
            if left {
                self.referrers.remove(&named);
            }
        }
    }

    /// One group, if it is there, or with [`GroupId::ALL`] all.
    fn asked(&self, group: GroupId) -> impl Iterator<Item = (&GroupId, &Arc<Group>)> {
        let range = match group {
            GroupId::ALL => GroupId(0)..=GroupId::MAX,
            one => one..=one,
        };
        self.groups.range(range)
    }

    /// The groups that send frames to this one.
    fn predecessors(&self, id: GroupId) -> impl Iterator<Item = &Arc<Group>> {
        let referrers = self.referrers.get(&id).into_iter().flatten();
        let referrers = referrers.filter_map(|referrer| self.find(*referrer));
        referrers.filter(move |group| group.successors().any(|to| to == id))
    }

    /// Rules and groups that send frames to this one.
    fn references(&self, id: GroupId) -> u32 {
        let groups = u32::try_from(self.predecessors(id).count()).unwrap_or(u32::MAX);
        self.users.count(id).saturating_add(groups)
    }

    /// Whether `group` can stand in the table without a circle or too long a row.
    fn check_chain(&self, group: &Group) -> Result<(), Refusal> {
        let next = |id: GroupId| {
            let found = if id == group.id {
                Some(group)
            } else {
                self.find(id).map(AsRef::as_ref)
            };
            let named = found.map(|group| group.successors().chain(group.watched()));
            named.into_iter().flatten().collect()
        };
        let before = |id: GroupId| {
            let referrers = self.referrers.get(&id).into_iter().flatten();
            referrers.copied().collect()
        };
        let below = longest(group.id, &next, &mut BTreeMap::new(), 0)?;
        let above = longest(group.id, &before, &mut BTreeMap::new(), 0)?;
        if below + above > CHAIN_MAX {
            return Err(Refusal::GroupModChainingUnsupported);
        }
        Ok(())
    }
}

/// How many steps the longest way takes that begins at `id`. A group that is met on
/// the way to itself has no length yet.
fn longest(
    id: GroupId,
    next: &impl Fn(GroupId) -> Vec<GroupId>,
    known: &mut BTreeMap<GroupId, Option<usize>>,
    steps: usize,
) -> Result<usize, Refusal> {
    match known.get(&id) {
        Some(Some(length)) => return Ok(*length),
        Some(None) => return Err(Refusal::GroupModLoop),
        None => {}
    }
    if steps > CHAIN_MAX {
        return Err(Refusal::GroupModChainingUnsupported);
    }
    known.insert(id, None);
    let mut length = 0;
    for id in next(id) {
        length = length.max(1 + longest(id, next, known, steps + 1)?);
    }
    known.insert(id, Some(length));
    Ok(length)
}

impl Pipeline {
    /// Does all of `command` or, with a refusal, none of it.
    ///
    /// # Errors
    /// The specification's reasons (OF 1.3.5, 7.4.4.7), and those for which a rule
    /// with a bucket's actions would be refused.
    pub fn group_mod(&mut self, command: &GroupMod, now: Instant) -> Result<Changes, Refusal> {
        match command.command {
            GroupModCommand::Add | GroupModCommand::Modify | GroupModCommand::AddOrModify => {
                self.put_group(command, now)?;
            }
            GroupModCommand::Delete => return self.delete_group(command.group, now),
            GroupModCommand::InsertBuckets | GroupModCommand::RemoveBuckets => {
                self.change_buckets(command, now)?;
            }
        }
        Ok(Changes::default())
    }

    /// A group some of whose buckets come or go is a group with other buckets, of the
    /// kind that it was (OF 1.5.1, 7.3.4.3).
    fn change_buckets(&mut self, command: &GroupMod, now: Instant) -> Result<(), Refusal> {
        let group = self.groups().find(command.group).cloned();
        let group = group.ok_or(Refusal::GroupModUnknown)?;
        let desc = group.description();
        self.put_group(
            &GroupMod {
                command: GroupModCommand::Modify,
                kind: desc.kind,
                selection: desc.selection,
                buckets: command.buckets_after(&desc.buckets)?,
                ..*command
            },
            now,
        )
    }

    fn put_group(&mut self, command: &GroupMod, now: Instant) -> Result<(), Refusal> {
        if command.group > GroupId::MAX {
            return Err(Refusal::GroupModInvalidGroup);
        }
        let table = self.groups();
        let old = table.find(command.group).cloned();
        match (&old, command.command) {
            (Some(_), GroupModCommand::Add) => return Err(Refusal::GroupModExists),
            (None, GroupModCommand::Modify) => return Err(Refusal::GroupModUnknown),
            (None, _) if table.groups.len() >= self.limits().groups => {
                return Err(Refusal::GroupModOutOfGroups);
            }
            (None | Some(_), _) => {}
        }
        let gone = old.as_ref().map_or(0, |old| old.buckets.len());
        let buckets = table.buckets - gone + command.buckets.len();
        if command.buckets.len() > BUCKETS_PER_GROUP_MAX || buckets > self.limits().buckets {
            return Err(Refusal::GroupModOutOfBuckets);
        }
        self.check_buckets(command)?;
        let group = Group::new(command, old.as_deref(), self.allocator(), now);
        self.groups().check_chain(&group)?;
        self.groups_mut().put(group);
        Ok(())
    }

    /// Judges the buckets of a group.
    fn check_buckets(&self, command: &GroupMod) -> Result<(), Refusal> {
        if command.kind == GroupKind::Indirect && command.buckets.len() != 1 {
            return Err(Refusal::GroupModInvalidGroup);
        }
        for bucket in &command.buckets {
            if bucket.weight != 0 && command.kind != GroupKind::Select {
                return Err(Refusal::GroupModInvalidGroup);
            }
            self.check_watch(command.kind, bucket)?;
            check_bucket(&bucket.actions)?;
            self.options.check_actions(bucket.actions.iter())?;
            let others = groups_of(&bucket.actions).filter(|group| *group != command.group);
            self.check_groups(others)?;
            self.check_meters(meters_of(&bucket.actions))?;
        }
        Ok(())
    }

    fn check_watch(&self, kind: GroupKind, bucket: &flow::Bucket) -> Result<(), Refusal> {
        let port = Some(bucket.watch_port).filter(|port| *port != PortNo::ANY);
        let group = Some(bucket.watch_group).filter(|group| *group != GroupId::ANY);
        match (kind, port.is_some() || group.is_some()) {
            (GroupKind::All | GroupKind::Indirect, true) => {
                return Err(Refusal::GroupModWatchUnsupported);
            }
            (GroupKind::FastFailover, false) => return Err(Refusal::GroupModInvalidGroup),
            (GroupKind::All | GroupKind::Indirect, false)
            | (GroupKind::FastFailover, true)
            | (GroupKind::Select, _) => {}
        }
        if port.is_some_and(|port| !port.is_assignable())
            || group.is_some_and(|group| group > GroupId::MAX)
        {
            return Err(Refusal::GroupModBadWatch);
        }
        Ok(())
    }

    fn delete_group(&mut self, group: GroupId, now: Instant) -> Result<Changes, Refusal> {
        let mut changes = Changes::default();
        let table = self.groups();
        let gone: Vec<_> = match group {
            GroupId::ALL => table.groups.keys().copied().collect(),
            one if one > GroupId::MAX => return Err(Refusal::GroupModInvalidGroup),
            one if table.predecessors(one).next().is_some() => {
                return Err(Refusal::GroupModChained);
            }
            one => table.find(one).map(|_| one).into_iter().collect(),
        };
        for id in gone {
            let users = self.groups().users.of(id);
            let reason = FlowRemovedReason::GroupDelete;
            for rule in users {
                self.take(&rule, Some(reason), now, &mut changes);
            }
            self.groups_mut().take(id);
        }
        self.delete_orphaned(now, &mut changes);
        Ok(changes)
    }

    /// Whether all groups that actions send to are there.
    pub(crate) fn check_groups(
        &self,
        mut named: impl Iterator<Item = GroupId>,
    ) -> Result<(), Refusal> {
        if named.all(|group| self.groups().find(group).is_some()) {
            Ok(())
        } else {
            Err(Refusal::ActionBadOutGroup)
        }
    }

    /// The groups that there are.
    pub fn group_ids(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.groups().groups.keys().copied()
    }

    /// The counts of a group, or with [`GroupId::ALL`] of all; of none that is not there.
    pub fn group_stats(
        &self,
        group: GroupId,
        now: Instant,
    ) -> impl Iterator<Item = GroupStats> + '_ {
        let table = self.groups();
        let groups = table.asked(group);
        groups.map(move |(id, group)| group.statistics(table.references(*id), now))
    }

    /// What a group is, or with [`GroupId::ALL`] what all are; of none that is not there
    /// nothing.
    pub fn group_descs(&self, group: GroupId) -> impl Iterator<Item = GroupDesc> + '_ {
        let groups = self.groups().asked(group);
        groups.map(|(_, group)| group.description())
    }

    /// What the group table can hold.
    #[must_use]
    pub fn group_features(&self) -> GroupFeatures {
        let groups = u32::try_from(self.limits().groups).unwrap_or(u32::MAX);
        GroupFeatures {
            capabilities: GroupCapabilities::SELECT_WEIGHT
                .with(GroupCapabilities::SELECT_LIVENESS)
                .with(GroupCapabilities::CHAINING)
                .with(GroupCapabilities::CHAINING_CHECKS),
            groups_max: GroupKind::ALL.map(|_| groups),
        }
    }
}

impl Rule {
    /// The groups that it can send a frame to, by an action of its own.
    pub(crate) fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.instructions.facts().groups.iter().copied()
    }
}

#[cfg(test)]
mod tests;

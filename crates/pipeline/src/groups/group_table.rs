//! The group table (OF 1.3.5, 6.5 and 7.3.4.2).
//!
//! Groups may send packets to groups, and buckets may watch groups, but never in a loop, and never in
//! a chain longer than [`CHAIN_MAX`]: a group that would make one is refused, so that no packet needs
//! to be stopped. A group that another sends to cannot be deleted alone. A group that is only watched
//! can, and is dead from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{GroupId, Instant, PortNo};
use flow::field::Depth;
use flow::{GroupDesc, GroupKind, GroupMod, GroupModCommand, GroupStats, Refusal};
use imbl::{OrdMap, OrdSet};

use super::group::Group;
use crate::counters::CounterAllocator;
use crate::limits::{BUCKETS_PER_GROUP_MAX, CHAIN_MAX, Limits};
use crate::rules::references::References;
use crate::rules::{Rule, deepest};

/// The groups of a pipeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupTable {
    groups: OrdMap<GroupId, Arc<Group>>,
    /// Number of buckets of all groups.
    buckets: usize,
    /// Number of groups by parse depth.
    depths: [usize; Depth::ALL.len()],
    /// The rules that name each group.
    rules: References<GroupId>,
    /// The groups that send to or watch each group, which need not exist.
    referrers: OrdMap<GroupId, OrdSet<GroupId>>,
}

impl GroupTable {
    /// Returns the group with this id.
    #[inline]
    pub(crate) fn find(&self, group: GroupId) -> Option<&Arc<Group>> {
        self.groups.get(&group)
    }

    /// Returns the ids of all groups.
    pub(crate) fn ids(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.groups.keys().copied()
    }

    /// Returns the parse depth that the groups need.
    pub(crate) const fn depth(&self) -> Depth {
        deepest(self.depths)
    }

    /// Adds the references of a rule.
    pub(crate) fn rule_added(&mut self, rule: &Arc<Rule>) {
        self.rules.add(rule, rule.groups());
    }

    /// Removes the references of a rule.
    pub(crate) fn rule_removed(&mut self, rule: &Rule) {
        self.rules.remove(rule, rule.groups());
    }

    /// Returns the rules that name a group.
    pub(crate) fn rules_of(&self, group: GroupId) -> Vec<Arc<Rule>> {
        self.rules.of(group)
    }

    /// Checks that all of these groups exist.
    pub(crate) fn check_all_exist(
        &self,
        mut ids: impl Iterator<Item = GroupId>,
    ) -> Result<(), Refusal> {
        match ids.all(|group| self.find(group).is_some()) {
            true => Ok(()),
            false => Err(Refusal::ActionBadOutGroup),
        }
    }

    /// Returns the command with all buckets of the group after this change of single buckets, and the
    /// kind that the group has (OF 1.5.1, 7.3.4.3).
    pub(crate) fn expand(&self, command: &GroupMod) -> Result<GroupMod, Refusal> {
        let group = self.find(command.group).ok_or(Refusal::GroupModUnknown)?;
        let desc = group.description();
        Ok(GroupMod {
            kind: desc.kind,
            selection: desc.selection,
            buckets: command.buckets_after(&desc.buckets)?,
            ..*command
        })
    }

    /// Checks that `command` names a valid group and that there is space for it.
    pub(crate) fn check_space(&self, command: &GroupMod, limits: Limits) -> Result<(), Refusal> {
        if command.group > GroupId::MAX {
            return Err(Refusal::GroupModInvalidGroup);
        }
        let old = self.find(command.group);
        match (old, command.command) {
            (Some(_), GroupModCommand::Add) => return Err(Refusal::GroupModExists),
            (None, GroupModCommand::Modify) => return Err(Refusal::GroupModUnknown),
            (None, _) if self.groups.len() >= limits.groups => {
                return Err(Refusal::GroupModOutOfGroups);
            }
            (None | Some(_), _) => {}
        }
        let replaced = old.map_or(0, |old| old.buckets.len());
        let buckets = self.buckets - replaced + command.buckets.len();
        if command.buckets.len() > BUCKETS_PER_GROUP_MAX || buckets > limits.buckets {
            return Err(Refusal::GroupModOutOfBuckets);
        }
        Ok(())
    }

    /// Adds or replaces a group whose space and buckets were checked.
    pub(crate) fn put(
        &mut self,
        command: &GroupMod,
        allocator: &mut CounterAllocator,
        now: Instant,
    ) -> Result<(), Refusal> {
        let old = self.find(command.group).cloned();
        let group = Group::new(command, old.as_deref(), allocator, now);
        self.check_chain(&group)?;
        self.insert(group);
        Ok(())
    }

    fn insert(&mut self, group: Group) {
        self.remove(group.id);
        self.buckets += group.buckets.len();
        self.depths[group.depth() as usize] += 1;
        for target in group.successors().chain(group.watched()) {
            self.referrers.entry(target).or_default().insert(group.id);
        }
        self.groups.insert(group.id, Arc::new(group));
    }

    /// Removes a group.
    pub(crate) fn remove(&mut self, id: GroupId) {
        let Some(old) = self.groups.remove(&id) else {
            return;
        };
        self.buckets -= old.buckets.len();
        self.depths[old.depth() as usize] -= 1;
        for target in old.successors().chain(old.watched()) {
            let is_unreferenced = self.referrers.get_mut(&target).is_none_or(|referrers| {
                referrers.remove(&id);
                referrers.is_empty()
            });
            if is_unreferenced {
                self.referrers.remove(&target);
            }
        }
    }

    /// Returns the groups that a deletion removes: one, or with [`GroupId::ALL`] all.
    pub(crate) fn deletable(&self, group: GroupId) -> Result<Vec<GroupId>, Refusal> {
        match group {
            GroupId::ALL => Ok(self.ids().collect()),
            one if one > GroupId::MAX => Err(Refusal::GroupModInvalidGroup),
            one if self.predecessors(one).next().is_some() => Err(Refusal::GroupModChained),
            one => Ok(self.find(one).map(|_| one).into_iter().collect()),
        }
    }

    /// Returns the statistics of a group, or with [`GroupId::ALL`] of all.
    pub(crate) fn stats(
        &self,
        group: GroupId,
        now: Instant,
    ) -> impl Iterator<Item = GroupStats> + '_ {
        let groups = self.selected(group);
        groups.map(move |(id, group)| group.statistics(self.references(*id), now))
    }

    /// Returns the description of a group, or with [`GroupId::ALL`] of all.
    pub(crate) fn descs(&self, group: GroupId) -> impl Iterator<Item = GroupDesc> + '_ {
        self.selected(group).map(|(_, group)| group.description())
    }

    /// Returns one group, or with [`GroupId::ALL`] all.
    fn selected(&self, group: GroupId) -> impl Iterator<Item = (&GroupId, &Arc<Group>)> {
        let range = match group {
            GroupId::ALL => GroupId(0)..=GroupId::MAX,
            one => one..=one,
        };
        self.groups.range(range)
    }

    /// Returns the groups that send packets to this one.
    fn predecessors(&self, id: GroupId) -> impl Iterator<Item = &Arc<Group>> {
        let referrers = self.referrers.get(&id).into_iter().flatten();
        let referrers = referrers.filter_map(|referrer| self.find(*referrer));
        referrers.filter(move |group| group.successors().any(|to| to == id))
    }

    /// Returns the number of rules and groups that send packets to this group.
    fn references(&self, id: GroupId) -> u32 {
        let groups = u32::try_from(self.predecessors(id).count()).unwrap_or(u32::MAX);
        self.rules.count(id).saturating_add(groups)
    }

    /// Checks that `group` makes no loop and no chain that is too long.
    fn check_chain(&self, group: &Group) -> Result<(), Refusal> {
        let next = |id: GroupId| {
            let found = if id == group.id {
                Some(group)
            } else {
                self.find(id).map(AsRef::as_ref)
            };
            let targets = found.map(|group| group.successors().chain(group.watched()));
            targets.into_iter().flatten().collect()
        };
        let previous = |id: GroupId| {
            let referrers = self.referrers.get(&id).into_iter().flatten();
            referrers.copied().collect()
        };
        let below = longest_chain(group.id, &next, &mut BTreeMap::new(), 0)?;
        let above = longest_chain(group.id, &previous, &mut BTreeMap::new(), 0)?;
        if below + above > CHAIN_MAX {
            return Err(Refusal::GroupModChainingUnsupported);
        }
        Ok(())
    }
}

/// Returns the length of the longest chain from `id`, by depth-first search. `lengths` holds `None`
/// for a group whose search is in progress: to find it again is a loop.
fn longest_chain(
    id: GroupId,
    next: &impl Fn(GroupId) -> Vec<GroupId>,
    lengths: &mut BTreeMap<GroupId, Option<usize>>,
    steps: usize,
) -> Result<usize, Refusal> {
    match lengths.get(&id) {
        Some(Some(length)) => return Ok(*length),
        Some(None) => return Err(Refusal::GroupModLoop),
        None => {}
    }
    if steps > CHAIN_MAX {
        return Err(Refusal::GroupModChainingUnsupported);
    }
    lengths.insert(id, None);
    let mut length = 0;
    for id in next(id) {
        length = length.max(1 + longest_chain(id, next, lengths, steps + 1)?);
    }
    lengths.insert(id, Some(length));
    Ok(length)
}

/// Checks the port and group that a bucket watches. A command that changes single buckets does not
/// name the kind of its group, so it may leave a failover group with buckets that watch nothing, as
/// in Open vSwitch: these are always live.
pub(crate) fn check_watch(command: &GroupMod, bucket: &flow::Bucket) -> Result<(), Refusal> {
    let kind = command.kind;
    let names_kind = !matches!(
        command.command,
        GroupModCommand::InsertBuckets | GroupModCommand::RemoveBuckets
    );
    let port = Some(bucket.watch_port).filter(|port| *port != PortNo::ANY);
    let group = Some(bucket.watch_group).filter(|group| *group != GroupId::ANY);
    match (kind, port.is_some() || group.is_some()) {
        (GroupKind::All | GroupKind::Indirect, true) => {
            return Err(Refusal::GroupModWatchUnsupported);
        }
        (GroupKind::FastFailover, false) if names_kind => {
            return Err(Refusal::GroupModInvalidGroup);
        }
        (GroupKind::All | GroupKind::Indirect, false)
        | (GroupKind::FastFailover, true | false)
        | (GroupKind::Select, _) => {}
    }
    if port.is_some_and(|port| !port.is_assignable())
        || group.is_some_and(|group| group > GroupId::MAX)
    {
        return Err(Refusal::GroupModBadWatch);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! Groups: commands of the group table, descriptions and counters (OF 1.3.5, 5.6, 7.3.4.2 and
//! 7.3.5.9 to 7.3.5.11).

mod selection;

use std::time::Duration;

use base::{BucketId, GroupId, PortNo};

use crate::action::Action;
use crate::refusal::Refusal;

pub use selection::{Selection, SelectionFields, SelectionMethod};

/// Command of a group-mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupModCommand {
    /// Add a group, which must not exist.
    Add,
    /// Replace a group, which must exist.
    Modify,
    /// Replace a group or add it (Nicira's).
    AddOrModify,
    /// Delete a group and the rules that use it, if it exists.
    Delete,
    /// Insert buckets after [`GroupMod::command_bucket`] (1.5).
    InsertBuckets,
    /// Remove the buckets at [`GroupMod::command_bucket`] (1.5).
    RemoveBuckets,
}

/// Kind of a group: how it selects buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// All buckets, each with a copy of the frame.
    All,
    /// One bucket, selected by the switch, by weight.
    Select,
    /// The only bucket.
    Indirect,
    /// The first live bucket.
    FastFailover,
}

impl GroupKind {
    /// All kinds, in the order of their numbers (`OFPGT_*`).
    pub const ALL: [Self; 4] = [Self::All, Self::Select, Self::Indirect, Self::FastFailover];
}

/// Bucket: one alternative of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Number in the group; the index in the list, unless it is given.
    pub id: BucketId,
    /// Share of the frames, in a select group.
    pub weight: u16,
    /// Port whose liveness is that of the bucket; [`PortNo::ANY`] for none.
    pub watch_port: PortNo,
    /// Group whose liveness is that of the bucket; [`GroupId::ANY`] for none.
    pub watch_group: GroupId,
    /// Actions, executed as an action set.
    pub actions: Vec<Action>,
}

/// A change to the group table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// Command.
    pub command: GroupModCommand,
    /// The kind of group.
    pub kind: GroupKind,
    /// The group; [`GroupId::ALL`] in a deletion means every group.
    pub group: GroupId,
    /// Bucket to insert after or to remove; [`BucketId::ALL`] in other commands.
    pub command_bucket: BucketId,
    /// Hash selection of a select group, if given (Netronome's).
    pub selection: Option<Selection>,
    /// Buckets.
    pub buckets: Vec<Bucket>,
}

impl GroupMod {
    /// Returns the buckets of a group with the buckets `present` after this command. Commands that
    /// neither insert nor remove buckets replace them (OF 1.5.1, 7.3.4.3).
    ///
    /// # Errors
    /// The command names a bucket that does not exist, or inserts one whose number exists.
    pub fn buckets_after(&self, present: &[Bucket]) -> Result<Vec<Bucket>, Refusal> {
        let at = |id: BucketId| {
            let found = present.iter().position(|bucket| bucket.id == id);
            found.ok_or(Refusal::GroupModUnknownBucket)
        };
        let mut buckets = present.to_vec();
        match (self.command, self.command_bucket) {
            (GroupModCommand::InsertBuckets, place) => {
                let index = match place {
                    BucketId::FIRST => 0,
                    BucketId::LAST => present.len(),
                    place => at(place)? + 1,
                };
                if self.buckets.iter().any(|bucket| at(bucket.id).is_ok()) {
                    return Err(Refusal::GroupModBucketExists);
                }
                buckets.splice(index..index, self.buckets.iter().cloned());
            }
            (GroupModCommand::RemoveBuckets, BucketId::ALL) => buckets.clear(),
            (GroupModCommand::RemoveBuckets, place) => {
                let index = match place {
                    BucketId::FIRST => 0,
                    BucketId::LAST => present.len().saturating_sub(1),
                    place => at(place)?,
                };
                // An empty group has no first or last bucket.
                buckets.drain(index..(index + 1).min(present.len()));
            }
            (
                GroupModCommand::Add
                | GroupModCommand::Modify
                | GroupModCommand::AddOrModify
                | GroupModCommand::Delete,
                _,
            ) => {
                buckets.clone_from(&self.buckets);
            }
        }
        Ok(buckets)
    }
}

/// Description of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDesc {
    /// The kind of group.
    pub kind: GroupKind,
    /// The group.
    pub group: GroupId,
    /// Hash selection, if given.
    pub selection: Option<Selection>,
    /// Buckets, as they were given.
    pub buckets: Vec<Bucket>,
}

/// The counts of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketStats {
    /// Frames it was given.
    pub packets: u64,
    /// Number of bytes in these frames.
    pub bytes: u64,
}

/// The counts of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStats {
    /// The group.
    pub group: GroupId,
    /// Rules and groups that send frames to it.
    pub references: u32,
    /// Frames it was given.
    pub packets: u64,
    /// Number of bytes in these frames.
    pub bytes: u64,
    /// Lifetime of the group.
    pub duration: Duration,
    /// The counts of its buckets, in their order.
    pub buckets: Vec<BucketStats>,
}

/// `OFPGFC_*`: optional capabilities of groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCapabilities(pub u32);

impl GroupCapabilities {
    /// Buckets of select groups have weights.
    pub const SELECT_WEIGHT: Self = Self(1 << 0);
    /// Buckets of select groups can watch a port or group.
    pub const SELECT_LIVENESS: Self = Self(1 << 1);
    /// A bucket can send to another group.
    pub const CHAINING: Self = Self(1 << 2);
    /// A cycle of groups is refused.
    pub const CHAINING_CHECKS: Self = Self(1 << 3);

    /// Returns the union of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Capacity of the group table. The actions of buckets are a constant of the codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFeatures {
    /// Capabilities.
    pub capabilities: GroupCapabilities,
    /// Largest number of groups of each kind, in the order of [`GroupKind::ALL`]; zero for an
    /// unsupported kind.
    pub groups_max: [u32; 4],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(id: u32) -> Bucket {
        Bucket {
            id: BucketId(id),
            weight: 1,
            watch_port: PortNo::ANY,
            watch_group: GroupId::ANY,
            actions: Vec::new(),
        }
    }

    fn after(command: GroupModCommand, place: BucketId, ids: &[u32]) -> Result<Vec<u32>, Refusal> {
        let command = GroupMod {
            command,
            kind: GroupKind::Select,
            group: GroupId(1),
            command_bucket: place,
            selection: None,
            buckets: ids.iter().copied().map(bucket).collect(),
        };
        let buckets = command.buckets_after(&[bucket(10), bucket(20), bucket(30)])?;
        Ok(buckets.iter().map(|bucket| bucket.id.0).collect())
    }

    #[test]
    fn buckets_are_inserted_first_last_or_behind_another() {
        let insert = |place| after(GroupModCommand::InsertBuckets, place, &[1, 2]);
        assert_eq!(insert(BucketId::FIRST), Ok(vec![1, 2, 10, 20, 30]));
        assert_eq!(insert(BucketId::LAST), Ok(vec![10, 20, 30, 1, 2]));
        assert_eq!(insert(BucketId(20)), Ok(vec![10, 20, 1, 2, 30]));
        assert_eq!(insert(BucketId(21)), Err(Refusal::GroupModUnknownBucket));
        let twice = after(GroupModCommand::InsertBuckets, BucketId::LAST, &[20]);
        assert_eq!(twice, Err(Refusal::GroupModBucketExists));
    }

    #[test]
    fn buckets_are_removed_first_last_by_number_or_all() {
        let remove = |place| after(GroupModCommand::RemoveBuckets, place, &[]);
        assert_eq!(remove(BucketId::FIRST), Ok(vec![20, 30]));
        assert_eq!(remove(BucketId::LAST), Ok(vec![10, 20]));
        assert_eq!(remove(BucketId(20)), Ok(vec![10, 30]));
        assert_eq!(remove(BucketId::ALL), Ok(vec![]));
        assert_eq!(remove(BucketId(5)), Err(Refusal::GroupModUnknownBucket));
    }

    #[test]
    fn modify_replaces_all_buckets() {
        let changed = after(GroupModCommand::Modify, BucketId::ALL, &[7]);
        assert_eq!(changed, Ok(vec![7]));
    }
}

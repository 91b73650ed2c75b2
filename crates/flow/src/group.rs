//! What a controller asks of the group table, and is told of it (OF 1.3.5, 5.6,
//! 7.3.4.2 and 7.3.5.9 to 7.3.5.11).

use std::time::Duration;

use base::{BucketId, GroupId, PortNo};

use crate::action::Action;
use crate::refusal::Refusal;

/// What a group-mod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupModCommand {
    /// Add a group; there must be none of this number.
    Add,
    /// Replace a group; there must be one.
    Modify,
    /// Replace a group, or add it if there is none (Nicira's).
    AddOrModify,
    /// Delete a group and the rules that use it; it need not be there.
    Delete,
    /// Put buckets into a group, behind [`GroupMod::place`] (1.5).
    InsertBuckets,
    /// Take the buckets at [`GroupMod::place`] out of a group (1.5).
    RemoveBuckets,
}

/// How a group chooses among its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// A copy of the frame through each.
    All,
    /// One, chosen by the switch, by weight.
    Select,
    /// The only one.
    Indirect,
    /// The first that is alive.
    FastFailover,
}

impl GroupKind {
    /// All kinds, in the order of their numbers (`OFPGT_*`).
    pub const ALL: [Self; 4] = [Self::All, Self::Select, Self::Indirect, Self::FastFailover];
}

/// One set of actions of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its number in the group; its place in the list, where nobody gave it one.
    pub id: BucketId,
    /// Its share of the frames, in a select group.
    pub weight: u16,
    /// The port whose state is its state; [`PortNo::ANY`] for none.
    pub watch_port: PortNo,
    /// The group whose state is its state; [`GroupId::ANY`] for none.
    pub watch_group: GroupId,
    /// What is done, as an action set.
    pub actions: Vec<Action>,
}

/// A change to the group table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// What to do.
    pub command: GroupModCommand,
    /// The kind of group.
    pub kind: GroupKind,
    /// The group; [`GroupId::ALL`] in a deletion means every group.
    pub group: GroupId,
    /// Where buckets come and go; [`BucketId::ALL`] in the other commands.
    pub place: BucketId,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

impl GroupMod {
    /// The buckets that a group with these has when the command is done, which is one
    /// that inserts or removes buckets; those of the command itself for the others
    /// (OF 1.5.1, 7.3.4.3).
    ///
    /// # Errors
    /// The place is none, or a bucket of the same number is there already.
    pub fn buckets_after(&self, present: &[Bucket]) -> Result<Vec<Bucket>, Refusal> {
        let at = |id: BucketId| {
            let found = present.iter().position(|bucket| bucket.id == id);
            found.ok_or(Refusal::GroupModUnknownBucket)
        };
        let mut buckets = present.to_vec();
        match (self.command, self.place) {
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
                // There need not be any first or last one.
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

/// A group as it stands in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDesc {
    /// The kind of group.
    pub kind: GroupKind,
    /// The group.
    pub group: GroupId,
    /// Its buckets, as they were given.
    pub buckets: Vec<Bucket>,
}

/// The counts of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketStats {
    /// Frames it was given.
    pub packets: u64,
    /// Bytes of those frames.
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
    /// Bytes of those frames.
    pub bytes: u64,
    /// How long it has existed.
    pub duration: Duration,
    /// The counts of its buckets, in their order.
    pub buckets: Vec<BucketStats>,
}

/// `OFPGFC_*`: what groups of a switch can do beyond being there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCapabilities(pub u32);

impl GroupCapabilities {
    /// Buckets of select groups have weights.
    pub const SELECT_WEIGHT: Self = Self(1 << 0);
    /// Buckets of select groups may watch a port or group.
    pub const SELECT_LIVENESS: Self = Self(1 << 1);
    /// A bucket may send to another group.
    pub const CHAINING: Self = Self(1 << 2);
    /// A group that would send to itself in the end is refused.
    pub const CHAINING_CHECKS: Self = Self(1 << 3);

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What the group table can hold. Which actions buckets can do is a constant of
/// the codec: it says what the code can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFeatures {
    /// What groups can do.
    pub capabilities: GroupCapabilities,
    /// The most groups of each kind, in the order of [`GroupKind::ALL`]; zero of
    /// a kind that there is not.
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
            place,
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
    fn other_commands_name_all_buckets() {
        let changed = after(GroupModCommand::Modify, BucketId::ALL, &[7]);
        assert_eq!(changed, Ok(vec![7]));
    }
}

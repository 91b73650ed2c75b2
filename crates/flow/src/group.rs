//! What a controller asks of the group table, and is told of it (OF 1.3.5, 5.6,
//! 7.3.4.2 and 7.3.5.9 to 7.3.5.11).

use std::time::Duration;

use base::{GroupId, PortNo};

use crate::action::Action;

/// What a group-mod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupModCommand {
    /// Add a group; there must be none of this number.
    Add,
    /// Replace a group; there must be one.
    Modify,
    /// Delete a group and the rules that use it; it need not be there.
    Delete,
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
    /// Its buckets.
    pub buckets: Vec<Bucket>,
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

//! What a controller asks of the group table (OF 1.3.5, 5.6 and 7.3.4.2).

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

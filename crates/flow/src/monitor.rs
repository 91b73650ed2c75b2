//! Flow monitors: what a controller wants to be told of the tables, and what it
//! is told (OF 1.4.1, 7.3.5.17; Nicira's `NXST_FLOW_MONITOR` before).

use base::{Cookie, TableId, Xid};

use crate::action::Instructions;
use crate::event::FlowRemovedReason;
use crate::matching::Match;
use crate::statistics::FlowStatsRequest;

/// Names a monitor among those of a connection; the controller chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorId(pub u32);

/// `OFPFMF_*`: when a monitor tells of rules, and what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorFlags(pub u16);

impl MonitorFlags {
    /// The rules that are there at first.
    pub const INITIAL: Self = Self(1 << 0);
    /// Rules that are added.
    pub const ADD: Self = Self(1 << 1);
    /// Rules that go.
    pub const REMOVED: Self = Self(1 << 2);
    /// Rules that are changed.
    pub const MODIFY: Self = Self(1 << 3);
    /// What the rules do is told as well.
    pub const INSTRUCTIONS: Self = Self(1 << 4);
    /// Changes by the connection itself are told in full.
    pub const NO_ABBREV: Self = Self(1 << 5);
    /// Changes by others are not told.
    pub const ONLY_OWN: Self = Self(1 << 6);

    /// All that the specification gives a meaning.
    pub const ALL: Self = Self(0x7f);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether what others change is told. `ONLY_OWN` by itself, which would ask for
    /// nothing but the numbers of one's own messages, is what Open vSwitch and its
    /// tools write for `NO_ABBREV`, and is taken for that.
    #[must_use]
    pub const fn reports_others(self) -> bool {
        !self.contains(Self::ONLY_OWN.with(Self::NO_ABBREV))
    }

    /// Whether what the connection itself changes is told in full.
    #[must_use]
    pub const fn reports_own_in_full(self) -> bool {
        self.0 & (Self::NO_ABBREV.0 | Self::ONLY_OWN.0) != 0
    }
}

/// A monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Its name.
    pub id: MonitorId,
    /// When it tells, and what.
    pub flags: MonitorFlags,
    /// Of which rules. Nobody can ask for cookies.
    pub request: FlowStatsRequest,
}

/// What a controller wants done with a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorRequest {
    /// Set it up.
    Add(Monitor),
    /// Put it in place of the one of its name (1.4).
    Modify(Monitor),
    /// Take it away (1.4; before, there is a message of its own for that).
    Delete(MonitorId),
}

/// What happened to a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEvent {
    /// It was there when the monitor was set up (1.4; before, it is as one added).
    Initial,
    /// It was added, perhaps in the place of another.
    Added,
    /// It is gone.
    Removed(FlowRemovedReason),
    /// It does something else now.
    Modified,
}

/// A rule, and what happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowChange {
    /// What happened.
    pub event: FlowEvent,
    /// The table it is in.
    pub table: TableId,
    /// Its priority.
    pub priority: u16,
    /// Its idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Its hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Its cookie.
    pub cookie: Cookie,
    /// Its match.
    pub matching: Match,
    /// What it does; nothing if the monitor did not ask.
    pub instructions: Instructions,
}

/// What a monitor tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowUpdate {
    /// Something happened to a rule.
    Full(Box<FlowChange>),
    /// What the connection asked for in this message was done.
    Abbrev(Xid),
    /// Nothing more is told for a while, since the controller does not read (1.4;
    /// before, there is a message of its own for that).
    Paused,
    /// All is told again (1.4, as above).
    Resumed,
}

//! Flow monitors: subscriptions to rule changes (OF 1.4.1, 7.3.5.17; Nicira's `NXST_FLOW_MONITOR`
//! before).

use base::{Cookie, TableId, Xid};

use crate::action::Instructions;
use crate::event::FlowRemovedReason;
use crate::matching::Match;
use crate::statistics::FlowStatsRequest;

/// Number of a monitor within its connection, assigned by the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorId(pub u32);

/// `OFPFMF_*`: changes that a monitor reports, and their detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorFlags(pub u16);

impl MonitorFlags {
    /// The rules that exist when the monitor is created.
    pub const INITIAL: Self = Self(1 << 0);
    /// Rules that are added.
    pub const ADD: Self = Self(1 << 1);
    /// Removed rules.
    pub const REMOVED: Self = Self(1 << 2);
    /// Rules that are changed.
    pub const MODIFY: Self = Self(1 << 3);
    /// Instructions of the rules are included.
    pub const INSTRUCTIONS: Self = Self(1 << 4);
    /// Changes by the connection itself are reported in full.
    pub const NO_ABBREV: Self = Self(1 << 5);
    /// Only changes by the connection itself are reported.
    pub const ONLY_OWN: Self = Self(1 << 6);

    /// All that the specification gives a meaning.
    pub const ALL: Self = Self(0x7f);

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if changes by other connections are reported. `ONLY_OWN` alone, which would request
    /// nothing but transaction ids of the controller's own messages, is what Open vSwitch and its
    /// tools send for `NO_ABBREV`, and is treated as that.
    #[must_use]
    pub const fn reports_others(self) -> bool {
        !self.contains(Self::ONLY_OWN.with(Self::NO_ABBREV))
    }

    /// True if changes by the connection itself are reported in full.
    #[must_use]
    pub const fn reports_own_in_full(self) -> bool {
        self.0 & (Self::NO_ABBREV.0 | Self::ONLY_OWN.0) != 0
    }
}

/// A monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Number.
    pub id: MonitorId,
    /// Changes to report, and their detail.
    pub flags: MonitorFlags,
    /// Selection of the rules; it cannot select by cookie.
    pub request: FlowStatsRequest,
}

/// Request of a controller about a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorRequest {
    /// Create a monitor.
    Add(Monitor),
    /// Replace the monitor with this number (1.4).
    Modify(Monitor),
    /// Remove the monitor (1.4; earlier versions have a separate message).
    Delete(MonitorId),
}

/// Change of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEvent {
    /// The rule existed when the monitor was created (1.4; earlier versions report it as added).
    Initial,
    /// The rule was added, perhaps replacing another.
    Added,
    /// The rule was removed.
    Removed(FlowRemovedReason),
    /// The instructions changed.
    Modified,
}

/// Rule with its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowChange {
    /// Change.
    pub event: FlowEvent,
    /// The table it is in.
    pub table: TableId,
    /// Priority.
    pub priority: u16,
    /// Idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Cookie.
    pub cookie: Cookie,
    /// Match.
    pub matching: Match,
    /// Instructions; empty if the monitor excludes them.
    pub instructions: Instructions,
}

/// Report of a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowUpdate {
    /// A rule changed.
    Full(Box<FlowChange>),
    /// The connection's own message with this transaction id took effect.
    Abbrev(Xid),
    /// Reports are suspended, because the controller does not read (1.4; earlier versions have a
    /// separate message).
    Paused,
    /// All rules are reported again (1.4, as above).
    Resumed,
}

//! Tables: configuration, description and status.

use base::TableId;

/// `OFPTC_*` bits of a table's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableFlags(pub u32);

impl TableFlags {
    /// Treatment of frames without a match until 1.2; without a meaning later.
    pub const DEPRECATED: Self = Self(0b11);
    /// Rules may be evicted (1.4).
    pub const EVICTION: Self = Self(1 << 2);
    /// The controller is notified when the table fills up (1.4).
    pub const VACANCY_EVENTS: Self = Self(1 << 3);

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
}

/// `OFPTMPEF_*`: criteria for the choice of the rule to evict (1.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionFlags(pub u32);

impl EvictionFlags {
    /// Another criterion.
    pub const OTHER: Self = Self(1 << 0);
    /// Importance of the rules.
    pub const IMPORTANCE: Self = Self(1 << 1);
    /// Remaining lifetime.
    pub const LIFETIME: Self = Self(1 << 2);
}

/// Limits of vacancy events, in percent of the table's size (1.4): an event when the vacancy falls
/// below the lower limit, and when it rises above the upper one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacancyLimits {
    /// Lower limit.
    pub down: u8,
    /// Upper limit; not below the lower one.
    pub up: u8,
}

/// A change to a table's behaviour (OF 1.3.5, 7.3.3; OF 1.4.1, 7.3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMod {
    /// The table, or [`TableId::ALL`].
    pub table: TableId,
    /// Desired configuration.
    pub config: TableFlags,
    /// Eviction criteria, if given (1.4).
    pub eviction: Option<EvictionFlags>,
    /// Limits of vacancy events, if given (1.4).
    pub vacancy: Option<VacancyLimits>,
}

impl TableMod {
    /// Returns a change of the configuration only.
    #[must_use]
    pub const fn new(table: TableId, config: TableFlags) -> Self {
        Self {
            table,
            config,
            eviction: None,
            vacancy: None,
        }
    }
}

/// Vacancy of a table, with the limits of its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacancy {
    /// Limits.
    pub limits: VacancyLimits,
    /// Current vacancy, in percent.
    pub now: u8,
}

/// Configuration of a table (OF 1.4.1, 7.3.5.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDesc {
    /// The table.
    pub table: TableId,
    /// Configuration.
    pub config: TableFlags,
    /// Eviction criteria, if reported.
    pub eviction: Option<EvictionFlags>,
    /// Vacancy, if reported.
    pub vacancy: Option<Vacancy>,
}

/// Reason of a table status message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableReason {
    /// Vacancy has fallen below the lower limit.
    VacancyDown,
    /// Vacancy has risen above the upper limit.
    VacancyUp,
}

/// Status message of a table (1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStatus {
    /// Reason.
    pub reason: TableReason,
    /// Description of the table.
    pub table: TableDesc,
}

//! Tables as a controller configures them, and what it is told of them.

use base::TableId;

/// `OFPTC_*` bits of a table's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableFlags(pub u32);

impl TableFlags {
    /// What becomes of frames that match nothing: until 1.2. Later it means nothing.
    pub const DEPRECATED: Self = Self(0b11);
    /// Rules may go to make room for others (1.4).
    pub const EVICTION: Self = Self(1 << 2);
    /// The controller is told when the table runs full (1.4).
    pub const VACANCY_EVENTS: Self = Self(1 << 3);

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
}

/// `OFPTMPEF_*`: by what a table chooses the rule that has to go (1.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionFlags(pub u32);

impl EvictionFlags {
    /// By something else.
    pub const OTHER: Self = Self(1 << 0);
    /// By the rules' importance.
    pub const IMPORTANCE: Self = Self(1 << 1);
    /// By how long they still have.
    pub const LIFETIME: Self = Self(1 << 2);
}

/// When a table's vacancy is told of, in percent of its size (1.4): as it falls
/// below the lower, and as it rises above the upper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacancyLimits {
    /// The lower.
    pub down: u8,
    /// The upper, which is not below it.
    pub up: u8,
}

/// A change to a table's behaviour (OF 1.3.5, 7.3.3; OF 1.4.1, 7.3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMod {
    /// The table, or [`TableId::ALL`].
    pub table: TableId,
    /// The wanted configuration.
    pub config: TableFlags,
    /// By what rules are to be chosen, if that is said (1.4).
    pub eviction: Option<EvictionFlags>,
    /// When vacancy is to be told of, if that is said (1.4).
    pub vacancy: Option<VacancyLimits>,
}

impl TableMod {
    /// A change of the configuration, and nothing else.
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

/// A table's vacancy, and when it is told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacancy {
    /// When.
    pub limits: VacancyLimits,
    /// The present vacancy, in percent.
    pub now: u8,
}

/// How a table is configured (OF 1.4.1, 7.3.5.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDesc {
    /// The table.
    pub table: TableId,
    /// Its configuration.
    pub config: TableFlags,
    /// By what it chooses the rules that have to go, if it is told.
    pub eviction: Option<EvictionFlags>,
    /// Its vacancy, if that is told of.
    pub vacancy: Option<Vacancy>,
}

/// Why a table's status is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableReason {
    /// Its vacancy has fallen below the lower limit.
    VacancyDown,
    /// Its vacancy has risen above the upper limit.
    VacancyUp,
}

/// News of a table (1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStatus {
    /// Why.
    pub reason: TableReason,
    /// How it is now.
    pub table: TableDesc,
}

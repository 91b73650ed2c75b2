//! Rules that frames make: `learn` (`ovs-actions(7)`).

use base::{Cookie, TableId};

use super::subfield::Subfield;
use crate::wide::Wide;

/// A rule to be made of a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Learn {
    /// The rule's table.
    pub table: TableId,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: Cookie,
    /// Its idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Its hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Its idle timeout when TCP has ended; zero to leave it.
    pub fin_idle_timeout_s: u16,
    /// Its hard timeout when TCP has ended; zero to leave it.
    pub fin_hard_timeout_s: u16,
    /// What else is said of it.
    pub flags: LearnFlags,
    /// The most rules with its cookie in its table; zero for no limit.
    pub limit: u32,
    /// The bit that tells whether the rule is there now.
    pub result: Option<Subfield>,
    /// What it matches and does.
    pub specs: Vec<LearnSpec>,
}

/// Flags of a rule to be learned, in Nicira's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LearnFlags(pub u16);

impl LearnFlags {
    /// Tell the controller when the learned rule goes.
    pub const SEND_FLOW_REMOVED: Self = Self(1);
    /// Delete what was learned when the rule that learned it goes.
    pub const DELETE_LEARNED: Self = Self(2);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Where bits of a learned rule come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LearnSource {
    /// The frame that is learned of.
    Subfield(Subfield),
    /// The action itself.
    Value(Wide),
}

/// One line of a rule to be learned. Source and destination are of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LearnSpec {
    /// It matches these bits.
    Match {
        /// The bits.
        to: Subfield,
        /// What they are.
        from: LearnSource,
    },
    /// It writes these bits.
    Load {
        /// The bits.
        to: Subfield,
        /// With what.
        from: LearnSource,
    },
    /// It outputs to the port that these bits of the frame name.
    Output(Subfield),
}

impl Learn {
    /// The priority of rules that nobody gave one.
    pub const PRIORITY: u16 = 0x8000;
    /// The table that is meant where none is named.
    pub const TABLE: TableId = TableId(1);
}

//! The action `learn`, which adds a rule built from the frame (`ovs-actions(7)`).

use base::{Cookie, TableId};

use super::subfield::Subfield;
use crate::wide::Wide;

/// A rule to be made of a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Learn {
    /// The rule's table.
    pub table: TableId,
    /// Priority.
    pub priority: u16,
    /// Cookie.
    pub cookie: Cookie,
    /// Idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Idle timeout after the end of the TCP connection; zero for no change.
    pub fin_idle_timeout_s: u16,
    /// Hard timeout after the end of the TCP connection; zero for no change.
    pub fin_hard_timeout_s: u16,
    /// Flags.
    pub flags: LearnFlags,
    /// Learn limit: largest number of rules with this cookie in the table; zero for no limit.
    pub limit: u32,
    /// Bit that receives the result: whether the rule exists afterwards.
    pub result: Option<Subfield>,
    /// Matches and actions of the rule.
    pub specs: Vec<LearnSpec>,
}

/// Flags of a learned rule, in Nicira's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LearnFlags(pub u16);

impl LearnFlags {
    /// Notify the controller when the learned rule is removed.
    pub const SEND_FLOW_REMOVED: Self = Self(1);
    /// Delete the learned rules when the rule with this action is removed.
    pub const DELETE_LEARNED: Self = Self(2);

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Source of bits in a learned rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LearnSource {
    /// The frame that is learned of.
    Subfield(Subfield),
    /// The action itself.
    Value(Wide),
}

/// Part of a learned rule. Source and destination have the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LearnSpec {
    /// Match on these bits.
    Match {
        /// The bits.
        to: Subfield,
        /// Value.
        from: LearnSource,
    },
    /// Load these bits.
    Load {
        /// The bits.
        to: Subfield,
        /// Value.
        from: LearnSource,
    },
    /// Output to the port whose number is in these bits of the frame.
    Output(Subfield),
}

impl Learn {
    /// Default priority.
    pub const PRIORITY: u16 = 0x8000;
    /// Default table.
    pub const TABLE: TableId = TableId(1);
}

//! What a controller may not exceed.

/// How much a controller may build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rules in all tables together.
    pub rules: usize,
    /// Rules in one table.
    pub rules_per_table: usize,
}

impl Limits {
    /// A million rules: what full routing tables come to. At a kilobyte or two
    /// each, they bound the memory that flow-mods can take.
    pub const RULES: usize = 1_000_000;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rules: Self::RULES,
            rules_per_table: Self::RULES,
        }
    }
}

/// The most actions that a rule or a packet-out may have: an output to every
/// port of a large bridge, with a rewrite before each. A frame may leave so
/// many times in every table, no more often.
pub(crate) const ACTIONS_MAX: usize = 1024;

/// The most rules that one call to `expire` removes, so that a table that dies
/// all at once does not keep the control thread from its other duties.
pub(crate) const EXPIRIES_MAX: usize = 1024;

/// How deep resubmissions that do not lead to a later table may lie in one another
/// (`ovs-actions(7)`, "Recursion too deep").
pub(crate) const RECURSION_MAX: usize = 64;

/// How many lookups a frame may have beyond its first (`ovs-actions(7)`, "Too many
/// resubmits").
pub(crate) const RESUBMITS_MAX: usize = 4096;

/// How deep resubmissions of any kind, and clones, may lie in one another: through
/// all tables, and back as often as is allowed. Each takes a piece of the stack.
pub(crate) const NESTING_MAX: usize = 320;

/// The most entries of the stack of `push`: 64 kB (`ovs-actions(7)`, "Stack too deep").
pub(crate) const STACK_MAX: usize = 4096;

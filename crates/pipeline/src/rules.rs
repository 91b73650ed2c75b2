//! Rules and the structures that hold them: tables in lookup order, an index by identity, deadlines,
//! references from groups and meters, and the record of a change.

use flow::field::Depth;

pub(crate) mod changes;
pub(crate) mod filter;
pub(crate) mod references;
pub(crate) mod rule;
pub(crate) mod rule_index;
pub(crate) mod rule_list;
pub(crate) mod table;
pub(crate) mod timeouts;

pub use changes::{Changes, Removal, RuleEvent};
pub(crate) use filter::RuleFilter;
pub use rule::Rule;
pub(crate) use rule::{RuleByIdentity, RuleIdentity, RulePosition};

/// Returns the largest depth that has a count.
pub(crate) const fn deepest(depths: [usize; Depth::ALL.len()]) -> Depth {
    match depths {
        [_, 0, 0] => Depth::Link,
        [_, _, 0] => Depth::Network,
        _ => Depth::Transport,
    }
}

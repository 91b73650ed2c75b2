//! Rank of a rule: its index in the order in which the rules of one table are tried. A form
//! that is built once stores ranks of 32 bits instead of references.

use std::cmp::Ordering;
use std::sync::Arc;

use pipeline::Rule;

/// The rank of no rule, and the number of no node. Greater than every rank, so that a minimum
/// over ranks needs no test for it.
pub(crate) const NO_RULE: u32 = u32::MAX;

/// Order in which two rules of one table are tried: priority, then age.
pub(crate) fn match_order(one: &Arc<Rule>, other: &Arc<Rule>) -> Ordering {
    if one.precedes(other) {
        Ordering::Less
    } else if other.precedes(one) {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

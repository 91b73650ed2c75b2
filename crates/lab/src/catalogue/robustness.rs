//! What goes wrong in the field: many flows, new flows, flows made against caches, cables that
//! are pulled, hours under load.

pub(super) mod flows;
mod in_force;
pub(super) mod link_flap;
pub(super) mod masks;
#[cfg(test)]
mod simulated;
pub(super) mod soak;
pub(super) mod storm;

use super::{Bound, Values};

/// Whole numbers for the profiles quick, paper and rfc, and the least and the most of them.
const fn numbers(
    quick: &'static [u64],
    paper: &'static [u64],
    rfc: &'static [u64],
    [least, most]: [u64; 2],
) -> Values {
    let bound = Bound { least, most };
    Values::Numbers {
        quick,
        paper,
        rfc,
        bound,
    }
}

//! The experiments of Costa et al., evaluation of OpenFlow data planes: round trips by the fields
//! that rules match, by the number of rules, and by the fields that they rewrite.
//!
//! Scenario 1 ([`match_types`]) uses UDP sockets at both ends, as published. The others send whole
//! frames and bypass the hosts' network stacks, so that every byte can be compared with the
//! expected result.

pub(super) mod capacity;
pub(super) mod echo;
mod filling;
pub(super) mod legacy;
pub(super) mod match_types;
pub(super) mod rewrite;
pub(super) mod rules;
#[cfg(test)]
mod tests;

use record::{Bound, Parameter, Values};

/// Parameters of all these experiments.
pub(super) const PACKETS: Parameter = Parameter::constant(
    "packets",
    "echoes in a trial, after the warm-up",
    Values::numbers(&[2_000], &[10_000], &[10_000], [1, 1_000_000]),
);
pub(super) const WARM_UP: Parameter = Parameter::constant(
    "warm-up",
    "echoes of the warm-up",
    Values::numbers(&[500], &[500], &[500], [0, 1_000_000]),
);

/// Frame sizes of the published experiments.
const SIZE: Parameter = Parameter::axis(
    "size",
    "frame size in bytes, with the checksum (FCS)",
    Values::Numbers {
        quick: &[64],
        paper: &[64, 128, 256],
        rfc: &[64, 128, 256, 512, 1_024, 1_280, 1_518],
        bound: SIZE_BOUND,
    },
);
const SIZE_BOUND: Bound = Bound {
    least: 64,
    most: 1_518,
};

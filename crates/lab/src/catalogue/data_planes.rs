//! The experiments of Costa et al., evaluation of OpenFlow data planes: what a round trip
//! takes by what rules match, by how many there are, and by what they rewrite.
//!
//! Scenario 1 is [`Scenario::Echo`](crate::Scenario::Echo), with sockets at both ends as
//! published. The others send whole frames past the hosts' stacks, so that it is seen what
//! rules do to them.

pub(super) mod capacity;
pub(super) mod echo;
mod filling;
pub(super) mod legacy;
pub(super) mod rewrite;
pub(super) mod rules;
#[cfg(test)]
mod tests;

use super::{Bound, Parameter, Values};

/// What is varied and set in all of them alike.
pub(super) const PACKETS: Parameter = Parameter::constant(
    "packets",
    "echoes in a test, after the warm-up",
    Values::Numbers {
        quick: &[2_000],
        paper: &[10_000],
        rfc: &[10_000],
        bound: Bound {
            least: 1,
            most: 1_000_000,
        },
    },
);
pub(super) const WARM_UP: Parameter = Parameter::constant(
    "warm-up",
    "echoes before those that count",
    Values::Numbers {
        quick: &[500],
        paper: &[500],
        rfc: &[500],
        bound: Bound {
            least: 0,
            most: 1_000_000,
        },
    },
);

/// The frame sizes of the published experiments.
const SIZE: Parameter = Parameter::axis(
    "size",
    "bytes of a frame, its checksum (FCS) included",
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

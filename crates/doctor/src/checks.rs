//! The checks, in the order in which they are reported.

mod cores;
mod kernel;
mod ports;

use crate::finding::Finding;
use crate::{Host, SwitchSetup};

/// A check of one aspect of the host.
type Check = fn(&Host, &SwitchSetup) -> Vec<Finding>;

/// All checks.
pub(crate) const ALL: [Check; 14] = [
    kernel::rights,
    kernel::tun,
    kernel::clock,
    kernel::stolen_time,
    kernel::jit,
    kernel::backlog,
    kernel::huge_pages,
    cores::presence,
    cores::isolation,
    cores::siblings,
    cores::frequency,
    cores::sleep,
    cores::interrupts,
    ports::all,
];

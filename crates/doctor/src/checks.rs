//! What is looked at, in the order in which it is told.

mod cores;
mod kernel;
mod ports;

use crate::finding::Finding;
use crate::{Asked, Host};

/// A look at one thing.
type Check = fn(&Host, &Asked) -> Vec<Finding>;

/// All of them.
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

//! Quality of service: queues of ports.

pub(crate) mod queue_classes;
mod queue_selection;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[queue_classes::TESTS, queue_selection::TESTS];

//! Data path: port backends, workers, lookup forms, patch ports and traces.

mod af_xdp;
mod dpdk;
mod lookup_forms;
mod patch_ports;
mod port_memory;
mod replay_ports;
mod rxq_assignment;
mod tap;
mod trace;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    af_xdp::TESTS,
    dpdk::TESTS,
    lookup_forms::TESTS,
    patch_ports::TESTS,
    port_memory::TESTS,
    replay_ports::TESTS,
    rxq_assignment::TESTS,
    tap::TESTS,
    trace::TESTS,
];

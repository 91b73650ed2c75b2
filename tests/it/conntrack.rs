//! Connection tracking: the same traffic through Comporta, Open vSwitch and the kernel's
//! `nf_conntrack`, and the rule sets of real controllers.

mod neutron;
mod neutron_agent;
mod programs;
mod related;
mod scripts;
mod tcp;
mod trackers;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    neutron::TESTS,
    neutron_agent::TESTS,
    programs::TESTS,
    related::TESTS,
    tcp::TESTS,
];

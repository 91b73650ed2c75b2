//! OVN: its real `ovn-northd` and `ovn-controller` over the switch.

mod agreement;
mod balancing;
mod gateways;
mod logical_switch;
mod multicast;
mod policies;
mod restarts;
mod rule_changes;
mod several_chassis;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    logical_switch::TESTS,
    several_chassis::TESTS,
    policies::TESTS,
    balancing::TESTS,
    gateways::TESTS,
    multicast::TESTS,
    restarts::TESTS,
    agreement::TESTS,
    rule_changes::TESTS,
];

//! Layer 2: learning, VLANs, bonds, spanning tree, multicast snooping and mirrors.

mod bond_settings;
mod bonds;
mod learning_switch;
mod mirrors;
mod monitoring;
mod monitoring_peers;
mod multicast_snooping;
mod normal;
mod protected_ports;
mod qinq;
mod spanning_tree;
mod vlans;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    bond_settings::TESTS,
    bonds::TESTS,
    learning_switch::TESTS,
    mirrors::TESTS,
    monitoring::TESTS,
    monitoring_peers::TESTS,
    multicast_snooping::TESTS,
    normal::TESTS,
    protected_ports::TESTS,
    qinq::TESTS,
    spanning_tree::TESTS,
    vlans::TESTS,
];

//! Comporta's tools, and programs that use the switch: Open vSwitch's tools, Mininet, Faucet and
//! os-ken.

mod capture;
mod comporta_tools;
mod faucet;
mod kubernetes;
mod metrics_and_top;
mod mininet;
mod os_ken;
mod ovs_tools;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    capture::TESTS,
    comporta_tools::TESTS,
    faucet::TESTS,
    faucet::connection_tracking::TESTS,
    kubernetes::TESTS,
    metrics_and_top::TESTS,
    mininet::TESTS,
    os_ken::TESTS,
    ovs_tools::TESTS,
];

//! OVN: its real `ovn-northd` and `ovn-controller` over the switch.

mod logical_switch;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[logical_switch::TESTS];

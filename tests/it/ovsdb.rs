//! Configuration by the Open vSwitch database.

mod configuration;
mod controllers;
mod faulty_server;
mod in_band;
mod interfaces_and_tables;
pub(crate) mod random_changes;
mod schema;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    configuration::TESTS,
    controllers::TESTS,
    faulty_server::TESTS,
    in_band::TESTS,
    interfaces_and_tables::TESTS,
    random_changes::TESTS,
    schema::TESTS,
];

//! The process: command line, control socket, restart, TLS and packages.

mod checkpoints;
mod crashes;
mod faults;
mod hostile;
mod lifecycle;
mod migration;
mod packages;
mod process;
mod tls;
mod unixctl;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    checkpoints::TESTS,
    crashes::TESTS,
    faults::TESTS,
    hostile::TESTS,
    lifecycle::TESTS,
    migration::TESTS,
    packages::TESTS,
    process::TESTS,
    tls::TESTS,
    unixctl::TESTS,
];

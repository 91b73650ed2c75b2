//! The daemon. What is wanted ([`config`]) becomes steps (`reconcile`); what
//! happens becomes decisions (`core`) and frames' fates (`dataplane`), all of it
//! without threads, sockets or a clock; and a thin `shell` carries it out.
//!
//! Bytes are `openflow`'s business, rules are `pipeline`'s, frames are `packet`'s.

#[allow(dead_code, unused_imports, reason = "NORMAL asks it next")]
mod bond;
pub mod config;
mod core;
mod dataplane;
mod error;
#[allow(dead_code, unused_imports, reason = "bonds speak it next")]
mod lacp;
mod logging;
mod mac;
mod odp;
mod police;
mod reconcile;
mod shell;
#[expect(
    dead_code,
    reason = "NORMAL asks it next: the engine stands with its tests"
)]
mod spanning;
pub mod telemetry;
mod vswitch;

/// What `--version` says of the program in the place of ovs-vswitchd. Scripts take the last word
/// of the line with "Open vSwitch" in it for the version.
pub const SAYS_IT_IS: &str = concat!(
    "ovs-vswitchd (Comporta, in the place of Open vSwitch) ",
    env!("CARGO_PKG_VERSION")
);

pub use dpdk::IS_THERE as HAS_DPDK;
pub use error::SwitchError;
pub use logging::{LogFile, Logging, Place};
pub use shell::{
    Detached, Managed, PROGRAM, Pidfile, ask, detach, keep_in_memory, manage, management_socket,
    run, rundir_file, settle,
};

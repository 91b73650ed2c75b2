//! The daemon. What is wanted ([`config`]) becomes steps (`reconcile`); what
//! happens becomes decisions (`core`) and frames' fates (`dataplane`), all of it
//! without threads, sockets or a clock; and a thin `shell` carries it out.
//!
//! Bytes are `openflow`'s business, rules are `pipeline`'s, frames are `packet`'s.

mod core;
mod error;
mod logging;
mod odp;
mod shell;
mod vswitch;

/// What `--version` says of the program in the place of ovs-vswitchd, and `version` of its control
/// socket. Scripts take the last word of the line with "Open vSwitch" in it for the version.
pub const SAYS_IT_IS: &str = concat!(
    "ovs-vswitchd (Comporta, in the place of Open vSwitch) ",
    env!("CARGO_PKG_VERSION"),
    "-comporta"
);

/// The version as the database and its tools have it: that of this program, said to be so.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-comporta");

pub use dpdk::IS_THERE as HAS_DPDK;
pub use error::SwitchError;
pub use logging::{LogFile, Logging, Outlets, Syslog, SyslogTarget};
pub use shell::{
    Detached, Managed, PROGRAM, Person, Pidfile, detach, is_monitored, keep_in_memory, manage,
    monitor, run, rundir_file, settle, start_logging,
};

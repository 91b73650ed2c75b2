//! The replacement of ovs-vswitchd: converts the database to a configuration, and writes the state
//! of the switch into the database. Also the log, the pidfile, the monitor process and
//! daemonization.
//!
//! `desired` and `report` are pure functions: from rows to a configuration, and from facts to
//! operations. `database` has the connection to ovsdb-server; the switch itself runs in
//! [`runtime`].

mod columns;
mod daemon;
mod database;
mod desired;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod host;
mod log;
mod logging;
mod manager;
mod migration;
mod monitor;
mod private_file;
mod report;
mod rows;
mod syscall_filter;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "unit tests use more of it than fuzzing")
)]
mod testing;
mod user;

use std::ffi::CStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{DatabaseRemote, DummyCores, DummyMode, Tls};
pub use runtime::PROGRAM;
use runtime::{LogControl, Setup, operate};

use columns::TABLES;
pub use daemon::{Pidfile, ProcessRole, detach, is_monitored, keep_in_memory, settle};
pub use error::DaemonError;
pub use log::start_logging;
pub use logging::{LogFile, LogOutputs, Logging, Syslog, SyslogTarget};
use manager::Manager;
pub use migration::{
    MigrationError, MigrationReview, MigrationSource, ReviewItem, Treatment, review,
};
pub use monitor::monitor;
pub use syscall_filter::SyscallFilter;
pub use user::ProcessUser;

/// The answer to `--version` and to `version` of the control socket. Scripts read the version from
/// the last word of the line with "Open vSwitch".
pub const SAYS_IT_IS: &str = concat!(
    "ovs-vswitchd (Comporta, in the place of Open vSwitch) 3.1.0-comporta",
    env!("CARGO_PKG_VERSION")
);

/// The version in the column `ovs_version`: that of Open vSwitch which it replaces, because programs
/// compare the number, and its own.
const OVS_VERSION: &str = concat!("3.1.0-comporta", env!("CARGO_PKG_VERSION"));

/// The name of the process, by which the scripts of Open vSwitch find it.
const PROGRAM_NAME: &CStr = c"ovs-vswitchd";

/// The argument that disables the control socket.
const NO_SOCKET: &str = "none";

/// The socket of the database in the run directory.
const DATABASE_SOCKET: &str = "db.sock";

/// The names of the database and of the switch's lock, as in Open vSwitch.
const DATABASE: &str = "Open_vSwitch";
const LOCK: &str = "ovs_vswitchd";

/// A switch whose configuration is in a database.
pub struct ManagedSwitch {
    /// The database; by default the socket in the run directory.
    pub database: Option<DatabaseRemote>,
    /// The directory of the sockets, as for [`config::Config::rundir`].
    pub rundir: Option<PathBuf>,
    /// The cores that workers run on, as for [`config::Config::cores`].
    pub cores: Vec<usize>,
    /// Key and certificates for a database connection by TLS, and for controllers if the database
    /// has none.
    pub tls: Option<Tls>,
    /// The interfaces that are dummies. With any, the commands to inject frames and to stop the
    /// clock exist.
    pub dummies: DummyMode,
    /// The cores that the switch pretends to have.
    pub dummy_cores: Option<DummyCores>,
    /// The control socket, if not the default one.
    pub unixctl: Option<PathBuf>,
    /// True if tunnels use the system's routes, beside those of `ovs/route/add`.
    pub system_routes: bool,
    /// True if Unix sockets of controllers must be in the run directory.
    pub unix_socket_dir: bool,
    /// The file from which tables are restored after a crash; none if they are not.
    pub checkpoint: Option<PathBuf>,
    /// The address for Prometheus, if any.
    pub metrics: Option<SocketAddr>,
    /// The log.
    pub logging: Arc<Logging>,
    /// Called when the first configuration is read and applied.
    pub ready: Box<dyn FnOnce() + Send>,
}

/// Runs a switch that is configured by a database, in place of ovs-vswitchd, on the calling thread,
/// until a signal or a command ends it.
///
/// # Errors
/// The switch cannot start. An unreachable database is no error: the daemon waits for it.
pub fn manage(managed: ManagedSwitch) -> Result<(), DaemonError> {
    // The scripts of Open vSwitch compare it with the pidfile.
    if let Err(error) = rustix::thread::set_name(PROGRAM_NAME) {
        tracing::debug!(%error, "cannot set the process name");
    }
    let log: Arc<dyn LogControl> = managed.logging;
    let setup = Setup {
        rundir: managed.rundir,
        cores: managed.cores,
        file: None,
        dummies: managed.dummies,
        dummy_cores: managed.dummy_cores,
        system_routes: managed.system_routes,
        tls: managed.tls.clone(),
        version: SAYS_IT_IS,
        log: Some(log),
        checkpoint: managed.checkpoint,
    };
    operate(setup, |startup| {
        startup.await_flows();
        let rundir = startup.rundir();
        let usual = || format!("{PROGRAM}.{}.ctl", std::process::id()).into();
        let unixctl = managed.unixctl.unwrap_or_else(usual);
        if unixctl != Path::new(NO_SOCKET) {
            startup.serve_unixctl(&rundir.file(unixctl))?;
        }
        startup.serve_metrics(managed.metrics)?;
        let remote = match managed.database {
            Some(DatabaseRemote::Unix(path)) => DatabaseRemote::Unix(rundir.file(path)),
            Some(remote) => remote,
            None => DatabaseRemote::Unix(rundir.file(DATABASE_SOCKET)),
        };
        startup.follow_links()?;
        let unix_socket_dir = managed.unix_socket_dir.then(|| rundir.absolute());
        let manager = Manager::new(managed.dummies, unix_socket_dir);
        startup.spawn(database::follow(
            remote,
            managed.tls,
            manager,
            rundir.file(""),
            startup.handle(),
            managed.ready,
        ));
        Ok(())
    })?;
    Ok(())
}

//! The daemon in the place of ovs-vswitchd: the database becomes a configuration, and the state of
//! the switch is written into the database. With it go the log, the pidfile, the monitor and the
//! life in the background.
//!
//! `desired` and `report` are pure: rows and facts go in, a configuration and operations come out.
//! `database` has the connection to the database server; the switch itself runs in [`runtime`].

mod columns;
mod daemon;
mod database;
mod desired;
mod error;
mod host;
mod log;
mod logging;
mod manager;
mod monitor;
mod report;
mod rows;
#[cfg(test)]
mod testing;
mod user;

use std::ffi::CStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{DatabaseRemote, DummyMode, Tls};
pub use runtime::PROGRAM;
use runtime::{LogControl, Setup, operate};

use columns::TABLES;
pub use daemon::{Detached, Pidfile, detach, is_monitored, keep_in_memory, settle};
pub use error::DaemonError;
pub use log::start_logging;
pub use logging::{LogFile, Logging, Outlets, Syslog, SyslogTarget};
use manager::Manager;
pub use monitor::monitor;
pub use user::Person;

/// What `--version` says of the program in the place of ovs-vswitchd, and `version` of its control
/// socket. Scripts take the last word of the line with "Open vSwitch" in it for the version.
pub const SAYS_IT_IS: &str = concat!(
    "ovs-vswitchd (Comporta, in the place of Open vSwitch) ",
    env!("CARGO_PKG_VERSION"),
    "-comporta"
);

/// The name of the process, without which the scripts of Open vSwitch do not find it.
const PROGRAM_NAME: &CStr = c"ovs-vswitchd";

/// The argument that stands for no control socket.
const NO_SOCKET: &str = "none";

/// Socket of the database in the run directory.
const DATABASE_SOCKET: &str = "db.sock";

/// Names of the database, and of the lock that its one switch holds, as Open vSwitch has them.
const DATABASE: &str = "Open_vSwitch";
const LOCK: &str = "ovs_vswitchd";

/// A switch whose configuration is in a database.
pub struct Managed {
    /// The database; that of the run directory, if none is named.
    pub database: Option<DatabaseRemote>,
    /// Where sockets are made, as for [`config::Config::rundir`].
    pub rundir: Option<PathBuf>,
    /// The cores that workers run on, as for [`config::Config::cores`].
    pub cores: Vec<usize>,
    /// What the database is shown, if it is gone to by TLS, and controllers, if the database
    /// does not say.
    pub tls: Option<Tls>,
    /// Which interfaces are dummies. With any there are commands to hand them frames, and time can
    /// be stopped.
    pub dummies: DummyMode,
    /// The control socket, if it is not the usual one.
    pub unixctl: Option<PathBuf>,
    /// Whether tunnels go by routes of the system, too, not only by those that `ovs/route/add` has.
    pub system_routes: bool,
    /// Whether controllers may be met at sockets of the run directory only.
    pub unix_socket_dir: bool,
    /// Where Prometheus may ask, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// How much is said where.
    pub logging: Arc<Logging>,
    /// Told when the database was read for the first time and done what it says.
    pub ready: Box<dyn FnOnce() + Send>,
}

/// Runs a switch configured by a database, in the place of ovs-vswitchd, on the calling thread,
/// until a signal or a command ends it.
///
/// # Errors
/// The switch cannot start. A database that is not there is no error: the daemon waits for it.
pub fn manage(managed: Managed) -> Result<(), DaemonError> {
    // The scripts of Open vSwitch compare it with the pidfile.
    if let Err(error) = rustix::thread::set_name(PROGRAM_NAME) {
        tracing::debug!(%error, "the process keeps its name");
    }
    let log: Arc<dyn LogControl> = managed.logging;
    let setup = Setup {
        rundir: managed.rundir,
        cores: managed.cores,
        file: None,
        dummies: managed.dummies,
        system_routes: managed.system_routes,
        tls: managed.tls.clone(),
        version: SAYS_IT_IS,
        log: Some(log),
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

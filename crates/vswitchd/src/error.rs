//! The reasons why the daemon cannot start: one line each, with the remedy.

use std::io;
use std::path::PathBuf;

use runtime::SwitchError;

/// The reason why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The switch cannot start.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The pidfile cannot be written.
    #[error("cannot write {path}: {error}; name another with --pidfile=FILE")]
    Pidfile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The process with this pidfile is running.
    #[error("{path}: already running as pid {pid}, aborting")]
    AlreadyRunning {
        /// The pidfile.
        path: PathBuf,
        /// Its content.
        pid: String,
    },
    /// An argument of `-v` is malformed.
    #[error("{0}")]
    Words(String),
    /// The process cannot run as this user.
    #[error("--user={text}: {problem}")]
    User {
        /// The argument.
        text: String,
        /// The reason.
        problem: String,
    },
    /// The log file cannot be written.
    #[error("cannot write {path}: {error}; name another with --log-file=FILE")]
    LogFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A system call failed that succeeds on every supported system.
    #[error("{what}: {error}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl DaemonError {
    /// Wraps an error of a system call that succeeds on every supported system.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { what, error }
    }
}

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
    /// The file that says which process this is cannot be made.
    #[error("cannot write {path}: {error}; name another with --pidfile=FILE")]
    Pidfile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Words behind `-v` say nothing.
    #[error("{0}")]
    Words(String),
    /// Nobody can be this user.
    #[error("--user={text}: {problem}")]
    User {
        /// What was typed.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// The log cannot be written.
    #[error("cannot write {path}: {error}; name another with --log-file=FILE")]
    LogFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The system refused an operation that always works.
    #[error("{what}: {error}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl DaemonError {
    /// Wraps an error of an operation that always works.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { what, error }
    }
}

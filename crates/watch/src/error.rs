//! Errors of this crate, as one-line messages with a remedy.

use std::io;
use std::path::PathBuf;

use control_api::RequestError;

/// A failure of `comporta top` or `comporta capture`.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The switch does not answer, or refuses.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// No switch answers at any socket in the run directory.
    #[error(
        "no switch answers at a socket in {0}: is one running? Choose another directory with --rundir, or its socket with --target"
    )]
    NoSwitch(PathBuf),
    /// The pidfile of the target cannot be read.
    #[error(
        "{path}: {error}: give --target the name of a program with a pidfile, or a path that ends in .ctl"
    )]
    Pidfile {
        /// The pidfile.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The reply of the switch cannot be parsed.
    #[error("cannot parse the reply of the switch ({0}): is it another version?")]
    MalformedReply(String),
    /// The bridge does not exist.
    #[error("the switch has no bridge {0}")]
    NoBridge(String),
    /// The column does not exist.
    #[error("no column is called {name}: the columns are {known}")]
    NoColumn {
        /// The name.
        name: String,
        /// The existing columns.
        known: String,
    },
    /// The terminal, or a file, cannot be written to.
    #[error("{what}: {error}")]
    Io {
        /// The object of the operation.
        what: String,
        /// The system's error.
        error: io::Error,
    },
}

impl WatchError {
    /// Returns a function that converts an I/O error on `what`.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}

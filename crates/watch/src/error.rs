//! Why there is nothing to be watched: one line each that says what to do.

use std::io;
use std::path::PathBuf;

use control_api::RequestError;

/// A switch cannot be watched as it was asked.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The switch does not answer, or refuses.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// No socket of a switch is in the run directory.
    #[error(
        "no switch answers at a socket in {0}: is one running? Choose another directory with --rundir, or its socket with --target"
    )]
    Nobody(PathBuf),
    /// The target's file that says which process it is cannot be read.
    #[error(
        "{path}: {error}: give --target the name of a program that has such a file, or a path that ends in .ctl"
    )]
    Pidfile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// What the switch told is not what this program understands.
    #[error("what the switch tells is not understood ({0}): is it of another version?")]
    NotUnderstood(String),
    /// There is no such bridge.
    #[error("the switch has no bridge {0}")]
    NoBridge(String),
    /// There is no column of this name.
    #[error("no column is called {name}: there are {known}")]
    NoColumn {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The terminal, or a file, cannot be written to.
    #[error("{what}: {error}")]
    Io {
        /// What was to be done.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

impl WatchError {
    /// Says what was to be done when the system refused.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}

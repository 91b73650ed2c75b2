//! Why the switch could not start: one line each that says what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use config::ConfigError;

/// The switch cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// Metrics cannot be served there.
    #[error(
        "metrics at {address}: {error}: give --metrics an address of this machine and a free port"
    )]
    Metrics {
        /// Where they were to be served.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A port could not be opened; the error says why and what to do.
    #[error("bridge {bridge}: port {port}: {problem}")]
    Port {
        /// The bridge.
        bridge: String,
        /// The interface.
        port: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The run directory cannot be made.
    #[error(
        "cannot make the run directory {path}: {error}; run as root or choose another with --rundir"
    )]
    RunDir {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another process answers at the socket.
    #[error(
        "another switch answers at {path}: stop it first, or choose another directory with --rundir"
    )]
    SocketInUse {
        /// The socket.
        path: PathBuf,
    },
    /// A Unix socket cannot be made.
    #[error("cannot listen at {path}: {error}")]
    Unix {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A TCP socket cannot be made.
    #[error("cannot listen at {address}: {error}; choose another port with --listen ptcp:PORT")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// A worker cannot run where it should.
    #[error("--cores: this process may not use core {core}: choose from {allowed}")]
    Core {
        /// The core asked for.
        core: usize,
        /// What this process may use.
        allowed: String,
    },
    /// The system refused something that always works.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl SwitchError {
    /// Wraps an error of something that always works.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { what, error }
    }
}

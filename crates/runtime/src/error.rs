//! Errors at the start of the switch: one line each, with the remedy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use config::ConfigError;
use ports::OpenError;

/// An error that prevents the switch from starting or from applying a configuration.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The address cannot serve metrics.
    #[error(
        "metrics at {address}: {error}: give --metrics an address of this machine and a free port"
    )]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A port could not be opened; the error names the reason and the remedy.
    #[error("bridge {bridge}: port {port}: {problem}")]
    Port {
        /// The bridge.
        bridge: String,
        /// The interface.
        port: String,
        /// The reason and the remedy.
        problem: OpenError,
    },
    /// The run directory cannot be created.
    #[error(
        "cannot create the run directory {path}: {error}; run as root or choose another with --rundir"
    )]
    RunDir {
        /// The directory.
        path: PathBuf,
        /// The system's error.
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
    /// A Unix socket cannot be created.
    #[error("cannot listen at {path}: {error}")]
    Unix {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A TCP socket cannot be created.
    #[error("cannot listen at {address}: {error}; choose another port with --listen ptcp:PORT")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The process may not use the core of a worker.
    #[error("--cores: this process may not use core {core}: choose from {allowed}")]
    Core {
        /// The requested core.
        core: usize,
        /// The cores that the process may use.
        allowed: String,
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

impl SwitchError {
    /// Wraps an error of a system call that succeeds on every supported system.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { what, error }
    }
}

//! Failures of a test setup, with the attempted operation.

use std::io;
use std::time::Duration;

/// A failure of the system or a program, or a timeout.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The system refused an operation.
    #[error("cannot {what}: {source}")]
    System {
        /// The attempted operation, as in "cannot ...".
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// A program failed.
    #[error("{program} failed ({status}){}", said(.output))]
    Program {
        /// The program.
        program: String,
        /// Its exit status.
        status: String,
        /// The last lines of its output; may be empty.
        output: String,
    },
    /// The device does not support the request.
    #[error("{0}")]
    Unfit(String),
    /// A condition did not become true.
    #[error("timed out after {limit:?} waiting for {what}")]
    Timeout {
        /// The condition.
        what: String,
        /// The time limit.
        limit: Duration,
    },
}

impl Failure {
    /// Adds the attempted operation to a system error, for `map_err`.
    pub fn to<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |error| Self::System {
            what,
            source: error.into(),
        }
    }
}

fn said(output: &str) -> String {
    match output.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

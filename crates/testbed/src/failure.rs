//! How the world fails a test bench, each with what was being attempted.

use std::io;
use std::time::Duration;

/// A failure of the system, a program, or somebody's patience.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted, as in "cannot ...".
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// A program ended in failure.
    #[error("{program} failed ({status}){}", said(.output))]
    Program {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
        /// The last lines it wrote; may be empty.
        output: String,
    },
    /// A device cannot be what was asked of it.
    #[error("{0}")]
    Unfit(String),
    /// Something did not come to pass.
    #[error("waited {limit:?} for {what} in vain")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
    },
}

impl Failure {
    /// For `map_err`: puts what was attempted beside an error of the system.
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

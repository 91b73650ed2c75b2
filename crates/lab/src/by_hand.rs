//! The instrument without experiments: generation and reception of frames on interfaces of this
//! machine, without devices, plans or records; and the lab's controller alone.
//!
//! Each command is a value with its parameters and a function that executes it, reports every
//! second, and returns a tally. If the user interrupts it, the tally covers the time until then.
//!
//! Not here: creation, timing and accounting of frames ([`trafficgen`]), and the command line.

mod calibrate;
mod control;
mod ends;
mod generate;
mod receive;
mod reflect;
mod second;
mod shape;
mod tally;
mod words;

use std::io;

use controller::ControllerError;
use testbed::Failure;
use trafficgen::MeasureError;
use trafficgen::template::BadTemplate;

pub use calibrate::{CalibrationTally, Calibrator, Swept};
pub use control::{ControlTally, Listening, Place, Role};
pub use ends::{By, PortName, inside};
pub use generate::{Bound, Generation, Replay, Target};
pub use receive::{Reception, ReceptionTally};
pub use reflect::{ReflectionTally, Turning};
pub use second::Second;
pub use shape::{Addresses, Looks, Mac, Shape};
pub use tally::Tally;
pub use trafficgen::template::Reflection;
pub use words::{BadWord, Pattern, Size, Speed, parse_reflection};

/// Reason for a command without results.
#[derive(Debug, thiserror::Error)]
pub enum ByHandError {
    /// The request is invalid.
    #[error("{0}")]
    Asked(String),
    /// The frames are impossible.
    #[error(transparent)]
    Template(#[from] BadTemplate),
    /// The system returned an error.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// An interface is down.
    #[error("{0} is down: `ip link set {0} up` sets it up")]
    Down(PortName),
    /// The instrument failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A file cannot be sent or read.
    #[error("{file}: {cause}")]
    File {
        /// File.
        file: String,
        /// Cause.
        cause: String,
    },
    /// A thread could not be started, or an interface failed during its use.
    #[error("{what}: {cause}")]
    Io {
        /// Operation that failed.
        what: &'static str,
        /// Cause.
        cause: io::Error,
    },
    /// A device could not be controlled.
    #[error(transparent)]
    Controller(#[from] ControllerError),
}

/// Receiver of the progress, called every second.
pub type Listener<'a> = dyn FnMut(&Second) + 'a;

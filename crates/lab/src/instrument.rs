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
mod frame_kind;
mod generate;
mod load_options;
mod progress_report;
mod receive;
mod reflect;
mod tally;

use std::io;

use controller::ControllerError;
use testbed::Failure;
use trafficgen::MeasureError;
use trafficgen::template::BadTemplate;

pub use calibrate::{CalibrationTally, Calibrator, SweepParameter};
pub use control::{ControlTally, ControllerCommand, ControllerEndpoint, Role};
pub use ends::{IoMethod, PortName, inside};
pub use frame_kind::{Addresses, FrameKind, HeaderOptions, Mac};
pub use generate::{Bound, Generation, Replay, Target};
pub use load_options::{BadWord, Pattern, Size, Speed, parse_reflection};
pub use progress_report::ProgressReport;
pub use receive::{Reception, ReceptionTally};
pub use reflect::{ReflectionTally, ReflectorOptions};
pub use tally::Tally;
pub use trafficgen::template::Reflection;

/// Reason for a command without results.
#[derive(Debug, thiserror::Error)]
pub enum InstrumentError {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
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
pub type Listener<'a> = dyn FnMut(&ProgressReport) + 'a;

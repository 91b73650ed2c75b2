//! The instrument by hand: frames to and from interfaces of this machine, without devices, plans or
//! records; and the lab's controller without the lab.
//!
//! Each command is a value that says what is wanted and a function that does it, tells every second how it
//! goes, and comes to a tally. Whoever has enough gets the tally of what was until then.
//!
//! Not here: how frames are made, timed and booked ([`trafficgen`]), and what a person types.

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

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum ByHandError {
    /// What was asked for cannot be.
    #[error("{0}")]
    Asked(String),
    /// There can be no such frames.
    #[error(transparent)]
    Template(#[from] BadTemplate),
    /// The system refuses.
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
        /// Which one.
        file: String,
        /// Why.
        cause: String,
    },
    /// A thread could not be started, or an interface failed while it was used.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// Why it was not.
        cause: io::Error,
    },
    /// A device could not be controlled.
    #[error(transparent)]
    Controller(#[from] ControllerError),
}

/// Hears every second how it goes.
pub type Listener<'a> = dyn FnMut(&Second) + 'a;

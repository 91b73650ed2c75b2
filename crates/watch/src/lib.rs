//! Observation of a running switch at a terminal: its rates ([`top`]), and the frames that cross it
//! ([`capture`]).
//!
//! The crate uses the control socket, like any other client, and is not part of the switch. Pure
//! functions turn replies into text and screens; the terminal, signals and the clock are confined
//! to the outer modules.

mod capture;
mod clock;
mod error;
mod target;
mod top;

pub use capture::{CaptureOptions, CaptureSummary, run as capture};
pub use error::WatchError;
pub use target::SwitchTarget;
pub use top::{OutputForm, TopOptions, run as top};

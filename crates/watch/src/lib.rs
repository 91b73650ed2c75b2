//! A switch that runs, watched at a terminal: how much it does ([`top`]), and the frames that
//! cross it ([`capture`]).
//!
//! It is asked at its control socket, as anybody may; nothing here is part of the switch. What
//! is drawn and written is made of what was told by pure functions; the terminal, signals and
//! the clock are at the edge.

mod capture;
mod clock;
mod error;
mod target;
mod top;

pub use capture::{Options as CaptureOptions, Summary, run as capture};
pub use error::WatchError;
pub use target::Target;
pub use top::{Form, Options as TopOptions, run as top};

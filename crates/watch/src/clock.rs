//! The one place here that reads a clock, and that waits.

use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Now.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is where the clock is read"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits for so long.
pub(crate) fn wait(time: Duration) {
    // Nobody sends: it always lasts until the end.
    let (_nobody, silence) = mpsc::channel::<()>();
    let _ = silence.recv_timeout(time);
}

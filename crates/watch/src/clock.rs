//! The only module of this crate that reads a clock or waits.

use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Returns the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is where the clock is read"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits.
pub(crate) fn wait(time: Duration) {
    // The channel has no sender that uses it, so the call always times out.
    let (_nobody, silence) = mpsc::channel::<()>();
    let _ = silence.recv_timeout(time);
}

//! The only module of this program that reads the clock.

use std::time::Instant;

/// The current time.
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

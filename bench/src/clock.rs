//! The one place where this program reads the clock.

use std::time::Instant;

/// The time.
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

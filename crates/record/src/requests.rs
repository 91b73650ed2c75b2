//! What came of requests and replies by TCP.

use serde::{Deserialize, Serialize};

/// Requests of one byte, each answered by one before the next was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsOutcome {
    /// How many were answered.
    pub answered: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

impl RequestsOutcome {
    /// Requests a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.answered as f64 / self.seconds
    }
}

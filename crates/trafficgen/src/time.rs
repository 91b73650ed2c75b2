//! What an instrument asks for the time: the machine's clock, or in tests one that is simulated.

use testbed::Clock;

/// A clock, read in hot loops.
pub trait Time: Sync {
    /// Nanoseconds since some start, never fewer than before.
    fn now_ns(&self) -> u64;
}

impl Time for Clock {
    #[inline]
    fn now_ns(&self) -> u64 {
        self.now().as_nanos()
    }
}

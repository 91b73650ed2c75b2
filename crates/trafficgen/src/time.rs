//! The tester's source of time: the machine's clock, or a simulated one in tests.

use testbed::Clock;

/// A clock for hot loops.
pub trait Time: Sync {
    /// Nanoseconds since an arbitrary start; never decreases.
    fn now_ns(&self) -> u64;
}

impl Time for Clock {
    #[inline]
    fn now_ns(&self) -> u64 {
        self.now().as_nanos()
    }
}

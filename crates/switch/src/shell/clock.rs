//! The one place of the daemon that reads a clock.

use std::time::{Instant as SystemInstant, SystemTime};

use base::Instant;
use openflow::WallTime;

/// The time since the daemon's start, the same for all its threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: SystemInstant,
    /// The same instant by the clock on the wall.
    wall: SystemTime,
}

impl Clock {
    /// A clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the clock is read"
    )]
    pub(crate) fn start() -> Self {
        Self {
            start: SystemInstant::now(),
            wall: SystemTime::now(),
        }
    }

    /// Now.
    pub(crate) fn now(self) -> Instant {
        let nanos = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(nanos)
    }

    /// What the clock on the wall showed at the start. Who sets it meanwhile is not heeded.
    pub(crate) fn started(self) -> WallTime {
        let since = self.wall.duration_since(SystemTime::UNIX_EPOCH);
        WallTime(since.unwrap_or_default())
    }

    /// The same instant on the system's clock, for a runtime's timers.
    pub(crate) fn to_system(self, instant: Instant) -> SystemInstant {
        self.start + instant.since(Instant::START)
    }
}

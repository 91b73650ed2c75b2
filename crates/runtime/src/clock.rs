//! The clock of the daemon; no other module reads the system's clocks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as SystemInstant, SystemTime};

use base::Instant;
use openflow::WallTime;

/// The time since the daemon's start; all threads share one start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: SystemInstant,
    /// The wall-clock time of `start`.
    wall: SystemTime,
    /// The state that stops or warps the clock; `None` outside of tests.
    control: Option<&'static ClockControl>,
}

/// The two times of a clock; they are equal outside of tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    /// The time that a test may stop and warp.
    pub(crate) shown: Instant,
    /// The time of the system.
    pub(crate) real: Instant,
}

/// State of a test clock that can be stopped and warped (`time/stop`, `time/warp`).
#[derive(Debug)]
struct ClockControl {
    /// The time at which the clock is stopped, in nanoseconds; [`RUNS`] while it runs.
    stopped_at: AtomicU64,
    /// The sum of all warps, in nanoseconds.
    warped: AtomicU64,
}

/// The value of `stopped_at` while the clock runs.
const RUNS: u64 = u64::MAX;

/// The state of the process's only clock; every copy of the clock refers to it.
static CLOCK_CONTROL: ClockControl = ClockControl {
    stopped_at: AtomicU64::new(RUNS),
    warped: AtomicU64::new(0),
};

/// Returns the wall-clock time since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is where the clock is read"
)]
pub fn wall() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

impl ClockControl {
    /// Returns the shown time, in nanoseconds, when `real` nanoseconds have passed since the start.
    fn read(&self, real: u64) -> u64 {
        match self.stopped_at.load(Ordering::Relaxed) {
            RUNS => real.saturating_add(self.warped.load(Ordering::Relaxed)),
            stopped_at => stopped_at,
        }
    }
}

impl Clock {
    /// Returns a clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the clock is read"
    )]
    #[must_use]
    pub fn start() -> Self {
        Self {
            start: SystemInstant::now(),
            wall: SystemTime::now(),
            control: None,
        }
    }

    /// Returns a clock that starts now and can be stopped and warped, for tests.
    pub(crate) fn start_for_tests() -> Self {
        Self {
            control: Some(&CLOCK_CONTROL),
            ..Self::start()
        }
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(self) -> Instant {
        let real = self.real();
        let shown = self.control.map_or(real, |control| control.read(real));
        Instant::from_nanos(shown)
    }

    /// Returns the shown and the real time.
    pub(crate) fn read(self) -> ClockReading {
        let real = self.real();
        let shown = self.control.map_or(real, |control| control.read(real));
        ClockReading {
            shown: Instant::from_nanos(shown),
            real: Instant::from_nanos(real),
        }
    }

    /// Returns the real nanoseconds since the start, even if the clock is stopped or warped.
    fn real(self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the time since the start, even if the clock is stopped or warped: for intervals that
    /// protect the machine.
    pub(crate) fn unwarped(self) -> Instant {
        Instant::from_nanos(self.real())
    }

    /// Stops the clock. Returns false if it cannot be stopped.
    pub(crate) fn stop(self) -> bool {
        if let Some(control) = self.control {
            let now = control.read(self.real());
            control.stopped_at.store(now, Ordering::Relaxed);
        }
        self.control.is_some()
    }

    /// Warps the clock forward. Returns false if it cannot be warped.
    pub(crate) fn warp(self, by: Duration) -> bool {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        if let Some(control) = self.control {
            match control.stopped_at.load(Ordering::Relaxed) {
                RUNS => drop(control.warped.fetch_add(by, Ordering::Relaxed)),
                stopped_at => {
                    let then = stopped_at.saturating_add(by).min(RUNS - 1);
                    control.stopped_at.store(then, Ordering::Relaxed);
                }
            }
        }
        self.control.is_some()
    }

    /// Returns the wall-clock time of the start. Later changes of the system time have no effect.
    pub(crate) fn started(self) -> WallTime {
        let since = self.wall.duration_since(SystemTime::UNIX_EPOCH);
        WallTime(since.unwrap_or_default())
    }

    /// Returns `instant` on the system's clock, for the timers of tokio. If the clock is stopped or
    /// warped, the result keeps the shown distance from now.
    #[must_use]
    pub fn to_system(self, instant: Instant) -> SystemInstant {
        match self.control {
            None => self.start + instant.since(Instant::START),
            Some(_) => {
                let real = Duration::from_nanos(self.real());
                self.start + real + instant.since(self.now())
            }
        }
    }
}

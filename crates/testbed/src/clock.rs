//! Clocks and waiting, the only module that uses them: `CLOCK_MONOTONIC_RAW` for durations, since
//! NTP does not slew it, and the calendar for headings.
#![expect(
    clippy::disallowed_methods,
    reason = "this module is the only source of time"
)]

mod relation;

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::Instant;
use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

pub(crate) use relation::SLEW_PART;
pub use relation::{Drift, MOVED_NS_MAX, Relation};

/// Number of readings of both clocks, of which the best is used: interrupts disturb some.
const READINGS: usize = 16;

/// Interval of polling a condition without a notification.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

impl Clock {
    /// Starts a clock.
    #[must_use]
    pub fn start() -> Self {
        Self {
            start_ns: monotonic_raw_ns(),
        }
    }

    /// Returns the time since the start, in nanoseconds; a reading takes some 25 ns.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(monotonic_raw_ns().saturating_sub(self.start_ns))
    }

    /// Returns the time since 1970-01-01 00:00 UTC.
    #[must_use]
    pub fn calendar(&self) -> Duration {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    }

    /// Relates `CLOCK_REALTIME`, by which the kernel timestamps frames, to this clock.
    #[must_use]
    pub fn relate(&self) -> Relation {
        let reading = |_| {
            let before = self.now().as_nanos();
            let real_ns = nanos(ClockId::Realtime);
            let took = self.now().as_nanos() - before;
            Relation {
                at: Instant::from_nanos(before + took / 2),
                real_ns,
                uncertainty_ns: took.div_ceil(2),
            }
        };
        (0..READINGS)
            .map(reading)
            .min_by_key(|relation| relation.uncertainty_ns)
            .expect("there are some readings")
    }

    /// Returns the drift of the two clocks since `before`.
    #[must_use]
    pub fn drift_since(&self, before: Relation) -> Drift {
        let after = self.relate();
        Drift { before, after }
    }

    /// Sleeps until `deadline`; returns immediately if it is past.
    pub fn sleep_until(&self, deadline: Instant) {
        let rest = deadline.since(self.now());
        if !rest.is_zero() {
            thread::sleep(rest);
        }
    }

    /// Polls `look` every 5 ms until it returns a value.
    ///
    /// # Errors
    /// [`Failure::Timeout`] with `what`, if `limit` passes; the errors of `look`.
    pub fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let deadline = self.now() + limit;
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            let now = self.now();
            if now >= deadline {
                return Err(Failure::Timeout {
                    what: what.to_owned(),
                    limit,
                });
            }
            self.sleep_until(deadline.min(now + LOOK_AGAIN));
        }
    }
}

fn monotonic_raw_ns() -> u64 {
    nanos(ClockId::MonotonicRaw)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_for_a_false_condition_ends_at_the_limit() {
        let clock = Clock::start();
        let limit = Duration::from_millis(20);
        let outcome: Result<(), _> = clock.wait_for("the moon", limit, || Ok(None));
        assert_eq!(
            outcome.unwrap_err().to_string(),
            "timed out after 20ms waiting for the moon"
        );
        assert!(clock.now() >= Instant::START + limit);
    }

    #[test]
    fn clocks_are_read_simultaneously() {
        let clock = Clock::start();
        let (earliest, real) = (clock.now(), clock.calendar());
        let relation = clock.relate();
        let drift = clock.drift_since(relation);
        assert!(relation.at >= earliest && drift.after.at >= relation.at);
        let apart = u128::from(relation.real_ns).abs_diff(real.as_nanos());
        // A calendar that is set meanwhile differs by more than this takes.
        assert!(apart < 3_600_000_000_000, "{apart}");
        let at = drift.instant_of(relation.real_ns);
        assert_eq!(at, relation.at);
    }

    #[test]
    fn wait_for_a_true_condition_returns_immediately() {
        assert_eq!(
            Clock::start()
                .wait_for("seven", Duration::ZERO, || Ok(Some(7)))
                .unwrap(),
            7
        );
    }
}

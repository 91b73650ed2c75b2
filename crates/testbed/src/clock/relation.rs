//! The kernel stamps frames by `CLOCK_REALTIME`, which NTP moves; the lab measures by
//! `CLOCK_MONOTONIC_RAW`, which nobody does. Here the one is told in terms of the other.

use base::Instant;

/// By how many nanoseconds something may set `CLOCK_REALTIME` while a test is under way, before
/// that must be said: times by the kernel's stamps are wrong by as much.
pub const MOVED_NS_MAX: u64 = 1_000;

/// The kernel slews its clock by one part in so many at most: 500 in a million (adjtimex(2)).
pub(crate) const SLEW_PART: u64 = 2_000;

/// What `CLOCK_REALTIME` said at a moment of the lab's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The moment.
    pub at: Instant,
    /// Nanoseconds since 1970-01-01 00:00 UTC then.
    pub real_ns: u64,
    /// By how many nanoseconds, at most, either may be wrong against the other.
    pub uncertainty_ns: u64,
}

/// How both clocks went while something was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Before.
    pub before: Relation,
    /// After.
    pub after: Relation,
}

impl Drift {
    /// By how many nanoseconds `CLOCK_REALTIME` went ahead of the lab's clock.
    #[must_use]
    pub const fn moved_ns(&self) -> i64 {
        let (before, after) = (&self.before, &self.after);
        let real = after.real_ns.cast_signed() - before.real_ns.cast_signed();
        let lab = after.at.as_nanos().cast_signed() - before.at.as_nanos().cast_signed();
        real - lab
    }

    /// By how many nanoseconds it moved beyond what the kernel slews it by at most: it was set.
    #[must_use]
    pub const fn step_ns(&self) -> u64 {
        let passed = self
            .after
            .at
            .as_nanos()
            .saturating_sub(self.before.at.as_nanos());
        let unsure = self.before.uncertainty_ns + self.after.uncertainty_ns;
        let moved = self.moved_ns().unsigned_abs();
        moved.saturating_sub(passed / SLEW_PART + unsure)
    }

    /// When it was, by the lab's clock, that `CLOCK_REALTIME` said `real_ns`: as if both had
    /// gone evenly between the two moments. What was before the lab's start counts as that.
    #[must_use]
    pub fn instant_of(&self, real_ns: u64) -> Instant {
        let since = i128::from(real_ns) - i128::from(self.before.real_ns);
        let real = i128::from(self.after.real_ns) - i128::from(self.before.real_ns);
        let moved = match real {
            // A clock that was set back, or not read twice, tells nothing of its rate.
            ..=0 => 0,
            _ => i128::from(self.moved_ns()) * since / real,
        };
        let at = i128::from(self.before.at.as_nanos()) + since - moved;
        Instant::from_nanos(u64::try_from(at.max(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(at: u64, real_ns: u64) -> Relation {
        Relation {
            at: Instant::from_nanos(at),
            real_ns,
            uncertainty_ns: 50,
        }
    }

    #[test]
    fn stamps_are_found_on_the_labs_clock() {
        let drift = Drift {
            before: relation(1_000, 5_000_000),
            after: relation(2_001_000, 7_000_000),
        };
        assert_eq!((drift.moved_ns(), drift.step_ns()), (0, 0));
        assert_eq!(drift.instant_of(5_500_000).as_nanos(), 501_000);
        assert_eq!(drift.instant_of(4_999_500).as_nanos(), 500);
        assert_eq!(drift.instant_of(0), Instant::START);
    }

    #[test]
    fn a_clock_that_is_slewed_is_told_of_and_taken_as_even() {
        // 20 us in 2 ms, ten thousand ppm.
        let drift = Drift {
            before: relation(0, 1_000_000_000),
            after: relation(2_000_000, 1_002_020_000),
        };
        assert_eq!(drift.moved_ns(), 20_000);
        assert_eq!(drift.instant_of(1_001_010_000).as_nanos(), 1_000_000);
        // Of those a slew is one at most.
        assert_eq!(drift.step_ns(), 20_000 - 1_000 - 100);
        let back = Drift {
            before: relation(0, 1_000_000_000),
            after: relation(1_000, 900_000_000),
        };
        assert!(back.step_ns() > MOVED_NS_MAX);
        assert_eq!(back.instant_of(1_000_000_500).as_nanos(), 500);
    }
}

//! Conversion between `CLOCK_REALTIME`, with which the kernel timestamps frames and which NTP
//! adjusts, and `CLOCK_MONOTONIC_RAW`, the lab's clock, which is never adjusted.

use base::Instant;

/// The largest step of `CLOCK_REALTIME` during a test that needs no warning, in nanoseconds: kernel
/// timestamps are wrong by as much.
pub const MOVED_NS_MAX: u64 = 1_000;

/// The reciprocal of the kernel's largest slew rate, 500 ppm (adjtimex(2)).
pub(crate) const SLEW_PART: u64 = 2_000;

/// A simultaneous reading of `CLOCK_REALTIME` and the lab's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The lab's clock.
    pub at: Instant,
    /// `CLOCK_REALTIME`, in nanoseconds since 1970-01-01 00:00 UTC.
    pub real_ns: u64,
    /// The largest error of one against the other, in nanoseconds.
    pub uncertainty_ns: u64,
}

/// The readings of both clocks before and after a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The reading before.
    pub before: Relation,
    /// The reading after.
    pub after: Relation,
}

impl Drift {
    /// The drift of `CLOCK_REALTIME` against the lab's clock, in nanoseconds.
    #[must_use]
    pub const fn moved_ns(&self) -> i64 {
        let (before, after) = (&self.before, &self.after);
        let real = after.real_ns.cast_signed() - before.real_ns.cast_signed();
        let lab = after.at.as_nanos().cast_signed() - before.at.as_nanos().cast_signed();
        real - lab
    }

    /// The part of the drift beyond the kernel's largest slew, in nanoseconds: the clock was set.
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

    /// Converts `real_ns` of `CLOCK_REALTIME` to the lab's clock, by linear interpolation between
    /// the two readings. Times before the start of the lab's clock are converted to the start.
    #[must_use]
    pub fn instant_of(&self, real_ns: u64) -> Instant {
        let since = i128::from(real_ns) - i128::from(self.before.real_ns);
        let real = i128::from(self.after.real_ns) - i128::from(self.before.real_ns);
        let moved = match real {
            // A clock that was set back, or read only once, has no measurable rate.
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
    fn timestamps_convert_to_the_labs_clock() {
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
    fn slewed_clock_is_reported_and_interpolated() {
        // 20 us in 2 ms are 10,000 ppm.
        let drift = Drift {
            before: relation(0, 1_000_000_000),
            after: relation(2_000_000, 1_002_020_000),
        };
        assert_eq!(drift.moved_ns(), 20_000);
        assert_eq!(drift.instant_of(1_001_010_000).as_nanos(), 1_000_000);
        // A slew explains at most 1 us of that.
        assert_eq!(drift.step_ns(), 20_000 - 1_000 - 100);
        let back = Drift {
            before: relation(0, 1_000_000_000),
            after: relation(1_000, 900_000_000),
        };
        assert!(back.step_ns() > MOVED_NS_MAX);
        assert_eq!(back.instant_of(1_000_000_500).as_nanos(), 500);
    }
}

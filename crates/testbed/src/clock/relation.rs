//! The kernel stamps frames by `CLOCK_REALTIME`, which NTP moves; the lab measures by
//! `CLOCK_MONOTONIC_RAW`, which nobody does. Here the one is told in terms of the other.

use std::time::Duration;

use base::Instant;

/// By how much the clocks may move apart while something is measured, in nanoseconds, before
/// that must be said.
pub const MOVED_NS_MAX: u64 = 1_000;

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

    /// What a reader must know of it: that the clocks moved apart by more than a microsecond,
    /// beyond what can be told; nothing, as a rule.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let moved = self.moved_ns();
        let unsure = self.before.uncertainty_ns + self.after.uncertainty_ns;
        if moved.unsigned_abs() <= MOVED_NS_MAX + unsure {
            return None;
        }
        let took = Duration::from_nanos(
            self.after
                .at
                .as_nanos()
                .saturating_sub(self.before.at.as_nanos()),
        );
        Some(format!(
            "the kernel's stamps moved by {moved} ns against the lab's clock in {took:.1?}: \
             something sets CLOCK_REALTIME, and times by such stamps are taken as if evenly"
        ))
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
        assert_eq!((drift.moved_ns(), drift.told()), (0, None));
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
        assert!(drift.told().unwrap().contains("moved by 20000 ns"));
        let back = Drift {
            before: relation(0, 1_000_000_000),
            after: relation(1_000, 900_000_000),
        };
        assert!(back.told().is_some());
        assert_eq!(back.instant_of(1_000_000_500).as_nanos(), 500);
    }
}

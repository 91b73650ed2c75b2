//! Conversion of kernel timestamps to the tester's clock. The kernel stamps frames with
//! `CLOCK_REALTIME`, which is slewed and set; the tester uses `CLOCK_MONOTONIC_RAW`. The two are
//! therefore compared repeatedly.

use rustix::time::{ClockId, clock_gettime};

use crate::Clock;
use crate::clock::SLEW_PART;

/// The validity of a comparison.
const HOLDS_NS: u64 = 10_000_000;
/// The attempts of a comparison, and the longest accepted one: reading a clock takes some 25 ns,
/// and a longer reading was interrupted.
const TRIES: u32 = 5;
const SPAN_NS_MAX: u64 = 1_000;

/// The offset between the two clocks.
#[derive(Clone, Debug)]
pub(crate) struct Realtime {
    clock: Clock,
    /// The offset to subtract from a timestamp, and the last timestamp for which it is valid.
    ahead_ns: u64,
    until_ns: u64,
    step_ns_max: u64,
}

impl Realtime {
    pub(crate) fn new(clock: Clock) -> Self {
        let (ahead_ns, now_ns, _) = compare(&clock);
        Self {
            clock,
            ahead_ns,
            until_ns: now_ns + HOLDS_NS,
            step_ns_max: 0,
        }
    }

    /// Converts a kernel timestamp to the tester's clock.
    #[inline]
    pub(crate) fn instant_ns(&mut self, stamp_ns: u64) -> u64 {
        // A timestamp long before the last comparison means that the clock was set back.
        if stamp_ns > self.until_ns || stamp_ns + 4 * HOLDS_NS < self.until_ns {
            self.compare_again(stamp_ns);
        }
        stamp_ns.wrapping_sub(self.ahead_ns)
    }

    #[cold]
    fn compare_again(&mut self, stamp_ns: u64) {
        let (ahead_ns, now_ns, span_ns) = compare(&self.clock);
        if span_ns <= SPAN_NS_MAX {
            let passed = now_ns.saturating_sub(self.until_ns - HOLDS_NS.min(self.until_ns));
            let moved = ahead_ns.abs_diff(self.ahead_ns);
            let step = moved.saturating_sub(passed / SLEW_PART + span_ns);
            self.step_ns_max = self.step_ns_max.max(step);
            self.ahead_ns = ahead_ns;
        }
        self.until_ns = now_ns.max(stamp_ns) + HOLDS_NS;
    }

    pub(crate) const fn step_ns_max(&self) -> u64 {
        self.step_ns_max
    }
}

/// The offset of the kernel's clock, its time, and the duration of the reading.
fn compare(clock: &Clock) -> (u64, u64, u64) {
    let once = || {
        let before = clock.now().as_nanos();
        let real = clock_gettime(ClockId::Realtime);
        let span = clock.now().as_nanos() - before;
        let seconds = u64::try_from(real.tv_sec).unwrap_or(0);
        let real_ns = seconds * 1_000_000_000 + u64::try_from(real.tv_nsec).unwrap_or(0);
        (real_ns.wrapping_sub(before + span / 2), real_ns, span)
    };
    let tries = (1..TRIES).map(|_| once());
    tries.fold(once(), |best, one| if one.2 < best.2 { one } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_lies_between_the_surrounding_readings() {
        let clock = Clock::start();
        let mut realtime = Realtime::new(clock);
        let before = clock.now().as_nanos();
        let real = clock_gettime(ClockId::Realtime);
        let after = clock.now().as_nanos();
        let seconds = u64::try_from(real.tv_sec).unwrap();
        let stamp = seconds * 1_000_000_000 + u64::try_from(real.tv_nsec).unwrap();
        let at = realtime.instant_ns(stamp);
        // The error is at most half of an accepted reading, plus the drift since.
        let slack = SPAN_NS_MAX + (after - before) / 1_000;
        assert!(
            before <= at + slack && at <= after + slack,
            "{before} {at} {after}"
        );
    }
}

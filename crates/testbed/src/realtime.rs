//! The kernel's stamps in our time: it stamps frames by `CLOCK_REALTIME`, which is slewed and set, and we
//! count by `CLOCK_MONOTONIC_RAW`. So the two are laid side by side again and again.

use rustix::time::{ClockId, clock_gettime};

use crate::Clock;
use crate::clock::SLEW_PART;

/// How long a comparison holds.
const HOLDS_NS: u64 = 10_000_000;
/// Tries of a comparison, and how long one may take to be believed: the reading of a clock takes some
/// 25 ns, and what takes longer was interrupted.
const TRIES: u32 = 5;
const SPAN_NS_MAX: u64 = 1_000;

/// How far the two clocks are apart.
#[derive(Clone, Debug)]
pub(crate) struct Realtime {
    clock: Clock,
    /// What is to be taken from a stamp, and until which stamp that holds.
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

    /// When in our time the kernel took a stamp.
    #[inline]
    pub(crate) fn instant_ns(&mut self, stamp_ns: u64) -> u64 {
        // Before the last comparison by more than it holds: the clock was set back.
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

/// By how much the kernel's clock is ahead, what it shows, and how long the reading took.
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
    fn a_stamp_lies_between_what_was_read_before_and_after() {
        let clock = Clock::start();
        let mut realtime = Realtime::new(clock);
        let before = clock.now().as_nanos();
        let real = clock_gettime(ClockId::Realtime);
        let after = clock.now().as_nanos();
        let seconds = u64::try_from(real.tv_sec).unwrap();
        let stamp = seconds * 1_000_000_000 + u64::try_from(real.tv_nsec).unwrap();
        let at = realtime.instant_ns(stamp);
        // Off by half of a reading that was believed, and by what the clocks drift meanwhile.
        let slack = SPAN_NS_MAX + (after - before) / 1_000;
        assert!(
            before <= at + slack && at <= after + slack,
            "{before} {at} {after}"
        );
    }
}

//! Quiescence of the other devices before a trial. Devices share cores, and some work on after a
//! trial: they delete flows and free memory. The next device must not be measured meanwhile.

use std::time::Duration;

use testbed::Clock;
use testbed::Interrupt;

use crate::setup::TestSetup;

/// Interval of observation.
const WINDOW: Duration = Duration::from_millis(100);

/// Processor time per window below which the devices together are idle: the kernel counts in
/// hundredths of a second.
const IDLE: Duration = Duration::from_millis(10);

/// Longest wait. Open vSwitch deletes a million flows in about two seconds.
const LIMIT: Duration = Duration::from_secs(10);

/// Waits until the processes of `others` are idle. Returns a remark if they are not in time.
pub(crate) fn wait(others: &[&TestSetup], clock: &Clock, interrupt: &Interrupt) -> Option<String> {
    let used = || {
        // An ended process uses nothing; its next trial reports its end.
        let usages = others
            .iter()
            .filter_map(|setup| setup.bench.device().usage().ok()?);
        usages.map(|usage| usage.user + usage.system).sum()
    };
    let share = wait_until_idle(clock, interrupt, LIMIT, used)?;
    Some(format!(
        "the other devices were busy at the start: they used {:.0} % of a core",
        share * 100.0
    ))
}

/// Waits until the processor time that `used` returns hardly grows. Returns the share of a core
/// that is still in use after `limit`.
fn wait_until_idle(
    clock: &Clock,
    interrupt: &Interrupt,
    limit: Duration,
    mut used: impl FnMut() -> Duration,
) -> Option<f64> {
    let deadline = clock.now() + limit;
    let mut before = used();
    loop {
        clock.sleep_until(clock.now() + WINDOW);
        let after = used();
        let taken = after.saturating_sub(before);
        if taken <= IDLE || interrupt.is_set() {
            return None;
        }
        if clock.now() >= deadline {
            return Some(taken.as_secs_f64() / WINDOW.as_secs_f64());
        }
        before = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_trial_waits_for_devices_that_are_still_busy() {
        let (clock, interrupt) = (Clock::start(), Interrupt::never());
        // Half a core for three windows, then nothing.
        let mut calls = 0;
        let used = || {
            calls += 1;
            WINDOW / 2 * calls.min(4)
        };
        let busy = wait_until_idle(&clock, &interrupt, LIMIT, used);
        assert_eq!((busy, calls), (None, 5));
    }

    #[test]
    fn device_that_stays_busy_is_reported() {
        let (clock, interrupt) = (Clock::start(), Interrupt::never());
        let mut calls = 0;
        let used = || {
            calls += 1;
            WINDOW * calls
        };
        let busy = wait_until_idle(&clock, &interrupt, WINDOW * 2, used);
        assert_eq!(busy, Some(1.0));
    }
}

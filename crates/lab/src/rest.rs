//! Devices share cores, and some have much to do behind a test: they let go of flows, hand
//! memory back. The next one is not to be measured meanwhile.

use std::time::Duration;

use testbed::Clock;
use testbed::Interrupt;

use crate::station::Station;

/// For how long the others are watched.
const WINDOW: Duration = Duration::from_millis(100);

/// What they may take of it together, all of them: the kernel counts in hundredths of a
/// second.
const AT_REST: Duration = Duration::from_millis(10);

/// After that they are what they are. Open vSwitch takes some two seconds to let go of a
/// million flows.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until the processes of `others` take next to nothing, and says what should be
/// known of it: that they do not.
pub(crate) fn wait(others: &[&Station], clock: &Clock, interrupt: &Interrupt) -> Option<String> {
    let used = || {
        // Who is gone takes nothing, and tells when its turn comes.
        let usages = others
            .iter()
            .filter_map(|station| station.bench.device().usage().ok()?);
        usages.map(|usage| usage.user + usage.system).sum()
    };
    let share = until_at_rest(clock, interrupt, PATIENCE, used)?;
    Some(format!(
        "the other devices were not at rest when it began: they took {:.0} % of a core",
        share * 100.0
    ))
}

/// Waits until what is `used` hardly grows. Says by which share of the time it does, if it
/// has not come to rest after `patience`.
fn until_at_rest(
    clock: &Clock,
    interrupt: &Interrupt,
    patience: Duration,
    mut used: impl FnMut() -> Duration,
) -> Option<f64> {
    let deadline = clock.now() + patience;
    let mut before = used();
    loop {
        clock.sleep_until(clock.now() + WINDOW);
        let after = used();
        let taken = after.saturating_sub(before);
        if taken <= AT_REST || interrupt.is_set() {
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
    fn the_next_test_waits_for_who_is_still_busy_with_the_last() {
        let (clock, interrupt) = (Clock::start(), Interrupt::never());
        // Half a core, for three windows; then nothing.
        let mut asked = 0;
        let used = || {
            asked += 1;
            WINDOW / 2 * asked.min(4)
        };
        let told = until_at_rest(&clock, &interrupt, PATIENCE, used);
        assert_eq!((told, asked), (None, 5));
    }

    #[test]
    fn who_never_rests_is_told_of() {
        let (clock, interrupt) = (Clock::start(), Interrupt::never());
        let mut asked = 0;
        let used = || {
            asked += 1;
            WINDOW * asked
        };
        let told = until_at_rest(&clock, &interrupt, WINDOW * 2, used);
        assert_eq!(told, Some(1.0));
    }
}

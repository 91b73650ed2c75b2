//! The log of errors of the rules, in the words of Open vSwitch: a frame that is dropped because its
//! lookups exceed a limit, or an action that takes a value from the empty stack.
//!
//! Lines are rate-limited as in Open vSwitch: five at once, and one whole trace, which is long; then
//! one in each interval.

use std::time::Duration;

use base::Instant;
use switch::trace::TraceTranslation;

/// The interval after which one more line is written.
const INTERVAL: Duration = Duration::from_secs(60);

/// The maximum number of error lines at once.
const LINES_MAX: u32 = 5;

/// The maximum number of whole traces at once.
const TRACES_MAX: u32 = 1;

/// The log, with its limits.
#[derive(Debug)]
pub(super) struct TranslationErrorLog {
    lines: LineBudget,
    traces: LineBudget,
}

impl Default for TranslationErrorLog {
    fn default() -> Self {
        Self {
            lines: LineBudget::new(LINES_MAX),
            traces: LineBudget::new(TRACES_MAX),
        }
    }
}

impl TranslationErrorLog {
    /// Logs the errors of a frame that sets up a flow.
    pub(super) fn log(&mut self, translation: &TraceTranslation, now: Instant) {
        for line in translation.error_lines() {
            if self.lines.take(now) {
                tracing::warn!(target: "ofproto_dpif_xlate", "{line}");
            }
        }
        if translation.exceeds_lookups() && self.traces.take(now) {
            let report = translation.report();
            tracing::warn!(target: "ofproto_dpif_upcall", "{report}");
        }
    }
}

/// A token bucket of log lines.
#[derive(Debug)]
struct LineBudget {
    max: u32,
    left: u32,
    /// The time of the last refill; none before the first line.
    refilled: Option<Instant>,
}

impl LineBudget {
    const fn new(max: u32) -> Self {
        Self {
            max,
            left: max,
            refilled: None,
        }
    }

    /// Takes a line. Returns false if none is left.
    fn take(&mut self, now: Instant) -> bool {
        let since = *self.refilled.get_or_insert(now);
        let intervals = now.since(since).as_secs() / INTERVAL.as_secs();
        if intervals > 0 {
            let more = u32::try_from(intervals).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(more).min(self.max);
            self.refilled = Some(now);
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_budget_limits_a_burst_and_refills_one_line_in_each_interval() {
        let mut budget = LineBudget::new(2);
        let at = |seconds: u64| Instant::from_secs(1000 + seconds);
        let taken = [0, 1, 2, 59].map(|seconds| budget.take(at(seconds)));
        assert_eq!(taken, [true, true, false, false]);
        assert_eq!([60, 61].map(|s| budget.take(at(s))), [true, false]);
        assert_eq!(
            [600, 601, 602].map(|s| budget.take(at(s))),
            [true, true, false]
        );
    }
}

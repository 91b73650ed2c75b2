//! The measured load of PMD threads and receive queues, by intervals of five seconds of the clock
//! that a test may warp. The load itself is real time, in nanoseconds.

use std::time::Duration;

use base::Instant;
use ports::dummy::DummyHandle;

/// The number of intervals that are kept.
pub(super) const INTERVALS: usize = 12;

/// The length of an interval.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);

/// The values of the last intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IntervalHistory {
    values: [u64; INTERVALS],
    next: usize,
}

impl IntervalHistory {
    fn push(&mut self, value: u64) {
        self.values[self.next] = value;
        self.next = (self.next + 1) % INTERVALS;
    }

    /// Returns the sum of the newest intervals.
    pub(super) fn sum(&self, count: usize) -> u64 {
        let newest =
            (1..=count.min(INTERVALS)).map(|age| (self.next + INTERVALS - age) % INTERVALS);
        newest.map(|index| self.values[index]).sum()
    }
}

/// The load of a receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueLoad {
    /// The total at the end of the last interval.
    total: u64,
    /// The time spent in each interval.
    pub(super) history: IntervalHistory,
}

impl QueueLoad {
    /// Ends an interval.
    pub(super) fn end_interval(&mut self, total: u64) {
        self.history.push(total.saturating_sub(self.total));
        self.total = total;
    }

    /// Begins an interval anew.
    pub(super) const fn restart(&mut self, total: u64) {
        self.total = total;
    }
}

/// The totals of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTotals {
    /// The real time since the start.
    pub(super) elapsed: u64,
    /// The time spent on frames.
    pub(super) busy: u64,
}

impl ThreadTotals {
    /// Returns the totals of a thread that was busy for `busy` until `real`.
    pub(super) fn new(real: Instant, busy: Duration) -> Self {
        Self {
            elapsed: real.as_nanos(),
            busy: u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// The load of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadLoad {
    /// The end of the interval.
    due: Instant,
    last: ThreadTotals,
    /// The duration of the last interval; none before the second one.
    pub(super) interval: Option<u64>,
    /// True if an interval has ended since the last restart.
    has_begun: bool,
    /// The time spent on frames in each interval.
    pub(super) history: IntervalHistory,
    /// The number of consecutive intervals with a load over the threshold.
    pub(super) overloaded: usize,
}

impl ThreadLoad {
    /// Returns the load of a thread that begins now.
    pub(super) fn new(now: Instant, totals: ThreadTotals) -> Self {
        Self {
            due: now + INTERVAL,
            last: totals,
            interval: None,
            has_begun: false,
            history: IntervalHistory::default(),
            overloaded: 0,
        }
    }

    /// Begins anew, because the thread's queues have changed.
    pub(super) fn restart(&mut self, now: Instant) {
        self.due = now + INTERVAL;
        (self.interval, self.has_begun) = (None, false);
    }

    /// Returns the end of the interval.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Ends the interval if it is over, and returns whether it is. `threshold` is the load in
    /// percent that counts as overload, if the thread takes part in the automatic balance.
    pub(super) fn end_interval(
        &mut self,
        now: Instant,
        totals: ThreadTotals,
        threshold: Option<u8>,
    ) -> bool {
        if now <= self.due {
            return false;
        }
        let elapsed = totals.elapsed.saturating_sub(self.last.elapsed);
        let busy = totals.busy.saturating_sub(self.last.busy);
        if let Some(threshold) = threshold {
            let percent = (busy * 100).checked_div(elapsed).unwrap_or_default();
            self.overloaded = match percent >= threshold.into() {
                true => self.overloaded + 1,
                false => 0,
            };
        }
        if self.has_begun {
            self.interval = Some(elapsed);
        }
        self.has_begun = true;
        self.history.push(busy);
        self.last = totals;
        self.due = now + INTERVAL;
        true
    }
}

/// Returns the nanoseconds spent on frames of a queue.
pub(super) fn busy_time(dummy: Option<&DummyHandle>, queue: usize) -> u64 {
    let totals = dummy.map(DummyHandle::busy_nanos).unwrap_or_default();
    totals.get(queue).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_history_sums_newest_values() {
        let mut history = IntervalHistory::default();
        for value in 1..=14 {
            history.push(value);
        }
        assert_eq!(history.sum(1), 14);
        assert_eq!(history.sum(2), 27);
        assert_eq!(history.sum(INTERVALS), (3..=14).sum::<u64>());
    }

    #[test]
    fn thread_load_is_known_after_second_interval_and_counts_overload() {
        let at = Instant::from_secs;
        let totals = |elapsed, busy| ThreadTotals { elapsed, busy };
        let mut load = ThreadLoad::new(at(0), totals(100, 0));
        assert!(!load.end_interval(at(5), totals(200, 0), Some(95)));
        assert!(load.end_interval(at(6), totals(200, 95), Some(95)));
        assert_eq!((load.interval, load.overloaded), (None, 1));
        assert!(load.end_interval(at(12), totals(300, 190), Some(95)));
        assert_eq!((load.interval, load.overloaded), (Some(100), 2));
        assert!(load.end_interval(at(18), totals(400, 200), Some(95)));
        assert_eq!(load.overloaded, 0);
        assert_eq!(load.history.sum(2), 105);
        load.restart(at(18));
        assert_eq!(load.interval, None);
    }

    #[test]
    fn queue_load_is_the_difference_of_totals() {
        let mut load = QueueLoad::default();
        load.end_interval(10);
        load.end_interval(25);
        assert_eq!(load.history.sum(1), 15);
        load.restart(100);
        load.end_interval(101);
        assert_eq!(load.history.sum(1), 1);
    }
}

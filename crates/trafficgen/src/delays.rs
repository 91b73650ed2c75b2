//! How long frames of a stream were under way, and how that varies.

use hdrhistogram::Histogram;

/// The longest time that is told apart, a minute; what takes longer counts as that.
const LONGEST_NS: u64 = 60_000_000_000;

/// A histogram of nanoseconds, to a thousandth of each value.
pub(super) fn nanoseconds() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are good")
}

/// One stream's times.
#[derive(Debug)]
pub(super) struct Delays {
    pub(super) from_sent: Histogram<u64>,
    pub(super) from_intended: Histogram<u64>,
    /// RFC 5481, 4.1: the difference to the frame sent before, its sign left out.
    pub(super) ipdv: Histogram<u64>,
    /// RFC 3550, 6.4.1, in nanoseconds.
    pub(super) jitter_ns: f64,
    /// Frames that came before they were sent, by clocks that are not the same.
    pub(super) negative: u64,
    last: Option<(u64, u64)>,
    /// All of `from_sent` together, and the longest, for whoever looks while frames still come.
    pub(super) sum_ns: u64,
    pub(super) max_ns: u64,
    /// When the first and the last frame came.
    pub(super) came_ns: Option<(u64, u64)>,
}

impl Delays {
    pub(super) fn new() -> Self {
        Self {
            from_sent: nanoseconds(),
            from_intended: nanoseconds(),
            ipdv: nanoseconds(),
            jitter_ns: 0.0,
            negative: 0,
            last: None,
            sum_ns: 0,
            max_ns: 0,
            came_ns: None,
        }
    }

    /// Notes when a frame came.
    #[inline]
    pub(super) fn note(&mut self, at_ns: u64) {
        let (first, last) = self.came_ns.unwrap_or((at_ns, at_ns));
        self.came_ns = Some((first.min(at_ns), last.max(at_ns)));
    }

    /// Books the frame of this number: how long ago it was sent, and how much later than it was due.
    #[inline]
    pub(super) fn book(&mut self, number: u64, age_ns: Option<u64>, lateness_ns: u64) {
        if age_ns.is_none() {
            self.negative += 1;
        }
        let age = age_ns.unwrap_or(0);
        self.from_sent.saturating_record(age);
        self.sum_ns = self.sum_ns.saturating_add(age);
        self.max_ns = self.max_ns.max(age);
        self.from_intended
            .saturating_record(age.saturating_add(lateness_ns));
        if let Some((before, its_age)) = self.last {
            let difference = age.abs_diff(its_age);
            self.jitter_ns += (difference as f64 - self.jitter_ns) / 16.0;
            if number == before + 1 {
                self.ipdv.saturating_record(difference);
            }
        }
        self.last = Some((number, age));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_that_between_neighbours() {
        let mut delays = Delays::new();
        for (number, age) in [(0, 1_000), (1, 1_500), (3, 900), (4, 900)] {
            delays.book(number, Some(age), 100);
        }
        // 500 from 0 to 1 and 0 from 3 to 4; 2 has not come.
        assert_eq!((delays.ipdv.len(), delays.ipdv.max()), (2, 500));
        // RFC 3550 goes by what came: 500, 600 and 0, a sixteenth of the way each.
        let expected = ((500.0 / 16.0) * 15.0 / 16.0 + 600.0 / 16.0) * 15.0 / 16.0;
        assert!((delays.jitter_ns - expected).abs() < 1e-9);
        let mean = |histogram: &Histogram<u64>| histogram.mean();
        let waited = mean(&delays.from_intended) - mean(&delays.from_sent);
        assert!((waited - 100.0).abs() < 1.0);
    }
}

//! Delays of the frames of a stream, and their variation.

use hdrhistogram::Histogram;

/// The largest delay that the histogram resolves, one minute; longer delays are recorded as this.
const LONGEST_NS: u64 = 60_000_000_000;

/// A histogram of nanoseconds with a precision of 0.1 %.
pub(super) fn nanoseconds() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are good")
}

/// The delays of one stream.
#[derive(Debug)]
pub(super) struct Delays {
    pub(super) from_sent: Histogram<u64>,
    pub(super) from_intended: Histogram<u64>,
    /// RFC 5481, 4.1: the absolute difference to the delay of the frame sent before.
    pub(super) ipdv: Histogram<u64>,
    /// The jitter of RFC 3550, 6.4.1, in nanoseconds.
    pub(super) jitter_ns: f64,
    /// Frames with a receive timestamp before the send timestamp, from unsynchronized clocks.
    pub(super) negative: u64,
    last: Option<(u64, u64)>,
    /// The sum of the values in `from_sent`, and the maximum, for readers of a running measurement.
    pub(super) sum_ns: u64,
    pub(super) max_ns: u64,
    /// The receive timestamps of the first and the last frame.
    pub(super) received_ns: Option<(u64, u64)>,
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
            received_ns: None,
        }
    }

    /// Records a receive timestamp.
    #[inline]
    pub(super) fn record_arrival(&mut self, at_ns: u64) {
        let (first, last) = self.received_ns.unwrap_or((at_ns, at_ns));
        self.received_ns = Some((first.min(at_ns), last.max(at_ns)));
    }

    /// Records the frame `number`: its delay since the send timestamp, and the lateness of its
    /// transmission.
    #[inline]
    pub(super) fn record(&mut self, number: u64, age_ns: Option<u64>, lateness_ns: u64) {
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
    fn variation_is_between_consecutive_frames() {
        let mut delays = Delays::new();
        for (number, age) in [(0, 1_000), (1, 1_500), (3, 900), (4, 900)] {
            delays.record(number, Some(age), 100);
        }
        // 500 from 0 to 1 and 0 from 3 to 4; frame 2 is missing.
        assert_eq!((delays.ipdv.len(), delays.ipdv.max()), (2, 500));
        // RFC 3550 uses the order of arrival: 500, 600 and 0, each weighted with 1/16.
        let expected = ((500.0 / 16.0) * 15.0 / 16.0 + 600.0 / 16.0) * 15.0 / 16.0;
        assert!((delays.jitter_ns - expected).abs() < 1e-9);
        let mean = |histogram: &Histogram<u64>| histogram.mean();
        let waited = mean(&delays.from_intended) - mean(&delays.from_sent);
        assert!((waited - 100.0).abs() < 1.0);
    }
}

//! A stream from another tester, evaluated from its sequence numbers alone, without knowledge of
//! the frames sent.

use super::Signature;
use super::sequence::{Sequence, SequenceClass};

/// The number of consecutive frames older than the window after which the stream counts as
/// restarted.
const RESTART: u32 = 64;
/// The base of extended sequence numbers, so that numbers before the first received one stay
/// positive.
const NUMBER_BASE: u64 = 1 << 32;

/// The receive statistics of a stream.
#[derive(Debug, Default)]
pub struct StreamMonitor {
    run: Option<SequenceRun>,
    /// The results of earlier streams with the same number.
    before: StreamCounts,
}

#[derive(Debug)]
struct SequenceRun {
    sequence: Sequence,
    /// The highest number received.
    highest: u64,
    strays: u32,
    /// The delay of the last frame by an unsynchronized clock: only differences are meaningful.
    age_ns: u64,
    jitter_ns: f64,
}

/// The results of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamCounts {
    /// Distinct frames received.
    pub received: u64,
    /// Frames missing between the first and the last received number.
    pub lost: u64,
    /// Duplicate frames.
    pub duplicated: u64,
    /// Frames that arrived after one sent later (RFC 4737).
    pub reordered: u64,
    /// The final smoothed jitter (RFC 3550, 6.4.1), in nanoseconds.
    pub jitter_ns: f64,
}

impl StreamMonitor {
    /// Records a frame that arrived at `at_ns`.
    pub fn record(&mut self, signature: Signature, at_ns: u64) {
        let age_ns = at_ns.wrapping_sub(signature.time_ns);
        let run = self
            .run
            .get_or_insert_with(|| SequenceRun::from(signature, age_ns));
        if !run.take(signature, age_ns) {
            self.before = self.counts();
            let mut run = SequenceRun::from(signature, age_ns);
            run.take(signature, age_ns);
            self.run = Some(run);
        }
    }

    /// Returns the results so far.
    #[must_use]
    pub fn counts(&self) -> StreamCounts {
        let now = self
            .run
            .as_ref()
            .map(SequenceRun::counts)
            .unwrap_or_default();
        StreamCounts {
            received: self.before.received + now.received,
            lost: self.before.lost + now.lost,
            duplicated: self.before.duplicated + now.duplicated,
            reordered: self.before.reordered + now.reordered,
            jitter_ns: now.jitter_ns,
        }
    }
}

impl SequenceRun {
    fn from(signature: Signature, age_ns: u64) -> Self {
        let first = NUMBER_BASE + u64::from(signature.sequence);
        Self {
            sequence: Sequence::new(first),
            highest: first,
            strays: 0,
            age_ns,
            jitter_ns: 0.0,
        }
    }

    /// Records a frame; returns false if the stream has restarted.
    fn take(&mut self, signature: Signature, age_ns: u64) -> bool {
        let [.., a, b, c, d] = self.highest.to_be_bytes();
        let ahead = signature
            .sequence
            .wrapping_sub(u32::from_be_bytes([a, b, c, d]));
        let number = self
            .highest
            .wrapping_add_signed(i64::from(ahead.cast_signed()));
        if number < self.sequence.first() || self.sequence.record(number) == SequenceClass::TooLate
        {
            self.strays += 1;
            return self.strays < RESTART;
        }
        self.strays = 0;
        self.highest = self.highest.max(number);
        let difference = age_ns
            .wrapping_sub(self.age_ns)
            .cast_signed()
            .unsigned_abs();
        self.jitter_ns += (difference as f64 - self.jitter_ns) / 16.0;
        self.age_ns = age_ns;
        true
    }

    fn counts(&self) -> StreamCounts {
        let sequence = &self.sequence;
        let span = self.highest + 1 - sequence.first();
        StreamCounts {
            received: sequence.received,
            lost: span.saturating_sub(sequence.received),
            duplicated: sequence.duplicates,
            reordered: sequence.reordered,
            jitter_ns: self.jitter_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(stream_monitor: &mut StreamMonitor, sequence: u32, at_ns: u64) {
        let signature = Signature {
            stream: 0,
            sequence,
            time_ns: 1_000 * u64::from(sequence),
        };
        stream_monitor.record(signature, at_ns);
    }

    #[test]
    fn losses_duplicates_and_reordering_are_found_by_number_alone() {
        let mut stream_monitor = StreamMonitor::default();
        let start = u32::MAX - 2;
        for step in [0, 1, 2, 4, 3, 3, 5, 8_u32] {
            let sequence = start.wrapping_add(step);
            receive(
                &mut stream_monitor,
                sequence,
                7_000 + 1_000 * u64::from(sequence),
            );
        }
        let counts = stream_monitor.counts();
        assert_eq!((counts.received, counts.lost), (7, 2));
        assert_eq!((counts.duplicated, counts.reordered), (1, 1));
        assert_eq!(counts.jitter_ns, 0.0);
    }

    #[test]
    fn restarted_stream_counts_as_another_of_the_same_number() {
        let mut stream_monitor = StreamMonitor::default();
        for sequence in 0..500_000 {
            receive(&mut stream_monitor, sequence, 0);
        }
        for sequence in 0..1_000 {
            receive(&mut stream_monitor, sequence, 0);
        }
        let counts = stream_monitor.counts();
        // The first frames after the restart count as late frames of the old stream.
        assert_eq!(counts.received, 500_000 + 1_000 - u64::from(RESTART) + 1);
        assert_eq!(counts.lost, 0);
    }

    #[test]
    fn counts_are_zero_without_frames() {
        assert_eq!(StreamMonitor::default().counts(), StreamCounts::default());
    }
}

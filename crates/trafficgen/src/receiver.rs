//! The receive side of all streams: identifies frames by their signature and records them.

use super::delays::Delays;
use super::expected::{ExpectedFrames, FrameCheck};
use super::measure::Keep;
use super::outcome::{FrameRecord, TestPortOutcome};
use super::sequence::{Sequence, SequenceClass};
use super::stream_state::StreamState;
use super::template::BadTemplate;
use super::{Arrival, Arrivals, SendMethod, Signature, Stamps, Stream, TestPortNo};

/// The number of foreign frames with a recorded beginning, and its length in bytes.
const SAMPLES: usize = 8;
const SAMPLE_BYTES: usize = 128;

/// The receive statistics of all streams and test ports.
pub(super) struct Receiver<'a> {
    streams: Vec<StreamStats<'a>>,
    ends: Vec<TestPortOutcome>,
}

/// The receive statistics of one stream.
pub(super) struct StreamStats<'a> {
    shared: &'a StreamState,
    to: TestPortNo,
    expected: ExpectedFrames,
    keep: Keep,
    pub(super) records: Vec<FrameRecord>,
    /// `None` before the first counted frame.
    pub(super) sequence: Option<Sequence>,
    pub(super) delays: Delays,
    pub(super) misdelivered: u64,
    pub(super) modified: u64,
    pub(super) corrupt: u64,
}

impl<'a> Receiver<'a> {
    pub(super) fn new(
        streams: &[Stream],
        shared: &'a [StreamState],
        ends: usize,
        keep: Option<Keep>,
    ) -> Result<Self, BadTemplate> {
        let keep = keep.unwrap_or(Keep { from: 0, most: 0 });
        let stats =
            |(stream, shared): (&Stream, &'a StreamState)| -> Result<StreamStats<'a>, BadTemplate> {
                Ok(StreamStats {
                    shared,
                    to: stream.to,
                    expected: ExpectedFrames::new(stream)?,
                    keep,
                    records: Vec::with_capacity(keep.most),
                    sequence: None,
                    delays: Delays::new(),
                    misdelivered: 0,
                    modified: 0,
                    corrupt: 0,
                })
            };
        let streams: Result<Vec<_>, _> = streams.iter().zip(shared).map(stats).collect();
        let end = || TestPortOutcome {
            foreign: 0,
            samples: Vec::new(),
            dropped: 0,
            send_method: SendMethod::Packet,
            stamps: Stamps::Program,
        };
        Ok(Self {
            streams: streams?,
            ends: (0..ends).map(|_| end()).collect(),
        })
    }

    /// Records the frames received at a test port.
    #[inline]
    pub(super) fn handle_arrivals(&mut self, end: TestPortNo, arrivals: &Arrivals) {
        for arrival in arrivals.iter() {
            let signature = Signature::of(arrival.bytes);
            let known = signature.is_some_and(|signature| self.record(end, arrival, signature));
            if !known {
                self.count_foreign(end, arrival.bytes);
            }
        }
    }

    /// Records a frame; returns true if this tester sent it.
    #[inline]
    fn record(&mut self, end: TestPortNo, arrival: Arrival<'_>, signature: Signature) -> bool {
        let Some(stats) = self.streams.get_mut(usize::from(signature.stream)) else {
            return false;
        };
        let Some(number) = stats.shared.number(signature.sequence) else {
            return false;
        };
        if stats.sequence.is_none() {
            stats.sequence = stats.shared.first().map(Sequence::new);
        }
        let Some(sequence) = stats.sequence.as_mut() else {
            return true; // of the warm-up
        };
        if number < sequence.first() {
            return true;
        }
        if end != stats.to {
            stats.misdelivered += 1;
            return true;
        }
        if sequence.record(number) == SequenceClass::First {
            stats.delays.record_arrival(arrival.at_ns);
            let lateness = stats.shared.lateness_ns(number);
            let age = signature.age_ns(arrival.at_ns);
            stats.delays.record(number, age, lateness);
            if number >= stats.keep.from && stats.records.len() < stats.keep.most {
                stats.records.push(FrameRecord {
                    number,
                    sent_ns: arrival.at_ns.saturating_sub(age.unwrap_or(0)),
                    received_ns: arrival.at_ns,
                });
            }
            match stats.expected.check(number, arrival.bytes) {
                FrameCheck::Good => {}
                FrameCheck::Modified => stats.modified += 1,
                FrameCheck::Corrupt => stats.corrupt += 1,
            }
        }
        true
    }

    /// Counts a foreign frame.
    #[cold]
    fn count_foreign(&mut self, end: TestPortNo, bytes: &[u8]) {
        let end = &mut self.ends[end.0];
        end.foreign += 1;
        if end.samples.len() < SAMPLES {
            end.samples
                .push(bytes[..bytes.len().min(SAMPLE_BYTES)].to_vec());
        }
    }

    /// The frames received by all streams, duplicates included: a measure of activity.
    pub(super) fn seen(&self) -> u64 {
        let seen = |stats: &StreamStats<'_>| {
            let sequence = stats.sequence.as_ref();
            sequence.map_or(0, |one| one.received + one.duplicates + one.too_late)
        };
        self.streams.iter().map(seen).sum()
    }

    /// The distinct frames received at their destination port, the sum of their delays and the
    /// maximum.
    pub(super) fn so_far(&self) -> (u64, u64, u64) {
        let of = |stats: &StreamStats<'_>| {
            let received = stats.sequence.as_ref().map_or(0, |one| one.received);
            (received, stats.delays.sum_ns, stats.delays.max_ns)
        };
        let all = self.streams.iter().map(of);
        all.fold((0, 0, 0), |sum, one| {
            (sum.0 + one.0, sum.1 + one.1, sum.2.max(one.2))
        })
    }

    /// Returns true if all numbers below `sent` of each stream have arrived.
    pub(super) fn has_all(&self, sent: impl Iterator<Item = u64>) -> bool {
        self.streams.iter().zip(sent).all(|(stats, sent)| {
            let sequence = stats.sequence.as_ref();
            sequence.is_some_and(|one| one.first() + one.received >= sent)
        })
    }

    pub(super) fn finish(self) -> (Vec<StreamStats<'a>>, Vec<TestPortOutcome>) {
        (self.streams, self.ends)
    }
}

//! The results of a measurement: counts, rates, distributions, and the reasons why it must not be
//! used.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::{OVERHEAD_BYTES, SendMethod, Stamps, TestPortNo};

/// The lengths of runs of consecutive losses (RFC 3357); the number of entries is the number of
/// runs.
pub type LossRuns = Histogram<u64>;
/// The reordering extent of late frames (RFC 4737, 4.2).
pub type Extent = Histogram<u64>;

/// The results of all streams.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The start of the streams, by the clock of the measurement.
    pub began_ns: u64,
    /// The results by stream, in the order of the request.
    pub streams: Vec<StreamOutcome>,
    /// The results by test port.
    pub ends: Vec<TestPortOutcome>,
    /// The reasons why the measurement must not be used; empty if it is valid.
    pub refusals: Vec<Refusal>,
}

/// Frames over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// The number of frames.
    pub frames: u64,
    /// The number of bytes, with FCS.
    pub bytes: u64,
    /// The time in seconds.
    pub seconds: f64,
}

impl Rates {
    /// Frames a second; 0 over no time.
    #[must_use]
    pub fn pps(&self) -> f64 {
        self.a_second(self.frames as f64)
    }

    /// Bits a second of frames (layer 2).
    #[must_use]
    pub fn l2_bits(&self) -> f64 {
        self.a_second(8.0 * self.bytes as f64)
    }

    /// Bits a second of a line, with preambles and gaps (layer 1).
    #[must_use]
    pub fn l1_bits(&self) -> f64 {
        let overhead = self.frames as f64 * f64::from(OVERHEAD_BYTES);
        self.a_second(8.0 * (self.bytes as f64 + overhead))
    }

    fn a_second(&self, amount: f64) -> f64 {
        if self.seconds > 0.0 {
            amount / self.seconds
        } else {
            0.0
        }
    }
}

/// The results of one stream, without the warm-up.
#[derive(Clone, Debug)]
pub struct StreamOutcome {
    /// The load that the schedule demanded.
    pub intended: Rates,
    /// The load that was sent.
    pub achieved: Rates,
    /// Sent frames without space for a signature: nothing else is known about them.
    pub unsigned: u64,
    /// Distinct frames received at the destination port.
    pub received: u64,
    /// The time from the first to the last of these, in nanoseconds.
    pub received_over_ns: u64,
    /// Frames not received there.
    pub lost: u64,
    /// The highest lost number, counted from the stream's first frame, including the warm-up.
    pub last_lost: Option<u64>,
    /// Duplicate frames.
    pub duplicated: u64,
    /// Frames that arrived after one sent later (RFC 4737).
    pub reordered: u64,
    /// The reordering extent of these.
    pub extent: Extent,
    /// The lengths of runs of losses.
    pub loss_runs: LossRuns,
    /// Frames that arrived so late that they already counted as lost.
    pub too_late: u64,
    /// Misdelivered frames: frames that arrived at another test port. They may also have been
    /// received at the right one.
    pub misdelivered: u64,
    /// Received frames with unexpected headers.
    pub modified: u64,
    /// Received frames with a wrong checksum.
    pub corrupt: u64,
    /// Delays from the send timestamp, in nanoseconds.
    pub delay_from_sent: Histogram<u64>,
    /// Delays from the due time, in nanoseconds.
    pub delay_from_intended: Histogram<u64>,
    /// Delay differences of consecutive frames, in nanoseconds (RFC 5481, 4.1).
    pub ipdv: Histogram<u64>,
    /// The final smoothed jitter, in nanoseconds (RFC 3550, 6.4.1).
    pub jitter_ns: f64,
    /// Frames with a receive timestamp before the send timestamp, from unsynchronized clocks; their
    /// delay counts as 0.
    pub negative_delays: u64,
    /// The lateness of transmission: nanoseconds from the due time to the send timestamp.
    pub lateness: Histogram<u64>,
    /// The individually recorded frames, in order of arrival.
    pub records: Vec<FrameRecord>,
}

/// A received frame, by the clock of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRecord {
    /// The number in its stream, from 0.
    pub number: u64,
    /// The send timestamp.
    pub sent_ns: u64,
    /// The receive timestamp.
    pub received_ns: u64,
}

impl StreamOutcome {
    /// The lost share of the signed frames that were sent; 0 if none was sent.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        match self.achieved.frames - self.unsigned {
            0 => 0.0,
            sent => self.lost as f64 / sent as f64,
        }
    }

    /// The received rate in frames a second, from the first and the last timestamp; 0 for fewer
    /// than two frames.
    #[must_use]
    pub fn received_pps(&self) -> f64 {
        match self.received_over_ns {
            0 => 0.0,
            ns => (self.received - 1) as f64 * 1e9 / ns as f64,
        }
    }

    /// The shortfall: the share of the intended rate that was not achieved.
    #[must_use]
    pub fn shortfall(&self) -> f64 {
        let intended = self.intended.pps();
        if intended > 0.0 {
            1.0 - self.achieved.pps() / intended
        } else {
            0.0
        }
    }
}

/// The results of one test port, apart from the streams.
#[derive(Clone, Debug)]
pub struct TestPortOutcome {
    /// Foreign frames: without a signature, or with that of an unknown stream. A device may have
    /// sent them itself.
    pub foreign: u64,
    /// The first bytes of the first few foreign frames.
    pub samples: Vec<Vec<u8>>,
    /// Frames lost by the tester: it was too slow to receive them, or accepted them and could not
    /// send them.
    pub dropped: u64,
    /// The send method.
    pub send_method: SendMethod,
    /// The source of receive timestamps.
    pub stamps: Stamps,
}

/// The reason why a measurement must not be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The achieved load is below the intended one, so the results say nothing about the requested
    /// rate.
    #[error("stream {stream} was sent at {achieved:.0} frames/s instead of {intended:.0}")]
    Shortfall {
        /// The stream's index.
        stream: usize,
        /// The intended rate in frames a second.
        intended: f64,
        /// The achieved rate in frames a second.
        achieved: f64,
    },
    /// The tester itself lost frames.
    #[error("the tester lost {frames} frames at test port {}", .end.0)]
    Dropped {
        /// The test port.
        end: TestPortNo,
        /// The number of frames.
        frames: u64,
    },
    /// The kernel's clock stepped against the tester's, so timestamps are not comparable.
    #[error("the clocks of test port {} stepped by {step:?}", .end.0)]
    ClockStepped {
        /// The test port.
        end: TestPortNo,
        /// The size of the step.
        step: Duration,
    },
}

impl Measurement {
    /// Describes the send methods and the sources of timestamps in words.
    #[must_use]
    pub fn means(&self) -> String {
        let mut methods: Vec<&str> = self.ends.iter().map(|end| end.send_method.name()).collect();
        let mut stamps: Vec<&str> = self.ends.iter().map(|end| end.stamps.name()).collect();
        methods.dedup();
        stamps.dedup();
        format!("sent {}, {}", methods.join(" and "), stamps.join(" and "))
    }

    /// Returns the measurement if it may be used.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn valid(self) -> Result<Self, Refusal> {
        match self.refusals.first() {
            None => Ok(self),
            Some(refusal) => Err(refusal.clone()),
        }
    }
}

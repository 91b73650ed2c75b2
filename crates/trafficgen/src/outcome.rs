//! What a measurement says: counts, rates, distributions, and why it must not be used.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::{EndNo, OVERHEAD_BYTES, Stamps, Way};

/// How many numbers in a row were lost, run by run (RFC 3357): its length is the number of runs.
pub type LossRuns = Histogram<u64>;
/// By how many frames late ones had been overtaken (RFC 4737, 4.2).
pub type Extent = Histogram<u64>;

/// What came of all streams.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// When streams began, by the clock of the measurement.
    pub began_ns: u64,
    /// In the order of the request.
    pub streams: Vec<StreamOutcome>,
    /// In the order of the ends.
    pub ends: Vec<EndOutcome>,
    /// Why it must not be used; good if there is nothing.
    pub refusals: Vec<Refusal>,
}

/// Frames over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// How many.
    pub frames: u64,
    /// Their bytes, with their checksums.
    pub bytes: u64,
    /// Over how many seconds.
    pub seconds: f64,
}

impl Rates {
    /// Frames a second; none over no time.
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

/// What came of one stream, warm-up left out.
#[derive(Clone, Debug)]
pub struct StreamOutcome {
    /// What the schedule wanted.
    pub intended: Rates,
    /// What was sent.
    pub achieved: Rates,
    /// How many of them had no room for a signature: nothing else is known of these.
    pub unsigned: u64,
    /// Different frames that came out where they should.
    pub received: u64,
    /// Nanoseconds from the first of these to the last.
    pub received_over_ns: u64,
    /// Frames that did not.
    pub lost: u64,
    /// The highest number among these, counted from the stream's first frame, warm-up and all.
    pub last_lost: Option<u64>,
    /// Frames that came again.
    pub duplicated: u64,
    /// Frames that came after one sent later (RFC 4737).
    pub reordered: u64,
    /// How far these had been overtaken.
    pub extent: Extent,
    /// Lengths of losses.
    pub loss_runs: LossRuns,
    /// Frames that came so late that they had been counted as lost.
    pub too_late: u64,
    /// Frames that came out at an end that they were not for; those may have been received too.
    pub misdirected: u64,
    /// Received frames whose headers are not those expected.
    pub changed: u64,
    /// Received frames with a checksum that does not hold.
    pub damaged: u64,
    /// Nanoseconds from when a frame was sent.
    pub delay_from_sent: Histogram<u64>,
    /// Nanoseconds from when a frame was due.
    pub delay_from_intended: Histogram<u64>,
    /// Nanoseconds that neighbours' delays differ by (RFC 5481, 4.1).
    pub ipdv: Histogram<u64>,
    /// Smoothed jitter at the end (RFC 3550, 6.4.1).
    pub jitter_ns: f64,
    /// Frames that came before they were sent, by clocks that are not the same; their delay counts as none.
    pub negative_delays: u64,
    /// Nanoseconds that frames were sent later than they were due.
    pub lateness: Histogram<u64>,
    /// The frames that were to be kept, in the order in which they came.
    pub kept: Vec<Kept>,
}

/// A frame that came, by the clock of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its number in its stream, from 0.
    pub number: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// When it came.
    pub came_ns: u64,
}

impl StreamOutcome {
    /// The share of what was sent and signed that did not come; none if nothing was.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        match self.achieved.frames - self.unsigned {
            0 => 0.0,
            sent => self.lost as f64 / sent as f64,
        }
    }

    /// Frames a second that came out, by the times of the first and the last; none of fewer than two.
    #[must_use]
    pub fn received_pps(&self) -> f64 {
        match self.received_over_ns {
            0 => 0.0,
            ns => (self.received - 1) as f64 * 1e9 / ns as f64,
        }
    }

    /// The share of the intended rate that was not achieved.
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

/// What came at one end beside the streams.
#[derive(Clone, Debug)]
pub struct EndOutcome {
    /// Frames without a signature, or with that of no stream: a device's own, perhaps.
    pub unknown: u64,
    /// The first bytes of the first few of them.
    pub samples: Vec<Vec<u8>>,
    /// Frames that came and that the tester was too slow for, and frames that it took and could not send.
    pub dropped: u64,
    /// By which way frames were sent.
    pub way: Way,
    /// By which clock arrivals were stamped.
    pub stamps: Stamps,
}

/// Why a measurement must not be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Less was sent than was to be: what came of it says nothing of the rate that was asked for.
    #[error("stream {stream} was sent at {achieved:.0} frames/s, and {intended:.0} were intended")]
    Shortfall {
        /// Which stream.
        stream: usize,
        /// Frames a second that were intended.
        intended: f64,
        /// Frames a second that were sent.
        achieved: f64,
    },
    /// The tester itself lost frames.
    #[error("the tester lost {frames} frames at end {}", .end.0)]
    Dropped {
        /// Where.
        end: EndNo,
        /// How many.
        frames: u64,
    },
    /// The kernel's clock stepped against ours, so times of arrival are not those of one clock.
    #[error("the clocks of end {} stepped by {step:?}", .end.0)]
    ClockStepped {
        /// Where.
        end: EndNo,
        /// By how much.
        step: Duration,
    },
}

impl Measurement {
    /// By which ways frames were sent, and by which clock they were stamped, in words.
    #[must_use]
    pub fn means(&self) -> String {
        let mut ways: Vec<&str> = self.ends.iter().map(|end| end.way.name()).collect();
        let mut stamps: Vec<&str> = self.ends.iter().map(|end| end.stamps.name()).collect();
        ways.dedup();
        stamps.dedup();
        format!("sent {}, {}", ways.join(" and "), stamps.join(" and "))
    }

    /// The measurement, if it may be used.
    ///
    /// # Errors
    /// The first reason why not.
    pub fn valid(self) -> Result<Self, Refusal> {
        match self.refusals.first() {
            None => Ok(self),
            Some(refusal) => Err(refusal.clone()),
        }
    }
}

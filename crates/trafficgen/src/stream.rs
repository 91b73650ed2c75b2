//! Streams: frames, their schedule, and the test ports between which they travel.

use std::ops::Range;

use super::{Mix, Pace, Source};

/// A test port, by its index in the list of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestPortNo(pub usize);

/// Frames of one description between two test ports.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The source of the frames.
    pub source: Source,
    /// The distribution of the gaps.
    pub pace: Pace,
    /// The port that sends.
    pub from: TestPortNo,
    /// The port that should receive. It is the same port if the far end reflects frames.
    pub to: TestPortNo,
    /// The expected frames at the receiving port.
    pub expectation: Expectation,
}

impl Stream {
    /// A stream of frames that should arrive unmodified.
    #[must_use]
    pub fn new(source: impl Into<Source>, pace: Pace, from: TestPortNo, to: TestPortNo) -> Self {
        Self {
            source: source.into(),
            pace,
            from,
            to,
            expectation: Expectation::default(),
        }
    }
}

/// The expected frames at the receiving port.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// The templates that the device's rules rewrite the stream's templates to, part by part;
    /// unmodified frames if `None`. Flow numbers are those of the stream.
    pub rewritten: Option<Mix>,
    /// Ranges of header bytes that are not compared.
    pub ignored: Vec<Range<usize>>,
    /// The depth of verification.
    pub verification: Verification,
}

/// The depth of verification of each frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// Compares the headers, and verifies all checksums over all bytes.
    #[default]
    Whole,
    /// Compares the headers.
    Headers,
    /// Checks the signature only.
    Signature,
}

//! What is offered: which frames, when, from which end, to which.

use std::ops::Range;

use super::{Mix, Pace, Source};

/// An end of the device, by its number in the list that is given to a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndNo(pub usize);

/// Frames of one description that take one way.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The frames.
    pub source: Source,
    /// When they are sent.
    pub pace: Pace,
    /// Where they go in.
    pub from: EndNo,
    /// Where they should come out. The same end, where something beyond reflects them.
    pub to: EndNo,
    /// What they should look like there.
    pub expectation: Expectation,
}

impl Stream {
    /// Frames that should come out as they went in.
    #[must_use]
    pub fn new(source: impl Into<Source>, pace: Pace, from: EndNo, to: EndNo) -> Self {
        Self {
            source: source.into(),
            pace,
            from,
            to,
            expectation: Expectation::default(),
        }
    }
}

/// What frames should look like where they come out.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// Made after these templates, which a device's rules turn those of the stream into, part by part; as
    /// they were sent if there are none. Flows count as they do in the stream.
    pub rewritten: Option<Mix>,
    /// Bytes of the header that may be anything.
    pub ignored: Vec<Range<usize>>,
    /// How closely each frame is looked at.
    pub verification: Verification,
}

/// How closely each frame is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// Its headers are compared, and all checksums are verified over all of its bytes.
    #[default]
    Whole,
    /// Its headers are compared.
    Headers,
    /// Its signature is enough.
    Signature,
}

//! How many frames a second, as a ratio of integers: nothing is rounded before it is a nanosecond.

/// What a frame takes of a line beside its bytes: preamble, delimiter and the gap before the next.
pub const OVERHEAD_BYTES: u16 = 20;

/// How fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Frames a second.
    Frames(u64),
    /// Bits a second of a line, with preambles and gaps: so 1 Gbit/s of frames of 64 bytes are
    /// 1,488,095.24 a second. Where frames are of several sizes each takes its own time.
    Line(u64),
}

impl Rate {
    /// How long a frame of this size has, as nanoseconds and a remainder of [`Rate::denominator`].
    pub(super) fn gap(self, frame_bytes: u16) -> Gap {
        let numerator = match self {
            Self::Frames(_) => NANOS,
            Self::Line(_) => (u64::from(frame_bytes) + u64::from(OVERHEAD_BYTES)) * 8 * NANOS,
        };
        let denominator = self.denominator();
        Gap {
            ns: numerator / denominator,
            remainder: numerator % denominator,
        }
    }

    /// What remainders are parts of. A rate of nothing is taken for one of one: the schedule then has
    /// its second frame a second later.
    pub(super) fn denominator(self) -> u64 {
        let (Self::Frames(value) | Self::Line(value)) = self;
        value.max(1)
    }

    /// Frames a second, if frames have this mean size with their checksums.
    #[must_use]
    pub fn frames_per_second(self, mean_bytes: f64) -> f64 {
        match self {
            Self::Frames(frames) => frames as f64,
            Self::Line(bits) => bits as f64 / (8.0 * (mean_bytes + f64::from(OVERHEAD_BYTES))),
        }
    }
}

const NANOS: u64 = 1_000_000_000;

/// The time between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) ns: u64,
    pub(super) remainder: u64,
}

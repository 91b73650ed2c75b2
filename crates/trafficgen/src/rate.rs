//! Frame rates as ratios of integers, without rounding before the nanosecond.

/// The line overhead of a frame: preamble, start delimiter and interframe gap.
pub const OVERHEAD_BYTES: u16 = 20;

/// A frame rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Frames a second.
    Frames(u64),
    /// Bits a second of a line, with preambles and gaps: 1 Gbit/s of 64-byte frames are
    /// 1,488,095.24 frames a second. In a mix of sizes, each frame takes its own time.
    Line(u64),
}

impl Rate {
    /// The time of a frame of this size, in nanoseconds and a remainder in units of
    /// 1/[`Rate::denominator`].
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

    /// The denominator of remainders. A rate of 0 is treated as 1: the second frame is due one
    /// second after the first.
    pub(super) fn denominator(self) -> u64 {
        let (Self::Frames(value) | Self::Line(value)) = self;
        value.max(1)
    }

    /// Frames a second, for frames of this mean size with FCS.
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

//! Faults and their parameters.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use super::direction::ImpairedDirection;

/// The selection of the frames that a fault affects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Chance {
    /// No frame.
    #[default]
    Never,
    /// Each frame with this probability, from 0 to 1.
    Share(f64),
    /// Every nth frame.
    Every(NonZeroU64),
}

/// The faults of one direction. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The delay of each frame, after the rate limit, if there is one.
    pub delay: Duration,
    /// The upper bound of an additional delay, uniformly distributed. Frames stay in order.
    pub jitter: Duration,
    /// Frames that are lost.
    pub loss: Chance,
    /// Frames that are sent twice, one copy directly after the other.
    pub duplication: Chance,
    /// Frames with a modified last byte.
    pub change: Chance,
    /// Frames that are delayed by `reordering_by`, so that others may overtake them.
    pub reordering: Chance,
    /// The additional delay of reordered frames.
    pub reordering_by: Duration,
    /// The rate limit in bits a second of frames with FCS; `None` for no limit.
    pub rate_bits: Option<NonZeroU64>,
    /// The queue length of the rate limit in frames; further frames are dropped.
    pub queue_frames: usize,
}

/// The faults of both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairments {
    /// From the first port to the second.
    pub forth: Faults,
    /// From the second port to the first.
    pub back: Faults,
    /// The seed that selects the affected frames.
    pub seed: u64,
}

impl Default for Impairments {
    /// A delay of 200 us in each direction, and no other fault.
    fn default() -> Self {
        let faults = Faults {
            delay: Duration::from_micros(200),
            ..Faults::default()
        };
        Self {
            forth: faults,
            back: faults,
            seed: 1,
        }
    }
}

impl Impairments {
    /// The initial state of both directions.
    pub(super) fn lines(&self) -> [ImpairedDirection; 2] {
        [(self.forth, 0), (self.back, 1)]
            .map(|(faults, way)| ImpairedDirection::new(faults, self.seed ^ (way << 32)))
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("none"),
            Self::Share(share) => write!(f, "{} %", share * 100.0),
            Self::Every(count) => write!(f, "1 of {count}"),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay {:?}", self.delay)?;
        if !self.jitter.is_zero() {
            write!(f, ", jitter {:?}", self.jitter)?;
        }
        let affected = [
            ("loss", self.loss),
            ("duplication", self.duplication),
            ("change", self.change),
        ];
        for (name, chance) in affected {
            if chance != Chance::Never {
                write!(f, ", {name} {chance}")?;
            }
        }
        if self.reordering != Chance::Never {
            write!(
                f,
                ", reordering {} by {:?}",
                self.reordering, self.reordering_by
            )?;
        }
        match self.rate_bits {
            Some(rate) => write!(f, ", {rate} bit/s, queue {} frames", self.queue_frames),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Impairments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { forth, back, seed } = self;
        write!(f, "forth: {forth}; back: {back}; seed {seed}")
    }
}

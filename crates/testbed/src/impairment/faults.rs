//! Which faults there are to be, and how they are said.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use super::line::Line;

/// Which frames a fault strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Chance {
    /// None.
    #[default]
    Never,
    /// Each with this probability, from 0 to 1.
    Share(f64),
    /// Each so manieth.
    Every(NonZeroU64),
}

/// What is done to frames that go one way. The default does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// How long each frame is held, after its turn came where there is a rate.
    pub delay: Duration,
    /// Up to how much longer, each length as likely as the other. Frames stay in order.
    pub jitter: Duration,
    /// Which are lost.
    pub loss: Chance,
    /// Which are sent twice, one copy behind the other.
    pub duplication: Chance,
    /// Which have their last byte changed.
    pub change: Chance,
    /// Which are held for `reordering_by` longer, and may be overtaken meanwhile.
    pub reordering: Chance,
    /// How much longer those are held.
    pub reordering_by: Duration,
    /// How many bits a second may pass, of frames with their checksum (FCS); all, if none is
    /// given.
    pub rate_bits: Option<NonZeroU64>,
    /// Of what waits for that, how many frames find room; what comes when there is none is
    /// dropped.
    pub queue_frames: usize,
}

/// The faults of both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairments {
    /// From the first port to the second.
    pub forth: Faults,
    /// From the second port to the first.
    pub back: Faults,
    /// What decides which frames are struck.
    pub seed: u64,
}

impl Default for Impairments {
    /// A delay of 200 us either way, and no other fault.
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
    /// Both ways as they are at the beginning.
    pub(super) fn lines(&self) -> [Line; 2] {
        [(self.forth, 0), (self.back, 1)]
            .map(|(faults, way)| Line::new(faults, self.seed ^ (way << 32)))
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
        let struck = [
            ("loss", self.loss),
            ("duplication", self.duplication),
            ("change", self.change),
        ];
        for (name, chance) in struck {
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

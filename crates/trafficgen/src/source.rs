//! The source of a stream's frames: templates or a recording.

use super::template::{BadTemplate, FramePattern};
use super::{Mix, Pace, Recording, Schedule, Template};

/// Frames that repeat in a fixed order.
#[derive(Clone, Debug)]
pub enum Source {
    /// Frames built from templates.
    Mix(Mix),
    /// Frames read from a file.
    Recording(Recording),
}

/// Prebuilt frames, complete except for the fields that change.
#[derive(Debug)]
pub(super) struct PrebuiltFrames {
    pub(super) patterns: Vec<FramePattern>,
    /// The frame sizes with FCS.
    pub(super) sizes: Vec<u16>,
    /// The pattern's index for each frame of a round.
    pub(super) round: Vec<usize>,
}

impl Source {
    /// The mean frame size, with FCS.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        match self {
            Self::Mix(mix) => mix.mean_bytes(),
            Self::Recording(recording) => recording.mean_bytes(),
        }
    }

    pub(super) fn prepare(&self) -> Result<PrebuiltFrames, BadTemplate> {
        match self {
            Self::Mix(mix) => {
                let parts = mix.parts().iter();
                let patterns: Result<_, _> = parts.clone().map(|(one, _)| one.pattern()).collect();
                Ok(PrebuiltFrames {
                    patterns: patterns?,
                    sizes: parts.map(|(one, _)| one.frame_bytes).collect(),
                    round: mix.round(),
                })
            }
            Self::Recording(recording) => {
                let pattern = match recording.is_signed() {
                    true => FramePattern::of_frame,
                    false => FramePattern::untouched,
                };
                let patterns: Vec<FramePattern> = recording.frames().map(pattern).collect();
                Ok(PrebuiltFrames {
                    sizes: recording.sizes().collect(),
                    round: (0..patterns.len()).collect(),
                    patterns,
                })
            }
        }
    }

    /// The schedule of the frames. A mix has no recorded gaps, and `measure` refuses
    /// `Pace::Recorded` for it; here it is unpaced.
    pub(super) fn schedule(&self, pace: Pace, frames: &PrebuiltFrames) -> Schedule {
        let sizes = frames
            .round
            .iter()
            .map(|&part| frames.sizes[part])
            .collect();
        match (self, pace) {
            (Self::Recording(recording), Pace::Recorded { percent }) => {
                Schedule::recorded(&recording.gaps(), percent)
            }
            _ => Schedule::new(pace, sizes),
        }
    }
}

impl From<Mix> for Source {
    fn from(mix: Mix) -> Self {
        Self::Mix(mix)
    }
}

impl From<Template> for Source {
    fn from(template: Template) -> Self {
        Self::Mix(template.into())
    }
}

impl From<Recording> for Source {
    fn from(recording: Recording) -> Self {
        Self::Recording(recording)
    }
}

//! Where the frames of a stream come from: templates, or a recording.

use super::template::{BadTemplate, Pattern};
use super::{Mix, Pace, Recording, Schedule, Template};

/// Frames that come again and again in the same order.
#[derive(Clone, Debug)]
pub enum Source {
    /// Made after templates.
    Mix(Mix),
    /// Read from a file.
    Recording(Recording),
}

/// Frames as they are sent but for what changes.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) patterns: Vec<Pattern>,
    /// Their sizes with their checksums.
    pub(super) sizes: Vec<u16>,
    /// Of each frame of a round the number of its pattern.
    pub(super) round: Vec<usize>,
}

impl Source {
    /// The mean size of frames, with their checksums.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        match self {
            Self::Mix(mix) => mix.mean_bytes(),
            Self::Recording(recording) => recording.mean_bytes(),
        }
    }

    pub(super) fn prepare(&self) -> Result<Prepared, BadTemplate> {
        match self {
            Self::Mix(mix) => {
                let parts = mix.parts().iter();
                let patterns: Result<_, _> = parts.clone().map(|(one, _)| one.pattern()).collect();
                Ok(Prepared {
                    patterns: patterns?,
                    sizes: parts.map(|(one, _)| one.frame_bytes).collect(),
                    round: mix.round(),
                })
            }
            Self::Recording(recording) => {
                let pattern = match recording.is_signed() {
                    true => Pattern::of_frame,
                    false => Pattern::untouched,
                };
                let patterns: Vec<Pattern> = recording.frames().map(pattern).collect();
                Ok(Prepared {
                    sizes: recording.sizes().collect(),
                    round: (0..patterns.len()).collect(),
                    patterns,
                })
            }
        }
    }

    /// When frames are due. A mix has no pace of its own: one that is asked for it goes flat out, which
    /// a request is refused for.
    pub(super) fn schedule(&self, pace: Pace, frames: &Prepared) -> Schedule {
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

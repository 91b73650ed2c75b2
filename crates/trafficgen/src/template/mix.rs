//! Mixes: frames of several templates in one stream, in a fixed order that repeats.

use super::{BadTemplate, Template};

/// Templates, each with its number of frames in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    parts: Vec<(Template, u32)>,
}

/// The most frames in a round: their order is stored.
const ROUND_MAX: u32 = 4096;

impl Mix {
    /// A mix with this many frames of each template in a round.
    ///
    /// # Errors
    /// The mix is empty, a round is longer than 4096 frames, or a template is invalid.
    pub fn new(parts: Vec<(Template, u32)>) -> Result<Self, BadTemplate> {
        let round = parts
            .iter()
            .fold(0, |sum: u32, (_, count)| sum.saturating_add(*count));
        if parts.is_empty() || parts.iter().any(|(_, count)| *count == 0) {
            return Err(BadTemplate::EmptyMix);
        }
        super::fits("the number of frames in a round", round, ROUND_MAX)?;
        for (template, _) in &parts {
            template.check()?;
        }
        Ok(Self { parts })
    }

    /// The simple Internet mix (IMIX): 7 frames of 64 bytes, 4 of 570, 1 of 1518. All other
    /// properties are those of `template`, which may require a longer shortest frame.
    ///
    /// # Errors
    /// The template is invalid.
    pub fn imix(template: &Template) -> Result<Self, BadTemplate> {
        Self::sizes(template, &[(64, 7), (570, 4), (1518, 1)])
    }

    /// The Internet mix of FD.io CSIT: 28 frames of 64 bytes, 16 of 570, 4 of 1518.
    ///
    /// # Errors
    /// The template is invalid.
    pub fn imix_csit(template: &Template) -> Result<Self, BadTemplate> {
        Self::sizes(template, &[(64, 28), (570, 16), (1518, 4)])
    }

    fn sizes(template: &Template, sizes: &[(u16, u32)]) -> Result<Self, BadTemplate> {
        let of = |&(bytes, count): &(u16, u32)| {
            let frame_bytes = bytes.max(template.least_bytes());
            (
                Template {
                    frame_bytes,
                    ..template.clone()
                },
                count,
            )
        };
        Self::new(sizes.iter().map(of).collect())
    }

    /// The templates, each with its number of frames in a round.
    #[must_use]
    pub fn parts(&self) -> &[(Template, u32)] {
        &self.parts
    }

    /// The mean frame size, with FCS.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        let frames: f64 = self.parts.iter().map(|(_, count)| f64::from(*count)).sum();
        let bytes = |(template, count): &(Template, u32)| {
            f64::from(template.frame_bytes) * f64::from(*count)
        };
        self.parts.iter().map(bytes).sum::<f64>() / frames
    }

    /// The template's index for each frame of a round. Templates are interleaved evenly: the next
    /// frame belongs to the one furthest behind its share.
    pub(crate) fn round(&self) -> Vec<usize> {
        let total: u64 = self.parts.iter().map(|(_, count)| u64::from(*count)).sum();
        let mut given = vec![0_u64; self.parts.len()];
        let mut round = Vec::new();
        for place in 1..=total {
            let behind = |part: usize| {
                let due = i128::from(place) * i128::from(self.parts[part].1);
                due - i128::from(given[part]) * i128::from(total)
            };
            let next = (0..self.parts.len()).rev().max_by_key(|&part| behind(part));
            let next = next.expect("a mix has a part");
            given[next] += 1;
            round.push(next);
        }
        round
    }
}

impl From<Template> for Mix {
    /// A mix of one template, which is validated when it is sent.
    fn from(template: Template) -> Self {
        Self {
            parts: vec![(template, 1)],
        }
    }
}

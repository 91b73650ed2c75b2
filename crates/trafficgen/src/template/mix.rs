//! Frames of several kinds in one stream, in a fixed order that comes again and again.

use super::{BadTemplate, Template};

/// Templates, and how many frames of each come in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    parts: Vec<(Template, u32)>,
}

/// Frames in a round at most: the order is kept in memory.
const ROUND_MAX: u32 = 4096;

impl Mix {
    /// So many frames of each in a round.
    ///
    /// # Errors
    /// There is nothing in it, a round is longer than 4096 frames, or a template is a bad one.
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

    /// The simple Internet mix, as testers have it: 7 frames of 64 bytes, 4 of 570, 1 of 1518. What
    /// else is to be said of the frames is taken from `template`, which may make the shortest longer.
    ///
    /// # Errors
    /// The template is a bad one.
    pub fn imix(template: &Template) -> Result<Self, BadTemplate> {
        Self::sizes(template, &[(64, 7), (570, 4), (1518, 1)])
    }

    /// The same with the shares of FD.io CSIT: 28 frames of 64 bytes, 16 of 570, 4 of 1518.
    ///
    /// # Errors
    /// The template is a bad one.
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

    /// The templates, and how many frames of each come in a round.
    #[must_use]
    pub fn parts(&self) -> &[(Template, u32)] {
        &self.parts
    }

    /// The mean size of frames, with their checksums.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        let frames: f64 = self.parts.iter().map(|(_, count)| f64::from(*count)).sum();
        let bytes = |(template, count): &(Template, u32)| {
            f64::from(template.frame_bytes) * f64::from(*count)
        };
        self.parts.iter().map(bytes).sum::<f64>() / frames
    }

    /// Of each frame of a round the number of its template. The kinds are spread evenly: always the one
    /// that is furthest behind its share.
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
    /// Frames of one kind. Whether the template is a good one shows when it is sent.
    fn from(template: Template) -> Self {
        Self {
            parts: vec![(template, 1)],
        }
    }
}

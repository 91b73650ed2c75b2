//! What frames of a stream should look like where they come out.

use super::layers::checksums_hold;
use super::template::{BadTemplate, Pattern};
use super::{Expectation, Stream, Verification};

/// What came of looking at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is as it should be.
    Good,
    /// Its headers are not those that were expected.
    Changed,
    /// A checksum does not hold.
    Damaged,
}

/// Headers that are expected, with the fields of the flow that was looked at last.
#[derive(Debug)]
pub(super) struct Expected {
    parts: Vec<Part>,
    round: Vec<usize>,
    verification: Verification,
}

#[derive(Debug)]
struct Part {
    pattern: Pattern,
    /// The frame, of which the first `mask.len()` bytes are compared where the mask has ones.
    scratch: Vec<u8>,
    mask: Vec<u8>,
}

impl Expected {
    pub(super) fn new(stream: &Stream) -> Result<Self, BadTemplate> {
        let Expectation {
            rewritten,
            ignored,
            verification,
        } = &stream.expectation;
        let mix = rewritten.as_ref().unwrap_or(&stream.mix);
        let part = |(template, _): &(super::Template, u32)| -> Result<Part, BadTemplate> {
            let pattern = template.pattern()?;
            let mut mask = vec![0xff; pattern.headers(template)];
            // These change with every frame, and are verified.
            let checksums = pattern.checksums().map(|at| at..at + 2);
            for range in checksums.chain(ignored.iter().cloned()) {
                let end = range.end.min(mask.len());
                mask[range.start.min(end)..end].fill(0);
            }
            let scratch = pattern.bytes().to_vec();
            Ok(Part {
                pattern,
                scratch,
                mask,
            })
        };
        let parts: Result<Vec<Part>, BadTemplate> = mix.parts().iter().map(part).collect();
        Ok(Self {
            parts: parts?,
            round: mix.round(),
            verification: *verification,
        })
    }

    /// Looks at the frame of this number.
    #[inline]
    pub(super) fn look(&mut self, number: u64, frame: &[u8]) -> Look {
        if self.verification == Verification::Signature {
            return Look::Good;
        }
        let place = match self.round.len() {
            1 => 0,
            frames => usize::try_from(number % frames as u64).expect("rounds are short"),
        };
        let Part {
            pattern,
            scratch,
            mask,
        } = &mut self.parts[self.round[place]];
        pattern.write_flow(scratch, number);
        let is_same = frame.get(..mask.len()).is_some_and(|headers| {
            let bytes = headers.iter().zip(&*scratch).zip(&*mask);
            bytes.fold(0, |differs, ((got, want), mask)| {
                differs | (got ^ want) & mask
            }) == 0
        });
        if !is_same {
            Look::Changed
        } else if self.verification == Verification::Whole && !checksums_hold(frame) {
            Look::Damaged
        } else {
            Look::Good
        }
    }
}

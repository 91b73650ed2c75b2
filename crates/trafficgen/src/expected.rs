//! What frames of a stream should look like where they come out.

use std::ops::Range;

use super::layers::checksums_hold;
use super::source::Prepared;
use super::template::{BadTemplate, Pattern};
use super::{Expectation, Source, Stream, Verification};

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
        let rewritten = rewritten.clone().map(Source::Mix);
        let source = rewritten.as_ref().unwrap_or(&stream.source);
        let Prepared {
            patterns, round, ..
        } = source.prepare()?;
        // Numbers are those of signed frames.
        let signed = round.into_iter().filter(|&part| patterns[part].is_signed());
        Ok(Self {
            round: signed.collect(),
            parts: patterns.into_iter().map(|one| part(one, ignored)).collect(),
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
            0 => return Look::Good,
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

/// What is compared of a frame: its headers but for checksums, which are verified, and what is ignored.
fn part(pattern: Pattern, ignored: &[Range<usize>]) -> Part {
    let mut mask = vec![0xff; pattern.headers()];
    let checksums = pattern.checksums().map(|at| at..at + 2);
    for range in checksums.chain(ignored.iter().cloned()) {
        let end = range.end.min(mask.len());
        mask[range.start.min(end)..end].fill(0);
    }
    Part {
        scratch: pattern.bytes().to_vec(),
        pattern,
        mask,
    }
}

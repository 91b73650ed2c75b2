//! The frames of a stream as they should arrive at the destination port.

use std::ops::Range;

use super::layers::checksums_hold;
use super::source::PrebuiltFrames;
use super::template::{BadTemplate, FramePattern};
use super::{Expectation, Source, Stream, Verification};

/// The result of the verification of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameCheck {
    /// The frame is as expected.
    Good,
    /// The headers differ from the expected ones.
    Modified,
    /// A checksum is wrong.
    Corrupt,
}

/// The expected headers, with the fields of the flow that was verified last.
#[derive(Debug)]
pub(super) struct ExpectedFrames {
    parts: Vec<ExpectedPattern>,
    round: Vec<usize>,
    verification: Verification,
}

#[derive(Debug)]
struct ExpectedPattern {
    pattern: FramePattern,
    /// The expected frame; its first `mask.len()` bytes are compared under the mask.
    scratch: Vec<u8>,
    mask: Vec<u8>,
}

impl ExpectedFrames {
    pub(super) fn new(stream: &Stream) -> Result<Self, BadTemplate> {
        let Expectation {
            rewritten,
            ignored,
            verification,
        } = &stream.expectation;
        let rewritten = rewritten.clone().map(Source::Mix);
        let source = rewritten.as_ref().unwrap_or(&stream.source);
        let PrebuiltFrames {
            patterns, round, ..
        } = source.prepare()?;
        // Frame numbers count signed frames only.
        let signed = round.into_iter().filter(|&part| patterns[part].is_signed());
        Ok(Self {
            round: signed.collect(),
            parts: patterns.into_iter().map(|one| part(one, ignored)).collect(),
            verification: *verification,
        })
    }

    /// Verifies the frame `number`.
    #[inline]
    pub(super) fn check(&mut self, number: u64, frame: &[u8]) -> FrameCheck {
        if self.verification == Verification::Signature {
            return FrameCheck::Good;
        }
        let place = match self.round.len() {
            0 => return FrameCheck::Good,
            1 => 0,
            frames => usize::try_from(number % frames as u64).expect("rounds are short"),
        };
        let ExpectedPattern {
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
            FrameCheck::Modified
        } else if self.verification == Verification::Whole && !checksums_hold(frame) {
            FrameCheck::Corrupt
        } else {
            FrameCheck::Good
        }
    }
}

/// The mask of compared bytes: the headers, except for checksums, which are verified separately,
/// and ignored ranges.
fn part(pattern: FramePattern, ignored: &[Range<usize>]) -> ExpectedPattern {
    let mut mask = vec![0xff; pattern.headers()];
    let checksums = pattern.checksums().map(|at| at..at + 2);
    for range in checksums.chain(ignored.iter().cloned()) {
        let end = range.end.min(mask.len());
        mask[range.start.min(end)..end].fill(0);
    }
    ExpectedPattern {
        scratch: pattern.bytes().to_vec(),
        pattern,
        mask,
    }
}

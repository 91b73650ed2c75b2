//! RFC 2544 and what came after it: throughput by search, latency below it, loss above it,
//! bursts.

pub(super) mod back_to_back;
pub(super) mod loss;
pub(super) mod recovery;
pub(super) mod reset;
#[cfg(test)]
mod tests;
pub(super) mod throughput;

use std::time::Duration;

use stats::mlrsearch::{
    FailedSearch, Goal, LoadRange, Search, SearchOutcome, TrialInput, TrialOutput, search,
};
use trafficgen::{Pace, Rate};

use super::offered::{Doubts, Load};
use super::plane::Plane;
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// Frame sizes of RFC 2544, 9.1.
const SIZE: Parameter = Parameter::axis(
    "size",
    "frame size in bytes, with the checksum (FCS)",
    Values::numbers(
        &[64],
        &[64, 128, 256, 512, 1_024, 1_280, 1_518],
        &[64, 128, 256, 512, 1_024, 1_280, 1_518],
        [64, 1_518],
    ),
);

/// A virtual line, so that a virtual cable has an end as a real one has.
pub(super) const LINE: Parameter = Parameter::constant(
    "line",
    "rate of the virtual line in Mbit/s, preambles and gaps included; the upper limit of the load",
    Values::numbers(&[1_000], &[1_000], &[1_000], [10, 400_000]),
);

/// What a search wants.
pub(super) const GOAL: Parameter = Parameter::constant(
    "goal",
    "goal of the search",
    Values::Choice {
        quick: "quick",
        paper: "ndr-pdr",
        rfc: "rfc2544",
        all: &["quick", "ndr-pdr", "rfc2544", "tst009"],
    },
);

const DIRECTION: Parameter = Parameter::axis(
    "direction",
    "direction: one, or both hosts at once",
    Values::words(&["one-way"], &["one-way", "both"]),
);

/// Frames a second that a line carries in one direction.
pub(super) fn line_rate(megabits: u64, size: u64) -> u64 {
    let rate = Rate::Line(megabits * 1_000_000).frames_per_second(size as f64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive, and a line's is far below 2^53"
    )]
    let whole = rate as u64;
    whole.max(1)
}

/// The goals of a name.
pub(super) fn goals(name: &str) -> Vec<Goal> {
    match name {
        "rfc2544" => vec![Goal::rfc2544()],
        "tst009" => vec![Goal::tst009()],
        "ndr-pdr" => vec![Goal::ndr(), Goal::pdr()],
        _ => vec![Goal::quick_ndr(), Goal::quick_pdr()],
    }
}

/// The least rate that is tried: with fewer frames a short trial says little (RFC 9971 has
/// the same for the same reason).
const RATE_MIN: u64 = 9_001;

/// Searches among frames a second up to `line`, of the load that `of` makes of a pace and a
/// length. What speaks against the frames that came out goes to `doubts`.
pub(super) fn rates(
    goals: Vec<Goal>,
    line: u64,
    of: &dyn Fn(Pace, Duration) -> Load,
    plane: &mut dyn Plane,
    doubts: &mut Doubts,
) -> Result<SearchOutcome, TrialError> {
    let range = LoadRange {
        min: RATE_MIN.min(line),
        max: line,
    };
    let trial = |input: TrialInput| {
        let pace = Pace::Constant(Rate::Frames(input.load));
        let length = Duration::from_secs_f64(input.seconds);
        output(&of(pace, length), plane, doubts)
    };
    searched(goals, range, trial)
}

/// What a search for `goals` comes to.
fn searched(
    goals: Vec<Goal>,
    range: LoadRange,
    trial: impl FnMut(TrialInput) -> Result<TrialOutput, TrialError>,
) -> Result<SearchOutcome, TrialError> {
    let started = Search::new(goals, range);
    let started = started.map_err(|error| TrialError::Impossible(error.to_string()))?;
    search(started, trial).map_err(|FailedSearch { reason, .. }| reason)
}

/// One trial, as a search wants to know of it. What the tester itself lost was not offered to
/// the device, or not lost by it: a trial with more of that than a search lets pass judges
/// nothing.
fn output(
    load: &Load,
    plane: &mut dyn Plane,
    doubts: &mut Doubts,
) -> Result<TrialOutput, TrialError> {
    let began = plane.now();
    let offered = plane.offer_once(load)?;
    doubts.add_frames(&offered);
    let seconds = plane.now().since(began).as_secs_f64();
    let sent = offered.sum(|stream| stream.achieved.frames);
    let lost = offered.sum(|stream| stream.lost);
    Ok(TrialOutput {
        intended: offered.sum(|stream| stream.intended.frames),
        offered: sent.saturating_sub(offered.dropped()),
        lost: lost.saturating_sub(offered.dropped()),
        seconds: seconds.min(load.length.as_secs_f64() + 2.0),
    })
}

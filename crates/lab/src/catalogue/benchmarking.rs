//! RFC 2544 and its successors: throughput by search, latency below it, loss above it, and bursts.

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

/// Rate of a virtual line, which limits the load on a virtual link as a real line would.
pub(super) const LINE: Parameter = Parameter::constant(
    "line",
    "rate of the virtual line in Mbit/s, preambles and gaps included; the upper limit of the load",
    Values::numbers(&[1_000], &[1_000], &[1_000], [10, 400_000]),
);

/// Goal of a search.
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

/// Returns the frames per second that a line carries in one direction.
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

/// Returns the goals with this name.
pub(super) fn goals(name: &str) -> Vec<Goal> {
    match name {
        "rfc2544" => vec![Goal::rfc2544()],
        "tst009" => vec![Goal::tst009()],
        "ndr-pdr" => vec![Goal::ndr(), Goal::pdr()],
        _ => vec![Goal::quick_ndr(), Goal::quick_pdr()],
    }
}

/// Least rate of a search: short trials with fewer frames are not significant. RFC 9971 has the
/// same limit for the same reason.
const RATE_MIN: u64 = 9_001;

/// Searches for rates up to `line`, in frames per second; `of` returns the load for a pace and a
/// duration. Reasons against the received frames are added to `doubts`.
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

/// Runs a search for `goals`.
fn searched(
    goals: Vec<Goal>,
    range: LoadRange,
    trial: impl FnMut(TrialInput) -> Result<TrialOutput, TrialError>,
) -> Result<SearchOutcome, TrialError> {
    let started = Search::new(goals, range);
    let started = started.map_err(|error| TrialError::Impossible(error.to_string()))?;
    search(started, trial).map_err(|FailedSearch { reason, .. }| reason)
}

/// Runs one trial of a search. Frames that the tester itself lost are subtracted from the offered
/// and from the lost frames, so a trial with many of them is a shortfall, and undecided.
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

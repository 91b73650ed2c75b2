//! RFC 2544 and what came after it: throughput by search, latency below it, loss above it,
//! bursts.

pub(super) mod back_to_back;
pub(super) mod loss;
pub(super) mod recovery;
pub(super) mod reset;
pub(super) mod throughput;

use std::time::Duration;

use super::offered::{Load, offer_once};
use super::{Bound, Parameter, Values};
use crate::instrument::{Pace, Rate};
use crate::scenario::Tools;
use crate::search::{
    Failed, Goal, LoadRange, Search, SearchOutcome, TrialInput, TrialOutput, search,
};
use crate::station::Station;
use crate::trial::TrialError;

/// Frame sizes of RFC 2544, 9.1.
const SIZE: Parameter = Parameter::axis(
    "size",
    "bytes of a frame, its checksum (FCS) included",
    Values::Numbers {
        quick: &[64],
        paper: &[64, 128, 256, 512, 1_024, 1_280, 1_518],
        rfc: &[64, 128, 256, 512, 1_024, 1_280, 1_518],
        bound: Bound {
            least: 64,
            most: 1_518,
        },
    },
);

/// A virtual line, so that a virtual cable has an end as a real one has.
const LINE: Parameter = Parameter::constant(
    "line",
    "Mbit/s of the line, preambles and gaps included: no more is offered",
    Values::Numbers {
        quick: &[1_000],
        paper: &[1_000],
        rfc: &[1_000],
        bound: Bound {
            least: 10,
            most: 400_000,
        },
    },
);

const DIRECTION: Parameter = Parameter::axis(
    "direction",
    "whether both hosts send at once",
    Values::Words {
        quick: &["one-way"],
        all: &["one-way", "both"],
    },
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
/// length.
pub(super) fn rates(
    goals: Vec<Goal>,
    line: u64,
    of: &dyn Fn(Pace, Duration) -> Load,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<SearchOutcome, TrialError> {
    let range = LoadRange {
        min: RATE_MIN.min(line),
        max: line,
    };
    let trial = |input: TrialInput| {
        let pace = Pace::Constant(Rate::Frames(input.load));
        let length = Duration::from_secs_f64(input.seconds);
        output(&of(pace, length), station, tools)
    };
    let started = Search::new(goals, range);
    let started = started.map_err(|error| TrialError::Impossible(error.to_string()))?;
    search(started, trial).map_err(|Failed { reason, .. }| reason)
}

/// One trial, as a search wants to know of it.
fn output(load: &Load, station: &Station, tools: &Tools<'_>) -> Result<TrialOutput, TrialError> {
    let began = tools.clock.now();
    let offered = offer_once(load, station, tools)?;
    Ok(TrialOutput {
        intended: offered.sum(|stream| stream.intended.frames),
        offered: offered.sum(|stream| stream.achieved.frames),
        lost: offered.sum(|stream| stream.lost),
        seconds: tools
            .clock
            .now()
            .since(began)
            .as_secs_f64()
            .min(load.length.as_secs_f64() + 2.0),
    })
}

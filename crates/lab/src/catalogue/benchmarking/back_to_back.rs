//! Back-to-back frames (RFC 2544, 26.4, updated by RFC 9004).

use std::time::Duration;

use stats::mlrsearch::{Goal, LoadRange, TrialInput};
use trafficgen::{Pace, Rate};

use super::{LINE, SIZE, line_rate, output, searched};
use crate::catalogue::offered::{Doubts, Load, figure};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const BACK_TO_BACK: Experiment = Experiment {
    description: Description {
        name: "back-to-back",
        title: "Back-to-back frames",
        family: Family::Benchmarking,
        question: "How many back-to-back frames does the device forward without loss?",
        source: "RFC 2544, 26.4, and RFC 9004",
        steps: &[
            "Bursts of UDP frames are sent at the rate of the virtual line, or at that of the tester if it is lower.",
            "A bisection finds the longest burst without loss; a burst with loss is repeated once.",
            "The duration of a burst at that rate is the implied buffer time (RFC 9004), which includes what the device forwards meanwhile.",
            "One rule per direction matches the ingress port.",
        ],
        parameters: &[
            SIZE,
            LINE,
            Parameter::constant(
                "longest",
                "greatest burst length in frames",
                Values::numbers(&[20_000], &[2_000_000], &[3_000_000], [10, 20_000_000]),
            ),
            Parameter::constant(
                "searches",
                "number of searches, for the mean",
                Values::numbers(&[1], &[10], &[50], [1, 1_000]),
            ),
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "Bursts without loss",
            figures: &[
                "burst",
                "burst_least",
                "burst_most",
                "rate_kpps",
                "implied_buffer_ms",
            ],
        }],
        ..Description::EMPTY
    },
    seconds: |point| point.number("searches") as f64 * 4.0,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("burst", "Mean burst", "frames", Better::Higher),
    figure("burst_least", "Minimum burst", "frames", Better::Higher),
    figure("burst_most", "Maximum burst", "frames", Better::Higher),
    figure("rate_kpps", "Burst rate", "kpps", Better::Neither),
    figure("implied_buffer_ms", "Implied buffer time", "ms", Better::Higher),
];

/// Returns the goal: a burst that passes in two of three trials, to within five per cent.
fn goal() -> Goal {
    Goal {
        name: "back-to-back".to_owned(),
        width: 0.05,
        ..Goal::quick_ndr()
    }
}

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let size = point.number("size");
    plane.watch()?;
    let flat_out = Load::udp(size, Pace::FlatOut, Duration::from_millis(100));
    let fastest = plane.offer(&flat_out)?.pps();
    let line = line_rate(point.number("line"), size);
    let pace = match fastest > line as f64 {
        true => Pace::Constant(Rate::Frames(line)),
        false => Pace::FlatOut,
    };
    let rate = fastest.min(line as f64);
    if rate <= 0.0 {
        let reading = Reading::lacking(point, FIGURES, "the tester sent nothing");
        let conditions = plane.conditions()?;
        return Ok(TrialResult::new(reading, conditions));
    }
    let longest = point.number("longest");
    let mut doubts = Doubts::default();
    let bursts = Bursts {
        size,
        pace,
        rate,
        longest,
    };
    let mut found = Vec::new();
    for _ in 0..point.number("searches") {
        found.push(bursts.longest(plane, &mut doubts)?);
    }
    let conditions = plane.conditions()?;
    let mut measured = TrialResult::new(bursts.reading(point, &found), conditions);
    if found.iter().any(|burst| *burst >= longest) {
        measured.note(format!(
            "bursts of {longest} frames, the longest tried, lost nothing"
        ));
    }
    doubts.add_flaws(&mut measured);
    Ok(measured)
}

/// Parameters of the bursts.
struct Bursts {
    size: u64,
    pace: Pace,
    /// Rate in frames per second.
    rate: f64,
    /// Frames of the longest burst.
    longest: u64,
}

impl Bursts {
    /// Searches for the longest burst without loss; returns 0 if the shortest one had losses.
    fn longest(&self, plane: &mut dyn Plane, doubts: &mut Doubts) -> Result<u64, TrialError> {
        let range = LoadRange {
            min: SHORTEST.min(self.longest),
            max: self.longest,
        };
        let trial = |input: TrialInput| {
            // The load of the search is the number of frames, which determines the duration.
            let length = Duration::from_secs_f64(input.load as f64 / self.rate);
            let mut one = output(&Load::udp(self.size, self.pace, length), plane, doubts)?;
            one.seconds = input.seconds;
            one.intended = one.offered;
            Ok(one)
        };
        let outcome = searched(vec![goal()], range, trial)?;
        let found = outcome.results.first().and_then(|found| found.lower);
        Ok(found.unwrap_or(0))
    }

    fn reading(&self, point: &Point, found: &[u64]) -> Reading {
        let mut reading = Reading::at(point);
        let mean = found.iter().sum::<u64>() as f64 / found.len() as f64;
        let (least, most) = (found.iter().min(), found.iter().max());
        reading.put("burst", mean);
        reading.put("burst_least", least.copied().unwrap_or(0) as f64);
        reading.put("burst_most", most.copied().unwrap_or(0) as f64);
        reading.put("rate_kpps", self.rate / 1e3);
        reading.put("implied_buffer_ms", mean / self.rate * 1e3);
        reading
    }
}

/// Frames of the shortest burst.
const SHORTEST: u64 = 10;

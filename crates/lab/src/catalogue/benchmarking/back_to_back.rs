//! Back-to-back frames (RFC 2544, 26.4, as RFC 9004 mends it).

use std::time::Duration;

use record::{Outcome, Reading};
use stats::mlrsearch::{Goal, LoadRange, TrialInput};
use trafficgen::{Pace, Rate};

use super::{LINE, SIZE, line_rate, output, searched};
use crate::catalogue::offered::{Doubts, Load, figure};
use crate::catalogue::plane::{Plane, on_station};
use crate::catalogue::{
    Better, Bound, Description, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const BACK_TO_BACK: Experiment = Experiment {
    description: Description {
        name: "back-to-back",
        title: "The longest burst without loss",
        family: Family::Benchmarking,
        question: "How many frames in a row, at the greatest rate, does the device take without losing one?",
        source: "RFC 2544, 26.4, and RFC 9004",
        steps: &[
            "Bursts of frames of UDP are sent at the rate of the virtual line, or as fast as the tester can.",
            "The longest burst without loss is searched for; a burst that lost something may be repeated once.",
            "The time that a burst takes at that rate is the implied buffer time; what the device forwards meanwhile makes the rest of it.",
            "One rule a direction matches the port of arrival.",
        ],
        parameters: &[
            SIZE,
            LINE,
            Parameter::constant(
                "longest",
                "frames of the longest burst that is tried",
                Values::Numbers {
                    quick: &[20_000],
                    paper: &[2_000_000],
                    rfc: &[3_000_000],
                    bound: Bound {
                        least: 10,
                        most: 20_000_000,
                    },
                },
            ),
            Parameter::constant(
                "searches",
                "how often it is searched for, for the mean",
                Values::Numbers {
                    quick: &[1],
                    paper: &[10],
                    rfc: &[50],
                    bound: Bound {
                        least: 1,
                        most: 1_000,
                    },
                },
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
        topology: None,
    },
    setting: Setting::Usual,
    takes: |_, _| true,
    seconds: |point| point.number("searches") as f64 * 4.0,
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("burst", "Mean burst", "frames", Better::Higher),
    figure("burst_least", "Shortest", "frames", Better::Higher),
    figure("burst_most", "Longest", "frames", Better::Higher),
    figure("rate_kpps", "At", "kpps", Better::Neither),
    figure("implied_buffer_ms", "Implied buffer time", "ms", Better::Higher),
];

/// What is searched for: a burst that two in three get through, to five per cent.
fn goal() -> Goal {
    Goal {
        name: "back-to-back".to_owned(),
        width: 0.05,
        ..Goal::quick_ndr()
    }
}

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<Measured, TrialError> {
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
        return Ok(Measured::new(Outcome::Reading(reading), conditions));
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
    let mut measured = Measured::new(Outcome::Reading(bursts.reading(point, &found)), conditions);
    if found.iter().any(|burst| *burst >= longest) {
        measured.note(format!(
            "bursts of {longest} frames, the longest tried, lost nothing"
        ));
    }
    doubts.tell(&mut measured);
    Ok(measured)
}

/// What bursts are made of.
struct Bursts {
    size: u64,
    pace: Pace,
    /// Frames a second that this comes to.
    rate: f64,
    /// Frames of the longest that is tried.
    longest: u64,
}

impl Bursts {
    /// The longest burst without loss of one search; 0 if even the shortest lost something.
    fn longest(&self, plane: &mut dyn Plane, doubts: &mut Doubts) -> Result<u64, TrialError> {
        let range = LoadRange {
            min: SHORTEST.min(self.longest),
            max: self.longest,
        };
        let trial = |input: TrialInput| {
            // Of a burst the load is its frames: they take what they take.
            let length = Duration::from_secs_f64(input.load as f64 / self.rate);
            let mut one = output(&Load::udp(self.size, self.pace, length), plane, doubts)?;
            one.seconds = input.seconds;
            one.intended = one.offered;
            Ok(one)
        };
        let outcome = searched(vec![goal()], range, trial)?;
        let found = outcome.found.first().and_then(|found| found.lower);
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

/// Frames of the shortest burst that is tried.
const SHORTEST: u64 = 10;

//! Back-to-back frames (RFC 2544, 26.4, as RFC 9004 mends it).

use std::time::Duration;

use super::{LINE, SIZE, line_rate, output};
use crate::catalogue::offered::{Load, figure};
use crate::catalogue::{
    Better, Bound, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::cores::Watch;
use crate::instrument::{Pace, Rate};
use crate::record::{Outcome, Reading};
use crate::scenario::Tools;
use crate::search::{Failed, Goal, LoadRange, Search, TrialInput, search};
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const BACK_TO_BACK: Experiment = Experiment {
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
                quick: &[3],
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
    setting: Setting::Usual,
    takes: |_, _| true,
    seconds: |point| point.number("searches") as f64 * 4.0,
    measure,
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

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let size = point.number("size");
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let flat_out = Load::udp(size, Pace::FlatOut, Duration::from_millis(100));
    let fastest = crate::catalogue::offered::offer(&flat_out, station, tools)?;
    let fastest = fastest.measurement.streams[0].achieved.pps();
    let line = line_rate(point.number("line"), size);
    let pace = match fastest > line as f64 {
        true => Pace::Constant(Rate::Frames(line)),
        false => Pace::FlatOut,
    };
    let rate = fastest.min(line as f64);
    let longest = point.number("longest");
    let mut bursts = Vec::new();
    for _ in 0..point.number("searches") {
        bursts.push(longest_burst(pace, rate, longest, size, station, tools)?);
    }
    let conditions = watch.end(&station.bench)?;
    let mut reading = Reading::at(point);
    let mean = bursts.iter().sum::<u64>() as f64 / bursts.len() as f64;
    let ends = (bursts.iter().min().copied(), bursts.iter().max().copied());
    reading.put("burst", mean);
    reading.put("burst_least", ends.0.unwrap_or(0) as f64);
    reading.put("burst_most", ends.1.unwrap_or(0) as f64);
    reading.put("rate_kpps", rate / 1e3);
    reading.put("implied_buffer_ms", mean / rate * 1e3);
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    if ends.1.is_some_and(|most| most >= longest) {
        measured.note(format!(
            "bursts of {longest} frames, the longest tried, lost nothing"
        ));
    }
    Ok(measured)
}

/// The longest burst without loss of one search; 0 if even the shortest lost something.
fn longest_burst(
    pace: Pace,
    rate: f64,
    longest: u64,
    size: u64,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<u64, TrialError> {
    let range = LoadRange {
        min: 10,
        max: longest,
    };
    let started = Search::new(vec![goal()], range);
    let started = started.map_err(|error| TrialError::Impossible(error.to_string()))?;
    let trial = |input: TrialInput| {
        // Of a burst the load is its frames: they take what they take.
        let length = Duration::from_secs_f64(input.load as f64 / rate);
        let mut one = output(&Load::udp(size, pace, length), station, tools)?;
        one.seconds = input.seconds;
        one.intended = one.offered;
        Ok(one)
    };
    let outcome = search(started, trial).map_err(|failed: Failed<TrialError>| failed.reason)?;
    let found = outcome.found.first().and_then(|found| found.lower);
    Ok(found.unwrap_or(0))
}

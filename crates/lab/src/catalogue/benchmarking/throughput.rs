//! Throughput by search (RFC 2544, 26.1), and latency below it (26.2).

use std::time::Duration;

use stats::mlrsearch::{GoalResult, SearchEnd, SearchOutcome};
use trafficgen::{OVERHEAD_BYTES, Pace, Rate};

use super::{DIRECTION, GOAL, LINE, SIZE, goals, line_rate, rates};
use crate::catalogue::offered::{Doubts, Load, figure};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const THROUGHPUT: Experiment = Experiment {
    description: Description {
        name: "throughput",
        title: "Throughput, and latency below it",
        family: Family::Benchmarking,
        question: "What is the highest rate without loss, and what is the latency below it?",
        source: "RFC 2544, 26.1 and 26.2, with the search of RFC 9971 (MLRsearch)",
        steps: &[
            "UDP frames are offered at one rate after another, up to that of the virtual line; one rule per direction matches the ingress port.",
            "A goal defines the trial duration, the total time at a rate, and the permitted loss: none (NDR), half a per cent (PDR), or the single trial of 60 seconds of RFC 2544.",
            "The throughput is between the greatest rate that met the goal and the least that did not; the former is shown.",
            "A trial in which the tester missed the intended load is repeated; if the search ends at the limit of the tester, a note says so.",
            "Then frames are offered at 10, 50 and 90 per cent of the throughput of the last goal, and the delay of each is measured.",
        ],
        parameters: &[SIZE, DIRECTION, GOAL, LINE, LATENCY_MILLIS],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Throughput by frame size",
                figure: "throughput_mbit",
                along: "size",
                log: false,
            },
            View::Lines {
                title: "Median delay at half the throughput",
                figure: "p50_at_50_us",
                along: "size",
                log: true,
            },
            View::Table {
                title: "Throughput",
                figures: &[
                    "lossless_kpps",
                    "throughput_kpps",
                    "throughput_mbit",
                    "line_percent",
                    "trials",
                ],
            },
            View::Table {
                title: "Delay below the throughput",
                figures: &[
                    "p50_at_10_us",
                    "p99_at_10_us",
                    "p50_at_50_us",
                    "p99_at_50_us",
                    "p50_at_90_us",
                    "p99_at_90_us",
                ],
            },
        ],
        ..Description::EMPTY
    },
    seconds: |point| match point.word("goal") {
        "quick" => 10.0,
        "ndr-pdr" => 420.0,
        _ => 900.0,
    },
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

const LATENCY_MILLIS: Parameter = Parameter::constant(
    "latency-millis",
    "duration of the delay measurement at each share of the throughput, in milliseconds",
    Values::numbers(&[300], &[5_000], &[120_000], [50, 3_600_000]),
);

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("throughput_kpps", "Throughput, last goal", "kpps", Better::Higher),
    figure("lossless_kpps", "First goal", "kpps", Better::Higher),
    figure("throughput_mbit", "On the line", "Mbit/s", Better::Higher),
    figure("line_percent", "Share of the line", "%", Better::Higher),
    figure("trials", "Trials", "", Better::Neither),
    figure("p50_at_10_us", "Median at 10 %", "µs", Better::Lower),
    figure("p99_at_10_us", "99 % at 10 %", "µs", Better::Lower),
    figure("p50_at_50_us", "Median at 50 %", "µs", Better::Lower),
    figure("p99_at_50_us", "99 % at 50 %", "µs", Better::Lower),
    figure("p50_at_90_us", "Median at 90 %", "µs", Better::Lower),
    figure("p99_at_90_us", "99 % at 90 %", "µs", Better::Lower),
];

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let size = point.number("size");
    let bidirectional = point.word("direction") == "both";
    let line = line_rate(point.number("line"), size);
    let load = |pace, length| {
        let mut load = Load::udp(size, pace, length);
        load.bidirectional = bidirectional;
        load
    };
    plane.watch()?;
    let goals = goals(point.word("goal"));
    let mut doubts = Doubts::default();
    let outcome = rates(goals, line, &load, plane, &mut doubts)?;
    let mut reading = Reading::at(point);
    let rate = put_throughput(&outcome, (size, line, bidirectional), &mut reading);
    for (share, [p50, p99]) in SHARES {
        match rate {
            None => reading.lack_each([p50, p99], "no throughput was found"),
            Some(rate) => {
                let length = Duration::from_millis(point.number("latency-millis"));
                let pace = Pace::Constant(Rate::Frames((rate * share / 100).max(1)));
                let offered = plane.offer(&load(pace, length))?;
                offered.put_delays(&[(p50, 0.5), (p99, 0.99)], &mut reading, &mut doubts);
            }
        }
    }
    let conditions = plane.conditions()?;
    let mut measured = TrialResult::new(reading, conditions);
    for found in &outcome.results {
        if let Some(words) = in_words(found) {
            measured.note(words);
        }
    }
    doubts.add_flaws(&mut measured);
    Ok(measured)
}

/// Shares of the throughput in per cent, and the figures of their delays.
const SHARES: [(u64, [&str; 2]); 3] = [
    (10, ["p50_at_10_us", "p99_at_10_us"]),
    (50, ["p50_at_50_us", "p99_at_50_us"]),
    (90, ["p50_at_90_us", "p99_at_90_us"]),
];

/// Adds the results of the search to the reading, and returns the throughput of the last goal.
fn put_throughput(
    outcome: &SearchOutcome,
    (size, line, bidirectional): (u64, u64, bool),
    reading: &mut Reading,
) -> Option<u64> {
    let directions = if bidirectional { 2.0 } else { 1.0 };
    reading.put("trials", outcome.trials.len() as f64);
    let trials = outcome.trials.iter();
    let trials = trials.map(|trial| [trial.load as f64 / 1e3, trial.loss_ratio() * 100.0]);
    reading
        .series
        .insert("loss_by_kpps".to_owned(), trials.collect());
    let of = |found: Option<&GoalResult>| found.and_then(|found| found.lower);
    match of(outcome.results.first()) {
        Some(rate) => reading.put("lossless_kpps", directions * rate as f64 / 1e3),
        None => reading.lack("lossless_kpps", "even the least rate was not met"),
    }
    let last = of(outcome.results.last());
    match last {
        None => {
            let names = ["throughput_kpps", "throughput_mbit", "line_percent"];
            reading.lack_each(names, "even the least rate was not met");
        }
        Some(rate) => {
            let bits = (size + u64::from(OVERHEAD_BYTES)) as f64 * 8.0;
            reading.put("throughput_kpps", directions * rate as f64 / 1e3);
            reading.put("throughput_mbit", directions * rate as f64 * bits / 1e6);
            reading.put("line_percent", rate as f64 / line as f64 * 100.0);
        }
    }
    last
}

/// Returns a remark on a search that did not end between two bounds.
fn in_words(found: &GoalResult) -> Option<String> {
    let name = &found.goal.name;
    match found.end {
        SearchEnd::Converged | SearchEnd::AboveRange => None,
        SearchEnd::AboveGenerator => Some(format!(
            "{name}: the tester's own limit was reached, the device may carry more"
        )),
        SearchEnd::BelowRange => Some(format!("{name}: even the least rate was not met")),
        SearchEnd::NoLoad => Some(format!("{name}: the tester does not reach the least rate")),
        SearchEnd::TooManyTrials => Some(format!("{name}: the search did not finish")),
        SearchEnd::Stopped => Some(format!("{name}: the search was stopped")),
    }
}

//! How many questions after port statistics a device answers.

use std::time::Duration;

use base::PortNo;
use openflow::{Message, MultipartRequest};

use super::control_echo::ask_all;
use super::figures::{bad, ns, plain, put_times, rate, time};
use super::flows::delete_all;
use super::poll::Poll;
use super::rig::{Rig, settle};
use super::{Found, VERSION, on_device, takes};
use crate::catalogue::{
    Bound, Description, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::trial::TrialError;

/// The experiment.
pub(crate) const PORT_STATS: Experiment = Experiment {
    description: Description {
        name: "port-stats-rate",
        title: "Rate of port statistics",
        family: Family::Oflops,
        question: "How many questions after the counters of its ports does a device answer in a second?",
        source: "OFLOPS, module openflow_port_status (port statistics at doubling rates)",
        steps: &[
            "There are no rules and no frames.",
            "The counters of all ports are asked for at a fixed rate, whether the last question was answered or not; the rates double from test to test.",
            "Where the device does not read, questions are withheld and counted, and no memory grows.",
            "What was answered is told as a rate, from the first question to the last answer.",
        ],
        parameters: &[
            Parameter::axis(
                "rate",
                "questions a second",
                Values::Numbers {
                    quick: &[1_000, 16_000],
                    paper: &[
                        125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000,
                    ],
                    rfc: &[
                        125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000,
                    ],
                    bound: Bound {
                        least: 1,
                        most: 1_000_000,
                    },
                },
            ),
            Parameter::constant(
                "milliseconds",
                "milliseconds of questions",
                Values::Numbers {
                    quick: &[250],
                    paper: &[5_000],
                    rfc: &[10_000],
                    bound: Bound {
                        least: 10,
                        most: 600_000,
                    },
                },
            ),
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Answers a second by questions a second",
                figure: "answers_s",
                along: "rate",
                log: false,
            },
            View::Lines {
                title: "Median answer by questions a second",
                figure: "p50_us",
                along: "rate",
                log: true,
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "answers_s",
                    "mean_us",
                    "p50_us",
                    "p99_us",
                    "max_us",
                    "unanswered",
                    "withheld",
                    "asked",
                ],
            },
        ],
        topology: None,
    },
    setting: Setting::Usual,
    takes,
    seconds: |point| 0.3 + point.number("milliseconds") as f64 / 1e3,
    measure: |point, station, tools| on_device(point, station, tools, measure),
};

const FIGURES: &[Figure] = &[
    rate("answers_s", "Answers a second", "/s"),
    time("mean_us", "Mean", "µs"),
    time("p50_us", "Median", "µs"),
    time("p99_us", "99 %", "µs"),
    time("max_us", "Longest", "µs"),
    bad("unanswered", "Without an answer"),
    bad("withheld", "Not asked for want of room"),
    plain("asked", "Questions", ""),
];

fn measure(point: &Point, rig: &mut dyn Rig) -> Result<Found, TrialError> {
    settle(rig, vec![delete_all()])?;
    let question = Message::MultipartRequest(MultipartRequest::Port(PortNo::ANY));
    let period = Duration::from_nanos(1_000_000_000 / point.number("rate").max(1));
    let most = point.number("rate") * point.number("milliseconds") / 1_000;
    let began = rig.now();
    let mut poll = Poll::new(question, period, most.max(1), began);
    ask_all(rig, &mut poll)?;
    let seconds = ns(rig.now().since(began)) as f64 / 1e9;
    let mut found = Found::at(point);
    let reading = &mut found.reading;
    let otherwise = poll.refused().unwrap_or("no question was answered");
    let names = ["mean_us", "p50_us", "p99_us", "max_us"];
    put_times(reading, names, "answer_ns", poll.answers_ns(), otherwise);
    match poll.answers_ns().len() {
        0 => reading.lack("answers_s", otherwise),
        count => reading.put("answers_s", count as f64 / seconds),
    }
    reading.put("unanswered", poll.open() as f64);
    reading.put("withheld", poll.withheld() as f64);
    reading.put("asked", poll.asked() as f64);
    Ok(found)
}

#[cfg(test)]
mod tests;

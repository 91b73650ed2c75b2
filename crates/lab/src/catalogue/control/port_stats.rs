//! Port statistics: the rate of requests that a device can answer.

use std::time::Duration;

use base::PortNo;
use openflow::{Message, MultipartRequest};

use super::control_echo::poll_until_done;
use super::figures::{bad, ns, plain, put_times, rate, time};
use super::flows::delete_all;
use super::poll::Poll;
use super::rig::{ControlRig, send_batch};
use super::{TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "port-stats-rate".
pub(crate) const PORT_STATS: Experiment = Experiment {
    description: Description {
        name: "port-stats-rate",
        title: "Port statistics rate",
        family: Family::Oflops,
        question: "How many port statistics requests per second does a device answer?",
        source: "OFLOPS, module openflow_port_status (port statistics at doubling rates)",
        steps: &[
            "There are no rules and no frames.",
            "The statistics of all ports are requested at a fixed rate, independent of the replies; the rate doubles from trial to trial.",
            "If the device does not read, requests are withheld and counted, so that the tester's queue does not grow.",
            "The rate of responses is that from the first request to the last response.",
        ],
        parameters: &[
            Parameter::axis(
                "rate",
                "requests per second",
                Values::numbers(
                    &[1_000, 16_000],
                    &[
                        125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000,
                    ],
                    &[
                        125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000,
                    ],
                    [1, 1_000_000],
                ),
            ),
            Parameter::constant(
                "milliseconds",
                "duration of the requests in milliseconds",
                Values::numbers(&[250], &[5_000], &[10_000], [10, 600_000]),
            ),
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Responses per second by requests per second",
                figure: "answers_s",
                along: "rate",
                log: false,
            },
            View::Lines {
                title: "Median response time by requests per second",
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
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| 0.3 + point.number("milliseconds") as f64 / 1e3,
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    rate("answers_s", "Responses per second", "/s"),
    time("mean_us", "Mean", "µs"),
    time("p50_us", "Median", "µs"),
    time("p99_us", "99 %", "µs"),
    time("max_us", "Maximum", "µs"),
    bad("unanswered", "Without a response"),
    bad("withheld", "Withheld requests"),
    plain("asked", "Requests", ""),
];

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    send_batch(rig, vec![delete_all()])?;
    let request = Message::MultipartRequest(MultipartRequest::Port(PortNo::ANY));
    let period = Duration::from_nanos(1_000_000_000 / point.number("rate").max(1));
    let most = point.number("rate") * point.number("milliseconds") / 1_000;
    let began = rig.now();
    let mut poll = Poll::new(request, period, most.max(1), began);
    poll_until_done(rig, &mut poll)?;
    let seconds = ns(rig.now().since(began)) as f64 / 1e9;
    let mut report = TrialReport::at(point);
    let reading = &mut report.reading;
    let absence = poll.refused().unwrap_or("no request was answered");
    let names = ["mean_us", "p50_us", "p99_us", "max_us"];
    put_times(reading, names, "answer_ns", poll.answers_ns(), absence);
    match poll.answers_ns().len() {
        0 => reading.lack("answers_s", absence),
        count => reading.put("answers_s", count as f64 / seconds),
    }
    reading.put("unanswered", poll.open() as f64);
    reading.put("withheld", poll.withheld() as f64);
    reading.put("asked", poll.sent() as f64);
    Ok(report)
}

#[cfg(test)]
mod tests;

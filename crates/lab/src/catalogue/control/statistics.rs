//! Statistics requests while frames are forwarded: the response time, and the effect on the frames.

use std::time::Duration;

use base::Instant;
use flow::{FlowModCommand, FlowStatsRequest};
use openflow::{FlowFormat, Message, MultipartRequest};

use super::figures::{bad, lack_all, ns, plain, put_times, time};
use super::flows::{FlowRules, delete_all, drop_rest};
use super::poll::Poll;
use super::rig::{ControlRig, LimitedInbox, TIMEOUT, send_batch};
use super::traffic::Traffic;
use super::{PPS, TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "flow-stats": statistics of each flow.
pub(crate) const FLOW_STATS: Experiment = Experiment {
    description: Description {
        name: "flow-stats",
        title: "Flow statistics delay",
        question: "How long does a device take to return flow statistics, and what is the effect on forwarding?",
        source: "OFLOPS, module openflow_flow_stats",
        ..STATISTICS.description
    },
    measure: |point, setup, tools| {
        on_device(point, setup, tools, |point, rig| {
            measure(point, rig, flow_stats_request())
        })
    },
    ..STATISTICS
};

/// The experiment "aggregate-stats": sums over all flows.
pub(crate) const AGGREGATE_STATS: Experiment = Experiment {
    description: Description {
        name: "aggregate-stats",
        title: "Aggregate statistics delay",
        question: "How long does a device take to return aggregate statistics of all rules, and what is the effect on forwarding?",
        source: "OFLOPS, module openflow_aggr_flow_stats",
        ..STATISTICS.description
    },
    measure: |point, setup, tools| {
        on_device(point, setup, tools, |point, rig| {
            measure(point, rig, aggregate_stats_request())
        })
    },
    ..STATISTICS
};

const STATISTICS: Experiment = Experiment {
    description: Description {
        name: "",
        title: "",
        family: Family::Oflops,
        question: "",
        source: "",
        steps: &[
            "The table has a rule for each flow, and frames of all flows are sent in turn and forwarded.",
            "There are no requests in the first half of the trial; in the second half all statistics are requested at a fixed interval, independent of the replies.",
            "The response time runs from the transmission of the request to the arrival of the last part of the reply.",
            "Delay and loss of the frames of both halves are compared.",
        ],
        parameters: &[RULES, PERIOD, MILLISECONDS, VERSION, PPS],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Mean response time by number of rules",
                figure: "answer_mean_us",
                along: "rules",
                log: true,
            },
            View::Percentiles {
                title: "Answers",
                values: "answer_ns",
            },
            View::Percentiles {
                title: "Forwarding during statistics requests",
                values: "asked_frame_ns",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "answer_mean_us",
                    "answer_p50_us",
                    "answer_p99_us",
                    "answer_max_us",
                    "answer_bytes",
                    "unanswered",
                    "quiet_frame_p50_us",
                    "asked_frame_p50_us",
                    "quiet_frame_p99_us",
                    "asked_frame_p99_us",
                    "quiet_lost",
                    "asked_lost",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| 0.5 + 2.0 * point.number("milliseconds") as f64 / 1e3,
    measure: |point, setup, tools| {
        on_device(point, setup, tools, |point, rig| {
            measure(point, rig, aggregate_stats_request())
        })
    },
    ..Experiment::BASE
};

/// Number of rules, with the values of OFLOPS.
const RULES: Parameter = Parameter::axis(
    "rules",
    "rules in the table",
    Values::numbers(
        &[256],
        &[1, 8, 64, 256, 512, 1_024],
        &[1, 8, 64, 256, 512, 1_024, 10_000, 100_000],
        [1, 1_000_000],
    ),
);
const PERIOD: Parameter = Parameter::axis(
    "period-ms",
    "milliseconds between two requests",
    Values::numbers(
        &[20],
        &[1_000, 250, 20],
        &[4_000, 1_000, 500, 250],
        [1, 60_000],
    ),
);
const MILLISECONDS: Parameter = Parameter::constant(
    "milliseconds",
    "duration of each half in milliseconds",
    Values::numbers(&[250], &[5_000], &[60_000], [10, 600_000]),
);

const FIGURES: &[Figure] = &[
    time("answer_mean_us", "Response, mean", "µs"),
    time("answer_p50_us", "Response, median", "µs"),
    time("answer_p99_us", "Response, 99 %", "µs"),
    time("answer_max_us", "Response, maximum", "µs"),
    plain("answer_bytes", "Bytes per response", "bytes"),
    bad("unanswered", "Without a response"),
    time("quiet_frame_mean_us", "Frame, without requests, mean", "µs"),
    time(
        "quiet_frame_p50_us",
        "Frame, without requests, median",
        "µs",
    ),
    time("quiet_frame_p99_us", "Frame, without requests, 99 %", "µs"),
    time(
        "quiet_frame_max_us",
        "Frame, without requests, maximum",
        "µs",
    ),
    time("asked_frame_mean_us", "Frame, with requests, mean", "µs"),
    time("asked_frame_p50_us", "Frame, with requests, median", "µs"),
    time("asked_frame_p99_us", "Frame, with requests, 99 %", "µs"),
    time("asked_frame_max_us", "Frame, with requests, maximum", "µs"),
    bad("quiet_lost", "Lost without requests"),
    bad("asked_lost", "Lost with requests"),
];

/// Returns a request for the statistics of each flow.
pub(super) fn flow_stats_request() -> Message {
    let all = FlowStatsRequest::all();
    Message::MultipartRequest(MultipartRequest::Flow(FlowFormat::Standard, all))
}

/// Returns a request for the aggregate statistics of all flows.
pub(super) fn aggregate_stats_request() -> Message {
    let all = FlowStatsRequest::all();
    Message::MultipartRequest(MultipartRequest::Aggregate(FlowFormat::Standard, all))
}

fn measure(
    point: &Point,
    rig: &mut dyn ControlRig,
    request: Message,
) -> Result<TrialReport, TrialError> {
    let flows = FlowRules::of(rig.version());
    let rules = point.small("rules");
    let added = (0..rules).map(|flow| flows.message(FlowModCommand::Add, flow, None));
    let messages = [delete_all(), drop_rest()].into_iter().chain(added);
    let mut report = TrialReport::at(point);
    if let Some(reason) = send_batch(rig, messages.collect())?.first_refusal() {
        lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let half = Duration::from_millis(point.number("milliseconds"));
    let period = Duration::from_millis(point.number("period-ms"));
    let most = (half.as_nanos() / period.as_nanos().max(1)).max(1);
    let mut traffic = Traffic::new(rules, point.number("pps"), rig.now());
    if let Some(stale) = traffic.settle(rig, Some(0))? {
        stale.add_to(&mut report);
    }
    let start = rig.now();
    let (middle, end) = (start + half, start + half * 2);
    let most = u64::try_from(most).expect("there are few milliseconds");
    let mut poll = Poll::new(request, period, most, middle);
    let delays = run(rig, &mut traffic, &mut poll, [middle, end])?;
    put_figures(&mut report, &traffic, &poll, delays, [start, middle, end]);
    Ok(report)
}

/// Sends frames and requests. Returns the delays of the frames in each half.
fn run(
    rig: &mut dyn ControlRig,
    traffic: &mut Traffic,
    poll: &mut Poll,
    [middle, end]: [Instant; 2],
) -> Result<[Vec<u64>; 2], TrialError> {
    let mut delays = [Vec::new(), Vec::new()];
    loop {
        let now = rig.now();
        if now >= end {
            traffic.stop();
        }
        if now >= end && (poll.open() == 0 || now >= end + TIMEOUT) {
            break;
        }
        traffic.turn(rig)?;
        if now >= middle && now < end {
            poll.turn(rig)?;
        }
        let mut inbox = LimitedInbox::default();
        while let Some(message) = inbox.receive(rig)? {
            poll.process(&message, rig);
        }
        traffic.receive_frames(rig, |arrival| {
            delays[usize::from(arrival.sent >= middle)]
                .push(ns(arrival.received.since(arrival.sent)));
        })?;
    }
    traffic.drain(rig, |arrival| {
        delays[usize::from(arrival.sent >= middle)].push(ns(arrival.received.since(arrival.sent)));
    })?;
    Ok(delays)
}

fn put_figures(
    report: &mut TrialReport,
    traffic: &Traffic,
    poll: &Poll,
    [quiet, loaded]: [Vec<u64>; 2],
    [start, middle, end]: [Instant; 3],
) {
    let reading = &mut report.reading;
    let absence = poll.refused().unwrap_or("no request was answered");
    let names = [
        "answer_mean_us",
        "answer_p50_us",
        "answer_p99_us",
        "answer_max_us",
    ];
    put_times(reading, names, "answer_ns", poll.answers_ns(), absence);
    match poll.answers_ns().len() {
        0 => reading.lack("answer_bytes", absence),
        count => reading.put("answer_bytes", poll.bytes() as f64 / count as f64),
    }
    reading.put("unanswered", poll.open() as f64);
    for (what, delays) in [("quiet", quiet), ("asked", loaded)] {
        let named = ["mean", "p50", "p99", "max"].map(|name| format!("{what}_frame_{name}_us"));
        let named = named.each_ref().map(String::as_str);
        let histogram = format!("{what}_frame_ns");
        put_times(reading, named, &histogram, &delays, "no frame arrived");
    }
    reading.put("quiet_lost", traffic.lost_between(start, middle) as f64);
    reading.put(
        "asked_lost",
        traffic.lost_between(middle, end + TIMEOUT) as f64,
    );
    report.notes.extend(traffic.shortfall());
    if traffic.received() == 0 {
        report
            .void
            .push("no frame arrived: the rules were not in force".to_owned());
    }
    if poll.withheld() > 0 {
        let count = poll.withheld();
        report.notes.push(format!(
            "{count} requests were not sent: the device did not read"
        ));
    }
    if let Some(flows) = poll.flows() {
        let wanted = reading.point.number("rules") + 1;
        if u64::from(flows) != wanted {
            report.void.push(format!(
                "the device reports {flows} rules instead of {wanted}"
            ));
        }
    }
}

#[cfg(test)]
mod tests;

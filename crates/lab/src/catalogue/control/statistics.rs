//! Statistics that are asked for while frames are forwarded: what an answer takes, and what
//! it costs the frames.

use std::time::Duration;

use base::Instant;
use flow::{FlowModCommand, FlowStatsRequest};
use openflow::{FlowFormat, Message, MultipartRequest};

use super::figures::{bad, lack_all, ns, plain, put_times, time};
use super::flows::{Flows, delete_all, drop_rest};
use super::poll::Poll;
use super::rig::{Few, PATIENCE, Rig, settle};
use super::traffic::Traffic;
use super::{Found, PPS, VERSION, on_device, takes};
use crate::catalogue::{
    Bound, Description, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::trial::TrialError;

/// Statistics of each flow.
pub(crate) const FLOW_STATS: Experiment = Experiment {
    description: Description {
        name: "flow-stats",
        title: "Statistics of flows",
        question: "How long does a device take to tell what its rules have counted, and do frames suffer from it?",
        source: "OFLOPS, module openflow_flow_stats",
        ..OF_EITHER.description
    },
    measure: |point, station, tools| {
        on_device(point, station, tools, |point, rig| {
            measure(point, rig, of_each())
        })
    },
    ..OF_EITHER
};

/// Sums over all flows.
pub(crate) const AGGREGATE_STATS: Experiment = Experiment {
    description: Description {
        name: "aggregate-stats",
        title: "Sums over flows",
        question: "How long does a device take to tell the sums over all rules, and do frames suffer from it?",
        source: "OFLOPS, module openflow_aggr_flow_stats",
        ..OF_EITHER.description
    },
    measure: |point, station, tools| {
        on_device(point, station, tools, |point, rig| {
            measure(point, rig, of_all())
        })
    },
    ..OF_EITHER
};

const OF_EITHER: Experiment = Experiment {
    description: Description {
        name: "",
        title: "",
        family: Family::Oflops,
        question: "",
        source: "",
        steps: &[
            "There are rules for as many flows, and frames of each in turn, which all are forwarded.",
            "For the first half of the test nothing is asked; in the second half all statistics are asked for at a fixed period, whether the last question was answered or not.",
            "An answer's time is from handing the question to the system until its last part has come.",
            "The delays of the frames of both halves stand beside each other, and what of each was lost.",
        ],
        parameters: &[RULES, PERIOD, MILLISECONDS, VERSION, PPS],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Mean answer by how many rules there are",
                figure: "answer_mean_us",
                along: "rules",
                log: true,
            },
            View::Percentiles {
                title: "Answers",
                histogram: "answer_ns",
            },
            View::Percentiles {
                title: "Frames while statistics are asked for",
                histogram: "asked_frame_ns",
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
        topology: None,
    },
    setting: Setting::Usual,
    takes,
    seconds: |point| 0.5 + 2.0 * point.number("milliseconds") as f64 / 1e3,
    measure: |point, station, tools| {
        on_device(point, station, tools, |point, rig| {
            measure(point, rig, of_all())
        })
    },
};

/// OFLOPS' own numbers.
const RULES: Parameter = Parameter::axis(
    "rules",
    "rules that there are",
    Values::Numbers {
        quick: &[256],
        paper: &[1, 8, 64, 256, 512, 1_024],
        rfc: &[1, 8, 64, 256, 512, 1_024, 10_000, 100_000],
        bound: Bound {
            least: 1,
            most: 1_000_000,
        },
    },
);
const PERIOD: Parameter = Parameter::axis(
    "period-ms",
    "milliseconds from one question to the next",
    Values::Numbers {
        quick: &[20],
        paper: &[1_000, 250, 20],
        rfc: &[4_000, 1_000, 500, 250],
        bound: Bound {
            least: 1,
            most: 60_000,
        },
    },
);
const MILLISECONDS: Parameter = Parameter::constant(
    "milliseconds",
    "milliseconds of either half",
    Values::Numbers {
        quick: &[250],
        paper: &[5_000],
        rfc: &[60_000],
        bound: Bound {
            least: 10,
            most: 600_000,
        },
    },
);

const FIGURES: &[Figure] = &[
    time("answer_mean_us", "Answer, mean", "µs"),
    time("answer_p50_us", "Answer, median", "µs"),
    time("answer_p99_us", "Answer, 99 %", "µs"),
    time("answer_max_us", "Answer, longest", "µs"),
    plain("answer_bytes", "Bytes of an answer", "bytes"),
    bad("unanswered", "Without an answer"),
    time("quiet_frame_mean_us", "Frame, nothing asked, mean", "µs"),
    time("quiet_frame_p50_us", "Frame, nothing asked, median", "µs"),
    time("quiet_frame_p99_us", "Frame, nothing asked, 99 %", "µs"),
    time("quiet_frame_max_us", "Frame, nothing asked, longest", "µs"),
    time("asked_frame_mean_us", "Frame, asked, mean", "µs"),
    time("asked_frame_p50_us", "Frame, asked, median", "µs"),
    time("asked_frame_p99_us", "Frame, asked, 99 %", "µs"),
    time("asked_frame_max_us", "Frame, asked, longest", "µs"),
    bad("quiet_lost", "Lost, nothing asked"),
    bad("asked_lost", "Lost, asked"),
];

/// The question for each flow.
pub(super) fn of_each() -> Message {
    let all = FlowStatsRequest::all();
    Message::MultipartRequest(MultipartRequest::Flow(FlowFormat::Standard, all))
}

/// The question for the sums over all.
pub(super) fn of_all() -> Message {
    let all = FlowStatsRequest::all();
    Message::MultipartRequest(MultipartRequest::Aggregate(FlowFormat::Standard, all))
}

fn measure(point: &Point, rig: &mut dyn Rig, question: Message) -> Result<Found, TrialError> {
    let flows = Flows::of(rig.version());
    let rules = point.small("rules");
    let added = (0..rules).map(|flow| flows.message(FlowModCommand::Add, flow, None));
    let messages = [delete_all(), drop_rest()].into_iter().chain(added);
    let mut found = Found::at(point);
    if let Some(reason) = settle(rig, messages.collect())?.first_refusal() {
        lack_all(&mut found.reading, FIGURES, &reason);
        return Ok(found);
    }
    let half = Duration::from_millis(point.number("milliseconds"));
    let period = Duration::from_millis(point.number("period-ms"));
    let most = (half.as_nanos() / period.as_nanos().max(1)).max(1);
    let mut traffic = Traffic::new(rules, point.number("pps"), rig.now());
    if let Some(unsettled) = traffic.settle(rig, Some(0))? {
        unsettled.tell(&mut found);
    }
    let start = rig.now();
    let (middle, end) = (start + half, start + half * 2);
    let most = u64::try_from(most).expect("there are few milliseconds");
    let mut poll = Poll::new(question, period, most, middle);
    let delays = run(rig, &mut traffic, &mut poll, [middle, end])?;
    tell(&mut found, &traffic, &poll, delays, [start, middle, end]);
    Ok(found)
}

/// Sends and asks, and tells the frames' delays in either half.
fn run(
    rig: &mut dyn Rig,
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
        if now >= end && (poll.open() == 0 || now >= end + PATIENCE) {
            break;
        }
        traffic.turn(rig)?;
        if now >= middle && now < end {
            poll.turn(rig)?;
        }
        let mut few = Few::default();
        while let Some(told) = few.hear(rig)? {
            poll.hear(&told, rig);
        }
        traffic.catch(rig, |seen| {
            delays[usize::from(seen.sent >= middle)].push(ns(seen.came.since(seen.sent)));
        })?;
    }
    traffic.drain(rig, |seen| {
        delays[usize::from(seen.sent >= middle)].push(ns(seen.came.since(seen.sent)));
    })?;
    Ok(delays)
}

fn tell(
    found: &mut Found,
    traffic: &Traffic,
    poll: &Poll,
    [quiet, asked]: [Vec<u64>; 2],
    [start, middle, end]: [Instant; 3],
) {
    let reading = &mut found.reading;
    let otherwise = poll.refused().unwrap_or("no question was answered");
    let names = [
        "answer_mean_us",
        "answer_p50_us",
        "answer_p99_us",
        "answer_max_us",
    ];
    put_times(reading, names, "answer_ns", poll.answers_ns(), otherwise);
    match poll.answers_ns().len() {
        0 => reading.lack("answer_bytes", otherwise),
        count => reading.put("answer_bytes", poll.bytes() as f64 / count as f64),
    }
    reading.put("unanswered", poll.open() as f64);
    for (what, delays) in [("quiet", quiet), ("asked", asked)] {
        let named = ["mean", "p50", "p99", "max"].map(|name| format!("{what}_frame_{name}_us"));
        let named = named.each_ref().map(String::as_str);
        let histogram = format!("{what}_frame_ns");
        put_times(reading, named, &histogram, &delays, "no frame came out");
    }
    reading.put("quiet_lost", traffic.lost_between(start, middle) as f64);
    reading.put(
        "asked_lost",
        traffic.lost_between(middle, end + PATIENCE) as f64,
    );
    found.notes.extend(traffic.shortfall());
    if traffic.received() == 0 {
        found
            .void
            .push("no frame came out: the rules were not in force".to_owned());
    }
    if poll.withheld() > 0 {
        let count = poll.withheld();
        found.notes.push(format!(
            "{count} questions were not asked: the device did not read"
        ));
    }
    if let Some(flows) = poll.flows() {
        let wanted = reading.point.number("rules") + 1;
        if u64::from(flows) != wanted {
            found.void.push(format!(
                "{wanted} rules should be there, and {flows} were told of"
            ));
        }
    }
}

#[cfg(test)]
mod tests;

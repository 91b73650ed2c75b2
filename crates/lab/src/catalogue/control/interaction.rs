//! Delay of rule changes by statistics requests.

use std::time::Duration;

use flow::FlowModCommand;

use super::changes::{self, RULES, RuleUpdate};
use super::figures::{bad, plain, time};
use super::flows::{FlowRules, delete_all, drop_rest};
use super::poll::Poll;
use super::rig::{ControlRig, send_batch};
use super::statistics::{aggregate_stats_request, flow_stats_request};
use super::{PPS, TrialReport, VERSION, add_flow, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "interaction".
pub(crate) const INTERACTION: Experiment = Experiment {
    description: Description {
        name: "interaction",
        title: "Interaction of statistics and flow insertion",
        family: Family::Oflops,
        question: "Are rules active later if statistics are requested meanwhile?",
        source: "OFLOPS, module openflow_interaction_test",
        steps: &[
            "The table has other rules, which no frame matches; statistics are requested at a fixed interval, or not at all.",
            "Meanwhile rules are added under traffic, as in the experiment add-flow.",
        ],
        parameters: &[
            Parameter::axis(
                "polling",
                "statistics that are requested meanwhile",
                Values::words(&["none", "flow"], &["none", "aggregate", "flow"]),
            ),
            RULES_ADDED,
            Parameter::constant(
                "others",
                "other rules in the table",
                Values::numbers(&[1_000], &[1_000], &[10_000], [0, 1_000_000]),
            ),
            Parameter::constant(
                "period-ms",
                "milliseconds between two requests",
                Values::numbers(&[5], &[10], &[10], [1, 60_000]),
            ),
            VERSION,
            PPS,
        ],
        figures: FIGURES,
        views: &[
            View::Ratio {
                title: "Time until the last rule is active: with flow statistics, relative to none",
                figure: "last_ms",
                parameter: "polling",
                of: "flow",
                to: "none",
                published: "",
            },
            View::Bars {
                title: "Time until the last rule is active",
                figure: "last_ms",
                across: "polling",
            },
            View::Shares {
                title: "Time from a message to its effect",
                values: "effect_ns",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "first_ms",
                    "last_ms",
                    "barrier_ms",
                    "effect_p50_us",
                    "effect_p99_us",
                    "late",
                    "answers",
                    "answer_max_ms",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| add_flow::seconds(point) + point.number("others") as f64 * 30e-6,
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

/// Number of rules that are added: fewer values than in "add-flow".
const RULES_ADDED: Parameter = Parameter {
    values: Values::numbers(&[100], &[10, 100, 1_000], &[10, 100, 1_000], [1, 50_000]),
    ..RULES
};

const FIGURES: &[Figure] = &[
    changes::FIGURES[0],
    changes::FIGURES[1],
    changes::FIGURES[2],
    changes::FIGURES[3],
    changes::FIGURES[4],
    changes::FIGURES[5],
    changes::FIGURES[6],
    changes::FIGURES[7],
    changes::FIGURES[8],
    changes::FIGURES[9],
    changes::FIGURES[10],
    plain("answers", "Responses meanwhile", ""),
    time("answer_max_ms", "Longest response", "ms"),
    bad("unanswered", "Requests without a response"),
];

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let flows = FlowRules::of(rig.version());
    let (rules, others) = (point.small("rules"), point.small("others"));
    let mut report = TrialReport::at(point);
    let resident = (rules..rules + others).map(|n| flows.message(FlowModCommand::Add, n, None));
    let messages = [delete_all(), drop_rest()].into_iter().chain(resident);
    if let Some(reason) = send_batch(rig, messages.collect())?.first_refusal() {
        super::figures::lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let request = match point.word("polling") {
        "none" => None,
        "aggregate" => Some(aggregate_stats_request()),
        _ => Some(flow_stats_request()),
    };
    let period = Duration::from_millis(point.number("period-ms"));
    let now = rig.now();
    let add = |flow| flows.message(FlowModCommand::Add, flow, None);
    let update = RuleUpdate {
        messages: (0..rules).map(add).collect(),
        mark: None,
        pps: point.number("pps"),
        poll: request.map(|request| Poll::new(request, period, u64::MAX, now)),
    };
    let effects = changes::update(rig, update)?;
    let late = match effects.outcome.refused.is_empty() {
        true => effects.lost_late,
        false => 0,
    };
    effects.put_figures(late, &mut report.reading);
    let reading = &mut report.reading;
    match &effects.poll {
        None => ["answers", "answer_max_ms", "unanswered"]
            .iter()
            .for_each(|name| reading.lack(name, "no statistics were requested")),
        Some(poll) => {
            let answers = poll.answers_ns();
            reading.put("answers", answers.len() as f64);
            reading.put("unanswered", poll.open() as f64);
            match answers.iter().max() {
                Some(longest) => reading.put("answer_max_ms", *longest as f64 / 1e6),
                None => reading.lack(
                    "answer_max_ms",
                    poll.refused().unwrap_or("no request was answered"),
                ),
            }
        }
    }
    effects.add_flaws(&mut report);
    Ok(report)
}

#[cfg(test)]
mod tests;

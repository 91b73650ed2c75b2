//! Rate of rule changes, by the number of rules in the table and by their priorities.

use std::time::Duration;

use base::SplitMix64;
use flow::{FlowModCommand, SwitchConfig};
use openflow::Message;

use super::figures::{bad, lack_all, ms, ns, plain, put_times, rate, time};
use super::flows::{FlowRules, MARKS, TABLE, delete_all, drop_rest};
use super::poll::Poll;
use super::rig::{ControlRig, send_batch};
use super::statistics::aggregate_stats_request;
use super::{TrialReport, VERSION, control_echo, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "update-rate".
pub(crate) const UPDATE_RATE: Experiment = Experiment {
    description: Description {
        name: "update-rate",
        title: "Flow table update rate",
        family: Family::Oflops,
        question: "How many rules per second can be added, modified or deleted, by occupancy of the table and by priorities?",
        source: "Kuzniar, Peresini and Kostic, PAM 2015; Computer Networks 2018",
        steps: &[
            "The table has as many rules as the occupancy, with priorities in the given order.",
            "Batches of rules are added, modified or deleted, each followed by a barrier request, with one batch outstanding at a time.",
            "The rate is that of all batches, from the transmission of the first message to the last barrier reply.",
            "Finally the aggregate statistics are requested: if the number of rules is wrong, the trial is void.",
        ],
        parameters: &[
            Parameter::axis(
                "operation",
                "operation: add, modify or delete",
                Values::words(&["add", "modify"], &["add", "modify", "delete"]),
            ),
            Parameter::axis(
                "occupancy",
                "rules in the table",
                Values::numbers(
                    &[1_000],
                    &[0, 100, 1_000, 10_000],
                    &[0, 100, 1_000, 10_000, 100_000],
                    [0, 1_000_000],
                ),
            ),
            Parameter::axis(
                "priorities",
                "order of the priorities of consecutive rules",
                Values::words(&["same"], &["same", "ascending", "descending", "random"]),
            ),
            Parameter::constant(
                "batches",
                "batches per trial",
                Values::numbers(&[20], &[100], &[100], [1, 10_000]),
            ),
            Parameter::constant(
                "batch",
                "rules per batch",
                Values::numbers(&[50], &[100], &[100], [1, 10_000]),
            ),
            TABLE,
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Changes per second by occupancy",
                figure: "changes_s",
                along: "occupancy",
                log: false,
            },
            View::Bars {
                title: "Changes per second by operation",
                figure: "changes_s",
                across: "operation",
            },
            View::Percentiles {
                title: "A batch",
                values: "batch_ns",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "changes_s",
                    "batch_p50_us",
                    "batch_p99_us",
                    "batch_max_us",
                    "fill_ms",
                    "refused",
                    "told",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| {
        let changes = point.number("batches") * point.number("batch");
        0.3 + (changes + 2 * point.number("occupancy")) as f64 * 40e-6
    },
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    rate("changes_s", "Changes per second", "/s"),
    time("batch_mean_us", "Batch, mean", "µs"),
    time("batch_p50_us", "Batch, median", "µs"),
    time("batch_p99_us", "Batch, 99 %", "µs"),
    time("batch_max_us", "Batch, maximum", "µs"),
    time("fill_ms", "Time to fill the table", "ms"),
    bad("refused", "Rejected changes"),
    plain("told", "Rules listed finally", ""),
];

/// Number of different priorities.
const PRIORITIES: u16 = 20_000;

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let flows = FlowRules::new(rig.version(), point);
    let (batches, batch) = (point.small("batches"), point.small("batch"));
    let occupancy = point.small("occupancy");
    let mut report = TrialReport::at(point);
    let operation = point.word("operation");
    // Modifications and deletions need a rule each, even if the occupancy is less.
    let resident = match operation {
        "add" => occupancy,
        _ => occupancy.max(batches * batch),
    };
    let flow_mod = |command, flow, mark| prioritised(flows, point, command, flow, mark);
    let rules = (0..resident).map(|flow| flow_mod(FlowModCommand::Add, flow, None));
    let config = Message::SetConfig(SwitchConfig::default());
    let messages = [config, delete_all(), drop_rest()].into_iter().chain(rules);
    let filled = send_batch(rig, messages.collect())?;
    if let Some(reason) = filled.first_refusal() {
        lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let (mut times, mut refused, mut first) = (Vec::new(), 0_usize, None);
    for number in 0..batches {
        let indices = number * batch..(number + 1) * batch;
        let messages = indices.map(|index| match operation {
            "add" => flow_mod(FlowModCommand::Add, resident + index, None),
            "modify" => flow_mod(FlowModCommand::ModifyStrict, index, Some(MARKS[0])),
            _ => flow_mod(FlowModCommand::DeleteStrict, index, None),
        });
        let outcome = send_batch(rig, messages.collect())?;
        times.push(ns(outcome.answered.since(outcome.began)));
        refused += outcome.refused.len();
        first = first.or_else(|| outcome.first_refusal());
    }
    let changes = u64::from(batches * batch) - refused as u64;
    let expected = match operation {
        "add" => u64::from(resident) + changes,
        "modify" => resident.into(),
        _ => u64::from(resident) - changes,
    };
    let reading = &mut report.reading;
    reading.put("fill_ms", ms(filled.answered.since(filled.began)));
    reading.put("refused", refused as f64);
    let seconds = times.iter().sum::<u64>() as f64 / 1e9;
    match changes {
        0 => reading.lack("changes_s", first.clone().unwrap_or_default()),
        _ => reading.put("changes_s", changes as f64 / seconds),
    }
    let names = [
        "batch_mean_us",
        "batch_p50_us",
        "batch_p99_us",
        "batch_max_us",
    ];
    put_times(reading, names, "batch_ns", &times, "there was no batch");
    report.notes.extend(first);
    // The rule that drops other frames counts too.
    count(rig, &mut report, expected + 1)?;
    Ok(report)
}

/// Compares the number of rules that the device reports with the expected one.
fn count(
    rig: &mut dyn ControlRig,
    report: &mut TrialReport,
    expected: u64,
) -> Result<(), TrialError> {
    let mut poll = Poll::new(aggregate_stats_request(), Duration::ZERO, 1, rig.now());
    control_echo::poll_until_done(rig, &mut poll)?;
    match poll.flows() {
        Some(listed) => {
            report.reading.put("told", listed.into());
            if u64::from(listed) != expected {
                let why = format!("the device reports {listed} rules instead of {expected}");
                report.void.push(why);
            }
        }
        None => {
            let reason = poll.refused().unwrap_or("the device did not reply");
            report.reading.lack("told", reason);
        }
    }
    Ok(())
}

/// Returns a flow-mod for this flow, with a priority by its index.
fn prioritised(
    flows: FlowRules,
    point: &Point,
    command: FlowModCommand,
    flow: u32,
    mark: Option<u8>,
) -> Message {
    let mut rule = flows.rule(command, flow, mark);
    let index = u16::try_from(flow % u32::from(PRIORITIES)).expect("it is below the bound");
    let priority = match point.word("priorities") {
        "ascending" => 2 + index,
        "descending" => 2 + PRIORITIES - index,
        "random" => {
            let drawn = SplitMix64::new(flow.into()).next_u64() % u64::from(PRIORITIES);
            2 + u16::try_from(drawn).expect("it is below the bound")
        }
        _ => rule.priority,
    };
    // In OpenFlow 1.0, rules without wildcards always have the highest priority.
    if rule.priority != u16::MAX {
        rule.priority = priority;
    }
    Message::FlowMod(rule)
}

#[cfg(test)]
mod tests;

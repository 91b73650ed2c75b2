//! Rules that expire by a timeout.

use std::time::Duration;

use base::{Cookie, Instant};
use flow::{FlowFlags, FlowModCommand, SwitchConfig};
use openflow::Message;

use super::figures::{bad, lack_all, ms, time};
use super::flows::{FlowRules, delete_all, drop_rest};
use super::rig::{ControlRig, LimitedInbox, MessageBatch, SwitchMessage};
use super::traffic::Traffic;
use super::{TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "timers".
pub(crate) const TIMERS: Experiment = Experiment {
    description: Description {
        name: "timers",
        title: "Accuracy of flow timeouts",
        family: Family::Oflops,
        question: "How accurately do rules expire after their timeout?",
        source: "OFLOPS, module openflow_timer",
        steps: &[
            "Rules are added with a timeout and the flag SEND_FLOW_REM; frames of all flows are sent in turn.",
            "With a hard timeout, frames are sent until the rule has expired: its lifetime is that from its first to its last forwarded frame.",
            "With an idle timeout, frames stop after half a second: the time runs from the last frame to the flow-removed message.",
            "The duration in the flow-removed message is compared with the time from the transmission of the rule to that message.",
        ],
        parameters: &[
            Parameter::axis(
                "timeout",
                "type of the timeout: hard or idle",
                Values::words(&["hard", "idle"], &["hard", "idle"]),
            ),
            Parameter::axis(
                "seconds",
                "timeout in seconds",
                Values::numbers(&[1], &[1, 10], &[1, 10, 60], [1, 600]),
            ),
            Parameter::constant(
                "rules",
                "rules per trial",
                Values::numbers(&[10], &[100], &[1_000], [1, 10_000]),
            ),
            Parameter::constant(
                "pps",
                "frames per second of all flows",
                Values::numbers(&[10_000], &[20_000], &[20_000], [10, 1_000_000]),
            ),
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Lateness of the timeout, mean",
                figure: "late_mean_ms",
                across: "timeout",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "late_mean_ms",
                    "late_max_ms",
                    "early_max_ms",
                    "told_mean_ms",
                    "duration_error_ms",
                    "untold",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| 1.5 + point.number("seconds") as f64 + LATE_MAX.as_secs_f64() / 2.0,
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    time("late_mean_ms", "Lateness, mean", "ms"),
    time("late_max_ms", "Latest", "ms"),
    time("early_max_ms", "Earliest", "ms"),
    time("told_mean_ms", "Flow-removed after the end, mean", "ms"),
    time("duration_error_ms", "Error of the reported duration", "ms"),
    bad("untold", "Rules without flow-removed"),
];

/// Time limit for a flow-removed message, from the nominal end of its rule.
const LATE_MAX: Duration = Duration::from_secs(3);

/// Time for which frames are sent before an idle timeout begins.
const BUSY: Duration = Duration::from_millis(500);

/// Observations of a rule with a timeout.
#[derive(Clone, Copy, Default)]
struct TimedRule {
    written: Option<Instant>,
    first: Option<Instant>,
    last: Option<Instant>,
    removed_at: Option<Instant>,
    duration: Duration,
}

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let flows = FlowRules::of(rig.version());
    let (count, seconds) = (point.small("rules"), point.number("seconds"));
    let is_hard = point.word("timeout") == "hard";
    let mut report = TrialReport::at(point);
    // Some devices send flow-removed messages only to a controller that accepts packet-ins.
    let config = SwitchConfig {
        miss_send_len: u16::MAX,
        ..SwitchConfig::default()
    };
    let mut messages = vec![delete_all(), Message::SetConfig(config), drop_rest()];
    let before = messages.len();
    messages.extend((0..count).map(|flow| rule(flows, flow, is_hard, seconds)));
    let start = rig.now();
    let mut batch = MessageBatch::new(messages, start);
    let mut traffic = Traffic::new(count, point.number("pps"), start);
    let mut rules = vec![TimedRule::default(); count as usize];
    let nominal = Duration::from_secs(seconds);
    let mut busy_until = start + nominal + LATE_MAX;
    loop {
        let now = rig.now();
        batch.turn(rig)?;
        if batch
            .answered()
            .is_some_and(|answered| !is_hard && now > answered + BUSY)
        {
            busy_until = busy_until.min(now);
        }
        if now >= busy_until {
            traffic.stop();
        }
        traffic.turn(rig)?;
        let mut inbox = LimitedInbox::default();
        while let Some(message) = inbox.receive(rig)? {
            if !batch.process(&message, rig.version()) {
                note_end(&message, &mut rules);
            }
        }
        traffic.receive_frames(rig, |arrival| {
            let rule = &mut rules[arrival.flow as usize];
            rule.first.get_or_insert(arrival.received);
            rule.last = Some(arrival.received);
        })?;
        let all_removed = rules.iter().all(|rule| rule.removed_at.is_some());
        let limit = busy_until + LATE_MAX + if is_hard { Duration::ZERO } else { nominal };
        if batch.answered().is_some() && (all_removed || now > limit) {
            break;
        }
    }
    for (index, rule) in rules.iter_mut().enumerate() {
        let xid = batch.xid(before + index);
        rule.written = xid.and_then(|xid| rig.written_at(xid));
    }
    traffic.drain(rig, |_| {})?;
    let refusal = batch.outcome().and_then(|outcome| outcome.first_refusal());
    match refusal {
        Some(reason) => lack_all(&mut report.reading, FIGURES, &reason),
        None => put_figures(&mut report, &rules, nominal, is_hard),
    }
    report.notes.extend(traffic.shortfall());
    Ok(report)
}

fn rule(flows: FlowRules, flow: u32, is_hard: bool, seconds: u64) -> Message {
    let mut rule = flows.rule(FlowModCommand::Add, flow, None);
    let seconds = u16::try_from(seconds).expect("the parameter is bounded");
    match is_hard {
        true => rule.hard_timeout_s = seconds,
        false => rule.idle_timeout_s = seconds,
    }
    rule.cookie = Cookie(flow.into());
    rule.flags = rule.flags.with(FlowFlags::SEND_FLOW_REMOVED);
    Message::FlowMod(rule)
}

fn note_end(message: &SwitchMessage, rules: &mut [TimedRule]) {
    let Some(Message::FlowRemoved(removed)) = &message.body else {
        return;
    };
    let index = usize::try_from(removed.cookie.0).ok();
    if let Some(rule) = index.and_then(|index| rules.get_mut(index)) {
        rule.removed_at = Some(message.at);
        rule.duration = removed.duration;
    }
}

fn put_figures(report: &mut TrialReport, rules: &[TimedRule], nominal: Duration, is_hard: bool) {
    let reading = &mut report.reading;
    let unreported = rules
        .iter()
        .filter(|rule| rule.removed_at.is_none())
        .count();
    reading.put("untold", unreported as f64);
    // With a hard timeout, a rule is active from its first frame to its last. With an idle timeout,
    // the flow-removed message follows the last frame by the timeout.
    let lifetimes = rules.iter().filter_map(|rule| match is_hard {
        true => Some(rule.last?.since(rule.first?)),
        false => Some(rule.removed_at?.since(rule.last?)),
    });
    let errors: Vec<f64> = lifetimes
        .map(|lifetime| ms(lifetime) - ms(nominal))
        .collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if errors.is_empty() {
        for name in ["late_mean_ms", "late_max_ms", "early_max_ms"] {
            reading.lack(name, "no rule ended");
        }
    } else {
        reading.put("late_mean_ms", mean(&errors));
        let most = errors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
        reading.put("late_max_ms", most);
        reading.put("early_max_ms", -least);
    }
    let delays: Vec<f64> = rules
        .iter()
        .filter_map(|rule| Some(ms(rule.removed_at?.since(rule.last?))))
        .collect();
    let lifetimes: Vec<f64> = rules
        .iter()
        .filter_map(|rule| {
            let lifetime = rule.removed_at?.since(rule.written?);
            Some((ms(rule.duration) - ms(lifetime)).abs())
        })
        .collect();
    for (name, values) in [("told_mean_ms", &delays), ("duration_error_ms", &lifetimes)] {
        match values.is_empty() {
            true => reading.lack(name, "no flow-removed message arrived"),
            false => reading.put(name, mean(values)),
        }
    }
}

#[cfg(test)]
mod tests;

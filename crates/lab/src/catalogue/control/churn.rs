//! Forwarding while rules that no frame matches are added and deleted.

use std::time::Duration;

use base::Instant;
use flow::FlowModCommand;
use openflow::Message;

use super::figures::{bad, lack_all, ms, ns, plain, put_times, rate, time};
use super::flows::{FlowRules, delete_all, drop_rest};
use super::rig::{ControlRig, LimitedInbox, send_batch};
use super::traffic::{FrameArrival, Traffic};
use super::{TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "churn".
pub(crate) const CHURN: Experiment = Experiment {
    description: Description {
        name: "churn",
        title: "Forwarding during flow table updates",
        family: Family::Robustness,
        question: "Are frames lost or delayed while other rules are added and deleted?",
        source: "RFC 8204, CPDPCoupling",
        steps: &[
            "The table has the given number of rules; frames of 64 bytes match some of them in turn.",
            "When all frames are forwarded, the first half of the trial has no changes.",
            "In the second half, at the same load, rules that no frame matches are deleted, the oldest first, and as many others added, at equal gaps: the rate is the sum of both.",
            "If the device does not read, messages are withheld and counted; a final barrier shows the backlog of the device.",
        ],
        parameters: &[
            Parameter::axis(
                "rate",
                "rules per second that are added or deleted",
                Values::numbers(
                    &[10_000],
                    &[0, 1, 100, 1_000, 10_000],
                    &[0, 1, 100, 1_000, 10_000],
                    [0, 1_000_000],
                ),
            ),
            Parameter::axis(
                "resident",
                "rules in the table",
                Values::numbers(
                    &[1_000],
                    &[10, 1_000, 100_000],
                    &[10, 1_000, 100_000],
                    [1, 1_000_000],
                ),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[50_000], &[50_000], &[50_000], [100, 1_000_000]),
            ),
            Parameter::constant(
                "milliseconds",
                "duration of each half in milliseconds",
                Values::numbers(&[150], &[5_000], &[30_000], [10, 40_000]),
            ),
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Lost frames by rules per second",
                figure: "lost_percent",
                along: "rate",
                log: false,
            },
            View::Lines {
                title: "99 % delay by rules per second",
                figure: "p99_us",
                along: "rate",
                log: true,
            },
            View::Lines {
                title: "Median delay by rules per second, relative to before",
                figure: "delay_ratio",
                along: "rate",
                log: true,
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "received_kpps",
                    "lost_percent",
                    "quiet_lost_percent",
                    "delay_ratio",
                    "quiet_p50_us",
                    "p50_us",
                    "p99_us",
                    "max_us",
                    "changes_s",
                    "withheld",
                    "refused",
                    "behind_ms",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| {
        let rules = point.number("resident") as f64;
        0.4 + 2.0 * point.number("milliseconds") as f64 / 1e3 + rules * 30e-6
    },
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    rate("received_kpps", "Received", "kpps"),
    time("lost_percent", "Lost", "%"),
    time("quiet_lost_percent", "Before: lost", "%"),
    time("delay_ratio", "Median relative to before", ""),
    time("quiet_mean_us", "Before: mean", "µs"),
    time("quiet_p50_us", "Before: median", "µs"),
    time("quiet_p99_us", "Before: 99 %", "µs"),
    time("quiet_max_us", "Before: maximum", "µs"),
    time("mean_us", "Mean", "µs"),
    time("p50_us", "Median", "µs"),
    time("p99_us", "99 %", "µs"),
    time("max_us", "Maximum", "µs"),
    plain("changes_s", "Rules per second", "/s"),
    bad("withheld", "Withheld messages"),
    bad("refused", "Rejected"),
    time("behind_ms", "Final barrier", "ms"),
];

/// Number of flows of the frames.
const FLOWS: u32 = 16;

/// Greatest number of flow-mods in one turn, so that they do not delay the frames.
const SENT_PER_TURN: u64 = 4;

/// Additions and deletions of rules that no frame matches.
struct RuleChurn {
    flows: FlowRules,
    resident: u32,
    rate: u64,
    began: Instant,
    due: u64,
    sent: u64,
    withheld: u64,
    refused: u64,
}

impl RuleChurn {
    const fn new(rate: u64, resident: u32, flows: FlowRules, began: Instant) -> Self {
        Self {
            flows,
            resident,
            rate,
            began,
            due: 0,
            sent: 0,
            withheld: 0,
            refused: 0,
        }
    }

    /// Returns the next flow-mod: deletions of the oldest rule and additions of a new one
    /// alternate.
    fn next(&self) -> Message {
        let pair = u32::try_from(self.sent / 2).unwrap_or(u32::MAX);
        let oldest = FLOWS.wrapping_add(pair);
        match self.sent % 2 {
            0 => self
                .flows
                .message(FlowModCommand::DeleteStrict, oldest, None),
            _ => {
                let newest = oldest.wrapping_add(self.resident);
                self.flows.message(FlowModCommand::Add, newest, None)
            }
        }
    }

    /// Sends a few of the flow-mods that are due.
    fn turn(&mut self, rig: &mut dyn ControlRig) -> Result<(), TrialError> {
        let since = rig.now().since(self.began).as_nanos();
        let due = since * u128::from(self.rate) / 1_000_000_000;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        let mut any = false;
        for _ in 0..SENT_PER_TURN.min(due.saturating_sub(self.due)) {
            self.due += 1;
            if rig.has_room() {
                rig.queue(&self.next())?;
                self.sent += 1;
                any = true;
            } else {
                self.withheld += 1;
            }
        }
        match any {
            true => rig.flush(),
            false => Ok(()),
        }
    }
}

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let mut report = TrialReport::at(point);
    let flows = FlowRules::of(rig.version());
    let resident = point.small("resident");
    let add = |flow| flows.message(FlowModCommand::Add, flow, None);
    let rules = (0..FLOWS + resident).map(add);
    let rules = [delete_all(), drop_rest()].into_iter().chain(rules);
    if let Some(reason) = send_batch(rig, rules.collect())?.first_refusal() {
        lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let mut traffic = Traffic::new(FLOWS, point.number("pps"), rig.now());
    if let Some(stale) = traffic.settle(rig, Some(0))? {
        stale.add_to(&mut report);
    }
    let length = Duration::from_millis(point.number("milliseconds"));
    let mut idle = RuleChurn::new(0, resident, flows, rig.now());
    let mut quiet = Phase::run(rig, &mut traffic, &mut idle, length, None)?;
    let mut churn = RuleChurn::new(point.number("rate"), resident, flows, rig.now());
    let before = Some(&mut quiet);
    let mut loaded = Phase::run(rig, &mut traffic, &mut churn, length, before)?;
    // The reply to a final barrier shows when the device has processed all flow-mods.
    let barrier = match send_batch(rig, Vec::new()) {
        Err(TrialError::Impossible(reason)) => Err(reason),
        outcome => Ok(outcome?),
    };
    traffic.drain(rig, |arrival| loaded.record(&arrival))?;
    put_figures(&mut report.reading, [&quiet, &loaded], &churn, &traffic);
    let reading = &mut report.reading;
    match barrier {
        Ok(barrier) => reading.put(
            "behind_ms",
            ms(barrier.answered.since(barrier.barrier_sent)),
        ),
        Err(reason) => reading.lack("behind_ms", reason),
    }
    report.notes.extend(traffic.shortfall());
    Ok(report)
}

/// Frames of one half of a trial.
struct Phase {
    began: Instant,
    end: Instant,
    sent: u64,
    delays_ns: Vec<u64>,
}

impl Phase {
    /// Sends frames and flow-mods for this time. Frames of the phase `before` may still arrive.
    fn run(
        rig: &mut dyn ControlRig,
        traffic: &mut Traffic,
        churn: &mut RuleChurn,
        length: Duration,
        mut before: Option<&mut Self>,
    ) -> Result<Self, TrialError> {
        let (began, sent_before) = (rig.now(), traffic.sent());
        let mut phase = Self {
            began,
            end: began + length,
            sent: 0,
            delays_ns: Vec::new(),
        };
        while rig.now() < phase.end {
            traffic.turn(rig)?;
            churn.turn(rig)?;
            let mut inbox = LimitedInbox::default();
            while let Some(message) = inbox.receive(rig)? {
                churn.refused += u64::from(message.refusal(rig.version()).is_some());
            }
            traffic.receive_frames(rig, |arrival| {
                phase.record(&arrival);
                if let Some(before) = &mut before {
                    before.record(&arrival);
                }
            })?;
        }
        phase.end = rig.now();
        phase.sent = traffic.sent() - sent_before;
        Ok(phase)
    }

    /// Records a frame if it was sent in this phase.
    fn record(&mut self, arrival: &FrameArrival) {
        if arrival.sent >= self.began && arrival.sent < self.end {
            self.delays_ns
                .push(ns(arrival.received.since(arrival.sent)));
        }
    }

    /// Returns the percentage of the phase's frames that have not arrived yet.
    fn lost_percent(&self, traffic: &Traffic) -> f64 {
        let lost = traffic.lost_between(self.began, self.end);
        lost as f64 / self.sent.max(1) as f64 * 100.0
    }
}

fn put_figures(
    reading: &mut Reading,
    [quiet, loaded]: [&Phase; 2],
    churn: &RuleChurn,
    traffic: &Traffic,
) {
    let names = [
        "quiet_mean_us",
        "quiet_p50_us",
        "quiet_p99_us",
        "quiet_max_us",
    ];
    let no_frame = "no frame arrived";
    put_times(reading, names, "quiet_delay_ns", &quiet.delays_ns, no_frame);
    let names = ["mean_us", "p50_us", "p99_us", "max_us"];
    put_times(reading, names, "delay_ns", &loaded.delays_ns, no_frame);
    let pair = ["p50_us", "quiet_p50_us"].map(|name| reading.figures.get(name).copied());
    match pair {
        [Some(loaded), Some(quiet)] if quiet > 0.0 => reading.put("delay_ratio", loaded / quiet),
        _ => reading.lack("delay_ratio", no_frame),
    }
    let seconds = loaded.end.since(loaded.began).as_secs_f64();
    let lost = loaded.lost_percent(traffic);
    let received = loaded.sent as f64 * (1.0 - lost / 100.0);
    reading.put("received_kpps", received / seconds / 1e3);
    reading.put("lost_percent", lost);
    reading.put("quiet_lost_percent", quiet.lost_percent(traffic));
    reading.put("changes_s", churn.sent as f64 / seconds);
    reading.put("withheld", churn.withheld as f64);
    reading.put("refused", churn.refused as f64);
}

#[cfg(test)]
mod tests;

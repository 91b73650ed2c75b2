//! Test of barrier replies: a device must not reply before all earlier changes are in force.

use std::time::Duration;

use base::Instant;
use flow::FlowModCommand;

use super::figures::{bad, lack_all, ns, plain, put_times, time};
use super::flows::{FlowRules, MARKS, TABLE};
use super::rig::{BatchOutcome, ControlRig, LimitedInbox, MessageBatch, discard_messages};
use super::traffic::{FrameArrival, Traffic};
use super::{PPS, TrialReport, VERSION, add_flow, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "barrier-truth".
pub(crate) const BARRIER_TRUTH: Experiment = Experiment {
    description: Description {
        name: "barrier-truth",
        title: "Correctness of barrier replies",
        family: Family::Oflops,
        question: "Are rules active when a device sends the barrier reply?",
        source: "OFLOPS, section on flow-mods; Kuzniar, Peresini and Kostic, PAM 2015",
        steps: &[
            "Frames of several flows are sent in turn, and the rule of each flow sets one of two DSCPs.",
            "All rules are modified to set the other DSCP, followed by a barrier request; when the reply has arrived and all frames have the new DSCP, the next change follows after a random pause.",
            "The lag of a change is the time from the barrier reply until the last flow has its new rule; zero if that was earlier.",
            "A barrier reply is wrong if a frame that was sent after it is forwarded by an old rule.",
        ],
        parameters: &[
            Parameter::axis(
                "batch",
                "rules that are modified before a barrier",
                Values::numbers(&[1], &[1, 10, 100], &[1, 10, 100], [1, 1_000]),
            ),
            Parameter::constant(
                "changes",
                "changes per trial",
                Values::numbers(&[50], &[200], &[1_000], [1, 100_000]),
            ),
            TABLE,
            VERSION,
            PPS,
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Frames forwarded by an old rule after the barrier reply",
                figure: "late",
                across: "batch",
            },
            View::Shares {
                title: "Time from a change to its effect",
                values: "effect_ns",
            },
            View::Shares {
                title: "Time from a change to the barrier reply",
                values: "barrier_ns",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "convicted",
                    "late",
                    "barrier_p50_us",
                    "barrier_p99_us",
                    "effect_p50_us",
                    "effect_p99_us",
                    "lag_max_us",
                    "changes",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| {
        let batch = point.number("batch") as f64;
        let round = batch / point.number("pps") as f64;
        0.4 + point.number("changes") as f64 * (4e-3 + round + batch * 50e-6)
    },
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    bad("convicted", "Wrong barrier replies"),
    bad("late", "Frames by an old rule after the barrier reply"),
    time("barrier_mean_us", "Barrier, mean", "µs"),
    time("barrier_p50_us", "Barrier, median", "µs"),
    time("barrier_p99_us", "Barrier, 99 %", "µs"),
    time("barrier_max_us", "Barrier, maximum", "µs"),
    time("effect_mean_us", "Effect, mean", "µs"),
    time("effect_p50_us", "Effect, median", "µs"),
    time("effect_p99_us", "Effect, 99 %", "µs"),
    time("effect_max_us", "Effect, maximum", "µs"),
    time("lag_max_us", "Longest lag", "µs"),
    plain("changes", "Changes", ""),
];

/// Least pause between the effect of one change and the next change; the greatest is twice as long.
const PAUSE: Duration = Duration::from_millis(2);

/// Time limit for the effect of a change. The trial fails if no frame shows the change by then.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Effect of successive changes on the frames.
struct BarrierWatcher {
    /// The mark that the rules set after the current change.
    mark: u8,
    /// For each flow: true if a frame with the new mark has arrived.
    met: Vec<bool>,
    waiting: usize,
    last: Instant,
    answered: Option<Instant>,
    late: u64,
    has_stale_frames: bool,
}

impl BarrierWatcher {
    fn record(&mut self, arrival: FrameArrival) {
        let is_after = self
            .answered
            .is_some_and(|answered| arrival.sent > answered);
        if arrival.mark != self.mark {
            self.late += u64::from(is_after);
            self.has_stale_frames |= is_after;
            return;
        }
        let index = usize::try_from(arrival.flow).unwrap_or(usize::MAX);
        if let Some(met @ false) = self.met.get_mut(index) {
            *met = true;
            self.waiting -= 1;
            self.last = arrival.received;
        }
    }
}

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let flows = FlowRules::new(rig.version(), point);
    let (batch, changes) = (point.small("batch"), point.number("changes"));
    let mut report = TrialReport::at(point);
    if let Some(reason) = add_flow::prepare(rig, flows, batch)? {
        lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let mut random = base::SplitMix64::new(changes ^ u64::from(batch));
    let mut traffic = Traffic::new(batch, point.number("pps"), rig.now());
    if let Some(stale) = traffic.settle(rig, Some(MARKS[0]))? {
        stale.add_to(&mut report);
    }
    let mut watcher = BarrierWatcher {
        mark: MARKS[0],
        met: vec![true; batch as usize],
        waiting: 0,
        last: rig.now(),
        answered: None,
        late: 0,
        has_stale_frames: false,
    };
    let mut times = ChangeTimes::default();
    for number in 0..changes {
        let more = random.next_u64() % ns(PAUSE).max(1);
        let next = rig.now() + PAUSE + Duration::from_nanos(more);
        forward_until(rig, &mut traffic, &mut watcher, next)?;
        times.wrong += u64::from(std::mem::take(&mut watcher.has_stale_frames));
        let mark = MARKS[usize::from(number % 2 == 0)];
        let outcome = change_all(rig, flows, mark, &mut traffic, &mut watcher)?;
        if let Some(reason) = outcome.first_refusal() {
            lack_all(&mut report.reading, FIGURES, &reason);
            return Ok(report);
        }
        times.note(&outcome, watcher.last);
    }
    traffic.drain(rig, |arrival| watcher.record(arrival))?;
    times.wrong += u64::from(watcher.has_stale_frames);
    report.reading.put("late", watcher.late as f64);
    times.put_figures(&mut report);
    report.notes.extend(traffic.shortfall());
    Ok(report)
}

/// Durations of all changes.
#[derive(Default)]
struct ChangeTimes {
    barriers: Vec<u64>,
    effects: Vec<u64>,
    lag_ns_max: u64,
    wrong: u64,
}

impl ChangeTimes {
    /// Records a change. `met` is the time at which its last rule took effect.
    fn note(&mut self, outcome: &BatchOutcome, met: Instant) {
        self.barriers
            .push(ns(outcome.answered.since(outcome.began)));
        self.effects.push(ns(met.since(outcome.began)));
        self.lag_ns_max = self.lag_ns_max.max(ns(met.since(outcome.answered)));
    }

    fn put_figures(&self, report: &mut TrialReport) {
        let reading = &mut report.reading;
        reading.put("convicted", self.wrong as f64);
        reading.put("changes", self.barriers.len() as f64);
        reading.put("lag_max_us", self.lag_ns_max as f64 / 1e3);
        for (what, times) in [("barrier", &self.barriers), ("effect", &self.effects)] {
            let names = ["mean", "p50", "p99", "max"].map(|name| format!("{what}_{name}_us"));
            let names = names.each_ref().map(String::as_str);
            let histogram = format!("{what}_ns");
            put_times(reading, names, &histogram, times, "there was no change");
        }
    }
}

/// Sends and receives frames until the given time.
fn forward_until(
    rig: &mut dyn ControlRig,
    traffic: &mut Traffic,
    watcher: &mut BarrierWatcher,
    until: Instant,
) -> Result<(), TrialError> {
    while rig.now() < until {
        traffic.turn(rig)?;
        discard_messages(rig)?;
        traffic.receive_frames(rig, |arrival| watcher.record(arrival))?;
    }
    Ok(())
}

/// Modifies all rules once, and waits for the barrier reply and for the effect on every flow.
fn change_all(
    rig: &mut dyn ControlRig,
    flows: FlowRules,
    mark: u8,
    traffic: &mut Traffic,
    watcher: &mut BarrierWatcher,
) -> Result<BatchOutcome, TrialError> {
    let count = u32::try_from(watcher.met.len()).expect("the parameter is bounded");
    let modify = |flow| flows.message(FlowModCommand::ModifyStrict, flow, Some(mark));
    let began = rig.now();
    let mut batch = MessageBatch::new((0..count).map(modify).collect(), began);
    watcher.mark = mark;
    watcher.answered = None;
    watcher.met.fill(false);
    watcher.waiting = watcher.met.len();
    loop {
        batch.turn(rig)?;
        traffic.turn(rig)?;
        let mut inbox = LimitedInbox::default();
        while let Some(message) = inbox.receive(rig)? {
            batch.process(&message, rig.version());
        }
        watcher.answered = batch.answered();
        traffic.receive_frames(rig, |arrival| watcher.record(arrival))?;
        if let Some(outcome) = batch.outcome() {
            let is_refused = !outcome.refused.is_empty();
            if watcher.waiting == 0 || is_refused {
                return Ok(outcome);
            }
            if rig.now().since(outcome.answered) > TIMEOUT {
                let reason = "a change had no effect within two seconds of its barrier reply";
                return Err(TrialError::Impossible(reason.to_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests;

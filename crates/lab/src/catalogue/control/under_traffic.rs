//! Rule changes under traffic: the time until a change takes effect, and the loss and delay of
//! frames during many changes or the listing of a large table.
//!
//! One busy-polling thread sends and receives frames and messages, so that all times are of one
//! clock and no process is woken up. The times include the path through the device; a trial without
//! changes gives the baseline.

mod loads;
mod rate;

use std::time::Duration;

use openflow::Version;
use stats::Distribution;

use super::rig::{ControlRig, LimitedInbox};
use super::traffic::{FRAMES_MAX, Traffic};
use super::{TrialReport, on_rig};
use crate::catalogue::prelude::*;
use loads::{ControlLoad, ControlTest};

/// The experiment "changes".
pub(crate) const CHANGES: Experiment = Experiment {
    description: Description {
        name: "changes",
        title: "Rule changes under traffic",
        family: Family::Oflops,
        question: "When do frames meet a changed rule, and what do they lose during many changes or the listing of a large table?",
        source: "after OFLOPS, module openflow_action_delay, and the interaction tests of its successors",
        steps: &[
            "Frames of 64 bytes are offered at a constant rate, by default half of the highest rate that the device carries, which a bisection of eight steps of 100 ms finds: at most 3 per cent of the frames may be missing when the last is sent.",
            "In the test quiet, nothing else happens. In the test effect, the rule of the frames is modified at random intervals of 2 to 4 ms, with a barrier after it; each version of the rule sets another DSCP, so that each frame shows which version it met.",
            "In the test flow-mods, other flows are added and deleted at a constant rate, at most 5,000 at a time. In the test dump, a table with many flows is listed again and again.",
            "The effect time runs from the sending of the flow-mod to the arrival of the first frame that met it. Frames that were sent after a barrier reply and met the rule from before it are counted as late.",
        ],
        parameters: PARAMETERS,
        figures: FIGURES,
        views: &[
            View::Table {
                title: "Frames during the test",
                figures: &[
                    "loss",
                    "delay_p50_us",
                    "delay_p99_us",
                    "delay_p999_us",
                    "delay_max_us",
                    "intended_pps",
                    "changes_s",
                    "dumps",
                ],
            },
            View::Table {
                title: "Effect of a change",
                figures: &["effect_p50_us", "effect_p99_us", "barrier_p50_us", "late"],
            },
            View::Shares {
                title: "Time until a frame meets a change",
                values: "effect_ns",
            },
        ],
        headlines: &[Headline {
            title: "Effect of a rule change, median",
            figure: HeadlineFigure::Figure("effect_p50_us"),
            at: &[("test", Focus::Word("effect"))],
        }],
        ..Description::EMPTY
    },
    applies_to: super::takes,
    seconds: |point| {
        let filling = match ControlTest::at(point) {
            ControlTest::Dump => point.number("dump-flows") as f64 * 30e-6,
            _ => 0.0,
        };
        1.5 + filling + point.number("millis") as f64 / 1e3
    },
    measure: |point, setup, tools| on_rig(Version::V10, setup, tools, |live| measure(point, live)),
    ..Experiment::BASE
};

/// The word for half of the highest rate that the device carries.
const HALF: &str = "half";

const PARAMETERS: &[Parameter] = &[
    Parameter::axis(
        "test",
        "changes during the test: none (quiet), of the frames' rule (effect), of other flows (flow-mods), or none but listings (dump)",
        Values::words(ControlTest::NAMES, ControlTest::NAMES),
    ),
    Parameter::constant(
        "millis",
        "duration of the load in milliseconds",
        Values::numbers(&[1_000], &[5_000], &[5_000], [100, 3_600_000]),
    ),
    Parameter::constant(
        "rate",
        "frames per second, or half of the rate that the device carries",
        Values::NumbersAndWord {
            quick: &[],
            paper: &[],
            bound: Bound {
                least: 100,
                most: 10_000_000,
            },
            word: HALF,
        },
    ),
    Parameter::constant(
        "flow-mods",
        "flow-mods per second in the test flow-mods",
        Values::numbers(&[10_000], &[10_000], &[10_000], [1, 1_000_000]),
    ),
    Parameter::constant(
        "dump-flows",
        "flows in the table in the test dump",
        Values::numbers(&[20_000], &[100_000], &[100_000], [1, 1_000_000]),
    ),
];

const FIGURES: &[Figure] = &[
    Figure::new("loss", "Loss", "", Better::Lower).shown_in("%", 0.01),
    Figure::new(
        "late",
        "Late frames: by the old rule after the barrier reply",
        "",
        Better::Lower,
    ),
    Figure::new("delay_p50_us", "Delay, median", "µs", Better::Lower),
    Figure::new("delay_p99_us", "Delay, 99 %", "µs", Better::Lower),
    Figure::new("delay_p999_us", "Delay, 99.9 %", "µs", Better::Lower),
    Figure::new("delay_max_us", "Delay, maximum", "µs", Better::Lower),
    Figure::new("effect_p50_us", "Effect, median", "µs", Better::Lower),
    Figure::new("effect_p99_us", "Effect, 99 %", "µs", Better::Lower),
    Figure::new(
        "barrier_p50_us",
        "Barrier reply, median",
        "µs",
        Better::Lower,
    ),
    Figure::new("changes_s", "Changes", "/s", Better::Neither),
    Figure::new("intended_pps", "Intended load", "frames/s", Better::Neither).shown_in("kpps", 1e3),
    Figure::new(
        "carried_pps",
        "Highest carried rate",
        "frames/s",
        Better::Higher,
    )
    .shown_in("kpps", 1e3),
    Figure::new("dumps", "Listings", "", Better::Neither),
    Figure::new("duplicates", "Duplicate frames", "", Better::Lower),
];

/// Least rate in frames per second for `half`.
const PPS_MIN: u64 = 1_000;

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let mut load = ControlLoad::prepare(point, rig)?;
    let millis = point.number("millis");
    let (pps, carried) = match point.get("rate").and_then(record::Value::number) {
        Some(pps) => (pps, None),
        None => {
            let carried = rate::highest_carried(rig)?;
            ((carried / 2).max(PPS_MIN), Some(carried))
        }
    };
    let pps = pps.min(FRAMES_MAX as u64 * 1_000 / millis);
    let run = TrafficRun::of(&mut load, pps, Duration::from_millis(millis), rig)?;
    let mut report = run.report(point, pps);
    match carried {
        Some(carried) => report.reading.put("carried_pps", carried as f64),
        None => report.reading.lack("carried_pps", "the rate was set"),
    }
    load.put_into(&mut report, run.seconds);
    Ok(report)
}

/// Frames of a trial.
struct TrafficRun {
    traffic: Traffic,
    delays_ns: Vec<u32>,
    seconds: f64,
}

impl TrafficRun {
    /// Sends and receives frames for this time while `load` changes the rules.
    fn of(
        load: &mut ControlLoad,
        pps: u64,
        duration: Duration,
        rig: &mut dyn ControlRig,
    ) -> Result<Self, TrialError> {
        let began = rig.now();
        let mut traffic = Traffic::new(1, pps, began);
        let mut delays_ns = Vec::new();
        let seconds = loop {
            let passed = rig.now().since(began);
            if passed >= duration {
                break passed.as_secs_f64();
            }
            traffic.turn(rig)?;
            load.turn(passed, rig)?;
            let mut inbox = LimitedInbox::default();
            while let Some(message) = inbox.receive(rig)? {
                load.process(&message, rig.version())?;
            }
            traffic.receive_frames(rig, |arrival| {
                delays_ns.push(nanoseconds(arrival.received.since(arrival.sent)));
                load.record(arrival);
            })?;
        };
        traffic.drain(rig, |arrival| {
            delays_ns.push(nanoseconds(arrival.received.since(arrival.sent)));
            load.record(arrival);
        })?;
        Ok(Self {
            traffic,
            delays_ns,
            seconds,
        })
    }

    /// Returns the figures and flaws of the frames.
    fn report(&self, point: &Point, pps: u64) -> TrialReport {
        let mut report = TrialReport::at(point);
        let (sent, received) = (self.traffic.sent(), self.traffic.received());
        let reading = &mut report.reading;
        reading.put_share("loss", sent - received, sent);
        reading.put("intended_pps", pps as f64);
        reading.put("duplicates", self.traffic.duplicates() as f64);
        match Distribution::new(self.delays_ns.iter().copied()) {
            Some(delays) => {
                reading.put("delay_max_us", f64::from(delays.max()) / 1e3);
                let quantiles = [
                    ("delay_p50_us", 500),
                    ("delay_p99_us", 990),
                    ("delay_p999_us", 999),
                ];
                reading.put_quantiles_us(&delays, &quantiles);
            }
            None => {
                let names = [
                    "delay_p50_us",
                    "delay_p99_us",
                    "delay_p999_us",
                    "delay_max_us",
                ];
                reading.lack_each(names, "no packet returned");
                report.void.push(format!("none of {sent} frames arrived"));
            }
        }
        report.notes.extend(self.traffic.shortfall());
        report
    }
}

fn nanoseconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

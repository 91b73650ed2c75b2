//! Frame loss rate (RFC 2544, 26.3).

use std::time::Duration;

use trafficgen::{Pace, Rate};

use super::{LINE, SIZE, line_rate};
use crate::catalogue::offered::{Doubts, Load, LoadResult, figure, too_slow};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const LOSS: Experiment = Experiment {
    description: Description {
        name: "loss-rate",
        title: "Frame loss rate",
        family: Family::Benchmarking,
        question: "What share of the frames is lost at each share of the greatest rate?",
        source: "RFC 2544, 26.3",
        steps: &[
            "The greatest rate is that of the virtual line, or that of the tester if it is lower.",
            "UDP frames are offered at 100 per cent of it, then in steps of ten per cent less, until two successive trials have no loss.",
            "One rule per direction matches the ingress port.",
        ],
        parameters: &[
            SIZE,
            LINE,
            Parameter::constant(
                "millis",
                "milliseconds per trial",
                Values::numbers(&[200], &[2_000], &[60_000], [50, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "Loss by share of the greatest rate",
            figures: &[
                "greatest_kpps",
                "loss_at_100_percent",
                "loss_at_50_percent",
                "lossless_percent",
                "received_at_100_kpps",
            ],
        }],
        ..Description::EMPTY
    },
    seconds: |point| 0.5 + (point.number("millis") as f64 / 1e3 + 0.3) * 8.0,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("greatest_kpps", "Greatest rate", "kpps", Better::Neither),
    figure("loss_at_100_percent", "Loss at 100 %", "%", Better::Lower),
    figure("loss_at_50_percent", "Loss at 50 %", "%", Better::Lower),
    figure("lossless_percent", "Without loss from", "% down", Better::Higher),
    figure("received_at_100_kpps", "Received at 100 %", "kpps", Better::Higher),
];

/// Share of the tester's highest rate that the trial uses: at the limit itself it falls short.
const REACHED: f64 = 0.97;

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let size = point.number("size");
    let length = Duration::from_millis(point.number("millis"));
    let at = |pace| Load::udp(size, pace, length);
    plane.watch()?;
    let sent = plane.offer(&at(Pace::FlatOut))?.pps() * REACHED;
    let greatest = sent.min(line_rate(point.number("line"), size) as f64);
    let mut trials = Trials::at(point);
    trials.reading.put("greatest_kpps", greatest / 1e3);
    for percent in (10..=100).rev().step_by(10) {
        let rate = Rate::Frames(whole(greatest * f64::from(percent) / 100.0));
        let offered = plane.offer(&at(Pace::Constant(rate)))?;
        if trials.take(percent, &offered) == Next::Over {
            break;
        }
    }
    let conditions = plane.conditions()?;
    let (reading, doubts) = trials.finish();
    let mut measured = TrialResult::new(reading, conditions);
    doubts.add_flaws(&mut measured);
    Ok(measured)
}

/// Returns a rate in whole frames per second, at least one.
fn whole(rate: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive and far below 2^53"
    )]
    let whole = rate.round() as u64;
    whole.max(1)
}

/// Trials so far, from the highest rate downwards.
struct Trials {
    reading: Reading,
    doubts: Doubts,
    /// Number of consecutive trials without loss up to the last.
    lossless: u32,
    /// Share of the highest rate in the last trial, in per cent.
    percent: u32,
    /// Shares that the tester did not reach, with the reason.
    short: Vec<(u32, String)>,
    loss_by_kpps: Vec<[f64; 2]>,
}

/// Decision about another trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Another,
    Over,
}

impl Trials {
    fn at(point: &Point) -> Self {
        Self {
            reading: Reading::at(point),
            doubts: Doubts::default(),
            lossless: 0,
            percent: 100,
            short: Vec::new(),
            loss_by_kpps: Vec::new(),
        }
    }

    /// Adds a trial. A trial with a shortfall says nothing about its share.
    fn take(&mut self, percent: u32, offered: &LoadResult) -> Next {
        self.percent = percent;
        if let Some(refusal) = offered.shortfall() {
            self.short.push((percent, too_slow(refusal)));
            self.lossless = 0;
            return Next::Another;
        }
        self.doubts.add_losses(offered);
        let loss = offered.loss() * 100.0;
        self.loss_by_kpps.push([offered.pps() / 1e3, loss]);
        match percent {
            100 => {
                let received = offered.pps() * (1.0 - offered.loss());
                self.reading.put("loss_at_100_percent", loss);
                self.reading.put("received_at_100_kpps", received / 1e3);
            }
            50 => self.reading.put("loss_at_50_percent", loss),
            _ => {}
        }
        let lost = offered.sum(|stream| stream.lost);
        self.lossless = if lost == 0 { self.lossless + 1 } else { 0 };
        if self.lossless < 2 {
            return Next::Another;
        }
        self.reading
            .put("lossless_percent", f64::from(percent + 10));
        Next::Over
    }

    /// Returns the figures, with the reasons for the absent ones.
    fn finish(mut self) -> (Reading, Doubts) {
        let (last, before) = (self.percent, self.percent + 10);
        for (share, names) in [
            (100, &["loss_at_100_percent", "received_at_100_kpps"][..]),
            (50, &["loss_at_50_percent"]),
        ] {
            let short = self.short.iter().find(|(percent, _)| *percent == share);
            let reason = match short {
                Some((_, reason)) => reason.clone(),
                None => format!("not tried: nothing was lost at {before} % and at {last} %"),
            };
            let absent = names.iter().copied();
            let absent = absent.filter(|name| !self.reading.figures.contains_key(*name));
            let absent: Vec<&str> = absent.collect();
            self.reading.lack_each(absent, &reason);
        }
        if self.lossless < 2 {
            let reason = match self.short.last() {
                Some((_, reason)) => reason.clone(),
                None => "frames were lost down to 10 %".to_owned(),
            };
            self.reading.lack("lossless_percent", reason);
        }
        let series = self.loss_by_kpps;
        self.reading
            .series
            .insert("loss_by_kpps".to_owned(), series);
        (self.reading, self.doubts)
    }
}

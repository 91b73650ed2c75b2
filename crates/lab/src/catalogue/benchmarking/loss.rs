//! Frame loss rate (RFC 2544, 26.3).

use std::time::Duration;

use super::{LINE, SIZE, line_rate};
use crate::catalogue::offered::{Load, figure, offer};
use crate::catalogue::{
    Better, Bound, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::cores::Watch;
use crate::instrument::{Pace, Rate};
use crate::record::{Outcome, Reading};
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const LOSS: Experiment = Experiment {
    name: "loss-rate",
    title: "Frame loss rate",
    family: Family::Benchmarking,
    question: "What share of frames is lost at each share of the greatest rate?",
    source: "RFC 2544, 26.3",
    steps: &[
        "The greatest rate is that of the virtual line, or what the tester can send, if that is less.",
        "Frames of UDP are offered at 100 per cent of it, then at ten per cent less each time, until two trials in a row lose nothing.",
        "One rule a direction matches the port of arrival.",
    ],
    parameters: &[
        SIZE,
        LINE,
        Parameter::constant(
            "millis",
            "milliseconds a trial",
            Values::Numbers {
                quick: &[200],
                paper: &[2_000],
                rfc: &[60_000],
                bound: Bound {
                    least: 50,
                    most: 3_600_000,
                },
            },
        ),
    ],
    figures: FIGURES,
    views: &[View::Table {
        title: "Loss at and below the greatest rate",
        figures: &[
            "greatest_kpps",
            "loss_at_100_percent",
            "loss_at_50_percent",
            "lossless_percent",
            "received_at_100_kpps",
        ],
    }],
    setting: Setting::Usual,
    takes: |_, _| true,
    seconds: |point| 0.5 + (point.number("millis") as f64 / 1e3 + 0.3) * 8.0,
    measure,
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("greatest_kpps", "Greatest rate", "kpps", Better::Neither),
    figure("loss_at_100_percent", "Lost at 100 %", "%", Better::Lower),
    figure("loss_at_50_percent", "Lost at 50 %", "%", Better::Lower),
    figure("lossless_percent", "Lossless from", "% down", Better::Higher),
    figure("received_at_100_kpps", "Received at 100 %", "kpps", Better::Higher),
];

/// The tester's limit is approached to this share of it: at the very limit it falls short.
const REACHED: f64 = 0.97;

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let size = point.number("size");
    let length = Duration::from_millis(point.number("millis"));
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let at = |pace| Load::udp(size, pace, length);
    let flat_out = offer(&at(Pace::FlatOut), station, tools)?;
    let sent = flat_out.measurement.streams[0].achieved.pps() * REACHED;
    let greatest = sent.min(line_rate(point.number("line"), size) as f64);
    let mut reading = Reading::at(point);
    reading.put("greatest_kpps", greatest / 1e3);
    let mut lossless = 0;
    let mut series = Vec::new();
    for percent in (10..=100).rev().step_by(10) {
        let rate = (greatest * f64::from(percent) / 100.0).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is positive and far below 2^53"
        )]
        let rate = rate as u64;
        let offered = offer(
            &at(Pace::Constant(Rate::Frames(rate.max(1)))),
            station,
            tools,
        )?;
        let stream = &offered.measurement.streams[0];
        let loss = stream.loss_ratio() * 100.0;
        series.push([rate as f64 / 1e3, loss]);
        match percent {
            100 => {
                reading.put("loss_at_100_percent", loss);
                let received = stream.achieved.pps() * (1.0 - loss / 100.0);
                reading.put("received_at_100_kpps", received / 1e3);
            }
            50 => reading.put("loss_at_50_percent", loss),
            _ => {}
        }
        lossless = if stream.lost == 0 { lossless + 1 } else { 0 };
        if lossless == 2 {
            reading.put("lossless_percent", f64::from(percent + 10));
            break;
        }
    }
    if !reading.figures.contains_key("loss_at_50_percent") {
        reading.put("loss_at_50_percent", 0.0);
    }
    if lossless < 2 {
        reading.lack("lossless_percent", "frames were lost down to 10 %");
    }
    reading.series.insert("loss_by_kpps".to_owned(), series);
    let conditions = watch.end(&station.bench)?;
    Ok(Measured::new(Outcome::Reading(reading), conditions))
}

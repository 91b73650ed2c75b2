//! Load for a long time: what is lost in the end, and what a process grows by.

use std::time::Duration;

use record::Reading;
use trafficgen::{Pace, Rate};

use crate::catalogue::offered::{Load, NOTHING, figure};
use crate::catalogue::plane::{Plane, on_station};
use crate::catalogue::{
    Better, Bound, Description, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const SOAK: Experiment = Experiment {
    description: Description {
        name: "soak",
        title: "Load for a long time",
        family: Family::Robustness,
        question: "Is anything lost at little load over a long time, and does the device's process grow?",
        source: "RFC 8204, soak test",
        steps: &[
            "Frames of 64 bytes go from the client to the server at equal gaps, for the whole time.",
            "Memory of the device's process is read before and after; growth is by the hour.",
            "Zero loss of n frames bounds the share that is lost at 4.6 / n with 99 per cent of certainty, if losses are independent.",
        ],
        parameters: &[
            Parameter::constant(
                "seconds",
                "seconds for which frames are offered",
                Values::Numbers {
                    quick: &[2],
                    paper: &[600],
                    rfc: &[86_400],
                    bound: Bound {
                        least: 1,
                        most: 604_800,
                    },
                },
            ),
            Parameter::constant(
                "pps",
                "frames a second",
                Values::Numbers {
                    quick: &[20_000],
                    paper: &[20_000],
                    rfc: &[20_000],
                    bound: Bound {
                        least: 100,
                        most: 10_000_000,
                    },
                },
            ),
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "In the end",
            figures: &[
                "frames",
                "lost",
                "loss_bound_ppm",
                "p999_us",
                "most_ms",
                "grown_mb",
            ],
        }],
        topology: None,
    },
    setting: Setting::Usual,
    takes: |_, _| true,
    seconds: |point| point.number("seconds") as f64 + 0.5,
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("frames", "Frames", "", Better::Neither),
    figure("lost", "Lost", "frames", Better::Lower),
    figure("loss_bound_ppm", "Lost at most, 99 %", "ppm", Better::Lower),
    figure("p999_us", "99.9 % delay", "µs", Better::Lower),
    figure("most_ms", "Longest delay", "ms", Better::Lower),
    figure("grown_mb", "Process grew by", "MB", Better::Lower),
];

fn measure(point: &Point, plane: &mut dyn Plane) -> Result<Measured, TrialError> {
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let length = Duration::from_secs(point.number("seconds"));
    let before = plane.resident_bytes()?;
    let offered = plane.offer(&Load::udp(64, pace, length))?;
    let after = plane.resident_bytes()?;
    let mut reading = Reading::at(point);
    let sent = offered.sum(|stream| stream.achieved.frames);
    let lost = offered.sum(|stream| stream.lost);
    reading.put("frames", sent as f64);
    reading.put("lost", lost as f64);
    match lost {
        0 => reading.put("loss_bound_ppm", 4.6 / sent as f64 * 1e6),
        _ => reading.lack("loss_bound_ppm", "frames were lost"),
    }
    let delays = offered.delays();
    match delays.count() {
        0 => reading.lack_each(["p999_us", "most_ms"], NOTHING),
        _ => {
            reading.put("p999_us", delays.quantile(0.999) as f64 / 1e3);
            reading.put("most_ms", delays.most() as f64 / 1e6);
        }
    }
    match (before, after) {
        (Some(before), Some(after)) => {
            reading.put("grown_mb", after.saturating_sub(before) as f64 / 1e6);
        }
        _ => reading.lack("grown_mb", "the kernel itself forwards"),
    }
    Ok(offered.measured(reading))
}

#[cfg(test)]
mod tests;

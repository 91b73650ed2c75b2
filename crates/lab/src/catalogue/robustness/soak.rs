//! Long-term load: frame loss and memory growth.

use std::time::Duration;

use trafficgen::{Pace, Rate};

use crate::catalogue::offered::{Load, NOTHING, figure};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const SOAK: Experiment = Experiment {
    description: Description {
        name: "soak",
        title: "Soak test",
        family: Family::Robustness,
        question: "Are frames lost at low load over a long time, and does the memory of the device's process grow?",
        source: "RFC 8204, soak test",
        steps: &[
            "Frames of 64 bytes are sent from the client to the server at equal gaps for the whole time.",
            "The memory of the device's process is read before and after; its growth is per hour.",
            "If none of n frames is lost, the loss is below 4.6 / n at 99 per cent confidence, provided that losses are independent.",
        ],
        parameters: &[
            Parameter::constant(
                "seconds",
                "duration of the load in seconds",
                Values::numbers(&[2], &[600], &[86_400], [1, 604_800]),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[20_000], &[20_000], &[20_000], [100, 10_000_000]),
            ),
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "Finally",
            figures: &[
                "frames",
                "lost",
                "loss_bound_ppm",
                "p999_us",
                "most_ms",
                "grown_mb",
            ],
        }],
        ..Description::EMPTY
    },
    seconds: |point| point.number("seconds") as f64 + 0.5,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("frames", "Frames", "", Better::Neither),
    figure("lost", "Lost", "frames", Better::Lower),
    figure("loss_bound_ppm", "Upper bound of the loss, 99 %", "ppm", Better::Lower),
    figure("p999_us", "99.9 % delay", "µs", Better::Lower),
    figure("most_ms", "Maximum delay", "ms", Better::Lower),
    figure("grown_mb", "Growth of the process", "MB", Better::Lower),
];

fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
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

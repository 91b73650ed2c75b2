//! Latency and loss by frame size, at low load.

use super::{MILLIS, measure, seconds};
use crate::catalogue::offered::FIGURES;
use crate::catalogue::plane::on_setup;
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const SIZE: Experiment = Experiment {
    description: Description {
        name: "latency-vs-size",
        title: "Latency and loss by frame size",
        family: Family::LatencyAndLoss,
        question: "How do latency and loss depend on the frame size at low load?",
        source: "OFLOPS with NetFPGA, figures 2, 4 and 5",
        steps: &[
            "UDP frames are sent from the client to the server at equal gaps, at the given rate of the line with preambles and gaps (OFLOPS counted neither).",
            "One rule per direction matches the ingress port.",
            "Each frame carries its number and its time of transmission in its last 12 bytes; the delay runs from there to the receive timestamp of the kernel at the server.",
            "The device 'direct' is the bare link: its curve is the lower limit of all others.",
        ],
        parameters: &[
            Parameter::axis(
                "size",
                "frame size in bytes, with the checksum (FCS)",
                Values::numbers(
                    &[64, 256, 512, 1_024, 1_518],
                    &[
                        64, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_100, 1_200,
                        1_300, 1_400, 1_518,
                    ],
                    &[64, 128, 256, 512, 1_024, 1_280, 1_518],
                    [64, 1_518],
                ),
            ),
            Parameter::constant(
                "mbit",
                "load in Mbit/s on the line",
                Values::numbers(&[10], &[10], &[10], [1, 100_000]),
            ),
            MILLIS,
        ],
        figures: FIGURES,
        views: &[
            View::Load {
                title: "Median delay and loss by frame size",
                delay: "p50_us",
                lost: "loss_percent",
                along: "size",
            },
            View::Runs {
                title: "Median delay, run by run",
                figure: "p50_us",
                across: "size",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "mean_us",
                    "deviation_us",
                    "p50_us",
                    "p99_us",
                    "p999_us",
                    "ipdv_us",
                    "loss_percent",
                ],
            },
        ],
        ..Description::EMPTY
    },
    seconds,
    is_calibrated: true,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

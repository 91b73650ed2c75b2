//! Latency and loss by load, up to the device's capacity and beyond.

use super::{MILLIS, measure, seconds};
use crate::catalogue::offered::FIGURES;
use crate::catalogue::plane::on_setup;
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const LOAD: Experiment = Experiment {
    description: Description {
        name: "latency-vs-load",
        title: "Latency and loss by load",
        family: Family::LatencyAndLoss,
        question: "How do latency and loss depend on the load, below and above the throughput?",
        source: "OFLOPS with NetFPGA, figures 3, 6 and 7",
        steps: &[
            "UDP frames are sent from the client to the server at equal gaps, at one load after another.",
            "One rule per direction matches the ingress port.",
            "Each frame carries its number and its time of transmission in its last 12 bytes; the delay runs from there to the receive timestamp of the kernel at the server.",
            "Sent frames are counted: a load that the tester misses by more than a thousandth has an empty cell with the reason.",
            "The device 'direct' is the bare link: its curve is the lower limit of all others.",
        ],
        parameters: &[
            Parameter::axis(
                "mbit",
                "load in Mbit/s on the line",
                Values::numbers(
                    &[10, 50, 100, 200, 400],
                    &[
                        10, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700,
                        750, 800, 850, 900, 950, 1_000,
                    ],
                    &[100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000],
                    [1, 100_000],
                ),
            ),
            Parameter::constant(
                "size",
                "frame size in bytes, with the checksum (FCS)",
                Values::numbers(&[150], &[150], &[64], [64, 1_518]),
            ),
            MILLIS,
        ],
        figures: FIGURES,
        views: &[
            View::Load {
                title: "Median delay and loss by load",
                delay: "p50_us",
                lost: "loss_percent",
                along: "mbit",
            },
            View::Lines {
                title: "99 % delay by load",
                figure: "p99_us",
                along: "mbit",
                log: true,
            },
            View::Runs {
                title: "Median delay, run by run",
                figure: "p50_us",
                across: "mbit",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "offered_kpps",
                    "received_kpps",
                    "loss_percent",
                    "mean_us",
                    "deviation_us",
                    "p50_us",
                    "p99_us",
                    "p999_us",
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

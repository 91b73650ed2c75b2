//! Latency and loss against frame size, at little load.

use super::{MILLIS, measure, seconds};
use crate::catalogue::offered::FIGURES;
use crate::catalogue::plane::on_station;
use crate::catalogue::{Bound, Description, Experiment, Family, Parameter, Setting, Values, View};

/// The experiment.
pub(crate) const SIZE: Experiment = Experiment {
    description: Description {
        name: "latency-vs-size",
        title: "Latency and loss against frame size",
        family: Family::LatencyAndLoss,
        question: "How does latency grow with the size of frames, and are any lost, while there is little load?",
        source: "OFLOPS with NetFPGA, figures 2, 4 and 5",
        steps: &[
            "Frames of UDP go from the client to the server at equal gaps, at the set rate of a line with its preambles and gaps (OFLOPS counted neither).",
            "One rule a direction matches the port of arrival.",
            "Each frame carries its number and the time of its sending in its last 12 bytes; delay is from there to where the kernel received it at the other end.",
            "The device 'direct' is the instrument alone: its curve is the floor of all others.",
        ],
        parameters: &[
            Parameter::axis(
                "size",
                "bytes of a frame, its checksum (FCS) included",
                Values::Numbers {
                    quick: &[64, 256, 512, 1_024, 1_518],
                    paper: &[
                        64, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_100, 1_200,
                        1_300, 1_400, 1_518,
                    ],
                    rfc: &[64, 128, 256, 512, 1_024, 1_280, 1_518],
                    bound: Bound {
                        least: 64,
                        most: 1_518,
                    },
                },
            ),
            Parameter::constant(
                "mbit",
                "megabits a second of the line",
                Values::Numbers {
                    quick: &[10],
                    paper: &[10],
                    rfc: &[10],
                    bound: Bound {
                        least: 1,
                        most: 100_000,
                    },
                },
            ),
            MILLIS,
        ],
        figures: FIGURES,
        views: &[
            View::Load {
                title: "Median delay and loss against frame size",
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
        topology: None,
    },
    setting: Setting::Usual,
    takes: |_, _| true,
    seconds,
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

//! Bare link by frame size.

use trafficgen::{Pace, Rate};

use super::{ALL, MILLIS, WAY, calibrate, length, seconds, takes};
use crate::catalogue::offered::Load;
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const SIZE: Experiment = Experiment {
    description: Description {
        name: "calibration-size",
        title: "Calibration by frame size",
        family: Family::Calibration,
        question: "What are the latency and the jitter of the bare link, by frame size?",
        source: "OFLOPS with NetFPGA, figure 2",
        steps: &[
            "A bare link connects the hosts without a device.",
            "UDP frames are sent from the client to the server at equal gaps, at the given rate of the line with preambles and gaps.",
            "They are sent and received by packet sockets, with timestamps of the kernel, or by AF_XDP, with timestamps of the polling program.",
            "This is the lower limit of all measured delays.",
        ],
        parameters: &[
            Parameter::axis(
                "size",
                "frame size in bytes, with the checksum (FCS)",
                Values::numbers(
                    &[64, 1_518],
                    &[
                        64, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_100, 1_200,
                        1_300, 1_400, 1_518,
                    ],
                    &[64, 128, 256, 512, 1_024, 1_280, 1_518],
                    [64, 1_518],
                ),
            ),
            WAY,
            Parameter::constant(
                "mbit",
                "load in Mbit/s on the line",
                Values::numbers(&[10], &[10], &[10], [1, 100_000]),
            ),
            MILLIS,
        ],
        figures: &ALL,
        views: &[
            View::Lines {
                title: "Median delay of the bare link by frame size",
                figure: "p50_us",
                along: "size",
                log: false,
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "p50_us",
                    "p99_us",
                    "p999_us",
                    "deviation_us",
                    "ipdv_us",
                    "loss_percent",
                    "lateness_p99_us",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds,
    measure,
    ..Experiment::BASE
};

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let pace = Pace::Constant(Rate::Line(point.number("mbit") * 1_000_000));
    let load = Load::udp(point.number("size"), pace, length(point));
    calibrate(&load, point, setup, tools)
}

//! Bare link by load, up to the tester's limit and beyond.

use trafficgen::{Pace, Rate};

use super::{ALL, MILLIS, WAY, calibrate, length, seconds, takes};
use crate::catalogue::offered::Load;
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const LOAD: Experiment = Experiment {
    description: Description {
        name: "calibration-load",
        title: "Calibration by load",
        family: Family::Calibration,
        question: "How much can the tester send and receive, and what are the delays of the bare link up to this load?",
        source: "OFLOPS with NetFPGA, figure 3",
        steps: &[
            "A bare link connects the hosts without a device.",
            "UDP frames are sent from the client to the server at equal gaps, at one load after another.",
            "Sent frames, their lateness, received frames and losses of the tester are counted: a load that the tester misses is a result here, and an empty cell in other experiments.",
            "They are sent and received by packet sockets, with timestamps of the kernel, or by AF_XDP, with timestamps of the polling program.",
        ],
        parameters: &[
            Parameter::axis(
                "mbit",
                "load in Mbit/s on the line",
                Values::numbers(
                    &[200, 1_600],
                    &[
                        10, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_200, 1_400,
                        1_600, 1_800, 2_000, 2_500, 3_000,
                    ],
                    &[100, 250, 500, 750, 1_000, 1_500, 2_000],
                    [1, 100_000],
                ),
            ),
            WAY,
            Parameter::constant(
                "size",
                "frame size in bytes, with the checksum (FCS)",
                Values::numbers(&[150], &[150], &[64], [64, 1_518]),
            ),
            MILLIS,
        ],
        figures: &ALL,
        views: &[
            View::Load {
                title: "Median delay and loss of the bare link by load",
                delay: "p50_us",
                lost: "loss_percent",
                along: "mbit",
            },
            View::Lines {
                title: "Sent against intended load",
                figure: "offered_kpps",
                along: "mbit",
                log: false,
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "intended_kpps",
                    "offered_kpps",
                    "loss_percent",
                    "tester_lost",
                    "p50_us",
                    "p99_us",
                    "p999_us",
                    "lateness_p99_us",
                    "lateness_max_us",
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

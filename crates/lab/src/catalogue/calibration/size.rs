//! A bare cable by the size of frames.

use trafficgen::{Pace, Rate};

use super::{ALL, MILLIS, WAY, calibrate, length, seconds, takes};
use crate::catalogue::offered::Load;
use crate::catalogue::{
    Bound, Description, Experiment, Family, Parameter, Point, Setting, Values, View,
};
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const SIZE: Experiment = Experiment {
    description: Description {
        name: "calibration-size",
        title: "The tester by frame size",
        family: Family::Calibration,
        question: "What do latency and jitter of a bare cable come to, by the size of frames?",
        source: "OFLOPS with NetFPGA, figure 2: nothing up to 400 bytes, 1 µs up to 1,400, 2 µs above, at 10 Mbit/s",
        steps: &[
            "One cable joins both hosts, and there is no device.",
            "Frames of UDP go from the client to the server at equal gaps, at the set rate of a line with its preambles and gaps.",
            "They are sent and received by packet sockets, whose arrivals the kernel stamps, or by AF_XDP, whose arrivals the program stamps when it looks.",
            "Less than this nobody sees of a device.",
        ],
        parameters: &[
            Parameter::axis(
                "size",
                "bytes of a frame, its checksum (FCS) included",
                Values::Numbers {
                    quick: &[64, 1_518],
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
            WAY,
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
        figures: &ALL,
        views: &[
            View::Lines {
                title: "Median delay of the cable against frame size",
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
        topology: None,
    },
    setting: Setting::Usual,
    takes,
    seconds,
    measure,
};

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let pace = Pace::Constant(Rate::Line(point.number("mbit") * 1_000_000));
    let load = Load::udp(point.number("size"), pace, length(point));
    calibrate(&load, point, station, tools)
}

//! A bare cable by load, up to and past what the instrument can send.

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
pub(crate) const LOAD: Experiment = Experiment {
    description: Description {
        name: "calibration-load",
        title: "The tester by load",
        family: Family::Calibration,
        question: "How much can the tester send and receive, and what do delays of a bare cable look like until then?",
        source: "OFLOPS with NetFPGA, figure 3: 1 µs until 580 Mbit/s of 150-byte frames, where it broke",
        steps: &[
            "One cable joins both hosts, and there is no device.",
            "Frames of UDP go from the client to the server at equal gaps to the nanosecond, at one load after the other.",
            "What was sent, how late, what came and what the tester itself lost is counted: a load that it does not reach is a finding here, and leaves a cell empty elsewhere.",
            "They are sent and received by packet sockets, whose arrivals the kernel stamps, or by AF_XDP, whose arrivals the program stamps when it looks.",
        ],
        parameters: &[
            Parameter::axis(
                "mbit",
                "load in Mbit/s of the line",
                Values::Numbers {
                    quick: &[200, 1_600],
                    paper: &[
                        10, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_200, 1_400,
                        1_600, 1_800, 2_000, 2_500, 3_000,
                    ],
                    rfc: &[100, 250, 500, 750, 1_000, 1_500, 2_000],
                    bound: Bound {
                        least: 1,
                        most: 100_000,
                    },
                },
            ),
            WAY,
            Parameter::constant(
                "size",
                "bytes of a frame, its checksum (FCS) included",
                Values::Numbers {
                    quick: &[150],
                    paper: &[150],
                    rfc: &[64],
                    bound: Bound {
                        least: 64,
                        most: 1_518,
                    },
                },
            ),
            MILLIS,
        ],
        figures: &ALL,
        views: &[
            View::Load {
                title: "Median delay and loss of the cable against load",
                delay: "p50_us",
                lost: "loss_percent",
                along: "mbit",
            },
            View::Lines {
                title: "What was sent against what was asked for",
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

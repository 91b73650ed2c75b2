//! Latency and loss against load, up to and past what a device carries.

use super::{MILLIS, measure, seconds};
use crate::catalogue::offered::FIGURES;
use crate::catalogue::plane::on_station;
use crate::catalogue::{Bound, Description, Experiment, Family, Parameter, Setting, Values, View};

/// The experiment.
pub(crate) const LOAD: Experiment = Experiment {
    description: Description {
        name: "latency-vs-load",
        title: "Latency and loss against load",
        family: Family::LatencyAndLoss,
        question: "How do latency and loss grow with load, up to what the device carries and past it?",
        source: "OFLOPS with NetFPGA, figures 3, 6 and 7",
        steps: &[
            "Frames of UDP go from the client to the server at equal gaps to the nanosecond, at one load after the other.",
            "One rule a direction matches the port of arrival.",
            "Each frame carries its number and the time of its sending in its last 12 bytes; delay is from there to where the kernel received it at the other end.",
            "What was sent is counted: a load that the tester does not reach to a thousandth leaves the cell empty, and says so.",
            "The device 'direct' is the instrument alone: its curve is the floor of all others.",
        ],
        parameters: &[
            Parameter::axis(
                "mbit",
                "load in Mbit/s of the line",
                Values::Numbers {
                    quick: &[10, 50, 100, 200, 400],
                    paper: &[
                        10, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700,
                        750, 800, 850, 900, 950, 1_000,
                    ],
                    rfc: &[100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000],
                    bound: Bound {
                        least: 1,
                        most: 100_000,
                    },
                },
            ),
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
        figures: FIGURES,
        views: &[
            View::Load {
                title: "Median delay and loss against load",
                delay: "p50_us",
                lost: "loss_percent",
                along: "mbit",
            },
            View::Lines {
                title: "99 % delay against load",
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
        topology: None,
    },
    setting: Setting::Usual,
    takes: |_, _| true,
    seconds,
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

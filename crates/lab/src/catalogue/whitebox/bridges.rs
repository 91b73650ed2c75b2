//! One bridge with two ports, and three bridges with six, all loaded at once.

use std::time::Duration;

use record::{Outcome, Reading};
use stats::mlrsearch::End;
use testbed::Topology;
use trafficgen::{OVERHEAD_BYTES, Pace, Rate};

use crate::catalogue::benchmarking::{GOAL, LINE, goals, line_rate, rates};
use crate::catalogue::offered::{Doubts, Load, figure};
use crate::catalogue::plane::{Plane, on_station};
use crate::catalogue::{
    Better, Bound, Description, Experiment, Family, Figure, Own, Parameter, Point, Setting, Values,
    View,
};
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const BRIDGES: Experiment = Experiment {
    description: Description {
        name: "bridges",
        title: "One bridge with two ports, three bridges with six",
        family: Family::Whitebox,
        question: "What does a device carry without loss at each frame size, by one bridge and by three at once, and what does that cost?",
        source: "vSDNBox, scenarios 1 and 2, figures 6 and 7, by the method of RFC 2544",
        steps: &[
            "Each bridge joins two hosts, and both send at once; all bridges are loaded alike.",
            "The highest rate a port without loss is searched for, up to that of the virtual line.",
            "Then each port is offered half of that, and each frame's delay is taken.",
            "The device has cores of its own, or shares those of the tester: a machine without isolated cores.",
            "The price of a gigabit and of a million frames a second is known where the device's description tells its own.",
        ],
        parameters: &[
            Parameter::axis(
                "bridges",
                "bridges in the device, of two ports each",
                Values::Numbers {
                    quick: &[1, 3],
                    paper: &[1, 3],
                    rfc: &[1, 3],
                    bound: Bound { least: 1, most: 8 },
                },
            ),
            Parameter::axis(
                "size",
                "bytes of a frame, its checksum (FCS) included",
                Values::Numbers {
                    quick: &[512],
                    paper: &[64, 128, 256, 512, 1_024, 1_280, 1_518, 9_000],
                    rfc: &[64, 128, 256, 512, 1_024, 1_280, 1_518, 9_000],
                    bound: Bound {
                        least: 64,
                        most: 9_000,
                    },
                },
            ),
            Parameter::axis(
                "cores",
                "the device's cores: its own, or the tester's as well",
                Values::Words {
                    quick: &["own"],
                    all: &["own", "shared"],
                },
            ),
            GOAL,
            LINE,
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Throughput of all ports against frame size",
                figure: "throughput_mbit",
                along: "size",
                log: false,
            },
            View::Lines {
                title: "Median delay at half of it",
                figure: "p50_us",
                along: "size",
                log: true,
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "throughput_mbit",
                    "throughput_kpps",
                    "line_percent",
                    "p50_us",
                    "p99_us",
                    "price_per_gbit",
                    "price_per_mpps",
                ],
            },
        ],
        topology: Some(topology),
    },
    setting: Setting::Own(|point| Own {
        on_all_cores: point.word("cores") == "shared",
        ..Own::default()
    }),
    // A cable has no bridges.
    takes: |device, _| device != testbed::DeviceKind::Direct && !device.makes_taps(),
    seconds: |point| match point.word("goal") {
        "quick" => 9.0,
        "ndr-pdr" => 420.0,
        _ => 900.0,
    },
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("throughput_mbit", "Throughput", "Mbit/s", Better::Higher),
    figure("throughput_kpps", "In frames", "kpps", Better::Higher),
    figure("line_percent", "Of the lines", "%", Better::Higher),
    figure("p50_us", "Median at half", "µs", Better::Lower),
    figure("p99_us", "99 % at half", "µs", Better::Lower),
    figure("price_per_gbit", "Price of a Gbit/s", "", Better::Lower),
    figure("price_per_mpps", "Price of a Mpps", "", Better::Lower),
];

fn topology(point: &Point) -> Topology {
    let bridges = usize::try_from(point.number("bridges")).expect("the bound says so");
    let plain = Topology::parallel(bridges).expect("the bound says so");
    // Room for the longest frame and a tag.
    let mtu = if point.number("size") > 1_518 {
        9_216
    } else {
        testbed::MTU_ETHERNET
    };
    plain.with_mtu(mtu).expect("veth takes as much")
}

fn measure(point: &Point, plane: &mut dyn Plane) -> Result<Measured, TrialError> {
    let size = point.number("size");
    let pairs = usize::try_from(point.number("bridges")).expect("the bound says so");
    let line = line_rate(point.number("line"), size);
    let load = |pace, length| {
        let mut load = Load::udp(size, pace, length);
        load.both_ways = true;
        load.pairs = pairs;
        load
    };
    plane.watch()?;
    let goals = goals(point.word("goal"));
    let mut doubts = Doubts::default();
    let outcome = rates(goals, line, &load, plane, &mut doubts)?;
    let found = outcome.found.last();
    let reading = match found.and_then(|found| found.lower) {
        None => Reading::lacking(point, FIGURES, "even the least rate was not met"),
        Some(rate) => {
            let mut reading = Reading::at(point);
            let ports = 2.0 * pairs as f64;
            let bits = (size + u64::from(OVERHEAD_BYTES)) as f64 * 8.0;
            let (kpps, mbit) = (ports * rate as f64 / 1e3, ports * rate as f64 * bits / 1e6);
            reading.put("throughput_kpps", kpps);
            reading.put("throughput_mbit", mbit);
            reading.put("line_percent", rate as f64 / line as f64 * 100.0);
            prices(plane.price(), kpps, mbit, &mut reading);
            let pace = Pace::Constant(Rate::Frames((rate / 2).max(1)));
            let offered = plane.offer(&load(pace, DELAYS))?;
            let quantiles = [("p50_us", 0.5), ("p99_us", 0.99)];
            offered.tell_delays(&quantiles, &mut reading, &mut doubts);
            reading
        }
    };
    let conditions = plane.conditions()?;
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    if found.is_some_and(|found| found.end == End::AboveGenerator) {
        measured.note("the tester's own limit was reached, the device may carry more".to_owned());
    }
    doubts.tell(&mut measured);
    Ok(measured)
}

/// For how long delays are taken.
const DELAYS: Duration = Duration::from_millis(300);

/// What a gigabit and a million frames a second cost.
fn prices(price: Option<f64>, kpps: f64, mbit: f64, reading: &mut Reading) {
    match price {
        Some(price) => {
            reading.put("price_per_gbit", price / mbit * 1e3);
            reading.put("price_per_mpps", price / kpps * 1e3);
        }
        None => {
            let names = ["price_per_gbit", "price_per_mpps"];
            reading.lack_each(names, "the device's price is not known");
        }
    }
}

#[cfg(test)]
mod tests;

//! One bridge with two ports, and three bridges with six, all under load at the same time.

use std::time::Duration;

use stats::mlrsearch::SearchEnd;
use testbed::Topology;
use trafficgen::{OVERHEAD_BYTES, Pace, Rate};

use crate::catalogue::benchmarking::{GOAL, LINE, goals, line_rate, rates};
use crate::catalogue::offered::{Doubts, Load, figure};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// Frame sizes in bytes, with the checksum (FCS).
const SIZES: &[u64] = &[64, 128, 256, 512, 1_024, 1_280, 1_518, 9_000];

/// The experiment.
pub(crate) const BRIDGES: Experiment = Experiment {
    description: Description {
        name: "bridges",
        title: "Throughput of one and of three bridges",
        family: Family::Whitebox,
        question: "What is the throughput of one bridge and of three parallel bridges at each frame size, and what is the price per Gbit/s?",
        source: "vSDNBox, scenarios 1 and 2, figures 6 and 7, by the method of RFC 2544",
        steps: &[
            "Each bridge connects two hosts, and both send at once; all bridges have the same load.",
            "MLRsearch finds the highest rate per port without loss, up to the rate of the virtual line.",
            "Then half of this rate is offered to each port, and the delay of each frame is measured.",
            "The device has dedicated cores, or shares those of the tester, as on a machine without isolated cores.",
            "The price per Gbit/s and per million frames per second is known if the device's description file has its price.",
        ],
        parameters: &[
            Parameter::axis(
                "bridges",
                "bridges of the device, with two ports each",
                Values::numbers(&[1, 3], &[1, 3], &[1, 3], [1, 8]),
            ),
            Parameter::axis(
                "size",
                "frame size in bytes, with the checksum (FCS)",
                Values::numbers(&[512], SIZES, SIZES, [64, 9_000]),
            ),
            Parameter::axis(
                "cores",
                "cores of the device: its own, or shared with the tester",
                Values::words(&["own"], &["own", "shared"]),
            ),
            GOAL,
            LINE,
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Throughput of all ports by frame size",
                figure: "throughput_mbit",
                along: "size",
                log: false,
            },
            View::Lines {
                title: "Median delay at half the throughput",
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
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|point| DedicatedSetup {
        on_all_cores: point.word("cores") == "shared",
        ..DedicatedSetup::default()
    }),
    // A bare link has no bridges.
    applies_to: |device, _| device != testbed::DeviceKind::Direct && !device.makes_taps(),
    seconds: |point| match point.word("goal") {
        "quick" => 9.0,
        "ndr-pdr" => 420.0,
        _ => 900.0,
    },
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("throughput_mbit", "Throughput", "Mbit/s", Better::Higher),
    figure("throughput_kpps", "In frames", "kpps", Better::Higher),
    figure("line_percent", "Share of the lines", "%", Better::Higher),
    figure("p50_us", "Median at half", "µs", Better::Lower),
    figure("p99_us", "99 % at half", "µs", Better::Lower),
    figure("price_per_gbit", "Price per Gbit/s", "", Better::Lower),
    figure("price_per_mpps", "Price per Mpps", "", Better::Lower),
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

fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let size = point.number("size");
    let pairs = usize::try_from(point.number("bridges")).expect("the bound says so");
    let line = line_rate(point.number("line"), size);
    let load = |pace, length| {
        let mut load = Load::udp(size, pace, length);
        load.bidirectional = true;
        load.pairs = pairs;
        load
    };
    plane.watch()?;
    let goals = goals(point.word("goal"));
    let mut doubts = Doubts::default();
    let outcome = rates(goals, line, &load, plane, &mut doubts)?;
    let found = outcome.results.last();
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
            offered.put_delays(&quantiles, &mut reading, &mut doubts);
            reading
        }
    };
    let conditions = plane.conditions()?;
    let mut measured = TrialResult::new(reading, conditions);
    if found.is_some_and(|found| found.end == SearchEnd::AboveGenerator) {
        measured.note("the tester's own limit was reached, the device may carry more".to_owned());
    }
    doubts.add_flaws(&mut measured);
    Ok(measured)
}

/// Duration of the delay measurement.
const DELAYS: Duration = Duration::from_millis(300);

/// Adds the price of a gigabit per second and of a million frames per second.
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

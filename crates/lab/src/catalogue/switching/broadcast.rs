//! Broadcast frames: throughput and latency (RFC 2889, 5.10).

use std::time::Duration;

use trafficgen::{Length, Measurement, Pace, Rate, Stream, TestPortNo};

use super::{
    LINE, NOTHING, RATE_MIN, SIZE, TRIAL_MILLIS, WIDTH_PERCENT, is_switch, legacy, megabits,
    note_open, request, star, template, throughput, trial_length,
};
use crate::catalogue::bisection::Bisection;
use crate::catalogue::lines::{Lines, Offer, greet, offer_well};
use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const BROADCAST: Experiment = Experiment {
    description: Description {
        name: "broadcast",
        title: "Broadcast frame forwarding",
        family: Family::Benchmarking,
        question: "How many broadcast frames per second does a switch copy to three ports without loss, and with which delay?",
        source: "RFC 2889, 5.10",
        steps: &[
            "The device is in legacy mode between four hosts; the first sends broadcast frames, and each of the other three must receive all of them.",
            "A bisection with single trials finds the greatest rate without loss, up to that of the virtual line or of the tester.",
            "At half of that rate the delay is measured at each of the three ports in turn; the ports with the least and with the greatest median are shown.",
        ],
        parameters: &[SIZE, LINE, TRIAL_MILLIS, WIDTH_PERCENT],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Broadcast rate by frame size",
                figure: "broadcast_kpps",
                along: "size",
                log: false,
            },
            View::Table {
                title: "Broadcast rate and delay",
                figures: &[
                    "broadcast_kpps",
                    "copies_kpps",
                    "line_mbit",
                    "first_p50_us",
                    "last_p50_us",
                    "last_p99_us",
                ],
            },
        ],
        topology: Some(|_| star(HOSTS)),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| legacy()),
    applies_to: is_switch,
    seconds: |point| 0.9 + 9.0 * (trial_length(point).as_secs_f64() + 0.1),
    measure,
    ..Experiment::BASE
};

const HOSTS: usize = 4;
/// Number of copies of each frame: one for each other port.
const COPIES: u64 = 3;
/// Least duration of the delay measurement at each port.
const DELAYS_FOR: Duration = Duration::from_millis(40);

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("broadcast_kpps", "Broadcast", "kpps", Better::Higher),
    figure("copies_kpps", "Copies", "kpps", Better::Higher),
    figure("line_mbit", "On the line", "Mbit/s", Better::Higher),
    figure("first_p50_us", "Median, fastest port", "µs", Better::Lower),
    figure("last_p50_us", "Median, slowest port", "µs", Better::Lower),
    figure("last_p99_us", "99 %, slowest port", "µs", Better::Lower),
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let mut lines = Lines::open(&setup.bench, point_size(point), tools)?;
    greet(&setup.bench, 0..HOSTS)?;
    let mut reading = Reading::at(point);
    let found = search(point, &mut lines, &mut reading)?;
    let conditions = watch.end(&setup.bench)?;
    let mut measured = TrialResult::new(reading, conditions);
    note_open(&found, &mut measured);
    Ok(measured)
}

fn point_size(point: &Point) -> u16 {
    u16::try_from(point.number("size")).expect("the bound says so")
}

/// Returns broadcast frames; the host `to` compares those that it receives.
fn frames(size: u64, pace: Pace, to: usize) -> Stream {
    let mut template = template(size, 0, to);
    template.destination.mac = [0xff; 6];
    Stream::new(template, pace, TestPortNo(0), TestPortNo(to))
}

/// Returns the number of lost copies.
fn lost(measured: &Measurement) -> u64 {
    let stream = &measured.streams[0];
    let arrived = stream.received + stream.misdelivered;
    (COPIES * stream.achieved.frames).saturating_sub(arrived)
}

fn search(
    point: &Point,
    lines: &mut dyn Offer,
    reading: &mut Reading,
) -> Result<Bisection, TrialError> {
    let size = point.number("size");
    let found = throughput(point, lines, &|pace| vec![frames(size, pace, 1)], &lost)?;
    match found.found() {
        Some(rate) => {
            reading.put("broadcast_kpps", rate as f64 / 1e3);
            reading.put("copies_kpps", (COPIES * rate) as f64 / 1e3);
            reading.put("line_mbit", megabits(rate as f64, size));
        }
        None => {
            for name in ["broadcast_kpps", "copies_kpps", "line_mbit"] {
                reading.lack(name, NOTHING);
            }
        }
    }
    let rate = found.found().map_or(RATE_MIN, |rate| (rate / 2).max(1));
    delays(point, rate, lines, reading)?;
    Ok(found)
}

/// Measures the delay at each port.
fn delays(
    point: &Point,
    rate: u64,
    lines: &mut dyn Offer,
    reading: &mut Reading,
) -> Result<(), TrialError> {
    let pace = Pace::Constant(Rate::Frames(rate));
    let length = Length::of(trial_length(point).max(DELAYS_FOR));
    let mut ports = Vec::new();
    for to in 1..HOSTS {
        let stream = frames(point.number("size"), pace, to);
        let measured = offer_well(lines, &request(vec![stream], length))?;
        let delays = &measured.streams[0].delay_from_sent;
        if !delays.is_empty() {
            ports.push([0.5, 0.99].map(|share| delays.value_at_quantile(share) as f64 / 1e3));
        }
    }
    ports.sort_by(|one, other| one[0].total_cmp(&other[0]));
    match ports[..] {
        [first, _, last] => {
            reading.put("first_p50_us", first[0]);
            reading.put("last_p50_us", last[0]);
            reading.put("last_p99_us", last[1]);
        }
        _ => {
            for name in ["first_p50_us", "last_p50_us", "last_p99_us"] {
                reading.lack(name, "no frame arrived at one or more ports");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::point;
    use super::*;
    use crate::catalogue::simulated::{LearningFaults, learning_switch};

    fn read(faults: LearningFaults) -> Reading {
        let point = point(&BROADCAST);
        let mut reading = Reading::at(&point);
        search(
            &point,
            &mut learning_switch(HOSTS, 0..HOSTS, faults),
            &mut reading,
        )
        .unwrap();
        reading
    }

    #[test]
    fn broadcast_throughput_is_the_copy_rate() {
        let reading = read(LearningFaults {
            copy_ns: 5_000,
            queue: 4,
            ..LearningFaults::default()
        });
        // 200,000 copies per second are 66,667 frames, within the width of the search.
        let copies = reading.figures["copies_kpps"];
        assert!((150.0..=201.0).contains(&copies), "{copies}");
        let frames = reading.figures["broadcast_kpps"];
        assert!((3.0 * frames - copies).abs() < 1e-6);
    }

    #[test]
    fn broadcast_delay_is_measured_at_each_port() {
        let reading = read(LearningFaults {
            delay_ns: 20_000,
            port_ns: 7_000,
            ..LearningFaults::default()
        });
        let off = |name: &str, us: f64| (reading.figures[name] - us).abs();
        assert!(off("first_p50_us", 20.0) < 0.05);
        assert!(off("last_p50_us", 34.0) < 0.05);
        assert!(off("last_p99_us", 34.0) < 0.05);
    }

    #[test]
    fn switch_with_constant_loss_has_delays_but_no_broadcast_throughput() {
        let reading = read(LearningFaults {
            lose_every: Some(10),
            ..LearningFaults::default()
        });
        assert!(reading.absent["broadcast_kpps"].contains("at the least rate"));
        assert!(reading.figures.contains_key("last_p50_us"));
    }
}

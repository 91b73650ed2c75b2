//! Fully meshed traffic (RFC 2889, 5.1).

use trafficgen::{Measurement, Pace, Stream};

use super::{
    LINE, NOTHING, SIZE, TRIAL_MILLIS, WIDTH_PERCENT, between, is_switch, legacy, megabits,
    note_open, star, throughput, trial_length,
};
use crate::catalogue::bisection::Bisection;
use crate::catalogue::lines::{Lines, Offer, greet};
use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const MESHED: Experiment = Experiment {
    description: Description {
        name: "meshed",
        title: "Fully meshed throughput",
        family: Family::Benchmarking,
        question: "What is the throughput of a switch if each of four ports sends to all others?",
        source: "RFC 2889, 5.1",
        steps: &[
            "The device is in legacy mode between four hosts and has learned their addresses; each sends at the same rate to the three others, in twelve streams.",
            "A bisection with single trials finds the greatest rate at which no stream has loss, up to that of the virtual lines or of the tester.",
            "Frames at a port other than that of their destination were flooded, and are counted.",
        ],
        parameters: &[SIZE, LINE, TRIAL_MILLIS, WIDTH_PERCENT],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Fully meshed throughput by frame size",
                figure: "meshed_kpps",
                along: "size",
                log: false,
            },
            View::Table {
                title: "Fully meshed traffic",
                figures: &["meshed_kpps", "port_mbit", "flooded"],
            },
        ],
        topology: Some(|_| star(HOSTS)),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| legacy()),
    applies_to: is_switch,
    seconds: |point| 0.8 + 7.0 * (trial_length(point).as_secs_f64() + 0.12),
    measure,
    ..Experiment::BASE
};

const HOSTS: usize = 4;
const OTHERS: usize = HOSTS - 1;

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("meshed_kpps", "All ports", "kpps", Better::Higher),
    figure("port_mbit", "Each port's line", "Mbit/s", Better::Higher),
    figure("flooded", "Flooded", "frames", Better::Lower),
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let size = u16::try_from(point.number("size")).expect("the bound says so");
    let mut lines = Lines::open(&setup.bench, size, tools)?;
    greet(&setup.bench, 0..HOSTS)?;
    let mut reading = Reading::at(point);
    let found = search(point, &mut lines, &mut reading)?;
    let conditions = watch.end(&setup.bench)?;
    let mut measured = TrialResult::new(reading, conditions);
    note_open(&found, &mut measured);
    Ok(measured)
}

/// Returns a stream from each host to each other host.
fn streams(size: u64, pace: Pace) -> Vec<Stream> {
    let pairs = (0..HOSTS).flat_map(|from| (0..HOSTS).map(move |to| (from, to)));
    let pairs = pairs.filter(|(from, to)| from != to);
    pairs
        .map(|(from, to)| between(size, pace, from, to))
        .collect()
}

fn search(
    point: &Point,
    lines: &mut dyn Offer,
    reading: &mut Reading,
) -> Result<Bisection, TrialError> {
    let size = point.number("size");
    let flooded = std::cell::Cell::new(0);
    let lost = |measured: &Measurement| {
        let sum = |of: fn(&trafficgen::StreamOutcome) -> u64| -> u64 {
            measured.streams.iter().map(of).sum()
        };
        flooded.set(flooded.get() + sum(|one| one.misdelivered));
        sum(|one| one.lost)
    };
    let found = throughput(point, lines, &|pace| streams(size, pace), &lost)?;
    reading.put("flooded", flooded.get() as f64);
    match found.found() {
        Some(rate) => {
            let port = (OTHERS as u64 * rate) as f64;
            reading.put("meshed_kpps", HOSTS as f64 * port / 1e3);
            reading.put("port_mbit", megabits(port, size));
        }
        None => {
            for name in ["meshed_kpps", "port_mbit"] {
                reading.lack(name, NOTHING);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::tests::point;
    use super::*;
    use crate::catalogue::simulated::{LearningFaults, learning_switch};

    fn read(known: std::ops::Range<usize>, faults: LearningFaults) -> Reading {
        let point = point(&MESHED);
        let mut reading = Reading::at(&point);
        search(
            &point,
            &mut learning_switch(HOSTS, known, faults),
            &mut reading,
        )
        .unwrap();
        reading
    }

    #[test]
    fn meshed_throughput_is_the_capacity_without_flooding() {
        let reading = read(
            0..HOSTS,
            LearningFaults {
                copy_ns: 4_000,
                queue: 40,
                ..LearningFaults::default()
            },
        );
        // 250,000 frames per second, within the width of the search.
        let all = reading.figures["meshed_kpps"];
        assert!((187.0..=251.0).contains(&all), "{all}");
        let port = reading.figures["port_mbit"];
        assert!((port - all / 4.0 * 84.0 * 8.0 / 1e3).abs() < 0.01, "{port}");
        assert_eq!(reading.figures["flooded"], 0.0);
    }

    #[test]
    fn hub_floods_frames_to_unknown_stations() {
        let hub = LearningFaults {
            stations: 0,
            ..LearningFaults::default()
        };
        let reading = read(0..0, hub);
        assert!(reading.figures["flooded"] > 0.0);
        let lossy = LearningFaults {
            lose_every: Some(100),
            ..LearningFaults::default()
        };
        let reading = read(0..HOSTS, lossy);
        assert!(reading.absent["meshed_kpps"].contains("at the least rate"));
    }
}

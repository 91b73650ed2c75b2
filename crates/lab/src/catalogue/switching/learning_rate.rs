//! Address learning rate (RFC 2889, 5.8).

use super::stations::{FloodCount, HOSTS, KNOWN, SETS, Stations};
use super::{WIDTH_PERCENT, is_switch, legacy, note_open, star, width};
use crate::catalogue::bisection::Bisection;
use crate::catalogue::lines::{Lines, Offer, greet};
use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const LEARNING_RATE: Experiment = Experiment {
    description: Description {
        name: "learning-rate",
        title: "Address learning rate",
        family: Family::Benchmarking,
        question: "How many new addresses per second does a switch learn without flooding frames to them later?",
        source: "RFC 2889, 5.8",
        steps: &[
            "The device is in legacy mode between three hosts, as in address-caching; the number of addresses is below its caching capacity.",
            "New addresses send one frame each at a given rate; then a frame is sent slowly to each, and frames at the monitoring port were flooded. Lost frames are sent again more slowly, up to twice.",
            "A bisection finds the greatest rate without flooding and without loss, from the greatest given rate downwards, with other addresses in each trial.",
            "A device may learn buffered frames after their arrival: the rate applies to this number of successive addresses.",
        ],
        parameters: &[
            Parameter::constant(
                "stations",
                "addresses per trial",
                Values::numbers(&[500], &[4_000], &[4_000], [16, 100_000]),
            ),
            rate(
                "least",
                "least rate in new addresses per second",
                &[5_000],
                &[1_000],
            ),
            rate(
                "most",
                "greatest rate in new addresses per second",
                &[200_000],
                &[500_000],
            ),
            rate(
                "test-pps",
                "frames per second to the addresses afterwards",
                &[25_000],
                &[5_000],
            ),
            WIDTH_PERCENT,
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "Learning rate",
            figures: &[
                "learned_per_s",
                "flooded_above",
                "unanswered",
                "trials",
                "late",
            ],
        }],
        topology: Some(|_| star(HOSTS)),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| legacy()),
    applies_to: is_switch,
    seconds: |point| {
        let stations = point.number("stations") as f64;
        let trial = stations / point.number("test-pps") as f64 + 0.15;
        0.6 + 3.0 * trial + 2.0 * stations / point.number("least") as f64
    },
    measure,
    ..Experiment::BASE
};

const fn rate(
    name: &'static str,
    about: &'static str,
    quick: &'static [u64],
    paper: &'static [u64],
) -> Parameter {
    Parameter::constant(
        name,
        about,
        Values::Numbers {
            quick,
            paper,
            rfc: paper,
            bound: Bound {
                least: 100,
                most: 2_000_000,
            },
        },
    )
}

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("learned_per_s", "Learned", "stations/s", Better::Higher),
    figure("flooded_above", "Flooded at the next higher rate", "frames", Better::Lower),
    figure("unanswered", "Lost", "frames", Better::Lower),
    figure("trials", "Trials", "", Better::Neither),
    figure("late", "Repeated because the tester was late", "", Better::Neither),
];

/// Number of attempts to introduce stations at the intended rate.
const ATTEMPTS: u32 = 4;

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let mut lines = Lines::open(&setup.bench, 64, tools)?;
    greet(&setup.bench, KNOWN)?;
    let search = Search {
        stations: point.number("stations"),
        test_pps: point.number("test-pps"),
        bounds: Bisection::new(point.number("least"), point.number("most"), width(point)),
    };
    let mut reading = Reading::at(point);
    let found = search.run(&mut lines, &mut reading)?;
    let conditions = watch.end(&setup.bench)?;
    let mut measured = TrialResult::new(reading, conditions);
    note_open(&found, &mut measured);
    Ok(measured)
}

/// Search for the learning rate.
struct Search {
    stations: u64,
    test_pps: u64,
    bounds: Bisection,
}

impl Search {
    fn run(self, lines: &mut dyn Offer, reading: &mut Reading) -> Result<Bisection, TrialError> {
        let mut trials = Vec::new();
        let (mut lost, mut slow, mut set) = (0, 0_u32, 0);
        let found = self.bounds.run(|rate| {
            let mut stations = Stations {
                set,
                count: self.stations,
            };
            for _ in 0..ATTEMPTS {
                // A known station is not learned again, so each attempt uses a new set.
                (stations.set, set) = (set, (set + 1) % SETS);
                if !stations.introduce(rate, lines)?.is_slow {
                    break;
                }
                slow += 1;
            }
            let tested = stations.test_until_answered(self.test_pps, lines)?;
            lost += tested.lost;
            trials.push([rate as f64, tested.flooded as f64]);
            Ok::<_, TrialError>(tested == FloodCount::default())
        })?;
        reading.put("late", f64::from(slow));
        reading.put("trials", trials.len() as f64);
        reading.put("unanswered", lost as f64);
        match found.found() {
            Some(rate) => reading.put("learned_per_s", rate as f64),
            None => reading.lack(
                "learned_per_s",
                "even at the least rate some frames were flooded or were lost",
            ),
        }
        let bad = trials.iter().filter(|[_, flooded]| *flooded > 0.0);
        match bad.min_by(|one, other| one[0].total_cmp(&other[0])) {
            Some([_, flooded]) => reading.put("flooded_above", *flooded),
            None => reading.lack("flooded_above", "nothing was flooded at the greatest rate"),
        }
        reading.series.insert("flooded_by_rate".to_owned(), trials);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::simulated::{LearningFaults, learning_switch};

    fn read(faults: LearningFaults) -> (Bisection, Reading) {
        let mut reading = Reading::at(&Point::default());
        let search = Search {
            stations: 500,
            test_pps: 50_000,
            bounds: Bisection::new(1_000, 400_000, 0.1),
        };
        let mut switch = learning_switch(HOSTS, KNOWN, faults);
        let found = search.run(&mut switch, &mut reading).unwrap();
        (found, reading)
    }

    #[test]
    fn measured_learning_rate_is_that_of_the_switch() {
        for learn_ns in [10_000, 50_000, 400_000] {
            let (_, reading) = read(LearningFaults {
                learn_ns,
                learn_queue: 1,
                ..LearningFaults::default()
            });
            let most = 1e9 / learn_ns as f64;
            let rate = reading.figures["learned_per_s"];
            // Within the width of the search, and one station in the queue.
            assert!(
                (0.88 * most..=1.01 * most).contains(&rate),
                "{rate} of {most}"
            );
            assert!(reading.figures["flooded_above"] > 0.0);
        }
    }

    #[test]
    fn switch_with_immediate_learning_reaches_the_greatest_rate() {
        let (found, reading) = read(LearningFaults::default());
        assert!(found.is_open());
        assert_eq!(reading.figures["learned_per_s"], 400_000.0);
        assert!(reading.absent["flooded_above"].contains("greatest rate"));
        assert_eq!(reading.figures["trials"], 1.0);
    }

    #[test]
    fn switch_without_forwarding_has_no_learning_rate() {
        let (_, reading) = read(LearningFaults {
            lose_every: Some(1),
            ..LearningFaults::default()
        });
        assert!(reading.absent["learned_per_s"].contains("were lost"));
        assert!(reading.figures["unanswered"] >= 500.0);
    }

    #[test]
    fn switch_without_learning_has_no_learning_rate() {
        let (_, reading) = read(LearningFaults {
            stations: 1,
            ..LearningFaults::default()
        });
        assert!(reading.absent["learned_per_s"].contains("even at the least"));
    }
}

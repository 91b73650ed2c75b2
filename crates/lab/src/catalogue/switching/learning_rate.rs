//! Address learning rate (RFC 2889, 5.8).

use record::{Outcome, Reading};

use super::stations::{HOSTS, KNOWN, SETS, Stations, Tested};
use super::{WIDTH_PERCENT, is_switch, legacy, note_open, star, width};
use crate::catalogue::bisection::Bisection;
use crate::catalogue::lines::{Lines, Offer, greet};
use crate::catalogue::offered::figure;
use crate::catalogue::{
    Better, Bound, Description, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::cores::Watch;
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const LEARNING_RATE: Experiment = Experiment {
    description: Description {
        name: "learning-rate",
        title: "How fast a switch learns addresses",
        family: Family::Benchmarking,
        question: "How many new stations a second does a switch learn, without flooding for one of them later?",
        source: "RFC 2889, 5.8",
        steps: &[
            "The device forwards by itself between three hosts, as for address-caching; the number of stations is one that it remembers.",
            "Stations that were never heard before send a frame each, at a rate; then each is sent a frame, slowly, and what comes out at the third host was flooded. Where some of these frames come out nowhere they are sent again, more slowly, twice at most.",
            "The greatest rate without flooding, and with all frames answered, is searched for by halves, down from the greatest that is asked for, with other stations in each trial.",
            "What a device keeps in its buffers it may learn later than it comes: the rate is that of so many stations in a row.",
        ],
        parameters: &[
            Parameter::constant(
                "stations",
                "stations of a trial",
                Values::Numbers {
                    quick: &[500],
                    paper: &[4_000],
                    rfc: &[4_000],
                    bound: Bound {
                        least: 16,
                        most: 100_000,
                    },
                },
            ),
            rate(
                "least",
                "new stations a second, at least",
                &[5_000],
                &[1_000],
            ),
            rate(
                "most",
                "new stations a second, at most",
                &[200_000],
                &[500_000],
            ),
            rate(
                "test-pps",
                "frames a second to stations afterwards",
                &[25_000],
                &[5_000],
            ),
            WIDTH_PERCENT,
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "Learning",
            figures: &[
                "learned_per_s",
                "flooded_above",
                "unanswered",
                "trials",
                "late",
            ],
        }],
        topology: Some(|_| star(HOSTS)),
    },
    setting: Setting::Own(|_| legacy()),
    takes: is_switch,
    seconds: |point| {
        let stations = point.number("stations") as f64;
        let trial = stations / point.number("test-pps") as f64 + 0.15;
        0.6 + 3.0 * trial + 2.0 * stations / point.number("least") as f64
    },
    measure,
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
    figure("flooded_above", "Flooded at the next rate above", "frames", Better::Lower),
    figure("unanswered", "Came out nowhere", "frames", Better::Lower),
    figure("trials", "Trials", "", Better::Neither),
    figure("late", "Repeated, the tester being late", "", Better::Neither),
];

/// How often stations are introduced that the tester introduced too slowly.
const ATTEMPTS: u32 = 4;

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let mut lines = Lines::open(&station.bench, 64, tools)?;
    greet(&station.bench, KNOWN)?;
    let search = Search {
        stations: point.number("stations"),
        test_pps: point.number("test-pps"),
        bounds: Bisection::new(point.number("least"), point.number("most"), width(point)),
    };
    let mut reading = Reading::at(point);
    let found = search.run(&mut lines, &mut reading)?;
    let conditions = watch.end(&station.bench)?;
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    note_open(&found, &mut measured);
    Ok(measured)
}

/// What is searched for.
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
                // A device learns nothing of whom it knows.
                (stations.set, set) = (set, (set + 1) % SETS);
                if !stations.introduce(rate, lines)?.is_slow {
                    break;
                }
                slow += 1;
            }
            let tested = stations.test_until_answered(self.test_pps, lines)?;
            lost += tested.lost;
            trials.push([rate as f64, tested.flooded as f64]);
            Ok::<_, TrialError>(tested == Tested::default())
        })?;
        reading.put("late", f64::from(slow));
        reading.put("trials", trials.len() as f64);
        reading.put("unanswered", lost as f64);
        match found.found() {
            Some(rate) => reading.put("learned_per_s", rate as f64),
            None => reading.lack(
                "learned_per_s",
                "even at the least rate some were flooded, or came out nowhere",
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
    use super::super::simulated::{Faults, switch};
    use super::*;

    fn read(faults: Faults) -> (Bisection, Reading) {
        let mut reading = Reading::at(&Point::default());
        let search = Search {
            stations: 500,
            test_pps: 50_000,
            bounds: Bisection::new(1_000, 400_000, 0.1),
        };
        let mut switch = switch(HOSTS, KNOWN, faults);
        let found = search.run(&mut switch, &mut reading).unwrap();
        (found, reading)
    }

    #[test]
    fn a_switch_learns_as_fast_as_it_does() {
        for learn_ns in [10_000, 50_000, 400_000] {
            let (_, reading) = read(Faults {
                learn_ns,
                learn_queue: 1,
                ..Faults::default()
            });
            let most = 1e9 / learn_ns as f64;
            let rate = reading.figures["learned_per_s"];
            // To the width of the search, and to one station in its queue.
            assert!(
                (0.88 * most..=1.01 * most).contains(&rate),
                "{rate} of {most}"
            );
            assert!(reading.figures["flooded_above"] > 0.0);
        }
    }

    #[test]
    fn a_switch_that_learns_at_once_is_not_found_slow() {
        let (found, reading) = read(Faults::default());
        assert!(found.is_open());
        assert_eq!(reading.figures["learned_per_s"], 400_000.0);
        assert!(reading.absent["flooded_above"].contains("greatest rate"));
        assert_eq!(reading.figures["trials"], 1.0);
    }

    #[test]
    fn a_switch_that_forwards_nothing_has_learned_nothing() {
        let (_, reading) = read(Faults {
            lose_every: Some(1),
            ..Faults::default()
        });
        assert!(reading.absent["learned_per_s"].contains("came out nowhere"));
        assert!(reading.figures["unanswered"] >= 500.0);
    }

    #[test]
    fn a_switch_that_learns_nothing_has_no_rate() {
        let (_, reading) = read(Faults {
            stations: 1,
            ..Faults::default()
        });
        assert!(reading.absent["learned_per_s"].contains("even at the least"));
    }
}

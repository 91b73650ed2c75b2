//! Address caching capacity (RFC 2889, 5.7).

use super::stations::{FloodCount, HOSTS, KNOWN, Stations};
use super::{is_switch, legacy, star};
use crate::catalogue::lines::{Lines, Offer, greet};
use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const ADDRESS_CACHING: Experiment = Experiment {
    description: Description {
        name: "address-caching",
        title: "Address caching capacity",
        family: Family::Benchmarking,
        question: "How many addresses does a switch cache before it floods frames to learned addresses?",
        source: "RFC 2889, 5.7",
        steps: &[
            "The device is in legacy mode between three hosts: the learning port with the addresses, the test port, and the monitoring port.",
            "Each of n addresses sends a frame from the learning port to the test port; if some are lost, all are sent again, up to three times.",
            "Then a frame is sent from the test port to each address. Frames at the monitoring port were flooded: their addresses are not cached.",
            "Lost frames are sent again more slowly, up to twice. If frames were flooded or lost nevertheless, both steps are repeated at half the rate, and then at a quarter; the last result counts.",
            "The number of addresses is doubled until frames are flooded or lost, up to the greatest given number.",
            "After flooding, the cached addresses are all except those of flooded frames. The address of the test port also takes an entry.",
        ],
        parameters: &[
            stations("least", "initial number of addresses", &[4_096], &[1_024]),
            stations("most", "greatest number of addresses", &[8_192], &[131_072]),
            Parameter::constant(
                "pps",
                "frames per second of both steps",
                Values::numbers(&[60_000], &[10_000], &[5_000], [100, 1_000_000]),
            ),
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "Cached addresses",
            figures: &["capacity", "tried", "flooded", "known", "unanswered"],
        }],
        topology: Some(|_| star(HOSTS)),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| legacy()),
    applies_to: is_switch,
    seconds: |point| {
        let frames = 4.0 * point.number("most").max(point.number("least")) as f64;
        0.6 + frames / point.number("pps") as f64
    },
    measure,
    ..Experiment::BASE
};

const fn stations(
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
                least: 16,
                most: 1_000_000,
            },
        },
    )
}

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("capacity", "Addresses without flooding", "", Better::Higher),
    figure("tried", "Addresses finally", "", Better::Neither),
    figure("flooded", "Flooded finally", "frames", Better::Lower),
    figure("known", "Addresses cached finally", "", Better::Higher),
    figure("unanswered", "Lost finally", "frames", Better::Lower),
];

/// Number of times that stations send while some of their frames are lost.
const PASSES: u32 = 3;

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let mut lines = Lines::open(&setup.bench, 64, tools)?;
    greet(&setup.bench, KNOWN)?;
    let search = Search {
        least: point.number("least"),
        most: point.number("most"),
        pps: point.number("pps"),
    };
    let mut reading = Reading::at(point);
    search.run(&mut lines, &mut reading)?;
    let conditions = watch.end(&setup.bench)?;
    let mut measured = TrialResult::new(reading, conditions);
    let reading = &measured.reading;
    if [reading.figures["flooded"], reading.figures["unanswered"]] == [0.0; 2] {
        let most = reading.figures["tried"];
        measured.note(format!(
            "nothing was flooded with {most} stations, the greatest number: the capacity may be higher"
        ));
    }
    Ok(measured)
}

/// Search for the capacity.
#[derive(Clone, Copy, Debug)]
struct Search {
    least: u64,
    most: u64,
    pps: u64,
}

impl Search {
    fn run(self, lines: &mut dyn Offer, reading: &mut Reading) -> Result<(), TrialError> {
        let mut capacity = None;
        let mut series = Vec::new();
        let mut count = self.least.min(self.most);
        let (tried, tested) = loop {
            let stations = Stations { set: 0, count };
            let tested = self.attempts(stations, lines)?;
            series.push([count as f64, tested.flooded as f64]);
            if tested != FloodCount::default() {
                break (count, tested);
            }
            capacity = Some(count);
            if count >= self.most {
                break (count, tested);
            }
            count = (2 * count).min(self.most);
        };
        match capacity {
            Some(count) => reading.put("capacity", count as f64),
            None if tested.flooded == 0 => reading.lack("capacity", "frames were lost"),
            None => reading.lack("capacity", "even the least number was flooded"),
        }
        reading.put("tried", tried as f64);
        reading.put("flooded", tested.flooded as f64);
        reading.put("unanswered", tested.lost as f64);
        match tested.lost {
            0 => reading.put("known", (tried - tested.flooded.min(tried)) as f64),
            lost => reading.lack(
                "known",
                format!(
                    "{lost} frames were lost: it is unknown whether their stations were learned"
                ),
            ),
        }
        let series = [("flooded_by_stations".to_owned(), series)];
        reading.series.extend(series);
        Ok(())
    }

    /// Lets every station send, and tests which of them the switch has learned; repeats both at a
    /// lower rate if frames were flooded or lost.
    fn attempts(self, stations: Stations, lines: &mut dyn Offer) -> Result<FloodCount, TrialError> {
        let mut tested = FloodCount::default();
        for pps in [self.pps, self.pps / 2, self.pps / 4] {
            let pps = pps.max(1);
            for _ in 0..PASSES {
                if stations.introduce(pps, lines)?.lost == 0 {
                    break;
                }
            }
            tested = stations.test_until_answered(pps, lines)?;
            // Without losses, a flooded frame means that the switch has removed the station.
            if tested.lost == 0 && (tested.flooded == 0 || pps < self.pps) {
                break;
            }
        }
        Ok(tested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::simulated::{LearningFaults, learning_switch};

    fn read(faults: LearningFaults) -> Reading {
        let mut reading = Reading::at(&Point::default());
        let search = Search {
            least: 64,
            most: 1_024,
            pps: 100_000,
        };
        search
            .run(&mut learning_switch(HOSTS, KNOWN, faults), &mut reading)
            .unwrap();
        reading
    }

    #[test]
    fn address_capacity_and_known_stations_are_measured() {
        // The tester's own station is one of them.
        for capacity in [65, 200, 513, 1_000] {
            let reading = read(LearningFaults {
                stations: capacity,
                ..LearningFaults::default()
            });
            let held = capacity - 1;
            let doubled = 1 << held.ilog2();
            assert_eq!(reading.figures["capacity"], doubled as f64);
            assert_eq!(reading.figures["tried"], 2.0 * doubled as f64);
            assert_eq!(reading.figures["known"], held as f64);
            let flooded = reading.figures["tried"] - held as f64;
            assert_eq!(reading.figures["flooded"], flooded);
        }
    }

    #[test]
    fn search_ends_at_the_greatest_number_of_stations() {
        let reading = read(LearningFaults::default());
        assert_eq!(reading.figures["capacity"], 1_024.0);
        assert_eq!(reading.figures["known"], 1_024.0);
        assert_eq!(reading.figures["flooded"], 0.0);
    }

    #[test]
    fn hub_has_no_address_capacity() {
        let reading = read(LearningFaults {
            stations: 1,
            ..LearningFaults::default()
        });
        assert!(reading.absent["capacity"].contains("even the least"));
        assert_eq!(reading.figures["known"], 0.0);
    }

    #[test]
    fn switch_without_forwarding_has_no_address_capacity() {
        let reading = read(LearningFaults {
            lose_every: Some(1),
            ..LearningFaults::default()
        });
        assert_eq!(reading.absent["capacity"], "frames were lost");
        assert!(reading.absent["known"].contains("were lost"));
    }

    #[test]
    fn stations_with_lost_frames_send_again() {
        let reading = read(LearningFaults {
            lose_every: Some(90),
            lose_until: 400,
            ..LearningFaults::default()
        });
        assert_eq!(reading.figures["capacity"], 1_024.0);
    }
}

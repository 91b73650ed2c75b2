//! Address caching capacity (RFC 2889, 5.7).

use record::{Outcome, Reading};

use super::stations::{HOSTS, KNOWN, Stations, Tested};
use super::{is_switch, legacy, star};
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
pub(crate) const ADDRESS_CACHING: Experiment = Experiment {
    description: Description {
        name: "address-caching",
        title: "Stations that a switch remembers",
        family: Family::Benchmarking,
        question: "How many addresses does a switch remember, before it floods frames for stations that it has heard?",
        source: "RFC 2889, 5.7",
        steps: &[
            "The device forwards by itself between three hosts: one where stations are, one that sends frames to them, and one where nothing should come out.",
            "Each of n stations sends a frame to the second host; while some of these are lost, all are sent again, three times at most.",
            "Then each station is sent a frame. What comes out at the third host was flooded: its station is not known.",
            "Frames that come out nowhere are sent again, more slowly, twice at most. Where something was flooded or lost nevertheless both steps are done once more at half the rate, and if something is lost again, at a quarter; the last count.",
            "The number of stations is doubled until something is flooded or lost, or to the greatest number that is asked for.",
            "Where something was flooded, the stations that are still known were counted by it: all but those of flooded frames. The second host's own station takes a place, too.",
        ],
        parameters: &[
            stations("least", "stations at first", &[4_096], &[1_024]),
            stations(
                "most",
                "stations that are tried at most",
                &[8_192],
                &[131_072],
            ),
            Parameter::constant(
                "pps",
                "frames a second of both steps",
                Values::Numbers {
                    quick: &[60_000],
                    paper: &[10_000],
                    rfc: &[5_000],
                    bound: Bound {
                        least: 100,
                        most: 1_000_000,
                    },
                },
            ),
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "Stations that are remembered",
            figures: &["capacity", "tried", "flooded", "known", "unanswered"],
        }],
        topology: Some(|_| star(HOSTS)),
    },
    setting: Setting::Own(|_| legacy()),
    takes: is_switch,
    seconds: |point| {
        let frames = 4.0 * point.number("most").max(point.number("least")) as f64;
        0.6 + frames / point.number("pps") as f64
    },
    measure,
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
    figure("capacity", "Stations without flooding", "", Better::Higher),
    figure("tried", "Stations at last", "", Better::Neither),
    figure("flooded", "Flooded at last", "frames", Better::Lower),
    figure("known", "Stations known at last", "", Better::Higher),
    figure("unanswered", "Came out nowhere at last", "frames", Better::Lower),
];

/// How often stations send while some of their frames are lost.
const PASSES: u32 = 3;

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let mut lines = Lines::open(&station.bench, 64, tools)?;
    greet(&station.bench, KNOWN)?;
    let search = Search {
        least: point.number("least"),
        most: point.number("most"),
        pps: point.number("pps"),
    };
    let mut reading = Reading::at(point);
    search.run(&mut lines, &mut reading)?;
    let conditions = watch.end(&station.bench)?;
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    let Outcome::Reading(reading) = &measured.outcome else {
        return Ok(measured);
    };
    if [reading.figures["flooded"], reading.figures["unanswered"]] == [0.0; 2] {
        let most = reading.figures["tried"];
        measured.note(format!(
            "nothing was flooded with {most} stations, the most that were asked for: it may remember more"
        ));
    }
    Ok(measured)
}

/// What is tried.
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
            if tested != Tested::default() {
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
            None if tested.flooded == 0 => reading.lack("capacity", "frames came out nowhere"),
            None => reading.lack("capacity", "even the least number was flooded"),
        }
        reading.put("tried", tried as f64);
        reading.put("flooded", tested.flooded as f64);
        reading.put("unanswered", tested.lost as f64);
        match tested.lost {
            0 => reading.put("known", (tried - tested.flooded.min(tried)) as f64),
            lost => reading.lack(
                "known",
                format!("{lost} frames came out nowhere: nobody knows of their stations"),
            ),
        }
        let series = [("flooded_by_stations".to_owned(), series)];
        reading.series.extend(series);
        Ok(())
    }

    /// Has all stations heard, and looks which are known: again and slower where something was
    /// flooded or lost.
    fn attempts(self, stations: Stations, lines: &mut dyn Offer) -> Result<Tested, TrialError> {
        let mut tested = Tested::default();
        for pps in [self.pps, self.pps / 2, self.pps / 4] {
            let pps = pps.max(1);
            for _ in 0..PASSES {
                if stations.introduce(pps, lines)?.lost == 0 {
                    break;
                }
            }
            tested = stations.test_until_answered(pps, lines)?;
            // What is flooded though nothing is lost has been forgotten.
            if tested.lost == 0 && (tested.flooded == 0 || pps < self.pps) {
                break;
            }
        }
        Ok(tested)
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Faults, switch};
    use super::*;

    fn read(faults: Faults) -> Reading {
        let mut reading = Reading::at(&Point::default());
        let search = Search {
            least: 64,
            most: 1_024,
            pps: 100_000,
        };
        search
            .run(&mut switch(HOSTS, KNOWN, faults), &mut reading)
            .unwrap();
        reading
    }

    #[test]
    fn the_capacity_is_found_and_the_known_are_counted() {
        // The tester's own station is one of them.
        for capacity in [65, 200, 513, 1_000] {
            let reading = read(Faults {
                stations: capacity,
                ..Faults::default()
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
    fn a_switch_that_remembers_all_is_asked_for_no_more() {
        let reading = read(Faults::default());
        assert_eq!(reading.figures["capacity"], 1_024.0);
        assert_eq!(reading.figures["known"], 1_024.0);
        assert_eq!(reading.figures["flooded"], 0.0);
    }

    #[test]
    fn a_hub_remembers_nobody() {
        let reading = read(Faults {
            stations: 1,
            ..Faults::default()
        });
        assert!(reading.absent["capacity"].contains("even the least"));
        assert_eq!(reading.figures["known"], 0.0);
    }

    #[test]
    fn a_switch_that_forwards_nothing_has_no_capacity() {
        let reading = read(Faults {
            lose_every: Some(1),
            ..Faults::default()
        });
        assert_eq!(reading.absent["capacity"], "frames came out nowhere");
        assert!(reading.absent["known"].contains("came out nowhere"));
    }

    #[test]
    fn stations_whose_frames_were_lost_are_heard_again() {
        let reading = read(Faults {
            lose_every: Some(90),
            lose_until: 400,
            ..Faults::default()
        });
        assert_eq!(reading.figures["capacity"], 1_024.0);
    }
}

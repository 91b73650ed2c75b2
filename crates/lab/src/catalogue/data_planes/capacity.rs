//! Scenario 3, first part: how many rules a device takes.

use std::time::Duration;

use base::SplitMix64;
use controller::Ask;
use flow::FlowStatsRequest;
use record::{Outcome, Reading};

use super::echo;
use super::filling::{self, Kind};
use crate::catalogue::plane::{Plane, on_station};
use crate::catalogue::{
    Better, Bound, Description, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::frames::UdpFrame;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const CAPACITY: Experiment = Experiment {
    description: Description {
        name: "table-capacity",
        title: "How many rules a device takes",
        family: Family::DataPlanes,
        question: "How many rules does a device take, and do frames meet all of them?",
        source: "Costa et al., scenario 3, table 4",
        steps: &[
            "Rules are added a thousand and a barrier at a time, until the device refuses one, or as many as set are there.",
            "The device is asked how many it has (aggregate statistics).",
            "For rules chosen at random a frame is sent that only this rule takes to the server: the share of those that come out is effective.",
            "Memory is what the device's process has grown by.",
        ],
        parameters: &[
            Parameter::axis(
                "kind",
                "what rules match on: twelve exact fields, prefixes of 24 bits, or each by another mask",
                Values::Words {
                    quick: &["exact"],
                    all: &["exact", "prefix", "masks"],
                },
            ),
            Parameter::constant(
                "most",
                "rules at most, fewer where there are not so many of a kind",
                Values::Numbers {
                    quick: &[20_000],
                    paper: &[1_000_000],
                    rfc: &[1_000_000],
                    bound: Bound {
                        least: 1,
                        most: 4_000_000,
                    },
                },
            ),
            Parameter::constant(
                "sample",
                "rules that are tried by a frame",
                Values::Numbers {
                    quick: &[100],
                    paper: &[1_000],
                    rfc: &[1_000],
                    bound: Bound {
                        least: 1,
                        most: 100_000,
                    },
                },
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Rules that the device took",
                figure: "accepted",
                across: "kind",
                published: "capacity",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "accepted",
                    "listed",
                    "effective_percent",
                    "rules_s",
                    "bytes_per_rule",
                ],
            },
        ],
        topology: None,
    },
    setting: Setting::Usual,
    takes: |device, _| device.speaks_openflow(),
    seconds: |point| {
        1.0 + point.number("most") as f64 * 30e-6 + point.number("sample") as f64 * 1e-3
    },
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

const FIGURES: &[Figure] = &[
    Figure {
        name: "accepted",
        title: "Accepted",
        unit: "rules",
        better: Better::Higher,
    },
    Figure {
        name: "listed",
        title: "Listed",
        unit: "rules",
        better: Better::Higher,
    },
    Figure {
        name: "effective_percent",
        title: "Effective",
        unit: "%",
        better: Better::Higher,
    },
    Figure {
        name: "rules_s",
        title: "Added",
        unit: "rules/s",
        better: Better::Higher,
    },
    Figure {
        name: "bytes_per_rule",
        title: "Memory",
        unit: "bytes a rule",
        better: Better::Lower,
    },
];

/// A barrier may be answered before frames meet the rules: they are given so long.
const SETTLE: Duration = Duration::from_secs(1);

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<Measured, TrialError> {
    plane.install(&[])?;
    let kind = Kind::of(point.word("kind"));
    let most = point.small("most").min(kind.most());
    let request = echo::request(plane, 64, None);
    let before = plane.resident_bytes()?;
    plane.watch()?;
    let began = plane.now();
    let filled = filling::fill(plane, kind, 0..most, request)?;
    let seconds = plane.now().since(began).as_secs_f64();
    let conditions = plane.conditions()?;
    let mut reading = Reading::at(point);
    reading.put("accepted", f64::from(filled.accepted));
    match (before, plane.resident_bytes()?) {
        (Some(before), Some(after)) if filled.accepted > 0 => {
            let grown = after.saturating_sub(before);
            reading.put("bytes_per_rule", grown as f64 / f64::from(filled.accepted));
        }
        _ => reading.lack("bytes_per_rule", "no process of its own holds the rules"),
    }
    let listed = listed(plane, filled.accepted)?;
    reading.put("listed", listed as f64);
    match filled.accepted {
        0 => reading.lack_each(["rules_s", "effective_percent"], "it took no rule"),
        accepted => {
            let effective = effective(point, kind, accepted, request, plane)?;
            reading.put("effective_percent", effective * 100.0);
            reading.put("rules_s", f64::from(accepted) / seconds);
        }
    }
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    if let Some(reason) = &filled.refused {
        measured.note(format!("at {} rules: {reason}", filled.accepted));
    }
    // The next test would otherwise pay for the deletion.
    plane.install(&[])?;
    Ok(measured)
}

/// Rules that the device says it has. Some gather that late.
fn listed(plane: &mut dyn Plane, enough: u32) -> Result<u64, TrialError> {
    let deadline = plane.now() + SETTLE;
    loop {
        let flows = plane.aggregate(FlowStatsRequest::all())?.flows;
        if flows >= enough || plane.now() >= deadline {
            return Ok(flows.into());
        }
        plane.wait(Duration::from_millis(50));
    }
}

/// The share of rules, of those that are tried, whose frame comes out.
fn effective(
    point: &Point,
    kind: Kind,
    accepted: u32,
    request: UdpFrame,
    plane: &mut dyn Plane,
) -> Result<f64, TrialError> {
    let mut random = SplitMix64::new(accepted.into());
    let sample = point.small("sample").min(accepted);
    let frames = (0..sample).map(|_| {
        let number = random.next_u64() % u64::from(accepted);
        kind.frame(u32::try_from(number).expect("a rule's number"), request)
    });
    let frames: Vec<UdpFrame> = frames.collect();
    let out = plane.come_out(&frames, SETTLE)?;
    Ok(out as f64 / f64::from(sample))
}

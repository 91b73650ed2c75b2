//! Scenario 3, first part: how many rules a device takes.

use std::time::Duration;

use flow::FlowStatsRequest;

use super::echo;
use super::filling::{self, Filled, Kind};
use crate::catalogue::{
    Better, Bound, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::controller::{Ask, Controller};
use crate::cores::Watch;
use crate::frame_echo;
use crate::frames::UdpFrame;
use crate::random::Random;
use crate::record::{Outcome, Reading};
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const CAPACITY: Experiment = Experiment {
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
    setting: Setting::Usual,
    takes: |device, _| device.speaks_openflow(),
    seconds: |point| {
        1.0 + point.number("most") as f64 * 30e-6 + point.number("sample") as f64 * 1e-3
    },
    measure,
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

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    station.install(&[])?;
    let kind = Kind::of(point.word("kind"));
    let most = point.small("most").min(kind.most());
    let request = echo::request(&station.bench, 64, None);
    let resident = |station: &Station| station.bench.device().usage();
    let before = resident(station)?;
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let began = tools.clock.now();
    let Some(controller) = station.controller() else {
        return Err(TrialError::Impossible("it has no controller".to_owned()));
    };
    let filled = filling::fill(controller, kind, 0..most, request)?;
    let seconds = tools.clock.now().since(began).as_secs_f64();
    let conditions = watch.end(&station.bench)?;
    let mut reading = Reading::at(point);
    reading.put("accepted", f64::from(filled.accepted));
    reading.put("rules_s", f64::from(filled.accepted) / seconds);
    match (before, resident(station)?) {
        (Some(before), Some(after)) if filled.accepted > 0 => {
            let grown = after.resident_bytes.saturating_sub(before.resident_bytes);
            reading.put("bytes_per_rule", grown as f64 / f64::from(filled.accepted));
        }
        _ => reading.lack("bytes_per_rule", "no process of its own holds the rules"),
    }
    let listed = listed(controller, filled.accepted, tools)?;
    reading.put("listed", listed as f64);
    let effective = effective(point, kind, &filled, request, station, tools)?;
    reading.put("effective_percent", effective * 100.0);
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    if let Some(reason) = &filled.refused {
        measured.note(format!("at {} rules: {reason}", filled.accepted));
    }
    // The next test would otherwise pay for the deletion.
    station.install(&[])?;
    Ok(measured)
}

/// Rules that the device says it has. Some gather that late.
fn listed(mut controller: &Controller, enough: u32, tools: &Tools<'_>) -> Result<u64, TrialError> {
    let deadline = tools.clock.now() + SETTLE;
    loop {
        let flows = controller.aggregate(FlowStatsRequest::all())?.flows;
        let now = tools.clock.now();
        if u64::from(flows) >= u64::from(enough) || now >= deadline {
            return Ok(flows.into());
        }
        tools.clock.sleep_until(now + Duration::from_millis(50));
    }
}

/// The share of rules, of those that are tried, whose frame comes out.
fn effective(
    point: &Point,
    kind: Kind,
    filled: &Filled,
    request: UdpFrame,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<f64, TrialError> {
    if filled.accepted == 0 {
        return Ok(0.0);
    }
    let mut random = Random::new(u64::from(filled.accepted));
    let sample = point.small("sample").min(filled.accepted);
    let frames = (0..sample).map(|_| {
        let number = random.next() % u64::from(filled.accepted);
        kind.frame(u32::try_from(number).expect("a rule's number"), request)
    });
    let frames: Vec<UdpFrame> = frames.collect();
    let out = frame_echo::come_out(
        &station.bench,
        &frames,
        SETTLE,
        tools.clock,
        tools.interrupt,
    )?;
    Ok(out as f64 / f64::from(sample))
}

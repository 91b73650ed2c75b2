//! Scenario 3, first part: the capacity of the flow table in rules.

use std::time::Duration;

use base::SplitMix64;
use controller::DeviceRequests;
use flow::FlowStatsRequest;

use super::echo;
use super::filling::{self, TableKind};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;
use crate::frames::UdpFrame;

/// The experiment "table-capacity".
pub(crate) const CAPACITY: Experiment = Experiment {
    description: Description {
        name: "table-capacity",
        title: "Flow table capacity",
        family: Family::DataPlanes,
        question: "How many rules does a device accept, and do all of them forward frames?",
        source: "Costa et al., scenario 3, table 4",
        steps: &[
            "Rules are added in batches of a thousand with a barrier, until the device rejects one, or up to the given number.",
            "The number of rules is read by aggregate statistics.",
            "For random rules a frame is sent that only this rule forwards to the server: the effective share is that of received frames.",
            "Memory is the growth of the device's process.",
        ],
        parameters: &[
            Parameter::axis(
                "kind",
                "match of the rules: twelve exact fields, prefixes of 24 bits, or a different mask each",
                Values::words(&["exact"], &["exact", "prefix", "masks"]),
            ),
            Parameter::constant(
                "most",
                "greatest number of rules; fewer if there are not so many of a type",
                Values::numbers(&[20_000], &[1_000_000], &[1_000_000], [1, 4_000_000]),
            ),
            Parameter::constant(
                "sample",
                "rules that are checked by a frame",
                Values::numbers(&[100], &[1_000], &[1_000], [1, 100_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Rules that the device accepted",
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
        ..Description::EMPTY
    },
    applies_to: |device, _| device.speaks_openflow(),
    seconds: |point| {
        1.0 + point.number("most") as f64 * 30e-6 + point.number("sample") as f64 * 1e-3
    },
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    Figure::new("accepted", "Accepted", "rules", Better::Higher),
    Figure::new("listed", "Listed", "rules", Better::Higher),
    Figure::new("effective_percent", "Effective", "%", Better::Higher),
    Figure::new("rules_s", "Added", "rules/s", Better::Higher),
    Figure::new("bytes_per_rule", "Memory", "bytes per rule", Better::Lower),
];

/// Time limit for rules to take effect after their barrier reply.
const SETTLE: Duration = Duration::from_secs(1);

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    plane.install(&[])?;
    let kind = TableKind::of(point.word("kind"));
    let most = point.small("most").min(kind.rules_max());
    let request = echo::request(plane, 64, None);
    let before = plane.resident_bytes()?;
    plane.watch()?;
    let began = plane.now();
    let outcome = filling::fill(plane, kind, 0..most, request)?;
    let seconds = plane.now().since(began).as_secs_f64();
    let conditions = plane.conditions()?;
    let mut reading = Reading::at(point);
    reading.put("accepted", f64::from(outcome.accepted));
    match (before, plane.resident_bytes()?) {
        (Some(before), Some(after)) if outcome.accepted > 0 => {
            let grown = after.saturating_sub(before);
            reading.put("bytes_per_rule", grown as f64 / f64::from(outcome.accepted));
        }
        _ => reading.lack("bytes_per_rule", "the device has no process of its own"),
    }
    let listed = listed(plane, outcome.accepted)?;
    reading.put("listed", listed as f64);
    match outcome.accepted {
        0 => reading.lack_each(
            ["rules_s", "effective_percent"],
            "the device accepted no rule",
        ),
        accepted => {
            let effective = effective(point, kind, accepted, request, plane)?;
            reading.put("effective_percent", effective * 100.0);
            reading.put("rules_s", f64::from(accepted) / seconds);
        }
    }
    let mut measured = TrialResult::new(reading, conditions);
    if let Some(reason) = &outcome.refused {
        measured.note(format!("at {} rules: {reason}", outcome.accepted));
    }
    // The deletion is not part of the next trial.
    plane.install(&[])?;
    Ok(measured)
}

/// Returns the number of rules that the device reports. Some devices update it with a delay.
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

/// Returns the share of effective rules in a random sample.
fn effective(
    point: &Point,
    kind: TableKind,
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
    let out = plane.count_arrivals(&frames, SETTLE)?;
    Ok(out as f64 / f64::from(sample))
}

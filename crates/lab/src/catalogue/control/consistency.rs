//! What becomes of frames while all rules are changed.

use super::changes::{self, RULES};
use super::figures::{bad, lack_all, ms, plain, time};
use super::flows::{Flows, TABLE};
use super::rig::Rig;
use super::{Found, PPS, VERSION, add_flow, on_device, takes};
use crate::catalogue::{Description, Experiment, Family, Figure, Point, Setting, View};
use crate::trial::TrialError;

/// The experiment.
pub(crate) const CONSISTENCY: Experiment = Experiment {
    description: Description {
        name: "consistency",
        title: "Frames during an update",
        family: Family::Oflops,
        question: "Is each frame handled by the old rules or by the new ones, and none lost, while all rules change?",
        source: "OFLOPS for NetFPGA SUME, module openflow_consistency; Kuzniar, Peresini and Kostic, PAM 2015",
        steps: &[
            "There are rules that write a code point into the frames of their flows, which come in one after the other.",
            "All rules are modified at once to write another, with a barrier behind them, while frames go on.",
            "Of every frame it is known when it was sent and which rule it met; lost is one that met none.",
            "The device is mixed from the first frame by a new rule until the last by an old one.",
            "A change has overtaken another that was sent before it, if it was met earlier by more than the time between two frames of a flow.",
        ],
        parameters: &[RULES, TABLE, VERSION, PPS],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Frames lost during the update",
                figure: "lost",
                along: "rules",
                log: false,
            },
            View::Lines {
                title: "How long old and new rules were mixed",
                figure: "mixed_ms",
                along: "rules",
                log: true,
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "lost",
                    "late",
                    "overtaken",
                    "foreign",
                    "mixed_ms",
                    "duplicates",
                ],
            },
        ],
        topology: None,
    },
    setting: Setting::Usual,
    takes,
    seconds: add_flow::seconds,
    measure: |point, station, tools| on_device(point, station, tools, measure),
};

const FIGURES: &[Figure] = &[
    bad("lost", "Frames lost"),
    bad("late", "Frames by an old rule after the barrier"),
    plain("overtaken", "Changes that overtook earlier ones", ""),
    bad("foreign", "Frames by no rule"),
    time("mixed_ms", "Old and new mixed", "ms"),
    bad("duplicates", "Frames twice"),
];

fn measure(point: &Point, rig: &mut dyn Rig) -> Result<Found, TrialError> {
    let flows = Flows::new(rig.version(), point);
    let count = point.small("rules");
    let mut found = Found::at(point);
    if let Some(reason) = add_flow::prepare(rig, flows, count)? {
        lack_all(&mut found.reading, FIGURES, &reason);
        return Ok(found);
    }
    let change = add_flow::modification(flows, count, point.number("pps"));
    let changed = changes::change(rig, change)?;
    let reading = &mut found.reading;
    reading.put("lost", (changed.lost + changed.lost_late) as f64);
    reading.put("late", changed.late as f64);
    reading.put("overtaken", changed.overtaken() as f64);
    reading.put("foreign", changed.foreign as f64);
    reading.put("duplicates", changed.duplicates as f64);
    let first = changed.met.iter().flatten().min();
    match (first, changed.last_met()) {
        (Some(first), Some(last)) => {
            let end = changed.last_old.unwrap_or(last).max(*first);
            reading.put("mixed_ms", ms(end.since(*first)));
        }
        _ => {
            let reason = changed.settled.first_refusal();
            let otherwise = || "not all rules were met by a frame".to_owned();
            reading.lack("mixed_ms", reason.unwrap_or_else(otherwise));
        }
    }
    // Frames that no rule made are what this is about, and speak for themselves.
    changed.note(&mut found);
    Ok(found)
}

#[cfg(test)]
mod tests;

//! Loss and order of frames while all rules change.

use super::changes::{self, RULES};
use super::figures::{bad, lack_all, ms, plain, time};
use super::flows::{FlowRules, TABLE};
use super::rig::ControlRig;
use super::{PPS, TrialReport, VERSION, add_flow, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "consistency".
pub(crate) const CONSISTENCY: Experiment = Experiment {
    description: Description {
        name: "consistency",
        title: "Consistency of forwarding during an update",
        family: Family::Oflops,
        question: "While all rules change, is each frame forwarded by the old or by the new rule, without loss?",
        source: "OFLOPS for NetFPGA SUME, module openflow_consistency; Kuzniar, Peresini and Kostic, PAM 2015",
        steps: &[
            "Rules set a DSCP in the frames of their flows, which are sent in turn.",
            "All rules are modified at once to set another DSCP, followed by a barrier request, while frames are sent.",
            "For each frame, the time of transmission and the rule that forwarded it are known; a frame without a rule is lost.",
            "The device is in a mixed state from the first frame by a new rule to the last frame by an old one.",
            "A change has overtaken an earlier one if it was active before it by more than the interval between two frames of a flow.",
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
                title: "Duration of the mixed state",
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
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: add_flow::seconds,
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    bad("lost", "Frames lost"),
    bad("late", "Frames by an old rule after the barrier reply"),
    plain("overtaken", "Reordered changes", ""),
    bad("foreign", "Frames by no rule"),
    time("mixed_ms", "Mixed state", "ms"),
    bad("duplicates", "Duplicate frames"),
];

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let flows = FlowRules::new(rig.version(), point);
    let count = point.small("rules");
    let mut report = TrialReport::at(point);
    if let Some(reason) = add_flow::prepare(rig, flows, count)? {
        lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let update = add_flow::modification(flows, count, point.number("pps"));
    let effects = changes::update(rig, update)?;
    let reading = &mut report.reading;
    reading.put("lost", (effects.lost + effects.lost_late) as f64);
    reading.put("late", effects.late as f64);
    reading.put("overtaken", effects.overtaken() as f64);
    reading.put("foreign", effects.foreign as f64);
    reading.put("duplicates", effects.duplicates as f64);
    let first = effects.met.iter().flatten().min();
    match (first, effects.last_met()) {
        (Some(first), Some(last)) => {
            let end = effects.last_old.unwrap_or(last).max(*first);
            reading.put("mixed_ms", ms(end.since(*first)));
        }
        _ => {
            let reason = effects.outcome.first_refusal();
            let absence = || "some rules were never active".to_owned();
            reading.lack("mixed_ms", reason.unwrap_or_else(absence));
        }
    }
    // Frames without a rule are a figure of this experiment, so they do not void it.
    effects.note(&mut report);
    Ok(report)
}

#[cfg(test)]
mod tests;

//! Rules that are added or modified under traffic: the time until the first and the last of them is
//! in force.

use flow::FlowModCommand;

use super::changes::{self, RULES, RuleUpdate};
use super::flows::{FlowRules, TABLE, delete_all, drop_rest};
use super::rig::{ControlRig, send_batch};
use super::{PPS, TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "add-flow".
pub(crate) const ADD_FLOW: Experiment = Experiment {
    description: Description {
        name: "add-flow",
        title: "Flow insertion delay",
        family: Family::Oflops,
        question: "How long does a rule take from its flow-mod until it forwards packets?",
        source: "OFLOPS, module openflow_add_flow",
        steps: &[
            "One rule drops all packets; frames of as many flows as rules will be added are sent in turn, and none is forwarded.",
            "All rules are sent at once, followed by a barrier request.",
            "A rule is active when the first frame of its flow arrives at the server; this time includes the delay of the device and the interval between two frames of a flow.",
            "A frame that was sent after the barrier reply and is lost shows that the reply was too early.",
            "The error message of a rejected rule is reported.",
        ],
        parameters: &[RULES, TABLE, VERSION, PPS],
        figures: changes::FIGURES,
        views: CHANGE_VIEWS,
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds,
    measure: |point, setup, tools| on_device(point, setup, tools, add),
    ..Experiment::BASE
};

/// The experiment "mod-flow".
pub(crate) const MOD_FLOW: Experiment = Experiment {
    description: Description {
        name: "mod-flow",
        title: "Flow modification delay",
        family: Family::Oflops,
        question: "How long does a modification take from its flow-mod until it applies to packets?",
        source: "OFLOPS, module openflow_mod_flow",
        steps: &[
            "Rules set a DSCP in the frames of their flows, which are sent in turn.",
            "All rules are modified at once to set another DSCP, followed by a barrier request.",
            "A modification is active when the first frame of its flow arrives with the new DSCP.",
            "A frame that was sent after the barrier reply and has the old DSCP shows that the reply was too early.",
        ],
        parameters: &[RULES, TABLE, VERSION, PPS],
        figures: changes::FIGURES,
        views: CHANGE_VIEWS,
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds,
    measure: |point, setup, tools| on_device(point, setup, tools, modify),
    ..Experiment::BASE
};

const CHANGE_VIEWS: &[View] = &[
    View::Lines {
        title: "Time until the last rule is active, by number of rules",
        figure: "last_ms",
        along: "rules",
        log: true,
    },
    View::Lines {
        title: "Time until the barrier reply",
        figure: "barrier_ms",
        along: "rules",
        log: true,
    },
    View::Shares {
        title: "Time from a message to its effect",
        values: "effect_ns",
    },
    View::Table {
        title: "All figures",
        figures: &[
            "first_ms",
            "last_ms",
            "barrier_ms",
            "said_ms",
            "rules_s",
            "effect_p50_us",
            "effect_p99_us",
            "lag_ms",
            "late",
            "never",
            "resolution_us",
        ],
    },
];

/// Returns the approximate duration of a trial in seconds.
pub(super) fn seconds(point: &Point) -> f64 {
    let round = point.number("rules") as f64 / point.number("pps") as f64;
    0.4 + 3.0 * round + point.number("rules") as f64 * 100e-6
}

pub(super) fn add(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let flows = FlowRules::new(rig.version(), point);
    send_batch(rig, vec![delete_all(), drop_rest()])?;
    let add = |flow| flows.message(FlowModCommand::Add, flow, None);
    let update = RuleUpdate {
        messages: (0..point.small("rules")).map(add).collect(),
        mark: None,
        pps: point.number("pps"),
        poll: None,
    };
    let effects = changes::update(rig, update)?;
    let mut report = TrialReport::at(point);
    // A frame that did not arrive matched the rule that drops.
    let late = match effects.outcome.refused.is_empty() {
        true => effects.lost_late,
        false => 0,
    };
    effects.put_figures(late, &mut report.reading);
    effects.add_flaws(&mut report);
    Ok(report)
}

pub(super) fn modify(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let flows = FlowRules::new(rig.version(), point);
    let count = point.small("rules");
    let mut report = TrialReport::at(point);
    if let Some(reason) = prepare(rig, flows, count)? {
        super::figures::lack_all(&mut report.reading, changes::FIGURES, &reason);
        return Ok(report);
    }
    let update = modification(flows, count, point.number("pps"));
    let effects = changes::update(rig, update)?;
    effects.put_figures(effects.late, &mut report.reading);
    effects.add_flaws(&mut report);
    if effects.lost + effects.lost_late > 0 {
        let lost = effects.lost + effects.lost_late;
        report.notes.push(format!("{lost} frames did not arrive"));
    }
    Ok(report)
}

/// Installs rules that set the first mark. Returns the reason if the device rejects one of them.
pub(super) fn prepare(
    rig: &mut dyn ControlRig,
    flows: FlowRules,
    count: u32,
) -> Result<Option<String>, TrialError> {
    let mark = Some(super::flows::MARKS[0]);
    let rules = (0..count).map(|flow| flows.message(FlowModCommand::Add, flow, mark));
    let messages = [delete_all(), drop_rest()].into_iter().chain(rules);
    Ok(send_batch(rig, messages.collect())?.first_refusal())
}

/// Returns the modification of all these rules to set the second mark.
pub(super) fn modification(flows: FlowRules, count: u32, pps: u64) -> RuleUpdate {
    let mark = Some(super::flows::MARKS[1]);
    let modify = |flow| flows.message(FlowModCommand::ModifyStrict, flow, mark);
    RuleUpdate {
        messages: (0..count).map(modify).collect(),
        mark,
        pps,
        poll: None,
    }
}

#[cfg(test)]
mod tests;

//! Action Delay: the delay of each action of OpenFlow 1.0.

use base::PortNo;
use controller::ControllerError;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match};
use packet::MacAddr;
use record::Conditions;
use trafficgen::template::{Encapsulation, Tag};
use trafficgen::{Pace, Template};

use super::{MILLIS, length, line, seconds};
use crate::catalogue::offered::{FIGURES, Load};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const ACTION: Experiment = Experiment {
    description: Description {
        name: "action-delay",
        title: "Action delay",
        family: Family::LatencyAndLoss,
        question: "How much delay and loss does an action of a rule add?",
        source: "OFLOPS, module openflow_action_delay, and OFLOPS with NetFPGA, section 2",
        steps: &[
            "One rule matches the frames of the client, modifies them with one action of OpenFlow 1.0, and forwards them to the server.",
            "UDP frames are sent at equal gaps, more than 30,000 per trial in the profile paper.",
            "Each received frame is compared with the expected result of the action, including its checksums.",
            "Actions on a VLAN tag are measured with tagged frames; others with untagged frames.",
            "An action that the device rejects has empty cells with the error message.",
        ],
        parameters: &[
            Parameter::axis(
                "action",
                "action of the rule before it forwards the frame",
                Values::words(&["none", "vlan-id", "dl-dst", "nw-dst", "tp-dst"], ACTIONS),
            ),
            Parameter::constant(
                "mbit",
                "load in Mbit/s on the line",
                Values::numbers(&[10], &[20], &[20], [1, 100_000]),
            ),
            Parameter::constant(
                "size",
                "frame size in bytes, with the checksum (FCS)",
                Values::numbers(&[150], &[150], &[150], [68, 1_500]),
            ),
            MILLIS,
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Mean delay by action",
                figure: "mean_us",
                across: "action",
                published: "action-delay",
            },
            View::Runs {
                title: "Mean delay, run by run",
                figure: "mean_us",
                across: "action",
            },
            View::Matrix {
                title: "Loss by action",
                figure: "loss_percent",
                across: "action",
                published: "action-loss",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "mean_us",
                    "deviation_us",
                    "p50_us",
                    "p99_us",
                    "p999_us",
                    "loss_percent",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: |device, point| device.speaks_openflow() || point.word("action") == "none",
    seconds,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

pub(super) const ACTIONS: &[&str] = &[
    "none",
    "vlan-id",
    "vlan-pcp",
    "strip-vlan",
    "dl-src",
    "dl-dst",
    "nw-src",
    "nw-dst",
    "nw-tos",
    "tp-src",
    "tp-dst",
];

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let pace = Pace::Constant(line(point.number("mbit")));
    let size = u16::try_from(point.number("size")).expect("the bound says so");
    let (sent, changed, actions) = changed(point.word("action"), Template::udp(size));
    let mut load = Load::udp(size.into(), pace, length(point));
    load.frames = sent.into();
    load.rewritten = Some(changed.into());
    if plane.speaks_openflow() {
        match plane.install(&[rule(1, actions), rule(2, Vec::new())]) {
            Err(ControllerError::Refused { fault, .. }) => {
                let reading = Reading::lacking(point, FIGURES, &format!("refused: {fault}"));
                let outcome = reading;
                return Ok(TrialResult::new(outcome, Conditions::default()));
            }
            outcome => outcome?,
        }
    }
    let offered = plane.offer(&load)?;
    let reading = offered.reading(point);
    Ok(offered.measured(reading))
}

/// Returns the rule that applies these actions to frames from `port`, and outputs them at the other
/// port.
fn rule(port: u32, mut actions: Vec<Action>) -> FlowMod {
    actions.push(Action::output(PortNo(3 - port)));
    let from = Match::any().with(Field::InPort, port.into());
    let from = from.expect("the port has no prerequisite");
    FlowMod::new(
        FlowModCommand::Add,
        0x8000,
        from,
        Instructions::apply(actions),
    )
}

/// Returns the frame to send for `action`, the expected frame, and the action.
fn changed(action: &str, mut sent: Template) -> (Template, Template, Vec<Action>) {
    let tag = Tag { vid: 100, pcp: 1 };
    if action.contains("vlan") {
        sent.encapsulation = Encapsulation::Vlan(tag);
    }
    let mut after = sent.clone();
    let tagged = |tag| Encapsulation::Vlan(tag);
    let action = match action {
        "vlan-id" => {
            after.encapsulation = tagged(Tag { vid: 200, ..tag });
            Action::SetVlanVid(200)
        }
        "vlan-pcp" => {
            after.encapsulation = tagged(Tag { pcp: 6, ..tag });
            Action::SetVlanPcp(6)
        }
        "strip-vlan" => {
            after.encapsulation = Encapsulation::Plain;
            after.frame_bytes -= 4;
            Action::PopVlan
        }
        "dl-src" => {
            after.source.mac[5] ^= 0x10;
            Action::set(Field::EthSrc, MacAddr(after.source.mac).to_u64().into())
        }
        "dl-dst" => {
            after.destination.mac[5] ^= 0x10;
            Action::set(
                Field::EthDst,
                MacAddr(after.destination.mac).to_u64().into(),
            )
        }
        "nw-src" => {
            after.source.ipv4 = [198, 18, 7, 7].into();
            Action::SetNwSrc(after.source.ipv4.to_bits())
        }
        "nw-dst" => {
            after.destination.ipv4 = [198, 18, 8, 8].into();
            Action::SetNwDst(after.destination.ipv4.to_bits())
        }
        "nw-tos" => {
            after.dscp = 46;
            Action::SetNwTos(46 << 2)
        }
        "tp-src" => {
            after.source.port = 1_111;
            Action::SetTpSrc(1_111)
        }
        "tp-dst" => {
            after.destination.port = 2_222;
            Action::SetTpDst(2_222)
        }
        _ => return (sent, after, Vec::new()),
    };
    (sent, after, vec![action])
}

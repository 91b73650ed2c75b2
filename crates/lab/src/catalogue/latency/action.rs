//! Action Delay: what each action of OpenFlow 1.0 costs a frame.

use base::PortNo;
use controller::ControllerError;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match};
use packet::MacAddr;
use record::{Conditions, Outcome, Reading};
use trafficgen::template::{Encapsulation, Tag};
use trafficgen::{Pace, Template};

use super::{MILLIS, length, line, seconds};
use crate::catalogue::offered::{FIGURES, Load};
use crate::catalogue::plane::{Plane, on_station};
use crate::catalogue::{
    Bound, Description, Experiment, Family, Parameter, Point, Setting, Values, View,
};
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const ACTION: Experiment = Experiment {
    description: Description {
        name: "action-delay",
        title: "What an action costs",
        family: Family::LatencyAndLoss,
        question: "How much longer does a frame take, and are any lost, when its rule changes it?",
        source: "OFLOPS, module openflow_action_delay, and OFLOPS with NetFPGA, section 2",
        steps: &[
            "One rule matches what comes from the client, changes it by one action of OpenFlow 1.0, and outputs it to the server.",
            "Frames of UDP follow each other at equal gaps, more than 30,000 in a test of the profile paper.",
            "Every frame that comes out is compared with what the action should have made of it, its checksums included.",
            "Actions on a tag are tried on frames that bear one; the others bear none.",
            "An action that the device refuses leaves its cells empty, with the device's own words.",
        ],
        parameters: &[
            Parameter::axis(
                "action",
                "what the rule does before it outputs the frame",
                Values::Words {
                    quick: &["none", "vlan-id", "dl-dst", "nw-dst", "tp-dst"],
                    all: ACTIONS,
                },
            ),
            Parameter::constant(
                "mbit",
                "megabits a second of the line",
                Values::Numbers {
                    quick: &[10],
                    paper: &[20],
                    rfc: &[20],
                    bound: Bound {
                        least: 1,
                        most: 100_000,
                    },
                },
            ),
            Parameter::constant(
                "size",
                "bytes of a frame, its checksum (FCS) included",
                Values::Numbers {
                    quick: &[150],
                    paper: &[150],
                    rfc: &[150],
                    bound: Bound {
                        least: 68,
                        most: 1_500,
                    },
                },
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
        topology: None,
    },
    setting: Setting::Usual,
    takes: |device, point| device.speaks_openflow() || point.word("action") == "none",
    seconds,
    measure: |point, station, tools| on_station(point, station, tools, measure),
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

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<Measured, TrialError> {
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
                let outcome = Outcome::Reading(reading);
                return Ok(Measured::new(outcome, Conditions::default()));
            }
            outcome => outcome?,
        }
    }
    let offered = plane.offer(&load)?;
    let reading = offered.reading(point);
    Ok(offered.measured(reading))
}

/// What comes in by `port` goes out by the other, by these actions.
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

/// The frame to send for `action`, what it becomes, and the action.
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

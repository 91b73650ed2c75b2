//! VLAN tags and MPLS labels that a rule pushes or pops, verified in bytes.

use std::time::Duration;

use base::PortNo;
use controller::{DeviceRequests, Link};
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, Refusal};
use openflow::{Message, Version, VersionSet};
use record::Conditions;
use trafficgen::template::{Encapsulation, Label, Tag};
use trafficgen::{Pace, Rate, Template};

use super::{CHANGED, DAMAGED, measured};
use crate::catalogue::in_force;
use crate::catalogue::offered::{FIGURES as LOAD, Load, offer};
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const TAGS: Experiment = Experiment {
    description: Description {
        name: "tags-and-labels",
        title: "Push and pop of VLAN tags and MPLS labels",
        family: Family::Whitebox,
        question: "How much delay does the push or pop of a tag or label add, and is its result correct?",
        source: "vSDNBox, section 6; OpenFlow 1.3.5, 5.12",
        steps: &[
            "The rules are installed by OpenFlow 1.3: one matches the prerequisites of the action, pushes or pops, sets all fields of a pushed header, and forwards to the server.",
            "The load starts when a frame that only these rules drop is no longer forwarded.",
            "Each received frame is compared with the expected result up to its payload, and its checksums are verified.",
            "An action that the device rejects has empty cells with the error message.",
        ],
        parameters: &[
            Parameter::axis(
                "action",
                "pushed or popped header: a tag (802.1Q), a second tag (802.1ad), a label",
                Values::words(&["push-mpls"], NAMES),
            ),
            Parameter::constant(
                "size",
                "size of the sent frame in bytes, with the checksum (FCS)",
                Values::numbers(&[150], &[150], &[150], [72, 1_500]),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[20_000], &[100_000], &[100_000], [100, 10_000_000]),
            ),
            Parameter::constant(
                "millis",
                "duration of the load in milliseconds",
                Values::numbers(&[100], &[3_000], &[60_000], [20, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Median delay by action",
                figure: "p50_us",
                across: "action",
                published: "",
            },
            View::Matrix {
                title: "Wrong frames",
                figure: "changed",
                across: "action",
                published: "",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "received_kpps",
                    "loss_percent",
                    "mean_us",
                    "p50_us",
                    "p99_us",
                    "changed",
                    "damaged",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: |device, _| device.speaks_openflow(),
    seconds: |point| 0.4 + point.number("millis") as f64 / 1e3,
    measure,
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    LOAD[0], LOAD[1], LOAD[2], LOAD[3], LOAD[4], LOAD[5], LOAD[6], LOAD[7], LOAD[8], LOAD[9],
    LOAD[10], CHANGED, DAMAGED,
];

const NAMES: &[&str] = &[
    "none",
    "push-vlan",
    "pop-vlan",
    "push-qinq",
    "pop-qinq",
    "push-mpls",
    "pop-mpls",
];

/// The inner tag, the outer tag, and the label.
const INNER: Tag = Tag { vid: 100, pcp: 1 };
const OUTER: Tag = Tag { vid: 200, pcp: 5 };
const LABEL: Label = Label {
    value: 1_000,
    class: 3,
    ttl: 64,
};

/// Ethernet types of the pushed headers (IEEE 802.1Q, 802.1ad, RFC 5332), and of IPv4.
const VLAN: u16 = 0x8100;
const QINQ: u16 = 0x88a8;
const MPLS: u16 = 0x8847;
const IPV4: u16 = 0x0800;

/// Management socket of a device's bridge, in the device's directory.
const SOCKET: &str = "br0.mgmt";

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let size = u16::try_from(point.number("size")).expect("the bound says so");
    let case = Case::of(point.word("action"), size);
    let rules = case.rules().expect("fields follow their prerequisites");
    if let Some(reason) = install(rules, setup, tools)? {
        let mut reading = Reading::at(point);
        for figure in FIGURES {
            reading.lack(figure.name, reason.clone());
        }
        let nothing = Conditions::default();
        return Ok(TrialResult::new(reading, nothing));
    }
    in_force::wait(setup, tools)?;
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let length = Duration::from_millis(point.number("millis"));
    let mut load = Load::udp(size.into(), pace, length);
    load.frames = case.sent.into();
    load.rewritten = Some(case.becomes.into());
    let offered = offer(&load, setup, tools)?;
    let reading = offered.reading(point);
    Ok(measured(&offered, reading))
}

/// Replaces the rules of the device by these, with OpenFlow 1.3. Returns the reason if the device
/// refuses them.
fn install(
    rules: Vec<FlowMod>,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<Option<String>, TrialError> {
    let messages = rules.into_iter().map(Message::FlowMod).collect();
    let socket = setup.directory.join(SOCKET);
    let done = if socket.exists() {
        let mut link = Link::call(&socket, VersionSet::only(Version::V13), tools.clock)?;
        link.clear()?;
        link.request(messages)?
    } else {
        let Some(mut controller) = setup.controller() else {
            return Ok(Some("it has no controller in this mode".to_owned()));
        };
        if controller.version() < Version::V13 {
            let agreed = controller.version();
            let reason = format!("the device has agreed on {agreed}, which pushes no tags");
            return Ok(Some(reason));
        }
        controller.clear()?;
        controller.request(messages)?
    };
    let first = done.refusals.first();
    Ok(first.map(|refusal| format!("refused: {refusal}")))
}

/// Frame, expected frame, and the rule between them.
struct Case {
    sent: Template,
    becomes: Template,
    /// Matched fields in addition to the ingress port.
    wanted: Vec<(Field, u128)>,
    actions: Vec<Action>,
}

impl Case {
    fn of(name: &str, size: u16) -> Self {
        let plain = Template::udp(size);
        let with = |encapsulation| Template {
            encapsulation,
            ..plain.clone()
        };
        let tagged = with(Encapsulation::Vlan(INNER));
        let (outer, inner) = (OUTER, INNER);
        let twice = with(Encapsulation::QinQ { outer, inner });
        let labelled = with(Encapsulation::Mpls(LABEL));
        // A bit of the VLAN identifier says that a tag is present (OF 1.3.5, 7.2.3.7).
        let vid = |tag: Tag| (Field::VlanVid, u128::from(0x1000 | tag.vid));
        let kind = |kind: u16| (Field::EthType, u128::from(kind));
        let push_tag = |kind, tag: Tag| {
            let (field, value) = vid(tag);
            let pcp = Action::set(Field::VlanPcp, tag.pcp.into());
            vec![Action::PushVlan(kind), Action::set(field, value), pcp]
        };
        let (sent, becomes, wanted, actions) = match name {
            "push-vlan" => (&plain, &tagged, vec![kind(IPV4)], push_tag(VLAN, INNER)),
            "pop-vlan" => (&tagged, &plain, vec![vid(INNER)], vec![Action::PopVlan]),
            "push-qinq" => (&tagged, &twice, vec![vid(INNER)], push_tag(QINQ, OUTER)),
            "pop-qinq" => (&twice, &tagged, vec![vid(OUTER)], vec![Action::PopVlan]),
            "push-mpls" => {
                let label = Action::set(Field::MplsLabel, LABEL.value.into());
                let class = Action::set(Field::MplsTc, LABEL.class.into());
                let push = vec![Action::PushMpls(MPLS), label, class];
                (&plain, &labelled, vec![kind(IPV4)], push)
            }
            "pop-mpls" => {
                let pop = vec![Action::PopMpls(IPV4)];
                (&labelled, &plain, vec![kind(MPLS)], pop)
            }
            _ => (&plain, &plain, Vec::new(), Vec::new()),
        };
        let mut becomes = becomes.clone();
        becomes.frame_bytes = match name {
            name if name.starts_with("push") => size + 4,
            name if name.starts_with("pop") => size - 4,
            _ => size,
        };
        Self {
            sent: sent.clone(),
            becomes,
            wanted,
            actions,
        }
    }

    fn rules(&self) -> Result<Vec<FlowMod>, Refusal> {
        let rule = |matching, actions| {
            let actions = Instructions::apply(actions);
            FlowMod::new(FlowModCommand::Add, 0x8000, matching, actions)
        };
        let from = |port: u32| Match::any().with(Field::InPort, port.into());
        let mut wanted = self.wanted.iter();
        let matching = wanted.try_fold(from(1)?, |matching, (field, value)| {
            matching.with(*field, *value)
        })?;
        let mut actions = self.actions.clone();
        actions.push(Action::output(PortNo(2)));
        Ok(vec![
            in_force::rule(),
            rule(matching, actions),
            rule(from(2)?, vec![Action::output(PortNo(1))]),
        ])
    }
}

#[cfg(test)]
mod tests;
